# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the FedMuon with control variates."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import optimizers

_MATRIX = np.array([[2.0, 0.5, -1.0], [0.25, 1.0, 0.5]])


def _plain_rounds(cohorts, rate, alpha, num_clients):
  """The rule on vectors, in numpy; yields x, c and the c_i."""
  x, c = federated_testing.START, np.zeros(2)
  own = {i: np.zeros(2) for i in range(num_clients)}
  for cohort in cohorts:
    ends, changes = [], []
    for i in cohort:
      y, m = x, own[i]
      for batch in federated_testing.CLIENTS[i]:
        m = (1 - alpha) * m + alpha * federated_testing.gradient(batch, y)
        direction = m - own[i] + c
        y = y - rate * direction / np.linalg.norm(direction)
      changes.append(m - own[i])
      own[i] = m
      ends.append(y)
    x = np.mean(ends, axis=0)
    c = c + np.sum(changes, axis=0) / num_clients
    yield x, c, own


class FedMuonLMOTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(2, 5)
  def test_rounds_equal_the_formulas(self, num_clients):
    rounds = federated_testing.Rounds(
        optimizers.build_fedmuon_lmo(num_clients, 0.125, 0.25)
    )
    cohorts = [(0,), (1,), (0, 1), (0,)]
    expected_rounds = _plain_rounds(cohorts, 0.125, 0.25, num_clients)
    for cohort, (x, c, own) in zip(cohorts, expected_rounds):
      rounds.next({i: federated_testing.COHORT[i] for i in cohort})
      self.assertAllClose(rounds.x, x, atol=1e-6)
      self.assertAllClose(rounds.shared['control'], c, atol=1e-6)
      total = sum(kept['control'] for kept in rounds.kept.values())
      self.assertAllClose(total, num_clients * c, atol=1e-6)
      for i, kept in rounds.kept.items():
        self.assertAllClose(kept['control'], own[i], atol=1e-6)

  def test_matrices_are_orthogonalized_without_a_factor(self):
    rule = optimizers.build_fedmuon_lmo(1, 0.5, 1.0, orthogonalize='svd')
    state = rule.initialize(tf.TensorSpec([2, 3], tf.float64))
    x = tf.zeros([2, 3], tf.float64)
    _, moved = rule.next(state, x, tf.constant(_MATRIX), value=tf.constant(1.0))
    left, _, right = np.linalg.svd(_MATRIX, full_matrices=False)
    self.assertAllClose(moved, -0.5 * left @ right)
