# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Passes over a client's data besides training."""

import collections
from collections.abc import Callable, Sequence
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.client_works import model_adapter
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import vectors

_Survey = federated_optimizer.Survey

# Maps (step, dataset, function that returns the first state) to the last state.
RunLoop = Callable[[Any, tf.data.Dataset, Any], Any]


def _count_examples(run_loop: RunLoop, dataset: tf.data.Dataset) -> tf.Tensor:
  """Returns the number of examples of all batches, a float32 scalar."""

  def add(total, batch):
    leaf = tf.nest.flatten(batch)[0]
    return total + tf.cast(tf.shape(leaf)[0], tf.float32)

  return run_loop(add, dataset, lambda: tf.zeros([]))


def _mean_gradient(
    model: model_adapter.LocalModel,
    weights: tff.learning.models.ModelWeights,
    run_loop: RunLoop,
    dataset: tf.data.Dataset,
    loss_term: Optional[model_adapter.BatchLossTerm],
    adjust: Callable[[Any, Any], Any],
) -> tuple[tf.Tensor, Any]:
  """Returns the number of examples, and their mean gradient at the weights."""
  received = tuple(tf.nest.flatten(weights.trainable))
  model.start(weights)

  def add(totals, batch):
    num_examples, total = totals
    evaluation = model.value_and_grad_again(received, batch, loss_term)
    gradients = vectors.with_zeros(
        received,
        optimizer_lib.dense_gradients(
            received, adjust(received, evaluation.gradients)
        ),
    )
    size = tf.cast(evaluation.num_examples, tf.float32)
    total = tuple(
        t + tf.cast(size, t.dtype) * tf.cast(g, t.dtype)
        for t, g in zip(total, gradients)
    )
    return num_examples + size, total

  num_examples, total = run_loop(
      add, dataset, lambda: (tf.zeros([]), vectors.fill_moments(received))
  )
  share = tf.math.divide_no_nan(1.0, num_examples)
  return num_examples, tuple(tf.cast(share, t.dtype) * t for t in total)


def survey(
    surveys: Sequence[_Survey],
    model: model_adapter.LocalModel,
    weights: tff.learning.models.ModelWeights,
    run_loop: RunLoop,
    dataset: tf.data.Dataset,
    loss_term: Optional[model_adapter.BatchLossTerm],
    adjust: Callable[[Any, Any], Any],
) -> 'collections.OrderedDict[str, Any]':
  """Computes the statistics that a rule needs before the first step.

  Args:
    surveys: The statistics.
    model: The model, in the current graph.
    weights: The received weights.
    run_loop: Runs a loop over batches.
    dataset: The batches.
    loss_term: A term that is added to the loss of each batch, or `None`.
    adjust: Maps weights and gradients to those that the optimizer sees.

  Returns:
    The statistics, by the values of `surveys`.
  """
  found: collections.OrderedDict[str, Any] = collections.OrderedDict()
  if _Survey.GRADIENT in surveys:
    num_examples, gradient = _mean_gradient(
        model, weights, run_loop, dataset, loss_term, adjust
    )
    found[_Survey.GRADIENT.value] = gradient
  elif surveys:
    num_examples = _count_examples(run_loop, dataset)
  if _Survey.NUM_EXAMPLES in surveys:
    found[_Survey.NUM_EXAMPLES.value] = num_examples
  return found


def mean_loss(
    model: model_adapter.LocalModel,
    trainable: model_adapter.Weights,
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
