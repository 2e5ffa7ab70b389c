# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedCM and MoFedSAM."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import optimizers


class ClientMomentumTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(0.0, 0.5)
  def test_three_rounds_by_hand(self, rho):
    if rho:
      rule = optimizers.build_mofedsam(0.125, 0.25, rho, epsilon=0.0)
    else:
      rule = optimizers.build_fedcm(0.125, 0.25)
    rounds = federated_testing.Rounds(rule)
    x, direction = federated_testing.START, np.zeros(2)
    for _ in range(3):
      changes, directions = [], []
      for client in federated_testing.CLIENTS:
        y = x
        for batch in client:
          g = federated_testing.perturbed_gradient(batch, y, rho)
          y = y - 0.125 * (0.25 * g + 0.75 * direction)
        changes.append(y - x)
        directions.append((x - y) / (len(client) * 0.125))
      x, direction = x + np.mean(changes, 0), np.mean(directions, 0)
      rounds.next(federated_testing.COHORT)
      self.assertAllClose(rounds.x, x)
      self.assertAllClose(rounds.shared['global_direction'], direction)
