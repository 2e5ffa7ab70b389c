# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FAFED's client rule."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime

_CLIENT = federated_testing.COHORT[1]


def _plain_rounds(num_rounds, rate, alpha, beta, rho):
  """FAFED in numpy; yields x, m and v after every round."""
  rate, alpha, beta, rho = federated_testing.single(rate, alpha, beta, rho)
  x, m, v = federated_testing.START, None, None
  for round_num in range(num_rounds):
    results = []
    for client in federated_testing.CLIENTS:
      if round_num == 0:
        g = federated_testing.gradient(client[0], x)
        results.append((x - rate * g, g, g**2))
        continue
      y, previous, own_m, own_v = x, x, m, v
      for batch in client:
        g = federated_testing.gradient(batch, y)
        old_g = federated_testing.gradient(batch, previous)
        own_m = g + (1 - alpha) * (own_m - old_g)
        own_v = beta * own_v + (1 - beta) * g**2
        previous, y = y, y - rate * own_m / (np.sqrt(v) + rho)
      results.append((y, own_m, own_v))
    x, m, v = (np.mean(part, axis=0) for part in zip(*results))
    yield x, m, v


def _warm(optimizer, **shared):
  """Returns rounds after the warm-up, with this shared by the server."""
  rounds = federated_testing.Rounds(optimizer)
  rounds.round_num = 1
  for name, value in shared.items():
    rounds.shared[name] = tf.constant(value, tf.float64)
  return rounds


class FafedTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      dict(rate=0.1, alpha=0.1, beta=0.99, rho=0.01),
      dict(rate=0.02, alpha=0.0, beta=0.5, rho=0.1),
      dict(rate=0.02, alpha=1.0, beta=1.0, rho=1.0),
  )
  def test_rounds_equal_a_plain_loop(self, rate, alpha, beta, rho):
    rounds = federated_testing.Rounds(
        optimizers.build_fafed(rate, alpha, beta, rho)
    )
    for x, m, v in _plain_rounds(4, rate, alpha, beta, rho):
      rounds.next(federated_testing.COHORT)
      self.assertAllClose(rounds.x, x, **federated_testing.EXACT)
      self.assertAllClose(
          rounds.shared['momentum'], m, **federated_testing.EXACT
      )
      self.assertAllClose(
          rounds.shared['second_moment'], v, **federated_testing.EXACT
      )

  @parameterized.parameters((0, [1, 0, 0]), (1, [1, 2, 2]))
  def test_reports_what_a_step_costs(self, round_num, expected):
    optimizer = optimizers.build_fafed()
    spec = tf.TensorSpec([2], tf.float64)
    state = optimizer.start_round(
        optimizer.initialize(spec),
        optimizer.initialize_shared(spec),
        {},
        tf.constant(round_num),
    )
    calls, reported, costs = [], [], []
    x = tf.constant([1.0, 2.0], tf.float64)
    for batch in _CLIENT:

      def evaluate(point, batch=batch):
        calls.append(point)
        return batch(point)

      before = len(calls)
      loss, gradient = batch(x)
      state, x = optimizer.next(
          state, x, gradient, value=loss, value_and_grad_fn=evaluate
      )
      costs.append(len(calls) - before)
      reported.append(int(optimizer.report(state)['gradient_evaluations']))
    self.assertEqual(reported, expected)
    self.assertEqual(costs, [max(e - 1, 0) for e in expected])

  @pytest.mark.slow
  def test_first_round_with_a_healthy_client_warms_up(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(), optimizers.build_fafed(0.1)
    )
    healthy = dict(zip('ab', testing.clients([10, 3])))
    with runtime.CompiledContext(strict=True):
      stores = [federated_testing.Store(process) for _ in range(3)]
      stores[1].next({})
      stores[2].next({'nan': testing.unhealthy_client(), 'none': []})
      losses = [
          store.next(healthy)['client_work']['clients']['loss']
          for _ in range(3)
          for store in stores
      ]
    self.assertLess(losses[-1], losses[0])
    for store in stores[1:]:
      self.assertAllEqual(
          testing.trainable(store.state)[0],
          testing.trainable(stores[0].state)[0],
      )

  def test_negative_second_moment_counts_as_zero(self):
    results = [
        _warm(optimizers.build_fafed(), second_moment=[noise, 1.0]).train(
            federated_testing.COHORT[0]
        )
        for noise in (0.0, -1.0)
    ]
    self.assertAllEqual(results[0][0], results[1][0])
    self.assertAllGreaterEqual(results[1][1]['second_moment'], 0.0)

  def test_weight_without_a_gradient_stays_whatever_its_momentum(self):
    optimizer = optimizers.build_fafed()
    weights = (tf.constant(1.0), tf.constant(2.0))
    specs = tuple(tf.TensorSpec([], tf.float32) for _ in weights)
    shared = {
        'momentum': (tf.constant(5.0), tf.constant(5.0)),
        'second_moment': (tf.constant(1.0), tf.constant(1.0)),
    }
    state = optimizer.start_round(
        optimizer.initialize(specs), shared, {}, tf.constant(3)
    )

    @tf.function
    def step(state, weights):
      return optimizer.next(
          state,
          weights,
          (None, weights[1]),
          value=0.0,
          value_and_grad_fn=lambda point: (0.0, (None, point[1])),
      )

    state = tf.nest.map_structure(tf.convert_to_tensor, state)
    for _ in range(2):
      state, weights = step(state, weights)
    self.assertEqual(weights[0], 1.0)
    self.assertNotEqual(weights[1], 2.0)
    # The gradient that is not there is 0, and alpha is 0.1.
    self.assertAllClose(state['momentum'][0], 0.9**2 * 5.0)
