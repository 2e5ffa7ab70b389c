# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The losses and metrics of `Model.compile`, as functions without state."""

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_adaptive.models import keras_versions
from tff_adaptive.models import tracing

_OrderedDict = collections.OrderedDict

# The sizes of two batches of samples, and the length of their other axes, if no
# other label, output or weight has it.
_BATCH_SIZES = (4, 3)
_LENGTH = 5


class Prediction(NamedTuple):
  """The prediction for a batch.

  Attributes:
    outputs: The outputs of the Keras model.
    masks: The mask of each output, or `None`; empty if there are none.
    losses: The sum of the losses that the model adds; empty if there are none.
    class_weights: The weights of all classes; empty if there are none.
    moved: The new values of the weights that the layers assign in training, if
      they are asked for.
  """

  outputs: Any
  masks: tuple[Any, ...] = ()
  losses: tuple[tf.Tensor, ...] = ()
  class_weights: tuple[tf.Tensor, ...] = ()
  moved: tuple[tf.Tensor, ...] = ()

  def masked_outputs(self) -> Any:
    """Returns the outputs with their masks attached, as Keras has them."""
    outputs = tf.nest.map_structure(tf.identity, self.outputs)
    for output, mask in zip(tf.nest.flatten(outputs), self.masks):
      output._keras_mask = mask  # pylint: disable=protected-access
    return outputs

  def to_output(self) -> Any:
    """Returns the outputs alone if there is nothing else."""
    has_parts = self.masks or self.losses or self.class_weights
    return self._replace(moved=()) if has_parts else self.outputs

  @classmethod
  def from_output(cls, output: Any) -> 'Prediction':
    """Returns the prediction of what `to_output` returned."""
    return output if isinstance(output, cls) else cls(output)

  def weigh(self, y: Any, weight: Any) -> Any:
    """Returns sample weights, times the weights of classes, as `fit` has them.

    Args:
      y: The labels of a single output, if classes have weights.
      weight: The sample weights, or `None`.
    """
    if not self.class_weights:
      return weight
    if y.shape.rank > 1:
      y = tf.squeeze(y, -1) if y.shape[-1] == 1 else tf.argmax(y, axis=-1)
    if y.dtype.is_floating:
      y = tf.round(y)
    of_class = tf.gather(self.class_weights[0], tf.cast(y, tf.int32))
    if weight is None:
      return of_class
    # They may have another number of axes, such as [batch, 1].
    rank = max(of_class.shape.rank, weight.shape.rank)
    weight = tf.cast(weight, of_class.dtype)
    return _with_axes(of_class, rank) * _with_axes(weight, rank)


def _with_axes(tensor: tf.Tensor, rank: int) -> tf.Tensor:
  """Returns a tensor with axes of size 1 at its end, to have a rank."""
  return tensor[(..., *[tf.newaxis] * (rank - tensor.shape.rank))]


def find_masks(outputs: Any) -> tuple[Any, ...]:
  """Returns the masks of a model's outputs; empty if there are none."""
  masks = [getattr(t, '_keras_mask', None) for t in tf.nest.flatten(outputs)]
  return () if all(mask is None for mask in masks) else tuple(masks)


