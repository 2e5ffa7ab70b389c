# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedExProx."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import reports_testing
from tff_adaptive import optimizers

_LOSSES = (0.5, 0.3)


class FedExProxTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      ([[1.0, 0.0], [0.0, 1.0]], 2.0, 1.4),
      ([[1.0, 0.0], [1.0, 0.0]], 1.0, 0.7),
      ([[0.0, 0.0], [0.0, 0.0]], 1.0, 1.0),
  )
  def test_step_sizes(self, deltas, grads, stops):
    for rule, expected in (
        (optimizers.build_fedexprox_grads(), grads),
        (optimizers.build_fedexprox_stops(gamma=0.5), stops),
    ):
      taken = reports_testing.step(rule, [1.0, 2.0], deltas, losses=_LOSSES)
      self.assertAllClose(taken.report['server_step_size'], expected)
      moved = expected * np.mean(deltas, axis=0)
      self.assertAllClose(taken.x, [1.0, 2.0] + moved, atol=1e-6)

  def test_largest_step_is_kept(self):
    taken = reports_testing.step(
        optimizers.build_fedexprox_grads(max_scale=1.5),
        [0.0, 0.0],
        [[1.0, 0.0], [0.0, 1.0]],
    )
    self.assertAllClose(taken.x, [0.75, 0.75])

  def test_loss_below_the_optimal_value_moves_nothing(self):
    rule = optimizers.build_fedexprox_stops(gamma=1.0, optimal_value=10.0)
    taken = reports_testing.step(rule, [1.0], [[1.0]], losses=[0.5])
    self.assertAllClose(taken.x, [1.0])
