# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A common interface to TFF's two kinds of models.

A `tff.learning.models.FunctionalModel` takes its weights as arguments; a
`tff.learning.models.VariableModel` holds them in variables, together with its
metrics. The local loop sees only a `LocalModel`, which a `ModelAdapter` builds
inside the graph of the client's work.
"""

import abc
from collections.abc import Callable, Iterator, Mapping
import contextlib
import copy
import functools
import threading
from typing import Any, NamedTuple, Optional, Union
import warnings

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.client_works import derived_tensors
from tff_adaptive.client_works import late_metrics
from tff_adaptive.client_works import model_checks
from tff_adaptive.client_works import moved_variables
from tff_adaptive.data import specs as specs_lib
from tff_adaptive.models import compiled
from tff_adaptive.models import conversion
from tff_adaptive.models import keras_versions
from tff_adaptive.models import moved_weights as moved_weights_lib


def pack_weights(spec: Any, weights: Any) -> Any:
  """Returns a model's weights in the structure of a spec.

  Args:
    spec: The specs of the weights, a `tff.learning.models.ModelWeights`.
    weights: The weights, in any structure with the same order.

  Returns:
    The weights.

  Raises:
    ValueError: If they are not the weights of the model.
  """
  found = tf.nest.flatten(weights)
  wanted = [tuple(leaf.shape) for leaf in tf.nest.flatten(spec)]
  shapes = [np.shape(leaf) for leaf in found]
  if shapes != wanted:
    raise ValueError(
        f'The weights of the model have the shapes {wanted}, found a '
        f'{type(weights).__name__} with {shapes}: pass '
        '`process.get_model_weights(state)` of a process with this model.'
    )
  return tf.nest.pack_sequence_as(spec, found)


Model = Union[
    tff.learning.models.FunctionalModel,
    Callable[[], tff.learning.models.VariableModel],
]
Weights = tuple[tf.Tensor, ...]
# Maps (trainable weights, batch) to a scalar that is added to the model's loss.
BatchLossTerm = Callable[[Weights, Any], tf.Tensor]
# Maps (trainable weights, batch) to the batch's representations, [batch, ...].
RepresentationFn = Callable[[Weights, Any], tf.Tensor]

_WARNINGS_LOCK = threading.Lock()


class Evaluation(NamedTuple):
  """The evaluation of one batch.

  Attributes:
    loss: The loss of the batch, with the loss term; a scalar.
    gradients: The gradients of `loss`, a tuple with one entry per trainable
      weight: a tensor, `tf.IndexedSlices` or `None`. Empty if not asked for.
    predictions: The model's predictions for the batch.
    num_examples: The number of examples in the batch, an int64 scalar.
    mean_loss: `loss` itself, or per example if the model's loss is a sum.
    model_loss: The loss of the batch without the loss term.
    moved: The new values of the moved weights, see `LocalModel`.
  """

  loss: tf.Tensor
  gradients: tuple[Any, ...]
  predictions: Any
  num_examples: tf.Tensor
  mean_loss: tf.Tensor
  model_loss: tf.Tensor
  moved: Weights = ()


class LocalModel(abc.ABC):
  """A model inside a graph, whose trainable weights are a flat tuple.

  Attributes:
    parts: The Keras objects of the model, or `None`.
    moved_weights: The weights that the forward pass assigns in training and
      that a client sends or keeps.
  """

  moved_weights = moved_weights_lib.NONE

  def __init__(self, parts: Optional[model_checks.KerasParts]):
    self.parts = parts

  def with_moved(self, moved: Weights) -> 'LocalModel':
    """Returns the model with other values of the moved weights."""
    del moved  # There are none.
    return self

  @abc.abstractmethod
  def start(self, weights: tff.learning.models.ModelWeights) -> Any:
    """Takes the received weights and returns empty metrics."""

  @abc.abstractmethod
  def forward(
      self, trainable: Weights, batch: Any, training: bool
  ) -> tff.learning.models.BatchOutput:
    """Returns loss and predictions; a variable model updates its metrics."""

  def evaluate(self, trainable: Weights, batch: Any) -> Evaluation:
    """Returns the loss at `trainable` at inference, without dropout."""
    output = self.forward(trainable, batch, training=False)
    _check_is_scalar(output.loss)
    return Evaluation(
        output.loss,
        (),
        output.predictions,
        _num_examples(output),
        self.mean_loss(output),
        output.loss,
    )

  def mean_loss(self, output: tff.learning.models.BatchOutput) -> tf.Tensor:
    """Returns the loss of a batch as a mean over its examples."""
    if not self._sums_losses():
      return output.loss
    num_examples = tf.cast(_num_examples(output), output.loss.dtype)
    # Each example bears the whole penalty, as with a mean.
    penalty = tf.cast(self._penalty(output), output.loss.dtype)
    return tf.math.divide_no_nan(output.loss - penalty, num_examples) + penalty

  def _sums_losses(self) -> bool:
    return self.parts is not None and self.parts.sums_losses

  def _penalty(self, output: tff.learning.models.BatchOutput) -> Any:
    """Returns the losses that do not depend on the batch."""
    del output  # It does not have them.
    assert self.parts is not None
    return self.parts.penalty

  @abc.abstractmethod
  def value_and_grad(
      self,
      trainable: Weights,
      batch: Any,
      loss_term: Optional[BatchLossTerm] = None,
  ) -> Evaluation:
    """Returns loss and gradients; a variable model updates its metrics."""

  def value_and_grad_again(
      self,
      trainable: Weights,
      batch: Any,
      loss_term: Optional[BatchLossTerm] = None,
  ) -> Evaluation:
    """Returns the same without side effects, for a batch already counted."""
    return self.value_and_grad(trainable, batch, loss_term)

  def differentiable_loss(
      self, trainable: Weights, evaluation: Evaluation
  ) -> tf.Tensor:
    """Returns the loss of an evaluation, for differentiating by the weights."""
    del trainable  # Its loss depends on them.
    return evaluation.loss

  def evaluate_again(self, trainable: Weights, batch: Any) -> Evaluation:
    """Returns `evaluate` without side effects, for a batch already counted.

    In the loss, classes have the weights that they have in training.
    """
    return self.evaluate(trainable, batch)

  @abc.abstractmethod
  def update_metrics(
      self, metrics: Any, batch: Any, evaluation: Evaluation
  ) -> Any:
    """Returns the metrics updated by one more batch."""

  @abc.abstractmethod
  def report_metrics(self, metrics: Any, is_healthy: tf.Tensor) -> Any:
    """Returns the unfinalized metrics, empty if `is_healthy` is false."""


@attrs.frozen(kw_only=True, eq=False)
class ModelAdapter:
  """The types of a model, and a builder of it inside a client's graph.

  Attributes:
    weights_spec: The model's `tff.learning.models.ModelWeights`, with a
      `tf.TensorSpec` for each weight.
    weights_type: The `tff.Type` of the weights.
    element_type: The `tff.Type` of a batch.
    metric_finalizers: The argument of `tff.learning.metrics` aggregators.
    initial_weights: Returns the initial weights in the current graph.
    build_local_model: Builds the model in the current graph.
    moved_weights: See `LocalModel`.
  """

  weights_spec: tff.learning.models.ModelWeights
  weights_type: tff.Type
  element_type: tff.Type
  metric_finalizers: Any
  initial_weights: Callable[[], tff.learning.models.ModelWeights]
  build_local_model: Callable[[], LocalModel]
  moved_weights: moved_weights_lib.MovedWeights = moved_weights_lib.NONE

  def finalize_metrics(self, unfinalized: Any) -> Mapping[str, Any]:
    """Returns metrics from unfinalized ones, in the current graph."""
    if callable(self.metric_finalizers):
      return _autograph.call(self.metric_finalizers, unfinalized)
    return {
        name: _autograph.call(self.metric_finalizers[name], values)
        for name, values in unfinalized.items()
    }


def _num_examples(output: tff.learning.models.BatchOutput) -> tf.Tensor:
  num_examples = output.num_examples
  if num_examples is None:
    num_examples = tf.shape(tf.nest.flatten(output.predictions)[0])[0]
  return tf.cast(num_examples, tf.int64)


def _check_is_scalar(loss: Any, what: str = "The model's loss") -> None:
  if loss is None:
    raise ValueError(f'{what} must be one number per batch, found None.')
  if tf.is_tensor(loss) and loss.shape.rank not in (0, None):
    raise ValueError(
        f'{what} must be one number per batch, found shape {loss.shape}: use '
        'the default reduction of a Keras loss, or take the mean.'
    )


def _differentiate(
    forward: Callable[[], tff.learning.models.BatchOutput],
    sources: Any,
    loss_term: Callable[[], Any],
    mean_loss: Callable[[tff.learning.models.BatchOutput], tf.Tensor],
) -> Evaluation:
  """Returns loss and gradients with respect to `sources` of `forward`."""
  with tf.GradientTape() as tape:
    # The tape watches variables by itself.
    tape.watch([s for s in sources if not isinstance(s, tf.Variable)])
    output = forward()
    _check_is_scalar(output.loss)
    term = loss_term()
    _check_is_scalar(term, 'The loss term')
    term = tf.cast(term, output.loss.dtype)
    loss = output.loss + term
  gradients = tuple(tape.gradient(loss, sources))
  mean = mean_loss(output)
  return Evaluation(
      loss,
      gradients,
      output.predictions,
      _num_examples(output),
      loss if mean is output.loss else mean + term,
      output.loss,
  )


def _places_of_none(gradients: tuple[Any, ...]) -> list[int]:
  """Returns the places of weights on which the loss does not depend."""
  return [place for place, one in enumerate(gradients) if one is None]


@contextlib.contextmanager
def inference_by_default() -> Iterator[None]:
  """Makes inference the default of Keras layers without `training` argument.

  TFF clones a Keras model each time a functional model predicts, and Keras
  calls each layer of the clone once on a placeholder that is never fed. By
  default that call adds random ops of dropout layers, on which TFF's worker
  fails; at inference it adds none. The prediction itself passes `training`.
  """
  scope = tf.keras.backend.learning_phase_scope(0)
  with contextlib.ExitStack() as stack:
    # `catch_warnings` affects all threads, so hold it as briefly as possible.
    with _WARNINGS_LOCK, warnings.catch_warnings():
      # Deprecated, since TensorFlow 2 needs it only in such graphs.
      warnings.simplefilter('ignore')
      stack.enter_context(scope)
    yield


class _LocalFunctionalModel(LocalModel):
  """A functional model, which has no state."""

  def __init__(
      self,
      model: tff.learning.models.FunctionalModel,
      parts: Optional[model_checks.KerasParts],
      warn_of_unread: Callable[[tuple[str, ...]], None],
  ):
    super().__init__(parts)
    self._model = model
    self._warn_of_unread = warn_of_unread
    self._trainable_structure = model.initial_weights[0]
    self._non_trainable = ()

  def start(self, weights):
    self._non_trainable = weights.non_trainable
    return _autograph.call(self._model.initialize_metrics_state)

  def forward(self, trainable, batch, training):
    x, y = features_and_labels(batch)
    weights = (
        tf.nest.pack_sequence_as(self._trainable_structure, trainable),
        self._non_trainable,
    )
    return self._output(self._predict(weights, x, training), y)

  def _predict(self, weights, x, training):
    with inference_by_default():
      return _autograph.call(
          self._model.predict_on_batch, weights, x, training=training
      )

  def _output(self, predictions, y):
    return tff.learning.models.BatchOutput(
        loss=_autograph.call(self._model.loss, output=predictions, label=y),
        predictions=predictions,
        num_examples=tf.shape(tf.nest.flatten(predictions)[0])[0],
    )

  def value_and_grad(self, trainable, batch, loss_term=None):
    evaluation = _differentiate(
        lambda: self.forward(trainable, batch, training=True),
        trainable,
        lambda: 0.0 if loss_term is None else loss_term(trainable, batch),
        self.mean_loss,
    )
    if unread := _places_of_none(evaluation.gradients):
      names = specs_lib.field_names(self._trainable_structure)
      weights = tf.nest.flatten(self._trainable_structure)
      self._warn_of_unread(
          tuple(
              f'{names[place]} of shape {list(np.shape(weights[place]))}'
              for place in unread
          )
      )
    return evaluation

  def update_metrics(self, metrics, batch, evaluation):
    _, labels = features_and_labels(batch)
    output = tff.learning.models.BatchOutput(
        loss=evaluation.model_loss,
        predictions=evaluation.predictions,
        num_examples=evaluation.num_examples,
    )
    return _autograph.call(
        self._model.update_metrics_state,
        metrics,
        labels=labels,
        batch_output=output,
    )

  def report_metrics(self, metrics, is_healthy):
    return tf.nest.map_structure(
        lambda counted, empty: tf.where(is_healthy, counted, empty),
        metrics,
        _autograph.call(self._model.initialize_metrics_state),
    )


class _Predictions(NamedTuple):
  """Predictions, and the new values of the moved weights."""

  predictions: Any
  moved: Weights


class _LocalKerasModel(_LocalFunctionalModel):
  """A model of `from_keras`."""

  def evaluate_again(self, trainable, batch):
    evaluation = self.evaluate(trainable, batch)
    if not self._model.has_class_weights:
      return evaluation
    _, y = features_and_labels(batch)
    output = self._output(self._model.weigh_classes(evaluation.predictions), y)
    return evaluation._replace(
        loss=output.loss,
        mean_loss=self.mean_loss(output),
        model_loss=output.loss,
    )

  def _sums_losses(self):
    return self._model.reports_mean

  def _penalty(self, output):
    predictions = output.predictions
    if isinstance(predictions, _Predictions):
      predictions = predictions.predictions
    losses = compiled.Prediction.from_output(predictions).losses
    return tf.add_n(losses) if losses else 0.0


class _MovingKerasModel(_LocalKerasModel):
  """A model of `from_keras` that moves weights in training."""

  def __init__(self, model: conversion.KerasFunctionalModel, *args: Any):
    super().__init__(model, *args)
    self.moved_weights = model.moved

  def with_moved(self, moved):
    model = copy.copy(self)
    model._non_trainable = self.moved_weights.put(self._non_trainable, moved)
    return model

  def _predict(self, weights, x, training):
    if not training:
      return super()._predict(weights, x, training)
    return _Predictions(*self._model.predict_and_move(weights, x))

  def _output(self, predictions, y):
    if not isinstance(predictions, _Predictions):
      return super()._output(predictions, y)
    output = super()._output(predictions.predictions, y)
    return output._replace(predictions=predictions)

  def value_and_grad(self, trainable, batch, loss_term=None):
    evaluation = super().value_and_grad(trainable, batch, loss_term)
    predictions, moved = evaluation.predictions
    return evaluation._replace(predictions=predictions, moved=moved)


class _LocalVariableModel(LocalModel):
  """A variable model, whose weights and metrics are variables of the graph."""

  def __init__(
      self,
      model: tff.learning.models.VariableModel,
      parts: Optional[model_checks.KerasParts],
      warn: Callable[[tuple[str, ...]], None],
      warn_of_unread: Callable[[tuple[str, ...]], None],
      derives_tensors: bool,
  ):
    super().__init__(parts)
    self._model = model
    self._warn = warn
    self._warn_of_unread = warn_of_unread
    self._derives_tensors = derives_tensors
    self._trainable = tuple(model.trainable_variables)

  def start(self, weights):
    for variable, value in zip(
        self._model.non_trainable_variables, weights.non_trainable
    ):
      variable.assign(value)
    _autograph.call(self._model.reset_metrics)
    return ()

  def _assign(self, trainable):
    for variable, value in zip(self._trainable, trainable):
      variable.assign(value)

  def forward(self, trainable, batch, training):
    self._assign(trainable)
    return self._forward_pass(batch, training)

  def _forward_pass(self, batch, training):
    if self._derives_tensors and not tf.executing_eagerly():
      output = derived_tensors.call_forward(self._model, batch, training)
    else:
      output = _autograph.call(
          self._model.forward_pass, batch, training=training
      )
    num_weights = len(self._model.trainable_variables)
    if num_weights != len(self._trainable):
      raise ValueError(
          f'The model has {len(self._trainable)} trainable variables, but '
          f'{num_weights} after `forward_pass`; later ones would not be '
          'trained. Make all in `__init__`, for example by calling a Keras '
          'model once.'
      )
    return output

  def value_and_grad(self, trainable, batch, loss_term=None):
    self._assign(trainable)
    with moved_variables.find(self._model.non_trainable_variables) as moved:
      evaluation = _differentiate(
          lambda: self._forward_pass(batch, training=True),
          self._trainable,
          # A function of the variables, so that its gradient reaches them.
          lambda: (
              0.0
              if loss_term is None
              else loss_term(tuple(v.value() for v in self._trainable), batch)
          ),
          self.mean_loss,
      )
    if moved:
      self._warn(tuple(moved))
    if unread := _places_of_none(evaluation.gradients):
      names = (self._trainable[place].name for place in unread)
      self._warn_of_unread(tuple(name.partition(':')[0] for name in names))
    return evaluation

  def value_and_grad_again(self, trainable, batch, loss_term=None):
    return self._restored(self.value_and_grad, trainable, batch, loss_term)

  def differentiable_loss(self, trainable, evaluation):
    # The loss depends on variables, to which the weights were assigned.
    @tf.custom_gradient
    def attach(loss, *weights):
      del weights  # They have the gradients of the evaluation.
      return tf.identity(loss), lambda upstream: (
          None,
          *(
              None if g is None else tf.math.scalar_mul(upstream, g)
              for g in evaluation.gradients
          ),
      )

    return attach(evaluation.loss, *trainable)

  def evaluate_again(self, trainable, batch):
    return self._restored(self.evaluate, trainable, batch)

  def _restored(self, evaluate, *args):
    # The forward pass updates metrics and may move batch statistics.
    touched = [
        *self._model.local_variables,
        *self._model.non_trainable_variables,
    ]
    before = [tf.identity(v.read_value()) for v in touched]
    evaluation = evaluate(*args)
    for variable, value in zip(touched, before):
      variable.assign(value)
    return evaluation

  def update_metrics(self, metrics, batch, evaluation):
    del batch, evaluation  # The forward pass has updated the metrics.
    return metrics

  def report_metrics(self, metrics, is_healthy):
    del metrics  # They are in variables.

    def reset():
      _autograph.call(self._model.reset_metrics)
      return tf.no_op()

    tf.cond(is_healthy, tf.no_op, reset)
    return _autograph.call(self._model.report_local_unfinalized_metrics)


def _map_initial_weights(
    fn: Callable[[Any], Any], model: tff.learning.models.FunctionalModel
) -> tff.learning.models.ModelWeights:
  """Maps a functional model's initial weights; turns its lists into tuples."""
  return tff.learning.models.ModelWeights(
      *(
          tf.nest.map_structure(
              fn, tuple(weights) if isinstance(weights, list) else weights
          )
          for weights in model.initial_weights
      )
  )


