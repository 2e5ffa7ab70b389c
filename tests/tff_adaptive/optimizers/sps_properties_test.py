# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what holds for SPS on any problem."""

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import numpy as np
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers

_VARIANTS = {
    'sps': optimizers.build_sps,
    'sps_max': optimizers.build_sps_max,
    'sps_smooth': optimizers.build_sps_smooth,
}
_NUM_STEPS = 5


def _run(name, batches, start=None, **arguments):
  return path_testing.run(_VARIANTS[name], batches, start, **arguments)


class SpsPropertiesTest(tf.test.TestCase, parameterized.TestCase):

  @hypothesis.given(
      property_testing.hessians(),
      property_testing.STARTS,
      property_testing.positive(0.125, 8.0),
  )
  def test_scaling_the_loss_scales_the_steps_and_leaves_the_points(
      self, curved, start, scale
  ):
    batches = property_testing.quadratic(curved.hessian, _NUM_STEPS)
    one, other = (
        _run('sps', batches * a, start, epsilon=0.0) for a in (1.0, scale)
    )
    self.assertAllClose(one.step_sizes[0], scale * other.step_sizes[0])
    self.assertAllClose(one.points, other.points, rtol=1e-6, atol=1e-6)

  @hypothesis.given(
      property_testing.positive(0.125, 32.0), property_testing.STARTS
  )
  def test_isotropic_quadratic_is_solved_in_one_step(self, curvature, start):
    hessian = curvature * np.eye(len(start))
    batches = property_testing.quadratic(hessian)
    path = _run('sps', batches, start, epsilon=0.0)
    self.assertAllClose(path.step_sizes, [1.0 / curvature], rtol=1e-12)
    self.assertAllClose(path.points[-1], np.zeros_like(start), atol=1e-12)

  @parameterized.parameters('sps', 'sps_max')
  @hypothesis.given(
      property_testing.batch_sequences(1),
      property_testing.STARTS,
      property_testing.positive(0.25, 4.0),
  )
  def test_twice_the_c_is_half_the_step(self, name, batches, start, c):
    lift = np.full(1, 2.0**16)  # Above any minimum of the batches.
    batches = batches._replace(constants=lift)
    once, twice = (
        _run(name, batches, start, max_step_size=np.inf, c=factor, epsilon=0.0)
        if name == 'sps_max'
        else _run(name, batches, start, c=factor, epsilon=0.0)
        for factor in (c, 2.0 * c)
    )
    self.assertAllClose(once.step_sizes, 2.0 * twice.step_sizes, rtol=1e-9)
    self.assertAllGreater(once.step_sizes, 0.0)

  @hypothesis.given(
      property_testing.batch_sequences(),
      property_testing.STARTS,
      property_testing.positive(),
  )
  def test_no_step_is_above_the_largest(self, batches, start, largest):
    free, capped, uncapped = (
        _run(name, batches, start, **arguments)
        for name, arguments in (
            ('sps', {}),
            ('sps_max', dict(max_step_size=largest)),
            ('sps_max', dict(max_step_size=np.inf)),
        )
    )
    self.assertAllInRange(capped.step_sizes, 0.0, largest)
    first = min(free.step_sizes[0], largest)
    self.assertAllClose(capped.step_sizes[0], first, rtol=1e-12)
    self.assertAllEqual(free.points, uncapped.points)
    self.assertAllEqual(free.step_sizes, uncapped.step_sizes)

  @hypothesis.given(
      property_testing.sequences(2, 6, property_testing.positive()),
      st.lists(st.booleans(), min_size=6, max_size=6),
      property_testing.positive(1.0, 4.0),
      st.integers(1, 4),
  )
  def test_smooth_variant_grows_by_gamma_an_epoch_over_steps_of_zero(
      self, gradients, is_solved, gamma, batches_per_epoch
  ):
    batches = property_testing.linear(gradients)
    solved = np.array(is_solved[: len(gradients)])
    batches = batches._replace(constants=np.where(solved, -1e9, 1e9))
    path = _run(
        'sps_smooth',
        batches,
        initial_step_size=0.5,
        gamma=gamma,
        batches_per_epoch=batches_per_epoch,
    )
    growth = gamma ** (1.0 / batches_per_epoch)
    expected = 0.5 * growth ** np.cumsum(~solved)
    # No other limit is near.
    self.assertAllClose(path.step_sizes, np.where(solved, 0.0, expected))

  @parameterized.parameters(*_VARIANTS)
  @hypothesis.given(property_testing.sequences(), property_testing.positive())
  def test_negative_loss_does_not_move(self, name, gradients, depth):
    path = _run(name, property_testing.linear(gradients, -depth))
    self.assertAllEqual(path.points, np.zeros_like(path.points))
    self.assertAllEqual(path.step_sizes, np.zeros(len(gradients)))
