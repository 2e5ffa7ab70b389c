# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of Schedule-Free with Polyak steps, and of ScheduleFree+."""

import math

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import unit_cases_testing
from tff_adaptive import optimizers

_SCALE = np.array([1.0, 3.0])
_SPEC = tf.TensorSpec([2], tf.float64)


def _run(rule, num_steps=5, factor=1.0):
  """Returns the points y, the weights to send, and the last state."""
  state, y = rule.initialize(_SPEC), tf.constant([2.0, -1.0], tf.float64)
  points, sent = [], []
  for _ in range(num_steps):
    value = factor * 0.5 * tf.reduce_sum(_SCALE * y**2)
    state, y = rule.next(state, y, factor * _SCALE * y, value=value)
    points.append(y.numpy())
    sent.append(rule.final_weights(state, y).numpy())
  return np.array(points), np.array(sent), state


class ScheduleFreePolyakTest(tf.test.TestCase, parameterized.TestCase):

  def test_reference_numbers(self):
    for case in unit_cases_testing.cases('polyak_schedule_free'):
      found, expected = unit_cases_testing.sent_by_client(case)
      self.assertAllClose(found, expected, atol=1e-6)

  def test_without_beta_it_averages_polyak_steps(self):
    rule = optimizers.build_schedule_free_polyak_sgd(0.0)
    points, sent, _ = _run(rule)
    sps = optimizers.build_sps(c=1.0, epsilon=0.0)
    state, x = sps.initialize(_SPEC), tf.constant([2.0, -1.0], tf.float64)
    expected = []
    for _ in range(5):
      value = 0.5 * tf.reduce_sum(_SCALE * x**2)
      state, x = sps.next(state, x, _SCALE * x, value=value)
      expected.append(x.numpy())
    self.assertAllClose(points, expected, atol=1e-6)
    counts = np.arange(1, 6)[:, np.newaxis]
    self.assertAllClose(sent, np.cumsum(expected, 0) / counts, atol=1e-6)

  def test_scaled_loss_has_the_same_iterates(self):
    rule = optimizers.build_schedule_free_polyak_sgd(min_squared_norm=0.0)
    self.assertAllClose(_run(rule, factor=64.0)[1], _run(rule)[1])

  @parameterized.parameters(
      optimizers.build_schedule_free_polyak_sgd,
      optimizers.build_schedule_free_polyak_adam,
  )
  def test_a_cap_holds_and_a_loss_below_its_bound_moves_nothing(self, build):
    _, _, state = _run(build(max_step_size=0.03125))
    self.assertEqual(float(state['last_step_size']), 0.03125)
    rule = build(lower_bound=2.0)
    y = tf.constant([1.0, 1.0], tf.float64)
    value = tf.constant(1.0, tf.float64)
    _, moved = rule.next(rule.initialize(_SPEC), y, y, value=value)
    self.assertAllEqual(moved, y)

  @parameterized.parameters(
      optimizers.build_schedule_free_polyak_sgd,
      optimizers.build_schedule_free_polyak_adam,
      optimizers.build_schedule_free_plus,
  )
  def test_loss_that_is_not_finite_is_not_hidden(self, build):
    rule = build()
    y = tf.constant([1.0, 1.0], tf.float64)
    value = tf.constant(math.nan, tf.float64)
    _, moved = rule.next(rule.initialize(_SPEC), y, y, value=value)
    self.assertTrue(np.all(np.isnan(moved)))


class ScheduleFreePlusTest(tf.test.TestCase):

  def test_first_step_is_a_sign_of_polyak_size(self):
    rule = optimizers.build_schedule_free_plus(epsilon=0.0)
    points, sent, state = _run(rule, 1)
    rate = 3.5 / (math.sqrt(math.pi / 2.0) * 5.0)
    self.assertAllClose(state['rate'], rate, rtol=1e-6)
    self.assertAllClose(points[0], [2.0 - rate, -1.0 + rate], rtol=1e-6)
    self.assertAllClose(sent, points)

  def test_scaled_loss_has_the_same_iterates(self):
    rule = optimizers.build_schedule_free_plus(epsilon=0.0)
    self.assertAllClose(_run(rule, factor=64.0)[1], _run(rule)[1])

  def test_averaging_waits(self):
    rule = optimizers.build_schedule_free_plus(averaging_delay=3)
    points, sent, _ = _run(rule)
    self.assertAllClose(points[:3], sent[:3])
    self.assertNotAllClose(points[4], sent[4])
