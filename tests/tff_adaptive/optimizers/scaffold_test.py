# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of SCAFFOLD's client rule."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import federated_testing
from tests.tff_adaptive.optimizers import rules_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime


def _plain_rounds(cohorts, rate, num_clients):
  """SCAFFOLD by the letter, in numpy; yields x, c and the c_i."""
  x, c = federated_testing.START, np.zeros(2)
  own = {i: np.zeros(2) for i in range(num_clients)}
  for cohort in cohorts:
    ends, changes = [], []
    for i in cohort:
      y = x
      client = federated_testing.CLIENTS[i]
      for batch in client:
        y = y - rate * (federated_testing.gradient(batch, y) - own[i] + c)
      new = own[i] - c + (x - y) / (len(client) * rate)
      changes.append(new - own[i])
      own[i] = new
      ends.append(y)
    x = np.mean(ends, axis=0)
    c = c + np.sum(changes, axis=0) / num_clients
    yield x, c, own


class ScaffoldTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(2, 10)
  def test_rounds_equal_the_published_formulas(self, num_clients):
    rounds = federated_testing.Rounds(
        optimizers.build_scaffold_sgd(num_clients, 0.125)
    )
    cohorts = [(0,), (1,), (0, 1), (0,), (0, 1)]
    expected_rounds = _plain_rounds(cohorts, 0.125, num_clients)
    for cohort, (x, c, own) in zip(cohorts, expected_rounds):
      rounds.next({i: federated_testing.COHORT[i] for i in cohort})
      self.assertAllClose(rounds.x, x, **federated_testing.EXACT)
      self.assertAllClose(
          rounds.shared['control'], c, **federated_testing.EXACT
      )
      for i, kept in rounds.kept.items():
        self.assertAllClose(kept['control'], own[i], **federated_testing.EXACT)

  def test_rate_of_zero_still_learns_the_controls(self):
    # The published formula divides by the rate.
    rounds = federated_testing.Rounds(optimizers.build_scaffold_sgd(1, 0.0))
    rounds.next({0: federated_testing.COHORT[0]})
    gradients = [b(rounds.x)[1] for b in federated_testing.COHORT[0]]
    self.assertAllClose(
        rounds.kept[0]['control'],
        np.mean(gradients, axis=0),
        **federated_testing.EXACT,
    )

  def test_weight_without_a_gradient_follows_the_controls(self):
    optimizer = optimizers.build_scaffold_sgd(1, 0.5)
    spec = (tf.TensorSpec([], tf.float32),)
    state = optimizer.start_round(
        optimizer.initialize(spec),
        {'control': (tf.constant(3.0),)},
        {'control': (tf.constant(1.0),)},
        tf.constant(1),
    )
    state, (weight,) = rules_testing.next_step(
        optimizer, state, (tf.constant(7.0),), lambda _: (None,)
    )
    self.assertEqual(weight, 6.0)
    sent, kept = optimizer.finish_round(state)
    self.assertEqual(sent['control'][0], -1.0)
    self.assertEqual(kept['control'][0], 0.0)


def _scaffold(num_clients, **kwargs):
  return federated_testing.Store(
      algorithms.build_fed_opt(
          testing.functional_model(),
          optimizers.build_scaffold_sgd(num_clients, 0.1),
          **kwargs,
      )
  )


class ScaffoldProcessTest(tf.test.TestCase):

  @pytest.mark.slow
  def test_example_weights_are_for_the_model_alone(self):
    with runtime.CompiledContext(strict=True):
      stores = [
          _scaffold(num_clients=2, client_weighting=weighting)
          for weighting in tff.learning.ClientWeighting
      ]
      for store in stores:
        store.next(dict(zip('ab', testing.clients([10, 7]))))
    controls = [s.state.client_work['shared']['control'] for s in stores]
    self.assertAllClose(*controls, atol=1e-6)
    weights = [testing.trainable(store.state)[0] for store in stores]
    self.assertNotAllClose(*weights, atol=1e-4)
    # All clients take part: the mean of their controls.
    own = [k['optimizer']['control'] for k in stores[0].kept.values()]
    self.assertAllClose(
        controls[0], tuple(np.mean(parts, 0) for parts in zip(*own)), atol=1e-6
    )
