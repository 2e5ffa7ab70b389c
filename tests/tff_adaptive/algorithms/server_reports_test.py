# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the server rules that see what clients report, in training."""

import collections
import functools

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers


def _infinite_client():
  client = testing.client(8, seed=4)
  client[1]['x'][0, 0] = np.inf
  return client


@functools.cache
def _process(server):
  build = dict(
      fedexp=optimizers.build_fedexp,
      fedli_ls=optimizers.build_line_search_step,
      fedli_lu=lambda: optimizers.build_frank_wolfe(0.5, 0.01, 0.9),
  )[server]
  return algorithms.build_fed_opt(
      testing.functional_model(), optimizers.build_armijo(20.0), build()
  )


def _start(state):
  """Returns the flat weights."""
  return np.concatenate([w.ravel() for w in testing.trainable(state)])


class UnhealthyClientsTest(compiled_testing.TestCase):

  @parameterized.parameters('fedexp', 'fedli_ls', 'fedli_lu')
  @pytest.mark.sample(1)
  def test_unhealthy_clients_count_nowhere(self, server):
    process = _process(server)
    one, two = testing.clients([10, 7])
    with compiled_testing.installed(1):
      start = process.initialize()
      healthy = process.next(start, [one, two])
      mixed = process.next(
          start, [[], one, _infinite_client(), testing.unhealthy_client(), two]
      )
    self.assertEqual(mixed.metrics['client_work']['clients']['num_rejected'], 3)
    self.assert_same_bits(healthy.state, mixed.state)
    self.assert_same_bits(
        healthy.metrics['finalizer'], mixed.metrics['finalizer']
    )

  @parameterized.parameters('fedexp', 'fedli_ls', 'fedli_lu')
  @pytest.mark.slow
  def test_round_without_a_healthy_client_changes_nothing(self, server):
    process = _process(server)
    with compiled_testing.installed(1):
      before = process.next(process.initialize(), testing.clients([10, 7]))
      for cohort in ([[]], [_infinite_client(), testing.unhealthy_client()]):
        after = process.next(before.state, cohort)
        self.assert_same_bits(before.state, after.state)
        measured = after.metrics['finalizer']
        self.assertEqual(measured.pop('update_non_finite'), 1)
        self.assertEqual(measured.pop('update_norm'), 0.0)
        self.assertNotEmpty(measured)
        self.assertAllEqual(
            np.isnan(list(measured.values())), [True] * len(measured)
        )


def _add_gradient_norm(total, step):
  with tf.GradientTape() as tape:
    tape.watch(step.received)
    loss = step.loss_at(step.received)
  return total + tf.linalg.global_norm(tape.gradient(loss, step.received))


class _ReceivedGradients(optimizers.ServerOptimizer):
  """Stays, and measures the gradients at the received weights."""

  client_reports = {
      'norm': optimizers.Report(
          lambda end: end.gathered, _add_gradient_norm, evaluates_again=True
      )
  }

  def initialize(self, specs):
    return collections.OrderedDict(norm=tf.zeros([]))

  def next(self, state, weights, gradients, *, reports=None):
    return collections.OrderedDict(norm=reports['norm']), weights

  def report(self, state):
    return state

  def get_hparams(self, state):
    return collections.OrderedDict()

  def set_hparams(self, state, hparams):
    return state


class GradientsTest(tf.test.TestCase):

  def test_reports_differentiate_the_loss_of_any_model(self):
    found = []
    for model in (testing.functional_model(), testing.variable_model_fn()):
      process = algorithms.build_fed_opt(
          model, optimizers.build_sgd(0.0), _ReceivedGradients()
      )
      with compiled_testing.installed(1):
        output = process.next(process.initialize(), testing.clients([10, 7]))
      found.append(output.metrics['finalizer']['norm'])
    self.assertGreater(found[0], 0.1)
    self.assertAllClose(found[0], found[1], rtol=1e-5)


def _gradient_descent(x, batches, rate):
  """Returns the weights and losses of local training on least squares."""
  received, losses, received_losses = x, [], []
  for features, labels in batches:
    features = np.hstack([features, np.ones([len(features), 1])])
    residual = features @ x - labels[:, 0]
    losses.append(np.mean(residual**2))
    received_losses.append(np.mean((features @ received - labels[:, 0]) ** 2))
    x = x - rate * 2 * features.T @ residual / len(features)
  objectives = dict(
      local_mean=np.mean(losses),
      received_model=np.mean(received_losses),
      last=losses[-1],
  )
  return x, objectives


class FedLiLUTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters('local_mean', 'received_model', 'last')
  @pytest.mark.sample(1)
  def test_is_the_plain_loop(self, objective_at):
    # With a server rate of 4, gamma is below 1.
    rate = 0.3
    cohort = [
        list(
            testing.least_squares_dataset(
                n, np.float64, seed=n
            ).as_numpy_iterator()
        )
        for n in (4, 10)
    ]
    process = algorithms.build_fed_opt(
        testing.least_squares_model(np.float64, num_outputs=1),
        optimizers.build_sgd(rate),
        optimizers.build_frank_wolfe(4.0, objective_at=objective_at),
    )
    gammas = []
    with compiled_testing.installed(1):
      state = process.initialize()
      x = _start(state)
      for _ in range(3):
        ends, losses = zip(
            *(_gradient_descent(x, client, rate) for client in cohort)
        )
        change = x - (4 * ends[0] + 10 * ends[1]) / 14
        objective = (
            4 * losses[0][objective_at] + 10 * losses[1][objective_at]
        ) / 14
        gamma = np.clip(objective / (4 * change @ change + 1e-5), 0.0, 1.0)
        x = x - 4 * gamma * change
        output = process.next(state, cohort)
        state = output.state
        measured = output.metrics['finalizer']
        self.assertAllClose(measured['objective'], objective, rtol=1e-5)
        self.assertAllClose(measured['gamma'], gamma, rtol=1e-5)
        self.assertAllClose(_start(state), x, rtol=1e-5)
        gammas.append(gamma)
    self.assertBetween(min(gammas), 0.01, 0.99)