class CompiledFunctions:
  """Loss and metrics, as functions without state.

  Attributes:
    metrics_fns: See `tff.learning.models.FunctionalModel`.
  """

  def __init__(
      self,
      keras: keras_versions.Keras,
      compiled: Any,
      prediction: Prediction,
      y: Any,
      weight: Any,
  ):
    """Traces the functions.

    Args:
      keras: The version of Keras.
      compiled: The result of `Keras.compile`.
      prediction: The specs of a prediction.
      y: The specs of labels.
      weight: The specs of sample weights, or `None`.

    Raises:
      ValueError: If the state of a metric is not a sum over batches.
    """
    self._keras = keras
    self._compiled = compiled
    self._has_weight = weight is not None
    samples = [_sample(y, prediction, weight, size) for size in _BATCH_SIZES]
    # Keras makes losses and metrics when it first sees shapes.
    self._run(*samples[0])
    for metric in compiled.metrics:
      metric.reset_state()
    self._metrics = list(_parts(compiled.metrics))
    self._variables = [v for m in self._metrics for v in m.variables]
    self._initial = [v.numpy() for v in self._variables]
    state = [tf.TensorSpec(v.shape, v.dtype) for v in self._variables]
    batch = (y, prediction, weight)
    self._loss = tracing.TracedFunction(self._compute_loss, state, *batch)
    # Metrics take the loss that was differentiated, if it is all they need.
    self._takes_loss = keras.has_one_loss(compiled)
    self._update = tracing.TracedFunction(
        self._update_state,
        state,
        *batch,
        self._loss.result if self._takes_loss else None,
    )
    self._result = tracing.TracedFunction(self._compute_result, state)
    self._check_sums(samples)
    self.metrics_fns = (
        tf.function(self._initialize_metrics),
        tf.function(self._update_metrics),
        tf.function(self._finalize_metrics),
    )

  def loss(self, output: Any, label: Any, sample_weight: Any = None) -> Any:
    """Returns the loss, as the argument of `FunctionalModel`."""
    del sample_weight  # It is part of the labels.
    y, weight = self._split(label)
    return self._batch_loss(y, Prediction.from_output(output), weight)

  def _batch_loss(self, *batch: Any) -> tf.Tensor:
    """Returns the loss of labels, a prediction and sample weights."""
    return self._loss(self._initial, *batch)

  def _split(self, label: Any) -> tuple[Any, Any]:
    """Returns labels and sample weights."""
    return label if self._has_weight else (label, None)

  # These run in traces.

  def _run(
      self, y: Any, prediction: Prediction, weight: Any, loss: Any = None
  ) -> None:
    """Updates all metrics, as `fit` does."""
    y, outputs, weight = _as_keras_has(y, prediction, weight)
    if loss is None:
      self._keras.compute_loss(
          self._compiled, y, outputs, weight, list(prediction.losses)
      )
    else:
      self._keras.track_loss(self._compiled, loss, outputs)
    self._compiled.compute_metrics(None, y, outputs, weight)

  def _compute_loss(self, state, y, prediction, weight):
    with self._keras.stateless(self._variables, state):
      y, outputs, weight = _as_keras_has(y, prediction, weight)
      return self._keras.compute_loss(
          self._compiled, y, outputs, weight, list(prediction.losses)
      )

  def _update_state(self, state, y, prediction, weight, loss):
    with self._keras.stateless(self._variables, state) as value_of:
      self._run(y, prediction, weight, loss)
      return [value_of(variable) for variable in self._variables]

  def _compute_result(self, state):
    with self._keras.stateless(self._variables, state):
      return _flat(self._compiled.get_metrics_result())

  # These are functions of TFF.

  def _initialize_metrics(self):
    return self._name(map(tf.constant, self._initial))

  def _update_metrics(self, state, labels, batch_output, sample_weight=None):
    del sample_weight  # It is part of the labels.
    y, weight = self._split(labels)
    batch = (y, Prediction.from_output(batch_output.predictions), weight)
    values = [value for values in state.values() for value in values]
    return self._name(self._add(values, batch, batch_output.loss))

  def _add(self, state: Any, batch: Any, loss: Any = None) -> Any:
    """Adds a batch, and its loss if it is known, to the state of metrics."""
    if not self._takes_loss:
      loss = None
    elif loss is None:
      loss = self._batch_loss(*batch)
    return self._update(state, *batch, loss)

  def _finalize_metrics(self, state):
    values = [value for values in state.values() for value in values]
    return _OrderedDict(self._result(values))

  def _name(self, state: Any) -> '_OrderedDict[str, tuple[tf.Tensor, ...]]':
    """Returns the state of each metric by its name."""
    values = iter(state)
    named: _OrderedDict[str, tuple[tf.Tensor, ...]] = _OrderedDict()
    for metric in self._metrics:
      name = metric.name
      while name in named:  # Such as the same metric of two outputs.
        name += '_'
      named[name] = tuple(next(values) for _ in metric.variables)
    return named

  def _check_sums(self, samples: Sequence[Any]) -> None:
    """Raises unless the states of all metrics are sums over batches."""
    zeros = [np.zeros_like(value) for value in self._initial]
    one, other = (self._add(zeros, sample) for sample in samples)
    both = self._add(one, samples[1])
    is_sum = iter(
        not np.any(initial)
        and np.allclose(a + b, ab, rtol=1e-3, atol=1e-5, equal_nan=True)
        for initial, a, b, ab in zip(self._initial, one, other, both)
    )
    for metric in self._metrics:
      if not all([next(is_sum) for _ in metric.variables]):
        raise ValueError(
            f'The state of the metric {metric.name!r} is not a sum over '
            'batches, so the states of clients cannot be added: leave the '
            'metric out, or let its variables begin with zeros, to which '
            '`update_state` adds.'
        )


def _as_keras_has(y: Any, prediction: Prediction, weight: Any) -> Any:
  """Returns labels, masked outputs and sample weights, as in `fit`."""
  weight = prediction.weigh(y, weight)
  outputs = prediction.masked_outputs()
  return (
      keras_versions.in_order_of(outputs, y),
      outputs,
      keras_versions.in_order_of(outputs, weight),
  )


def _flat(results: Mapping[str, Any]) -> dict[str, Any]:
  """Returns results of metrics, with those of a mapping by their own names."""
  flat: dict[str, Any] = {}
  for name, result in results.items():
    if isinstance(result, Mapping):
      flat |= _flat(result)
    else:  # It may be a variable, whose value is that of now.
      flat[name] = tf.nest.map_structure(tf.convert_to_tensor, result)
  return flat


def _parts(metrics: Sequence[Any]) -> Iterator[Any]:
  """Yields metrics, instead of those that are only metrics their parts."""
  for metric in metrics:
    inner = getattr(metric, 'metrics', ())
    if inner and len(metric.variables) == sum(len(m.variables) for m in inner):
      yield from _parts(inner)
    else:
      yield metric


def _sample(y: Any, prediction: Any, weight: Any, batch_size: int) -> Any:
  """Returns a batch that losses take: labels 0 and 1, and probabilities."""
  generator = np.random.default_rng(batch_size)
  known = {0: batch_size}
  leaves = (weight, prediction.masks, y, prediction.outputs)
  for spec in tf.nest.flatten(leaves):
    for axis, length in enumerate(() if spec is None else spec.shape):
      # Others may lack an axis of length 1.
      if length is not None and (length > 1 or not axis):
        known[axis] = length

  def fill(spec, draw):
    if spec is None:
      return None
    lengths = [
        known.get(axis, _LENGTH) if length is None else length
        for axis, length in enumerate(spec.shape)
    ]
    if spec.dtype == tf.string:
      return tf.fill(lengths, '')
    return tf.cast(draw(lengths), spec.dtype)

  labels = tf.nest.map_structure(
      lambda spec: fill(spec, lambda shape: generator.integers(2, size=shape)),
      y,
  )
  return labels, *tf.nest.map_structure(
      lambda spec: fill(spec, lambda shape: generator.uniform(size=shape)),
      (prediction, weight),
  )
