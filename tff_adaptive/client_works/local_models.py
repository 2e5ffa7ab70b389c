# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The model of a client inside a graph, as the local loop sees it."""

import abc
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.client_works import model_checks
from tff_adaptive.models import conversion
from tff_adaptive.models import moved_weights as moved_weights_lib

Weights = tuple[tf.Tensor, ...]
# Maps (trainable weights, batch) to a scalar that is added to the model's loss.
BatchLossTerm = Callable[[Weights, Any], tf.Tensor]
# Maps (trainable weights, batch) to the batch's representations, [batch, ...].
RepresentationFn = Callable[[Weights, Any], tf.Tensor]


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


def differentiate(
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


def places_of_none(gradients: tuple[Any, ...]) -> list[int]:
  """Returns the places of weights on which the loss does not depend."""
  return [place for place, one in enumerate(gradients) if one is None]


def features_and_labels(batch: Any) -> tuple[Any, Any]:
  """Returns 'x' and 'y' of a mapping, or the two parts of a pair.

  With sample weights, the third part, the labels are a pair of both.
  """
  if isinstance(batch, Mapping):
    batch = [batch[name] for name in conversion.PARTS[: len(batch)]]
  x, *labels = batch
  return x, labels[0] if len(labels) == 1 else tuple(labels)
