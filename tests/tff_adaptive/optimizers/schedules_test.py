# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the schedules."""

import math

from absl.testing import parameterized
import hypothesis
from hypothesis import strategies as st
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tff_adaptive.optimizers import schedules


def _factors(schedule, rounds):
  return [float(schedule(tf.constant(t))) for t in rounds]


class SchedulesTest(tf.test.TestCase, parameterized.TestCase):

  @hypothesis.given(st.integers(1, 3000), st.data())
  def test_step_decay(self, total, data):
    schedule = schedules.build_step_decay(total)
    half, later = total // 2, 3 * total // 4
    drawn = data.draw(st.integers(0, total - 1))
    rounds = sorted({0, max(half - 1, 0), half, later, drawn, total - 1})
    expected = [0.1 ** ((t >= half) + (t >= later)) for t in rounds]
    found = _factors(schedule, rounds)
    self.assertAllClose(found, expected)
    self.assertEqual(found, sorted(found, reverse=True))

  @hypothesis.given(
      st.integers(1, 600),
      property_testing.positive(0.0625, 1.0),
      st.integers(0, 3000),
  )
  def test_exp_decay_multiplies_after_each_period(self, period, rate, t):
    schedule = schedules.build_exp_decay(rate, period)
    first = t - t % period
    now, start, end, later = _factors(
        schedule, [t, first, first + period - 1, first + period]
    )
    self.assertEqual((now, now), (start, end))
    self.assertAllClose(later, rate * now, rtol=1e-5)
    self.assertAllClose(now, rate ** (t // period), rtol=1e-4)

  def test_exp_decay_of_emnist(self):
    schedule = schedules.build_exp_decay()
    self.assertAllClose(
        _factors(schedule, [0, 499, 500, 999, 1000, 1499]),
        [1.0, 1.0, 0.1, 0.1, 0.01, 0.01],
    )

  def test_inverse_sqrt(self):
    self.assertAllClose(
        _factors(schedules.build_inverse_sqrt(), [0, 1, 99]),
        [1.0, 1 / math.sqrt(2), 0.1],
    )

  def test_table(self):
    schedule = schedules.build_table({10: 0.5, 0: 2.0, 20: 0.0})
    self.assertEqual(
        _factors(schedule, [0, 9, 10, 19, 20, 500]), [2, 2, 0.5, 0.5, 0, 0]
    )
