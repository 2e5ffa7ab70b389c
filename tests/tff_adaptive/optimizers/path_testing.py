# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Many short runs of a rule at the price of one trace.

The steps are compiled for a builder once; hyperparameters, batches and what a
client receives are their arguments.
"""

from collections.abc import Mapping
import functools
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tff_adaptive import optimizers
from tff_adaptive.optimizers import optimizer as optimizer_lib

_WEIGHTS = tf.TensorSpec([property_testing.SIZE], tf.float64)


class Path(NamedTuple):
  """What a few steps gave.

  Attributes:
    points: The weights before each step, and the last ones, [steps + 1, size].
    states: The states after the steps, as one with a leading axis.
    reports: What the rule reports of the steps, [steps] each.
    sent: What a client sends at the end of a round, by name.
    kept: What it keeps, by name.
  """

  points: np.ndarray
  states: Any
  reports: Any
  sent: Any
  kept: Any

  @property
  def step_sizes(self) -> np.ndarray:
    return self.reports[optimizer_lib.STEP_SIZE_KEY]


def run(
    build: Any,
    batches: property_testing.Batches,
    start: Any = None,
    *,
    received: Optional[Mapping[str, Any]] = None,
    kept: Optional[Mapping[str, Any]] = None,
    round_num: int = 0,
    **arguments: Any,
) -> Path:
  """Steps on one batch after the other.

  Args:
    build: A builder of a rule.
    batches: The batches.
    start: The weights; by default zeros.
    received: What a client receives beside the model, in part: the rest is as
      in the first round.
    kept: What the client has kept, in the same way.
    round_num: The number of rounds before.
    **arguments: Arguments of the builder; floats are its hyperparameters.

  Returns:
    What the steps gave, in numpy.
  """
  fixed = {k: v for k, v in arguments.items() if not isinstance(v, float)}
  hparams = {k: v for k, v in arguments.items() if isinstance(v, float)}
  received, kept = dict(received or {}), dict(kept or {})
  start = np.zeros(property_testing.SIZE) if start is None else start
  names = tuple(map(tuple, (hparams, received, kept)))
  steps = _compile(build, tuple(fixed.items()), *names)
  path = steps(hparams, batches, start, received, kept, round_num)
  return tf.nest.map_structure(lambda t: t.numpy(), path)


@functools.cache
def _compile(build, fixed, hparams, received, kept):
  """The steps of a rule as a function; of what varies the names are given."""
  shape = _WEIGHTS.shape
  signature = (
      {name: tf.TensorSpec([], tf.float32) for name in hparams},
      property_testing.Batches(
          *(
              tf.TensorSpec([None, *batch], tf.float64)
              for batch in ([*shape, *shape], shape, [])
          )
      ),
      _WEIGHTS,
      {name: _WEIGHTS for name in received},
      {name: _WEIGHTS for name in kept},
      tf.TensorSpec([], tf.int32),
  )

  # Rules are written in graph operations: AutoGraph would only cost time.
  @functools.partial(tf.function, input_signature=signature, autograph=False)
  def steps(hparams, batches, start, received, kept, round_num):
    optimizer = build(**hparams, **dict(fixed))
    state = _start(optimizer, received, kept, round_num)

    def step(before, batch):
      state, x, _ = before
      state, x = _next(optimizer, state, x, batch)
      return state, x, _report(optimizer, state)

    states, points, reports = tf.scan(
        step, batches, (state, start, _report(optimizer, state))
    )
    sent, kept = {}, {}
    if isinstance(optimizer, optimizers.FederatedOptimizer):
      last = tf.nest.map_structure(lambda leaf: leaf[-1], states)
      sent, kept = optimizer.finish_round(last)
    points = tf.concat([start[tf.newaxis], points], axis=0)
    return Path(points, states, reports, sent, kept)

  return steps


def _start(optimizer, received, kept, round_num):
  """The state at the start of a round."""
  state = optimizer.initialize(_WEIGHTS)
  if isinstance(optimizer, optimizers.FederatedOptimizer):
    shared = {**optimizer.initialize_shared(_WEIGHTS), **received}
    kept = {**optimizer.initialize_kept(_WEIGHTS), **kept}
    state = optimizer.start_round(state, shared, kept, round_num)
  return tf.nest.map_structure(tf.convert_to_tensor, state)


def _next(optimizer, state, x, batch):
  """A step on a batch."""

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