def _adapt_functional(
    model: tff.learning.models.FunctionalModel,
) -> ModelAdapter:
  """Returns the adapter of a functional model."""
  parts = model_checks.find_keras(model)
  model_checks.check(model, parts)
  model = late_metrics.build_in_functional(model, parts)
  # Warn once, however many graphs the model is built in.
  warn_of_unread = functools.cache(model_checks.warn_of_unread)
  weights_spec = _map_initial_weights(
      lambda w: tf.TensorSpec(w.shape, w.dtype), model
  )
  moved = moved_weights_lib.NONE
  local_class: Any = _LocalFunctionalModel
  if isinstance(model, conversion.KerasFunctionalModel):
    moved = model.moved
    local_class = _MovingKerasModel if moved.places else _LocalKerasModel
  return ModelAdapter(
      weights_spec=weights_spec,
      weights_type=tff.types.tensorflow_to_type(weights_spec),
      element_type=tff.types.tensorflow_to_type(model.input_spec),
      metric_finalizers=model.finalize_metrics,
      initial_weights=lambda: _map_initial_weights(tf.convert_to_tensor, model),
      build_local_model=lambda: local_class(model, parts, warn_of_unread),
      moved_weights=moved,
  )


def _adapt_variable(
    model_fn: Callable[[], tff.learning.models.VariableModel],
) -> ModelAdapter:
  """Returns the adapter of a factory of variable models."""
  # Warn once, however many graphs the model is built in.
  warn = functools.cache(moved_variables.warn)
  warn_of_unread = functools.cache(model_checks.warn_of_unread)

  def build():
    model = model_fn()
    if not isinstance(model, tff.learning.models.VariableModel):
      raise TypeError(
          'The model factory must return a `tff.learning.models.VariableModel`,'
          f' found {type(model)}. For a Keras model, return '
          '`tff.learning.models.from_keras_model(...)`.'
      )
    parts = model_checks.find_keras(model)
    return model, parts, late_metrics.build_in_variable(model, parts)

  def build_local_model():
    model, parts, _ = build()
    return _LocalVariableModel(
        model, parts, warn, warn_of_unread, derives_tensors
    )

  # A graph of its own, so that no variable outlives this inspection.
  with tf.Graph().as_default():
    model, parts, metric_finalizers = build()
    model_checks.check(model, parts)
    derives_tensors = derived_tensors.exist(model)
    return ModelAdapter(
        weights_spec=tf.nest.map_structure(
            lambda v: tf.TensorSpec(v.shape, v.dtype),
            tff.learning.models.ModelWeights.from_model(model),
        ),
        weights_type=tff.learning.models.weights_type_from_model(model),
        element_type=tff.types.tensorflow_to_type(model.input_spec),
        metric_finalizers=metric_finalizers,
        initial_weights=lambda: tff.learning.models.ModelWeights.from_model(
            build()[0]
        ),
        build_local_model=build_local_model,
    )


