# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Many short runs of a rule at the price of one trace.

The steps are compiled once per builder; hyperparameters and batches are their
arguments.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tff_adaptive import optimizers
from tff_adaptive.optimizers import optimizer as optimizer_lib

_WEIGHTS = tf.TensorSpec([property_testing.SIZE], tf.float64)


class Path(NamedTuple):
  """The result of a few steps.

  Attributes:
    points: The weights before each step, and the last ones, [steps + 1, size].
    states: The states after the steps, as one with a leading axis.
    reports: The rule's reports of the steps, [steps] each.
    sent: What a client sends at the end of a round, by name.
  """

  points: np.ndarray
  states: Any
  reports: Any
  sent: Any

  @property
  def step_sizes(self) -> np.ndarray:
    return self.reports[optimizer_lib.STEP_SIZE_KEY]


def run(
    build: Any,
    batches: property_testing.Batches,
    start: Any = None,
    **arguments: Any,
) -> Path:
  """Takes a step on each batch, from zeros by default.

  Floats among the arguments of the builder are hyperparameters.
  """
  fixed = {k: v for k, v in arguments.items() if not isinstance(v, float)}
  hparams = {k: v for k, v in arguments.items() if isinstance(v, float)}
  start = np.zeros(property_testing.SIZE) if start is None else start
  steps = _compile(build, tuple(fixed.items()), tuple(hparams))
  path = steps(hparams, batches, start)
  return tf.nest.map_structure(lambda t: t.numpy(), path)


def follow(
    rule: Any,
    gradients: Any,
    start: Any = None,
    state: Any = None,
    dtype: tf.DType = tf.float64,
) -> tuple[np.ndarray, list[Any]]:
  """Returns the weights and the states after each of the gradients.

  Begins at zeros and in the initial state by default. The loss is always 1.
  """
  gradients = np.asarray(gradients)
  x = tf.constant(np.zeros(gradients.shape[1:]) if start is None else start)
  x = tf.cast(x, dtype)
  if state is None:
    state = rule.initialize(tf.TensorSpec(x.shape, dtype))
  options = {}
  if optimizer_lib.takes_extra_args(rule):
    options['value'] = tf.constant(1.0)
  points, states = [], []
  for gradient in gradients:
    state, x = rule.next(state, x, tf.constant(gradient, dtype), **options)
    points.append(x.numpy())
    states.append(state)
  return np.array(points), states


@functools.cache
def _compile(build, fixed, names):
  """Returns the steps of a rule as a function of hyperparameters with names."""
  shape = _WEIGHTS.shape
  signature = (
      {name: tf.TensorSpec([], tf.float32) for name in names},
      property_testing.Batches(
          *(
              tf.TensorSpec([None, *batch], tf.float64)
              for batch in ([*shape, *shape], shape, [])
          )
      ),
      _WEIGHTS,
  )

  # Rules are written in graph operations: AutoGraph would only cost time.
  @functools.partial(tf.function, input_signature=signature, autograph=False)
  def steps(hparams, batches, start):
    optimizer = build(**hparams, **dict(fixed))
    state = _start(optimizer)

    def step(before, batch):
      state, x, _ = before
      state, x = _next(optimizer, state, x, batch)
      return state, x, _report(optimizer, state)

    states, points, reports = tf.scan(
        step, batches, (state, start, _report(optimizer, state))
    )
    sent = {}
    if isinstance(optimizer, optimizers.FederatedOptimizer):
      last = tf.nest.map_structure(lambda leaf: leaf[-1], states)
      sent, _ = optimizer.finish_round(last)
    points = tf.concat([start[tf.newaxis], points], axis=0)
    return Path(points, states, reports, sent)

  return steps


def _start(optimizer):
  """Returns the state at the start of the first round."""
  state = optimizer.initialize(_WEIGHTS)
  if isinstance(optimizer, optimizers.FederatedOptimizer):
    shared = optimizer.initialize_shared(_WEIGHTS)
    kept = optimizer.initialize_kept(_WEIGHTS)
    state = optimizer.start_round(state, shared, kept, 0)
  return tf.nest.map_structure(tf.convert_to_tensor, state)


def _next(optimizer, state, x, batch):
  """Takes a step on a batch."""

  def value_and_grad_fn(x):
    hessian, slope, constant = batch
    curved = tf.linalg.matvec(hessian, x)
    value = tf.reduce_sum(x * (0.5 * curved + slope)) + constant
    return value, curved + slope

  value, gradient = value_and_grad_fn(x)
  if not optimizer_lib.takes_extra_args(optimizer):
    return optimizer.next(state, x, gradient)
  return optimizer.next(
      state, x, gradient, value=value, value_and_grad_fn=value_and_grad_fn
  )


def _report(optimizer, state):
  if not optimizer_lib.takes_extra_args(optimizer):
    return {}
  return optimizer.report(state)
