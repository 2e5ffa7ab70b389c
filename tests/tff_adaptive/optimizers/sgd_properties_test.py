# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what holds for gradient descent and averaging in any round."""

from absl.testing import parameterized
import hypothesis
import numpy as np
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers

_RATES = property_testing.positive(0.0625, 2.0)


def _average(changes, weights, x, build=optimizers.build_fedavg, **arguments):
  """The server's weights after its step; it takes minus the mean change."""
  batches = property_testing.linear([-weights @ changes])
  return path_testing.run(build, batches, x, **arguments).points[-1]


class SgdPropertiesTest(tf.test.TestCase, parameterized.TestCase):

  @hypothesis.given(property_testing.sequences(), _RATES)
  def test_momentum_of_zero_is_plain(self, gradients, rate):
    batches = property_testing.linear(gradients)
    plain, momentum = (
        path_testing.run(
            optimizers.build_sgd, batches, learning_rate=rate, **arguments
        )
        for arguments in ({}, dict(momentum=0.0))
    )
    self.assertAllEqual(plain.points, momentum.points)
    expected = -rate * np.sum(gradients, axis=0)
    self.assertAllClose(plain.points[-1], expected, rtol=1e-9, atol=1e-9)

  @parameterized.parameters(optimizers.build_sgd, optimizers.build_fedavgm)
  @hypothesis.given(
      property_testing.sequences(), _RATES, property_testing.shares()
  )
  def test_momentum_weighs_gradients_by_the_rest_of_a_geometric_series(
      self, build, gradients, rate, momentum
  ):
    path = path_testing.run(
        build,
        property_testing.linear(gradients),
        learning_rate=rate,
        momentum=momentum,
    )
    # Without dampening and not of Nesterov.
    ages = np.arange(len(gradients), 0, -1)
    factors = rate * (1 - momentum**ages) / (1 - momentum)
    expected = -factors @ gradients
    self.assertAllClose(path.points[-1], expected, rtol=1e-9, atol=1e-9)


class FedAvgPropertiesTest(tf.test.TestCase):

  @hypothesis.given(
      property_testing.weighted_changes(), property_testing.vectors()
  )
  def test_is_the_mean_of_the_local_models(self, weighted_changes, x):
    changes, weights = weighted_changes
    expected = weights @ (x + changes)
    average = _average(changes, weights, x)
    self.assertAllClose(average, expected, rtol=1e-9, atol=1e-9)
    # Gradient descent of rate 1 is the same server.
    descent = _average(
        changes, weights, x, optimizers.build_sgd, learning_rate=1.0
    )
    self.assertAllEqual(average, descent)

  @hypothesis.given(
      property_testing.batch_sequences(), property_testing.STARTS, _RATES
  )
  def test_one_full_batch_of_each_client_is_a_step_on_the_mean(
      self, batches, x, rate
  ):
    # The k-th batch is that of the k-th client.
    clients = [
        property_testing.Batches(*(part[k : k + 1] for part in batches))
        for k in range(len(batches.slopes))
    ]
    changes = [
        path_testing.run(
            optimizers.build_sgd, client, x, learning_rate=rate
        ).points[-1]
        - x
        for client in clients
    ]
    weights = np.full(len(clients), 1 / len(clients))
    gradients = [batches.gradient(k, x) for k in range(len(clients))]
    expected = x - rate * np.mean(gradients, axis=0)
    found = _average(np.array(changes), weights, x)
    self.assertAllClose(found, expected, rtol=1e-9, atol=1e-9)