def features_and_labels(batch: Any) -> tuple[Any, Any]:
  """Returns 'x' and 'y' of a mapping, or the two parts of a pair.

  With sample weights, the third part, the labels are a pair of both.
  """
  if isinstance(batch, Mapping):
    batch = [batch[name] for name in conversion.PARTS[: len(batch)]]
  x, *labels = batch
  return x, labels[0] if len(labels) == 1 else tuple(labels)


def build_model_adapter(model: Model) -> ModelAdapter:
  """Builds the adapter that fits `model`.

  Args:
    model: A `tff.learning.models.FunctionalModel`, or a function without
      arguments that returns a new `tff.learning.models.VariableModel` at every
      call.

  Returns:
    A `ModelAdapter`.

  Raises:
    TypeError: If `model` is neither.
    ValueError: If a part of a Keras model would be missing, see
      `model_checks.check`.
  """
  if isinstance(model, tff.learning.models.FunctionalModel):
    return _adapt_functional(model)
  if isinstance(model, tf.keras.Model) or keras_versions.is_keras_3(model):
    raise TypeError(
        f'`model` must not be a Keras model, found {type(model)}: convert it '
        'by `tff_adaptive.models.from_keras`.'
    )
  if isinstance(model, tff.learning.models.VariableModel):
    raise TypeError(
        f'`model` must not be an existing model, found {type(model)}: pass a '
        'function without arguments that returns a new one, or a '
        '`tff.learning.models.FunctionalModel`.'
    )
  if not callable(model):
    raise TypeError(
        '`model` must be a `tff.learning.models.FunctionalModel` or a function '
        'without arguments that returns a `tff.learning.models.VariableModel`, '
        f'found {type(model)}.'
    )
  return _adapt_variable(model)
