# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedExProx."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import reports_testing
from tff_adaptive import algorithms
from tff_adaptive import client_works
from tff_adaptive import optimizers
from tff_adaptive import runtime

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

  @pytest.mark.slow
  def test_final_loss_is_that_of_all_examples_without_the_term(self):
    gamma = 0.5
    process = algorithms.build_fed_opt(
        testing.functional_model(),
        optimizers.build_sgd(0.1),
        optimizers.build_fedexprox_stops(gamma),
        loss_term=client_works.build_fedprox(1 / gamma),
    )
    plain = algorithms.build_fed_opt(
        testing.functional_model(),
        optimizers.build_sgd(0.1),
        loss_term=client_works.build_fedprox(1 / gamma),
    )
    clients = testing.clients([7])
    with runtime.CompiledContext(strict=True):
      begun = plain.initialize()
      state = process.set_model_weights(
          process.initialize(), plain.get_model_weights(begun)
      )
      output = process.next(state, clients)
      trained = plain.next(begun, clients)
      # A pass at the model that the client has ended with.
      rate_0 = algorithms.build_fed_opt(
          testing.functional_model(), optimizers.build_sgd(0.0)
      )
      held = rate_0.set_model_weights(
          rate_0.initialize(), plain.get_model_weights(trained.state)
      )
      loss = rate_0.next(held, clients).metrics['client_work']['clients'][
          'loss'
      ]
    squared = float(trained.metrics['finalizer']['update_norm']) ** 2
    expected = gamma * (loss + squared / (2 * gamma)) / squared
    found = output.metrics['finalizer']['server_step_size']
    self.assertAllClose(found, expected, rtol=1e-4)
