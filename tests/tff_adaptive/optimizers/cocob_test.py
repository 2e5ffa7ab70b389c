# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of COCOB."""

import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import unit_cases_testing
from tff_adaptive import optimizers

_GRADIENTS = ((0.5, -2.0), (1.0, 0.25), (-0.125, -1.0))


def _run(rule, scale=1.0):
  x = tf.constant([1.0, -1.0], tf.float64)
  state, points = rule.initialize(tf.TensorSpec([2], tf.float64)), []
  for g in _GRADIENTS:
    state, x = rule.next(state, x, scale * tf.constant(g, tf.float64))
    points.append(x.numpy())
  return np.array(points)


class COCOBTest(tf.test.TestCase):

  def test_reference_numbers(self):
    for case in unit_cases_testing.cases('cocob'):
      found, expected = unit_cases_testing.sent_by_client(case)
      self.assertAllClose(found, expected, atol=1e-8)

  def test_weight_decay_is_part_of_the_gradient(self):
    found = _run(optimizers.build_cocob(4.0, weight_decay=0.5))[0]
    rule = optimizers.build_cocob(4.0)
    x = tf.constant([1.0, -1.0], tf.float64)
    state = rule.initialize(tf.TensorSpec([2], tf.float64))
    _, expected = rule.next(state, x, _GRADIENTS[0] + 0.5 * x)
    self.assertAllClose(found, expected)
