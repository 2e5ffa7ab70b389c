# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The local training loop: one client, from the received model to its change.

One loop serves every client rule, both kinds of models and every loss term.
What a rule needs beyond the gradient it asks for through the keyword superset
of TFF's optimizer protocol, see `tff_adaptive.optimizers.ExtraArgsOptimizer`.
"""

import collections
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _stateless_random
from tff_adaptive.client_works import gradients as gradients_lib
from tff_adaptive.client_works import model_adapter
from tff_adaptive.optimizers import optimizer as optimizer_lib

# (trainable weights, weights that were received, batch) to a scalar.
LossTerm = Callable[
    [model_adapter.Weights, model_adapter.Weights, Any], tf.Tensor
]

_OrderedDict = collections.OrderedDict


class LocalResult(NamedTuple):
  """What a client's training gives.

  Attributes:
    update: The received minus the trained weights, a tuple of tensors; zeros
      for a client that is not healthy.
    num_examples: How many examples were seen, every epoch counted; an int64
      scalar, 0 for a client that is not healthy.
    statistics: Scalars about the training, in the form that
      `tff_adaptive.aggregators.aggregate_statistics` takes.
    metrics: The model's unfinalized metrics.
  """

  update: model_adapter.Weights
  num_examples: tf.Tensor
  statistics: '_OrderedDict[str, _OrderedDict[str, tf.Tensor]]'
  metrics: Any


class _Totals(NamedTuple):
  """What the loop adds up, step by step; the reports as name to scalar."""

  num_steps: tf.Tensor
  num_examples: tf.Tensor
  num_gradient_evaluations: tf.Tensor
  loss: tf.Tensor  # Each batch's mean loss times its number of examples.
  report_sum: '_OrderedDict[str, tf.Tensor]'
  report_min: '_OrderedDict[str, tf.Tensor]'
  report_max: '_OrderedDict[str, tf.Tensor]'


def _split_report(
    optimizer: tff.learning.optimizers.Optimizer, state: Any
) -> tuple[tf.Tensor, '_OrderedDict[str, tf.Tensor]']:
  """The gradients that the last step cost, and what else it reports."""
  report = optimizer_lib.step_report(optimizer, state)
  evaluations = report.pop(optimizer_lib.GRADIENT_EVALUATIONS_KEY, 1.0)
  return tf.cast(evaluations, tf.int64), report


def _initial_totals(report_names: list[str]) -> _Totals:
  zero = tf.zeros([], tf.int64)

  def fill(value):
    return _OrderedDict((name, tf.constant(value)) for name in report_names)

  infinity = float('inf')
  return _Totals(
      zero, zero, zero, tf.zeros([]), fill(0.0), fill(infinity), fill(-infinity)
  )


def _add_step(
    totals: _Totals,
    evaluation: model_adapter.Evaluation,
    num_gradient_evaluations: tf.Tensor,
    report: '_OrderedDict[str, tf.Tensor]',
) -> _Totals:
  """The totals after one more step."""

  def merge(reduce_fn, accumulated):
    return _OrderedDict(
        (name, reduce_fn(value, report[name]))
        for name, value in accumulated.items()
    )

  loss = tf.cast(evaluation.loss, tf.float32)
  return _Totals(
      totals.num_steps + 1,
      totals.num_examples + evaluation.num_examples,
      totals.num_gradient_evaluations + num_gradient_evaluations,
      totals.loss + loss * tf.cast(evaluation.num_examples, tf.float32),
      merge(tf.add, totals.report_sum),
      merge(tf.minimum, totals.report_min),
      merge(tf.maximum, totals.report_max),
  )


def _all_finite(structure: Any) -> tf.Tensor:
  """Whether every floating point entry is finite, a boolean scalar."""
  checks = [
      tf.reduce_all(tf.math.is_finite(leaf))
      for leaf in tf.nest.flatten(structure)
      if leaf.dtype.is_floating
  ]
  return tf.reduce_all(checks) if checks else tf.constant(True)


def _statistics(
    totals: _Totals, is_healthy: tf.Tensor
) -> '_OrderedDict[str, _OrderedDict[str, tf.Tensor]]':
  """The totals of a client, so that one that is not healthy has no effect."""

  def keep(values, neutral):
    return _OrderedDict(
        (name, tf.where(is_healthy, value, tf.cast(neutral, value.dtype)))
        for name, value in values.items()
    )

  sums = _OrderedDict(
      [
          ('num_healthy', tf.ones([], tf.int64)),
          ('num_examples', totals.num_examples),
          ('num_steps', totals.num_steps),
          ('num_gradient_evaluations', totals.num_gradient_evaluations),
          ('loss', totals.loss),
          *totals.report_sum.items(),
      ]
  )
  sums = keep(sums, 0)
  sums['num_clients'] = tf.ones([], tf.int64)
  return _OrderedDict(
      [
          ('sum', sums),
          ('min', keep(totals.report_min, float('inf'))),
          ('max', keep(totals.report_max, -float('inf'))),
      ]
  )


def _take_step(
    model: model_adapter.LocalModel,
    optimizer: tff.learning.optimizers.Optimizer,
    loss_term: Optional[model_adapter.BatchLossTerm],
    gradient_options: gradients_lib.GradientOptions,
    weights: model_adapter.Weights,
    optimizer_state: Any,
    batch: Any,
) -> tuple[model_adapter.Evaluation, Any, model_adapter.Weights]:
  """One step on one batch: its evaluation, the new state, the new weights."""
  if not optimizer_lib.takes_extra_args(optimizer):
    evaluation = model.value_and_grad(weights, batch, loss_term)
    new_state, new_weights = optimizer.next(
        optimizer_state,
        weights,
        gradient_options.apply(weights, evaluation.gradients),
    )
    return evaluation, new_state, new_weights

  again = None
  evaluate = model.value_and_grad
  if optimizer.evaluates_again:
    # Every evaluation of a step sees the same random numbers.
    seed = _stateless_random.draw_seed()

    def evaluate(*args):
      return _stateless_random.call_with_seed(model.value_and_grad, seed, *args)

    def again(point):
      repeated = _stateless_random.call_with_seed(
          model.value_and_grad_again, seed, point, batch, loss_term
      )
      return repeated.loss, gradient_options.apply(point, repeated.gradients)

  evaluation = evaluate(weights, batch, loss_term)
  new_state, new_weights = optimizer.next(
      optimizer_state,
      weights,
      gradient_options.apply(weights, evaluation.gradients),
      value=evaluation.loss,
      value_and_grad_fn=again,
  )
  return evaluation, new_state, new_weights


def build_local_training(
    model: model_adapter.LocalModel,
    optimizer: tff.learning.optimizers.Optimizer,
    loss_term: Optional[LossTerm] = None,
    gradient_options: gradients_lib.GradientOptions = (
        gradients_lib.GradientOptions()
    ),
    loop_implementation: tff.learning.LoopImplementation = (
        tff.learning.LoopImplementation.DATASET_REDUCE
    ),
) -> Callable[..., LocalResult]:
  """Builds the training of one client.

  A client without an example, or whose change, loss or reports are not finite,
  is not healthy: its update is zero, its counts are zero, its metrics are
  empty, and it is left out of every minimum and maximum.

  Args:
    model: The model, in the graph that the result is called in.
    optimizer: A plain TFF optimizer or an `ExtraArgsOptimizer`; its state is
      made anew for every call.
    loss_term: A term that is added to the loss of each batch, or `None`.
    gradient_options: What happens to a gradient before the optimizer sees it.
    loop_implementation: How the loop runs over the batches, see
      `tff.learning.LoopImplementation`.

  Returns:
    A `tf.function` that maps (received `tff.learning.models.ModelWeights`,
    hyperparameters of the optimizer, `tf.data.Dataset` of batches) to a
    `LocalResult`.
  """
  reduce_dataset = tff.learning.loop_builder.build_training_loop(
      loop_implementation=loop_implementation
  )

  @tf.function
  def train(weights, hparams, dataset):
    received = tuple(tf.nest.flatten(weights.trainable))
    batch_term = None
    if loss_term is not None:
      batch_term = lambda point, batch: loss_term(point, received, batch)

    optimizer_state = optimizer.set_hparams(
        optimizer.initialize(
            tuple(tf.TensorSpec(w.shape, w.dtype) for w in received)
        ),
        hparams,
    )
    optimizer_state = tf.nest.map_structure(
        tf.convert_to_tensor, optimizer_state
    )
    _, report = _split_report(optimizer, optimizer_state)
    initial_metrics = model.start(weights)

    def step(state, batch):
      point, optimizer_state, metrics, totals = state
      evaluation, optimizer_state, point = _take_step(
          model,
          optimizer,
          batch_term,
          gradient_options,
          point,
          optimizer_state,
          batch,
      )
      metrics = model.update_metrics(metrics, batch, evaluation)
      totals = _add_step(
          totals, evaluation, *_split_report(optimizer, optimizer_state)
      )
      return point, optimizer_state, metrics, totals

    trained, _, metrics, totals = reduce_dataset(
        step,
        dataset,
        lambda: (
            received,
            optimizer_state,
            initial_metrics,
            _initial_totals(list(report)),
        ),
    )

    update = tuple(r - t for r, t in zip(received, trained))
    is_healthy = (totals.num_examples > 0) & _all_finite((update, totals[3:5]))
    return LocalResult(
        # Chosen, not multiplied by zero: 0 * NaN is NaN.
        tf.cond(
            is_healthy,
            lambda: update,
            lambda: tuple(map(tf.zeros_like, update)),
        ),
        tf.where(is_healthy, totals.num_examples, 0),
        _statistics(totals, is_healthy),
        model.report_metrics(metrics, is_healthy),
    )

  return train
