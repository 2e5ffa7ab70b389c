# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of our optimizers in the builders of `tff.learning.algorithms`."""

from absl.testing import parameterized
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers


class StockFedAvgTest(tf.test.TestCase, parameterized.TestCase):

  def test_takes_rules_with_moments(self):
    # `tf.nest` flattens some kinds of objects, such as attrs classes.
    process = tff.learning.algorithms.build_weighted_fed_avg(
        testing.functional_model(),
        client_optimizer_fn=optimizers.build_dog(),
        server_optimizer_fn=optimizers.build_gpa(),
    )
    self.assertIsInstance(process, tff.learning.templates.LearningProcess)

  # Each row is a rule of clients and one of servers.
  @parameterized.named_parameters(
      ('sgd', optimizers.build_sgd, optimizers.build_fedavg),
      (
          'sgdm',
          lambda: optimizers.build_sgd(0.1, 0.9),
          optimizers.build_fedavgm,
      ),
      ('adam', optimizers.build_adam, optimizers.build_fedadam),
      ('adagrad', optimizers.build_adagrad, optimizers.build_fedadagrad),
      ('yogi', optimizers.build_yogi, optimizers.build_fedyogi),
      (
          'delta_sgd',
          lambda: optimizers.build_delta_sgd(previous_gradient='reuse'),
          optimizers.build_fedams,
      ),
  )
  @pytest.mark.slow
  def test_gives_the_numbers_of_build_fed_opt(self, build_client, build_server):
    model = testing.functional_model()
    stock = tff.learning.algorithms.build_weighted_fed_avg(
        model,
        client_optimizer_fn=build_client(),
        server_optimizer_fn=build_server(),
    )
    ours = algorithms.build_fed_opt(model, build_client(), build_server())
    cohort = testing.clients([10, 7])
    with compiled_testing.installed(1):
      found, expected = (
          compiled_testing.train(process, cohort, cohort)
          for process in (stock, ours)
      )
    self.assertAllClose(found, expected, rtol=0, atol=1e-6)


def _rate(round_num):
  return 0.1 / tf.cast(round_num + 1, tf.float32)


# Builders, and what they take between the model and the client's rule.
_BUILDERS = {
    'weighted_fed_avg': (),
    'unweighted_fed_avg': (),
    'weighted_fed_avg_with_optimizer_schedule': (_rate,),
    'weighted_fed_prox': (0.1,),
    'unweighted_fed_prox': (0.1,),
    'fed_sgd': None,
    'weighted_mime_lite': (),
    'unweighted_mime_lite': (),
    'mime_lite_with_optimizer_schedule': (_rate,),
}


def _train(name, client, server):
  """Trains by a builder; `client` maps a rate to a rule."""
  model, options = testing.functional_model(), _BUILDERS[name]
  build = getattr(tff.learning.algorithms, f'build_{name}')
  if options is None:
    process = build(model, server)
  else:
    # One of them sets the rate by calling the function.
    is_built = name != 'weighted_fed_avg_with_optimizer_schedule'
    process = build(
        model, *options, client(0.1) if is_built else client, server
    )
  cohort = testing.clients([10, 7])
  return compiled_testing.train(process, cohort, cohort)


class StockBuildersTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(*_BUILDERS)
  @pytest.mark.slow
  def test_momentum_gives_the_numbers_of_the_one_of_tff(self, name):
    with compiled_testing.installed(1):
      found = _train(
          name,
          lambda rate: optimizers.build_sgd(rate, 0.9),
          optimizers.build_fedavgm(0.5, 0.9),
      )
      expected = _train(
          name,
          lambda rate: tff.learning.optimizers.build_sgdm(rate, 0.9),
          tff.learning.optimizers.build_sgdm(0.5, 0.9),
      )
    self.assertAllClose(found, expected, rtol=0, atol=1e-6)
