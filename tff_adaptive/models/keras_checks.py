# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Refuses Keras models whose training a federation cannot repeat."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
from typing import Any
import warnings

import tensorflow as tf
from tensorflow.python.framework import errors

from tff_adaptive.models import keras_versions
from tff_adaptive.models import tracing

# See `from_keras`.
BATCH, AGGREGATE, LOCAL, FEDBN = BATCH_STATISTICS = (
    'batch',
    'aggregate',
    'local',
    'fedbn',
)
# Methods by which a model trains or is evaluated in its own way.
_OWN_TRAINING = ('train_step', 'test_step', 'compute_loss', 'compute_metrics')


def name_of(variable: Any) -> str:
  """Returns the name of a variable, with that of its layer."""
  return getattr(variable, 'path', variable.name).partition(':')[0]


def check(keras: keras_versions.Keras, model: Any) -> None:
  """Raises unless a model can be trained as `fit` trains it.

  Args:
    keras: The version of Keras.
    model: The model.

  Raises:
    ValueError: If it cannot.
  """
  if not tf.executing_eagerly():
    raise ValueError(
        '`from_keras` must be called outside of graphs and of `tf.function`s.'
    )
  if not model.built or not model.weights:
    raise ValueError(
        f'The Keras model {model.name!r} has no weights yet: let it begin with '
        'an `Input`, or call it once, such as `model(tf.zeros([1, 28, 28]))`.'
    )
  for name in _OWN_TRAINING:
    if getattr(type(model), name) is not getattr(keras.model_class, name):
      raise ValueError(
          f'The Keras model {model.name!r} has its own `{name}`, which a '
          'process does not call: use `loss`, `metrics` and `add_loss`, or '
          'write a `tff.learning.models.VariableModel`.'
      )
  for layer in model._flatten_layers():  # pylint: disable=protected-access
    lookup = getattr(layer, '_lookup_layer', layer)
    table = getattr(lookup, 'lookup_table', None)
    if table is not None and not table.size():
      raise ValueError(
          f'The layer {layer.name!r} looks its inputs up in a table without '
          'words: give it a `vocabulary`, or call its `adapt` before.'
      )
  for weight in model.trainable_weights:
    if getattr(weight, 'constraint', None) is not None:
      raise ValueError(
          f'The weight {name_of(weight)!r} has a constraint, which clients do '
          'not apply after their steps: use a regularizer, or constrain the '
          'weight where the layer reads it.'
      )


def check_metrics(model: Any, metrics: Any) -> None:
  """Raises if a metric is of the other version of Keras.

  Args:
    model: The model.
    metrics: A structure of metrics, as for `Model.compile`.

  Raises:
    TypeError: If it is.
  """
  is_keras_2 = isinstance(model, tf.keras.Model)
  for metric in tf.nest.flatten(metrics):
    is_of_3 = keras_versions.is_keras_3(metric)
    is_of_2 = isinstance(metric, tf.keras.metrics.Metric)
    if is_of_3 if is_keras_2 else is_of_2:
      own, other = (
          ('tf.keras', 'keras') if is_keras_2 else ('keras', 'tf.keras')
      )
      raise TypeError(
          f'The metric {metric.name!r} is one of `{other}.metrics`, but the '
          f'model is one of `{own}`: take that of `{own}.metrics`.'
      )


@contextlib.contextmanager
def named_state(model: Any) -> Iterator[None]:
  """Names the state that is not among the weights of a model."""
  try:
    yield
  except tracing.HiddenStateError as error:
    if 'seed_generator' in error.name:
      cause = (
          "draws random numbers with Keras' global seed: give `keras.random` a "
          '`keras.random.SeedGenerator` that the layer holds'
      )
    else:
      cause = (
          f'or a metric keeps {error.name or "a resource"!r}, which is none of '
          'its weights, so that clients do not have it: make it a weight '
          '(`add_weight`), or leave it out'
      )
    raise ValueError(f'The Keras model {model.name!r} {cause}.') from error
  except errors.InaccessibleTensorError as error:
    raise ValueError(
        f'The Keras model {model.name!r} assigns a weight, or draws random '
        'numbers, inside of a `tf.cond` or a loop, out of which no value comes '
        f'but the result: do so outside of it. {error}'
    ) from error


def check_class_weight(class_weight: Mapping[int, float], labels: Any) -> None:
  """Raises unless classes can have weights.

  Args:
    class_weight: See `from_keras`; empty if there are none.
    labels: The specs of labels.

  Raises:
    ValueError: If they cannot.
  """
  if not class_weight:
    return
  if sorted(class_weight) != list(range(len(class_weight))):
    raise ValueError(
        '`class_weight` must map all classes, 0 to their number minus 1, to '
        f'their weights, found {dict(class_weight)}.'
    )
  if tf.nest.is_nested(labels):
    raise ValueError(
        '`class_weight` is for models with one output: give sample weights, '
        'the third part of a batch.'
    )
  if labels.shape.rank is None or labels.shape.as_list()[1:][-1:] == [None]:
    raise ValueError(
        '`class_weight` needs labels whose last axis is known, as 1 for the '
        'numbers of classes or as the number of classes, found the shape '
        f'{labels.shape}.'
    )


def check_moved(weights: Sequence[Any], batch_statistics: str) -> None:
  """Refuses or warns of weights that the layers assign in training.

  Args:
    weights: The weights.
    batch_statistics: See `from_keras`.

  Raises:
    ValueError: If one of them is trainable, or cannot be averaged but has to.
  """
  for weight in weights:
    if weight.trainable:
      raise ValueError(
          f'A layer assigns its trainable weight {name_of(weight)!r} in '
          'training, as `SpectralNormalization` does, which a process does not '
          'carry over: use a layer that assigns no weights.'
      )
    dtype = tf.as_dtype(weight.dtype)
    if batch_statistics == AGGREGATE and not dtype.is_floating:
      raise ValueError(
          f'A layer assigns its weight {name_of(weight)!r} of dtype '
          f'{dtype.name} in training, of which clients have no mean: use '
          "`batch_statistics='local'`, or a float weight."
      )
  if weights and batch_statistics == BATCH:
    others = f' and {len(weights) - 1} more' if len(weights) > 1 else ''
    warnings.warn(
        f'The model moves {name_of(weights[0])!r}{others} in training, but '
        "with `batch_statistics='batch'` a process carries only trained "
        'weights, so it is evaluated with the initial values: use '
        "`batch_statistics='aggregate'`, or `GroupNormalization` instead of "
        'batch normalization.'
    )


def check_moved_in_evaluation(weights: Sequence[Any]) -> None:
  """Warns of weights that the layers assign in evaluation.

  Args:
    weights: The weights.
  """
  if weights:
    warnings.warn(
        f'The model moves {name_of(weights[0])!r} in evaluation, too, where a '
        'process leaves it as it is, so that the order of batches does not '
        'matter: assign it only if `training`.'
    )
