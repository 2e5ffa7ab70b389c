# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs of rules that set their step from the loss."""

from typing import Any, NamedTuple

import tensorflow as tf


class Run(NamedTuple):
  """The result of a few steps.

  Attributes:
    points: The weights before each step, and the last ones.
    step_sizes: The step size of each step.
    backtracks: The backtracks of each step, of rules that report them.
  """

  points: list[Any]
  step_sizes: list[float]
  backtracks: list[int]


def quadratic(scale, lowered=0.0):
  """1/2 sum(scale * x^2) - lowered and its gradient, of nested weights."""

  def value_and_grad_fn(x):
    gradients = tf.nest.map_structure(lambda s, t: s * t, scale, x)
    pairs = zip(tf.nest.flatten(x), tf.nest.flatten(gradients))
    half = 0.5 * sum(tf.reduce_sum(t * g) for t, g in pairs)
    return half - lowered, gradients

  return value_and_grad_fn


def initialize(optimizer, x):
  """Returns the state for `x` as tensors: hyperparameters are float32."""
  state = optimizer.initialize(
      tf.nest.map_structure(lambda t: tf.TensorSpec(t.shape, t.dtype), x)
  )
  return tf.nest.map_structure(tf.convert_to_tensor, state)


def run(optimizer, losses, x) -> Run:
  """Steps on one batch after the other, each a function like `quadratic(1)`."""
  x = tf.nest.map_structure(tf.convert_to_tensor, x)
  state = initialize(optimizer, x)
  result = Run([x], [], [])
  for value_and_grad_fn in losses:
    value, gradients = value_and_grad_fn(x)
    state, x = optimizer.next(
        state, x, gradients, value=value, value_and_grad_fn=value_and_grad_fn
    )
    report = optimizer.report(state)
    result.points.append(x)
    result.step_sizes.append(float(report['step_size']))
    if 'backtracks' in report:
      result.backtracks.append(int(report['backtracks']))
  return result
