# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what holds for Delta-SGD on any problem, and of what does not."""

import itertools
import math

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers

_VARIANTS = ('recompute', 'reuse', 'previous_batch')
_DELTAS = property_testing.positive(0.0625, 1.0)
_NUM_STEPS = 6


def _run(batches, start=None, **arguments):
  return path_testing.run(
      optimizers.build_delta_sgd, batches, start, **arguments
  )


def _grown(step_sizes, delta):
  """Returns the growth limits of all steps but the first."""
  thetas = np.append(1.0, step_sizes[1:] / step_sizes[:-1])
  return np.sqrt(1 + delta * thetas[:-1]) * step_sizes[:-1]


def _lyapunov(batches, path):
  """Returns both sides of the inequality of each step from the second on.

  The minimizer is 0 with the value 0, and theta_k = eta_k / eta_{k-1}:

  ```
  |x_{k+1}|^2 + |x_{k+1} - x_k|^2 / 2 + 2 eta_k (1 + theta_k) f(x_k)
      <= |x_k|^2 + |x_k - x_{k-1}|^2 / 2 + 2 eta_k theta_k f(x_{k-1})
  ```
  """
  sides = []
  for k in range(1, len(path.step_sizes)):
    before, here, after = path.points[k - 1 : k + 2]
    last, eta = path.step_sizes[k - 1 : k + 1]
    falls = 2 * eta * (1 + eta / last) * batches.value(k, here)
    held = 2 * eta * (eta / last) * batches.value(k, before)
    sides.append(
        (
            after @ after + (after - here) @ (after - here) / 2 + falls,
            here @ here + (here - before) @ (here - before) / 2 + held,
        )
    )
  return np.array(sides)


class DeltaSgdPropertiesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(*_VARIANTS)
  @hypothesis.given(
      property_testing.hessians(),
      property_testing.STARTS,
      property_testing.positive(0.25, 4.0),
      _DELTAS,
  )
  def test_step_is_between_the_limits_of_the_curvature(
      self, previous_gradient, curved, start, gamma, delta
  ):
    path = _run(
        property_testing.quadratic(curved.hessian, _NUM_STEPS),
        start,
        gamma=gamma,
        delta=delta,
        previous_gradient=previous_gradient,
    )
    changes = np.linalg.norm(np.diff(path.points, axis=0), axis=1)
    # Below, what is left is rounding.
    num_moved = np.argmin(np.append(changes > 1e-6, False))
    steps = path.step_sizes[: num_moved + 1]
    grown = _grown(steps, delta) * (1 + 1e-6)
    lowest = np.minimum(gamma / (2 * curved.largest), grown) * (1 - 1e-5)
    highest = np.minimum(gamma / (2 * curved.smallest), grown) * (1 + 1e-5)
    self.assertTrue(np.all(lowest <= steps[1:]))
    self.assertTrue(np.all(steps[1:] <= highest))

  @parameterized.parameters(*_VARIANTS)
  @hypothesis.given(
      property_testing.batch_sequences(),
      property_testing.STARTS,
      st.integers(-6, 6).map(lambda power: 2.0**power),
  )
  def test_scaling_the_loss_and_the_first_step_changes_nothing(
      self, previous_gradient, batches, start, scale
  ):
    # A power of two scales without rounding.
    one, other = (
        _run(
            batches * a,
            start,
            learning_rate=0.25 / a,
            previous_gradient=previous_gradient,
        )
        for a in (1.0, scale)
    )
    self.assertAllClose(one.points, other.points, rtol=1e-12, atol=0.0)
    self.assertAllClose(one.step_sizes, scale * other.step_sizes, rtol=1e-12)

  @hypothesis.given(
      property_testing.hessians(), property_testing.STARTS, _DELTAS
  )
  def test_lyapunov_function_of_the_theorem_falls(self, curved, start, delta):
    batches = property_testing.quadratic(curved.hessian, 2 * _NUM_STEPS)
    path = _run(
        batches, start, gamma=1.0, delta=delta, previous_gradient='recompute'
    )
    after, before = _lyapunov(batches, path).T
    self.assertTrue(np.all(after <= before * (1 + 1e-6) + 1e-12))

  def test_defaults_are_outside_of_the_theorem(self):
    # The theorem takes gamma = 1, the default is 2.
    batches = property_testing.quadratic(np.diag([4.0, 50.0, 1.0]), _NUM_STEPS)
    start = np.array([1.0, 0.05, 0.0])
    after, before = _lyapunov(batches, _run(batches, start)).T
    self.assertAllClose((after[0], before[0]), (0.99484, 0.71640), atol=1e-5)
    after, before = _lyapunov(batches, _run(batches, start, gamma=1.0)).T
    self.assertTrue(np.all(after <= before))


class DeltaSgdEdgeCasesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      *itertools.product(_VARIANTS, ['if_moved', 'always'])
  )
  @hypothesis.given(property_testing.vectors(), property_testing.STARTS)
  def test_after_a_gradient_of_zero_the_step_stays_or_grows(
      self, previous_gradient, growth, gradient, start
  ):
    # Both points are equal, whatever the gradients do.
    path = _run(
        property_testing.linear([np.zeros_like(gradient), gradient]),
        start,
        previous_gradient=previous_gradient,
        growth=growth,
    )
    self.assertAllEqual(path.points[1], start)
    second = 0.2 * math.sqrt(1.1) if growth == 'always' else 0.2
    self.assertAllClose(path.step_sizes, [0.2, second])
