# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of GPA, and of FedAvgM in Nesterov's form, a case of it."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import unit_cases_testing
from tff_adaptive import optimizers

_CHANGES = ((1.0, -0.5), (0.5, 2.0), (-1.0, 0.0), (0.25, 0.75))


def _run(rule):
  x = tf.constant([3.0, -1.0], tf.float64)
  state, points = rule.initialize(tf.TensorSpec([2], tf.float64)), []
  for change in _CHANGES:
    state, x = rule.next(state, x, -tf.constant(change, tf.float64))
    points.append(x.numpy())
  return np.array(points)


class NesterovTest(tf.test.TestCase, parameterized.TestCase):

  def test_reference_numbers(self):
    for case in unit_cases_testing.cases('nesterov'):
      rule = unit_cases_testing.build('fedavgm', case['hparams'])
      for x, state, step in unit_cases_testing.server_steps(rule, case):
        self.assertAllClose(x, step['x'], atol=1e-6)
        self.assertAllClose(-state['accumulator'], step['buf'], atol=1e-6)


class GPATest(tf.test.TestCase, parameterized.TestCase):

  def test_reference_numbers(self):
    for case in unit_cases_testing.cases('gpa'):
      rule = unit_cases_testing.build('gpa', case['hparams'])
      for y, state, step in unit_cases_testing.server_steps(rule, case):
        self.assertAllClose(y, step['x'], atol=1e-5)
        self.assertAllClose(
            rule.final_weights(state, y), step['gpa_x'], atol=1e-5
        )
        self.assertAllClose(state['base_weights'], step['gpa_z'], atol=1e-5)

  def test_training_at_the_mean_is_heavy_ball_momentum(self):
    found = _run(optimizers.build_gpa(4.0, 0.75, 1.0))
    expected = _run(optimizers.build_fedavgm(1.0, 0.75))
    self.assertAllClose(found, expected, atol=1e-6)

  def test_weights_are_evaluated_before_the_first_step(self):
    rule = optimizers.build_gpa()
    state = rule.initialize(tf.TensorSpec([2]))
    y = tf.constant([1.0, 2.0])
    self.assertAllEqual(rule.final_weights(state, y), y)
