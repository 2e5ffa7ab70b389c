# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Refuses Keras models whose training a federation cannot repeat."""

from collections.abc import Iterator, Sequence
import contextlib
from typing import Any
import warnings

import tensorflow as tf

from tff_adaptive.models import keras_versions
from tff_adaptive.models import tracing

# Methods by which a model trains in its own way.
_OWN_TRAINING = ('train_step', 'compute_loss', 'compute_metrics')


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
  for weight in model.trainable_weights:
    if getattr(weight, 'constraint', None) is not None:
      raise ValueError(
          f'The weight {name_of(weight)!r} has a constraint, which clients do '
          'not apply after their steps: use a regularizer, or constrain the '
          'weight where the layer reads it.'
      )


@contextlib.contextmanager
def named_state(model: Any) -> Iterator[None]:
  """Names the layer whose state is not among the weights of a model."""
  try:
    yield
  except tracing.HiddenStateError as error:
    for layer in model._flatten_layers():  # pylint: disable=protected-access
      table = getattr(layer, 'lookup_table', None)
      if getattr(table, 'resource_handle', None) is error.handle:
        raise ValueError(
            f'The layer {layer.name!r} looks its inputs up in a table, which '
            'clients do not have: apply the layer to the data, such as by '
            '`dataset.map`, and let the model begin behind it.'
        ) from error
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


def check_moved(weights: Sequence[Any]) -> None:
  """Refuses or warns of weights that the layers assign in training.

  Args:
    weights: The weights.

  Raises:
    ValueError: If one of them is trainable.
  """
  for weight in weights:
    if weight.trainable:
      raise ValueError(
          f'A layer assigns its trainable weight {name_of(weight)!r} in '
          'training, as `SpectralNormalization` does, which a process does not '
          'carry over: use a layer that assigns no weights.'
      )
  if weights:
    others = f' and {len(weights) - 1} more' if len(weights) > 1 else ''
    warnings.warn(
        f'The model moves {name_of(weights[0])!r}{others} in training, but a '
        'process carries only trained weights, so it is evaluated with the '
        'initial values: use `GroupNormalization` instead of batch '
        'normalization.'
    )
