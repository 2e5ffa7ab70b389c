# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of AdaGrad-Norm."""

import math

from absl.testing import parameterized
import tensorflow as tf

from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers


class AdagradNormTest(tf.test.TestCase, parameterized.TestCase):

  def test_current_gradient_is_accumulated_before_the_step(self):
    points, states = path_testing.follow(
        optimizers.build_adagrad_norm(0.5, 0.25), [(3.0, 4.0), (0.0, 1.0)]
    )
    first, second = math.sqrt(0.0625 + 25.0), math.sqrt(0.0625 + 26.0)
    self.assertAllClose(points[0], [-1.5 / first, -2.0 / first])
    self.assertAllClose(points[1], points[0] - [0.0, 0.5 / second])
    self.assertAllClose(states[-1]['last_step_size'], 0.5 / second)

  def test_without_any_gradient_nothing_is_divided_by_zero(self):
    points, _ = path_testing.follow(
        optimizers.build_adagrad_norm(initial_norm=0.0), [(0.0, 0.0)]
    )
    self.assertAllEqual(points[0], [0.0, 0.0])
