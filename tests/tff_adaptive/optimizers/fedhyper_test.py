# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedHyper."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import optimizers

_SPEC = tf.TensorSpec([2], tf.float64)


class FedHyperServerTest(tf.test.TestCase, parameterized.TestCase):

  # Scale, change, change before, the next scale; bounds 0.2 and 5.
  @parameterized.parameters(
      (1.0, [1.0, 0.5], [0.2, 0.2], 1.3),
      (4.8, [1.0, 0.5], [0.2, 0.2], 5.0),
      (0.4, [1.0, 0.0], [-2.0, 0.0], 0.2),
      (1.0, [1.0, 0.0], [0.0, 0.0], 1.0),
  )
  def test_scale_follows_the_product(self, scale, change, previous, expected):
    rule = optimizers.build_fedhyper_global()
    state = rule.initialize(_SPEC)
    state.update(
        scale=tf.constant(scale, tf.float64),
        previous_change=tf.constant(previous, tf.float64),
    )
    x = tf.zeros([2], tf.float64)
    state, moved = rule.next(state, x, -tf.constant(change, tf.float64))
    self.assertAllClose(state['scale'], expected, atol=1e-6)
    self.assertAllClose(moved, expected * np.array(change), atol=1e-6)
    self.assertAllClose(state['previous_change'], change)


class FedHyperClientTest(tf.test.TestCase):

  def test_two_rounds_by_hand(self):
    rate, epsilon, hyper, growth = 0.125, 0.5, 0.25, 1.25
    rule = optimizers.build_fedhyper_client_local(
        rate, epsilon, hyper, growth, 0.5, 2.0
    )
    rounds = federated_testing.Rounds(rule)
    x, mean_change, num_clients = federated_testing.START, np.zeros(2), 1
    for _ in range(2):
      changes = []
      for client in federated_testing.CLIENTS:
        y, scale, last = x, 1.0, None
        for batch in client:
          step = -rate * scale * federated_testing.gradient(batch, y)
          if last is not None:
            q = step @ last + epsilon * step @ mean_change / num_clients
            scale = np.clip(scale * min(growth, 1 + hyper * q), 0.5, 2.0)
          y, last = y + step, step
        changes.append(y - x)
      mean_change = np.mean(changes, axis=0)
      num_clients = len(changes)
      x = x + mean_change
      rounds.next(federated_testing.COHORT)
      self.assertAllClose(rounds.x, x, atol=1e-6)
    self.assertAllClose(
        rounds.shared['mean_change'], mean_change / 2, atol=1e-6
    )
