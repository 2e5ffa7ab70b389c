# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of AdGD."""

import math

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import rules_testing
from tests.tff_adaptive.optimizers import unit_cases_testing
from tff_adaptive import optimizers

_SCALE = tf.constant([1.0, 10.0], tf.float64)


def _steps(rule, num_steps=6, factor=1.0):
  """Returns the step sizes and the points on a quadratic."""
  x = tf.constant([2.0, -1.0], tf.float64)
  state = rule.initialize(tf.TensorSpec([2], tf.float64))
  sizes, points = [], []
  for _ in range(num_steps):
    state, x = rules_testing.next_step(
        rule, state, x, lambda w: factor * _SCALE * w
    )
    sizes.append(float(rule.report(state)['step_size']))
    points.append(x.numpy())
  return np.array(sizes), np.array(points)


class AdGDTest(tf.test.TestCase, parameterized.TestCase):

  def test_reference_steps(self):
    for case in unit_cases_testing.cases('adgd_step'):
      rule = optimizers.build_adgd(version=case['version'])
      state = rule.initialize(tf.TensorSpec([], tf.float64))
      theta = 1e30 if case['theta'] is None else case['theta']
      state.update(
          num_steps=tf.constant(1),
          last_step_size=tf.constant(case['eta'], tf.float64),
          last_theta=tf.constant(theta, tf.float64),
      )
      changes = [tf.constant(case[key], tf.float64) for key in ('dx', 'dg')]
      hparams = {
          key: tf.cast(value, tf.float64)
          for key, value in rule.get_hparams(state).items()
      }
      found = rule.step_size(state, changes, hparams)
      self.assertAllClose(found.step_size, case['eta_next'], atol=1e-9)
      # Infinity is a number in the state.
      expected = 1e30 if case['theta_next'] is None else case['theta_next']
      self.assertAllClose(found.theta, expected, atol=1e-8)

  @parameterized.parameters(('2020', 1.0), ('2023_root', math.sqrt(2.0)))
  def test_older_versions_are_delta_sgd(self, version, gamma):
    found = _steps(optimizers.build_adgd(0.01, 0.5, version=version))
    expected = _steps(
        optimizers.build_delta_sgd(
            0.01, 0.5, gamma=gamma, delta=1.0, growth='always'
        )
    )
    self.assertAllClose(found, expected, rtol=1e-6)

  def test_infinite_limits_are_not_reported(self):
    rule = optimizers.build_adgd(0.01, version='2020')
    state = rule.initialize(tf.TensorSpec([2]))
    for x in (tf.ones([2]), tf.ones([2])):  # It stays, so no limit exists.
      state, _ = rules_testing.next_step(rule, state, x, lambda w: 0.0 * w)
    report = rule.report(state)
    self.assertNotIn('theta', report)
    for value in report.values():
      self.assertTrue(np.isfinite(float(value)))
