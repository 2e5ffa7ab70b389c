# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedNova."""

from absl.testing import parameterized
import pytest
import tensorflow as tf

from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import client_works
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.optimizers.server import fednova


def _run(server, clients, **options):
  """Returns the weights after a round, and the metrics of the server."""
  process = algorithms.build_fed_opt(
      testing.functional_model(), optimizers.build_sgd(0.1), server, **options
  )
  with runtime.CompiledContext(strict=True):
    output = process.next(process.initialize(), clients)
  weights = process.get_model_weights(output.state).trainable
  return weights, output.metrics['finalizer']


class FedNovaTest(tf.test.TestCase, parameterized.TestCase):

  # Steps, momentum, rate times mu, what they are worth.
  @parameterized.parameters(
      (1, 0.0, 0.0, 1.0),
      (5, 0.0, 0.0, 5.0),
      (5, 0.9, 0.0, 13.1441),
      (4, 0.0, 0.1, 3.439),
      (3, 0.5, 0.2, 3.49),
  )
  def test_steps_worth(self, num_steps, momentum, pull, expected):
    rule = optimizers.build_sgd(0.5, momentum)
    end = optimizers.ClientRoundEnd(
        received=(),
        trained=(),
        update=(),
        num_steps=tf.constant(num_steps, tf.float32),
        gathered=None,
        optimizer_state=rule.initialize(tf.TensorSpec([], tf.float32)),
        loss_term=client_works.build_fedprox(pull / 0.5),
        mean_loss=lambda weights: tf.zeros([]),
    )
    worth = fednova.steps_worth(end)
    self.assertAllClose(worth, expected, rtol=1e-6)

  def test_nesterov_momentum_on_clients_is_refused(self):
    rule = optimizers.build_fednova()
    # The momentum of plain SGD, under the name of a server rule.
    rule.check_client(optimizers.build_fedavgm(0.1, 0.9))
    rule.check_client(optimizers.build_fedavgm(0.1, 0.0, nesterov=True))
    with self.assertRaisesRegex(ValueError, "SGD with Nesterov's momentum"):
      rule.check_client(optimizers.build_fedavgm(0.1, 0.9, nesterov=True))

  @pytest.mark.slow
  def test_steps_are_counted_without_the_term(self):
    term = client_works.build_fedprox(1.0)
    clients = testing.clients([12, 2])
    _, shrunk = _run(optimizers.build_fednova(), clients, loss_term=term)
    _, counted = _run(
        optimizers.build_fednova(tau_eff='steps'), clients, loss_term=term
    )
    self.assertLess(shrunk['tau_eff'], counted['tau_eff'])
