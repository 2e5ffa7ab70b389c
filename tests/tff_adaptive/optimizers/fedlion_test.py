# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedLion."""

import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import optimizers


class FedLionTest(tf.test.TestCase):

  def test_three_rounds_by_hand(self):
    rate, beta_1, beta_2, decay = 0.125, 0.75, 0.5, 0.25
    rounds = federated_testing.Rounds(
        optimizers.build_fedlion(rate, beta_1, beta_2, decay)
    )
    x, shared = federated_testing.START, np.zeros(2)
    for _ in range(3):
      ends, moments = [], []
      for client in federated_testing.CLIENTS:
        y, m = x, shared
        for batch in client:
          g = federated_testing.gradient(batch, y)
          u = np.sign(beta_1 * m + (1 - beta_1) * g)
          m = beta_2 * m + (1 - beta_2) * g
          y = y - rate * (u + decay * y)
        ends.append(y)
        moments.append(m)
      x, shared = np.mean(ends, 0), np.mean(moments, 0)
      rounds.next(federated_testing.COHORT)
      self.assertAllClose(rounds.x, x, atol=1e-6)
      self.assertAllClose(rounds.shared['momentum'], shared, atol=1e-6)
