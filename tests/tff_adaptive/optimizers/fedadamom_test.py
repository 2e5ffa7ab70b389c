# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedAdamom."""

import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import unit_cases_testing
from tff_adaptive import optimizers


def _run(rule, changes):
  x = tf.zeros([len(changes[0])], tf.float64)
  state, points = rule.initialize(tf.TensorSpec(x.shape, x.dtype)), []
  for change in changes:
    state, x = rule.next(state, x, -tf.constant(change, tf.float64))
    points.append(x.numpy())
  return np.array(points)


class FedAdamomTest(tf.test.TestCase):

  def test_reference_numbers(self):
    for case in unit_cases_testing.cases('fedadamom'):
      rule = unit_cases_testing.build('fedadamom', case['hparams'])
      for x, state, step in unit_cases_testing.server_steps(rule, case):
        self.assertAllClose(x, step['x'], atol=1e-6)
        self.assertAllClose(-state['accumulator'], step['m'], atol=1e-6)
        self.assertAllClose(state['preconditioner'], step['v'], atol=1e-6)

  def test_updates_of_equal_size_and_single_weights_are_averaged(self):
    for changes in (((0.5, -0.5), (-2.0, 2.0)), ((0.5,), (-2.0,))):
      self.assertAllClose(
          _run(optimizers.build_fedadamom(), changes), np.cumsum(changes, 0)
      )

  def test_the_mean_is_over_all_tensors(self):
    rule = optimizers.build_fedadamom(beta_0=0.0)
    x = (tf.zeros([1]), tf.zeros([3]))
    state = rule.initialize((tf.TensorSpec([1]), tf.TensorSpec([3])))
    change = (-tf.ones([1]), -2.0 * tf.ones([3]))
    _, moved = rule.next(state, x, change)
    self.assertAllClose(moved[0], [1 / 3.25])  # v / mean is 1 / 3.25.
    self.assertAllClose(moved[1], [2.0, 2.0, 2.0])
