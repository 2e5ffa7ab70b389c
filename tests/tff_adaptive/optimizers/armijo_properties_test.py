# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what holds for the Armijo line search on any problem."""

from absl.testing import parameterized
import hypothesis
import numpy as np
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers

_CS = property_testing.positive(0.0625, 0.875)
_BETAS = property_testing.positive(0.25, 0.875)
_LARGEST = property_testing.positive(0.125, 8.0)


def _run(batches, start=None, **arguments):
  return path_testing.run(optimizers.build_armijo, batches, start, **arguments)


class ArmijoPropertiesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(0, 1, 2)
  @hypothesis.given(
      property_testing.batch_sequences(),
      property_testing.STARTS,
      _LARGEST,
      _CS,
      _BETAS,
  )
  def test_every_batch_falls_and_no_step_is_too_short_or_too_long(
      self, reset, batches, start, largest, c, beta
  ):
    path = _run(
        batches, start, max_step_size=largest, c=c, beta=beta, reset=reset
    )
    backtracks = path.reports['backtracks']
    growth = 2.0 ** (1 / 32)
    last = largest
    for k, step_size in enumerate(path.step_sizes):
      x, moved = path.points[k : k + 2]
      gradient = batches.gradient(k, x)
      promise = c * gradient @ gradient
      hypothesis.assume(promise > 1e-9)  # Below, losses are all rounding.
      loss = batches.value(k, x)
      rounding = 1e-9 * (1 + abs(loss))
      self.assertLessEqual(
          batches.value(k, moved), loss - step_size * promise + rounding
      )
      first = (last, min(largest, last * growth), largest)[reset if k else 2]
      self.assertAllClose(step_size, first * beta ** backtracks[k], rtol=1e-5)
      # One trial before, it was too long.
      if backtracks[k]:
        longer = step_size / beta
        self.assertGreater(
            batches.value(k, x - longer * gradient),
            loss - longer * promise - rounding,
        )
      curvature = np.linalg.eigvalsh(batches.hessians[k])[-1]
      bound = min(first, 2.0 * beta * (1.0 - c) / curvature)
      self.assertBetween(step_size, bound * (1 - 1e-5), largest)
      last = step_size

  @hypothesis.given(
      property_testing.positive(0.125, 32.0),
      property_testing.STARTS,
      _LARGEST,
      _CS,
  )
  def test_largest_step_is_accepted_up_to_the_limit_of_the_curvature(
      self, curvature, start, largest, c
  ):
    limit = 2.0 * (1.0 - c) / curvature
    hypothesis.assume(abs(largest / limit - 1.0) > 1e-6)  # No tie.
    batches = property_testing.quadratic(curvature * np.eye(len(start)))
    path = _run(batches, start, max_step_size=largest, c=c, reset=1)
    self.assertEqual(path.reports['backtracks'][0] == 0, largest <= limit)

  @hypothesis.given(
      property_testing.hessians(),
      property_testing.hessians(),
      property_testing.STARTS,
  )
  def test_reset_2_does_not_depend_on_history(self, one, other, start):
    first, second = (
        property_testing.quadratic(curved.hessian) for curved in (one, other)
    )
    both = property_testing.Batches(
        *(np.concatenate(parts) for parts in zip(first, second))
    )
    path = _run(both, start, reset=2)
    alone = _run(second, path.points[1], reset=2)
    self.assertAllEqual(path.step_sizes[1:], alone.step_sizes)
    self.assertAllEqual(path.points[1:], alone.points)

  @parameterized.parameters(0, 1, 2)
  @hypothesis.given(
      property_testing.batch_sequences(3), property_testing.STARTS
  )
  def test_negative_loss_changes_nothing(self, reset, batches, start):
    # Of a loss only differences are taken.
    lowered = batches._replace(constants=batches.constants - 64.0)
    paths = [_run(b, start, reset=reset) for b in (batches, lowered)]
    self.assertAllClose(paths[0].points, paths[1].points, atol=1e-6)

  @parameterized.parameters(0, 1, 2)
  @hypothesis.given(
      property_testing.batch_sequences(3), property_testing.STARTS, _LARGEST
  )
  def test_one_local_step_starts_from_the_largest(
      self, reset, batches, start, largest
  ):
    # In each round anew, whatever the reset.
    first = property_testing.Batches(*(part[:1] for part in batches))
    path = _run(first, start, max_step_size=largest, reset=reset)
    expected = largest * np.float32(0.9) ** path.reports['backtracks']
    self.assertAllClose(path.step_sizes, expected, rtol=1e-5)
