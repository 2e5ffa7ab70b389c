# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedAdamW."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import optimizers


class FedAdamWTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(('tensor_mean', False), ('full', True))
  def test_three_rounds_by_hand(self, second_moment, blend):
    numbers = (0.125, 0.25, 0.5, 0.5, 0.75, 0.0625)
    rate, alpha, decay, beta_1, beta_2, epsilon = numbers
    rule = optimizers.build_fedadamw(
        *numbers, second_moment=second_moment, blend=blend
    )
    rounds = federated_testing.Rounds(rule)
    x, start = federated_testing.START, 0
    direction, mean_v = np.zeros(2), np.zeros(2)
    q = 1 - alpha if blend else 1.0
    for _ in range(3):
      changes, moments = [], []
      for client in federated_testing.CLIENTS:
        y, m, v = x, np.zeros(2), mean_v
        for k, batch in enumerate(client):
          g = federated_testing.gradient(batch, y)
          m = beta_1 * m + (1 - beta_1) * g
          v = beta_2 * v + (1 - beta_2) * g**2
          root = np.sqrt(v / (1 - beta_2 ** (start + k + 1)))
          u = m / (1 - beta_1 ** (k + 1)) / (root + epsilon)
          y = y - rate * (q * u + q * decay * y + alpha * direction)
        changes.append(y - x)
        moments.append(v if second_moment == 'full' else np.full(2, v.mean()))
      num_steps = np.mean([len(c) for c in federated_testing.CLIENTS])
      direction = -np.mean(changes, 0) / (num_steps * rate)
      x, mean_v = x + np.mean(changes, 0), np.mean(moments, 0)
      start += num_steps
      rounds.next(federated_testing.COHORT)
      self.assertAllClose(rounds.x, x, atol=1e-6)
      shared = rounds.shared
      self.assertAllClose(shared['global_direction'], direction, atol=1e-6)
      self.assertAllClose(
          shared['mean_second_moment'] + 0 * x, mean_v, atol=1e-6
      )
      self.assertAllClose(shared['num_steps'], start)

  def test_one_number_a_tensor_is_sent(self):
    specs = (tf.TensorSpec([3, 2]), tf.TensorSpec([2]))
    shared = optimizers.build_fedadamw().initialize_shared(specs)
    self.assertEqual([v.shape for v in shared['mean_second_moment']], [(), ()])

  def test_mean_of_an_empty_tensor_is_zero(self):
    rule = optimizers.build_fedadamw()
    specs = (tf.TensorSpec([0, 3]), tf.TensorSpec([2]))
    sent, _ = rule.finish_round(rule.initialize(specs))
    for parts in (rule.initialize_shared(specs), sent):
      self.assertAllEqual(parts['mean_second_moment'][0], 0.0)
