# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps of server rules that use reports of clients."""

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_adaptive import optimizers


class Step(NamedTuple):
  """The result of a step.

  Attributes:
    state: The new state.
    x: The new weights, a flat array.
    report: What the rule reports, names to numbers.
  """

  state: Any
  x: np.ndarray
  report: dict[str, float]


def step(
    rule: optimizers.ServerOptimizer,
    x: Any,
    deltas: Any,
    *,
    weights: Any = None,
    losses: Any = (),
    step_sizes: Any = (),
    state: Any = None,
    dtype: Any = np.float64,
) -> Step:
  """Takes a step on the clients' reports, aggregated as on the server.

  `deltas` are [clients, size of x]; `weights` are shares of clients that sum
  to 1, equal by default; `losses` are those that the rule asks for.
  """
  deltas = np.asarray(deltas, np.float64)
  if weights is None:
    weights = np.full(len(deltas), 1 / len(deltas))
  reports = {}
  for name, report in rule.client_reports.items():
    if name == 'squared_norm':
      value = np.dot(weights, np.sum(deltas**2, axis=1))
    elif report.reduction == 'max':
      value = np.max(step_sizes)
    else:
      value = np.dot(weights, losses)
    reports[name] = tf.constant(value, tf.float32)
  x = tf.constant(x, dtype)
  if state is None:
    state = rule.initialize(tf.TensorSpec(x.shape, x.dtype))
  new_state, new_x = rule.next(
      state, x, tf.constant(-np.dot(weights, deltas), dtype), reports=reports
  )
  told = {name: float(v) for name, v in rule.report(new_state).items()}
  return Step(new_state, new_x.numpy(), told)
