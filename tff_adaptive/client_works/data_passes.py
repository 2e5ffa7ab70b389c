# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Passes over a client's data besides training."""

from collections.abc import Callable
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.client_works import local_models
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import vectors

# Maps (step, dataset, function that returns the first state) to the last state.
RunLoop = Callable[[Any, tf.data.Dataset, Any], Any]


class DataSurvey(federated_optimizer.Survey):
  """A look at a client's data, in the graph that is being built.

  Attributes:
    num_gradients: The number of gradients of each batch that it has evaluated.
  """

  def __init__(
      self,
      model: local_models.LocalModel,
      weights: tff.learning.models.ModelWeights,
      run_loop: RunLoop,
      dataset: tf.data.Dataset,
      loss_term: Optional[local_models.BatchLossTerm],
      adjust: Callable[[Any, Any], Any],
  ):
    """Initializes the look; nothing is read yet.

    Args:
      model: The model, in the current graph.
      weights: The received weights.
      run_loop: Runs a loop over batches.
      dataset: The batches.
      loss_term: A term that is added to the loss of each batch, or `None`.
      adjust: Maps weights and gradients to those that the optimizer sees.
    """
    self.num_gradients = 0
    self._model = model
    self._weights = weights
    self._run_loop = run_loop
    self._dataset = dataset
    self._loss_term = loss_term
    self._adjust = adjust
    self._found: Optional[tuple[tf.Tensor, Any]] = None

  def num_examples(self):
    if self._found is not None:
      return self._found[0]

    def add(total, batch):
      leaf = tf.nest.flatten(batch)[0]
      return total + tf.cast(tf.shape(leaf)[0], tf.float32)

    return self._run_loop(add, self._dataset, lambda: tf.zeros([]))

  def mean_gradient(self):
    if self._found is None:
      self._found = self._evaluate()
      self.num_gradients = 1
    return self._found[1]

  def _evaluate(self) -> tuple[tf.Tensor, Any]:
    """Returns the number of examples, and their mean gradient."""
    received = tuple(tf.nest.flatten(self._weights.trainable))
    self._model.start(self._weights)

    def add(totals, batch):
      num_examples, weights, total = totals
      evaluation = self._model.value_and_grad_again(
          received, batch, self._loss_term
      )
      gradients = vectors.with_zeros(
          received,
          optimizer_lib.dense_gradients(
              received, self._adjust(received, evaluation.gradients)
          ),
      )
      size = weight = tf.cast(evaluation.num_examples, tf.float32)
      if evaluation.mean_loss is not evaluation.loss:
        # A sum over a batch already counts each of its examples.
        weight = tf.minimum(size, 1.0)
      total = tuple(
          t + tf.cast(weight, t.dtype) * tf.cast(g, t.dtype)
          for t, g in zip(total, gradients)
      )
      return num_examples + size, weights + weight, total

    num_examples, weights, total = self._run_loop(
        add,
        self._dataset,
        lambda: (tf.zeros([]), tf.zeros([]), vectors.fill_moments(received)),
    )
    share = tf.math.divide_no_nan(1.0, weights)
    return num_examples, tuple(tf.cast(share, t.dtype) * t for t in total)


def mean_loss(
    model: local_models.LocalModel,
    trainable: local_models.Weights,
    run_loop: RunLoop,
    dataset: tf.data.Dataset,
) -> tf.Tensor:
  """Returns the mean loss over all examples without dropout, a float32 scalar.

  Args:
    model: The model, in the current graph.
    trainable: Its trainable weights.
    run_loop: Runs a loop over batches.
    dataset: The batches.
  """

  def add(totals, batch):
    loss, num_examples = totals
    evaluation = model.evaluate_again(trainable, batch)
    size = tf.cast(evaluation.num_examples, tf.float32)
    return (
        loss + size * tf.cast(evaluation.mean_loss, tf.float32),
        num_examples + size,
    )

  loss, num_examples = run_loop(
      add, dataset, lambda: (tf.zeros([]), tf.zeros([]))
  )
  return tf.math.divide_no_nan(loss, num_examples)
