# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what is a special case of generalized federated averaging.

The oracle is a plain loop of gradient descent on least squares, in float64.
"""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.runtime import compiled_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime

_MODEL = testing.least_squares_model(np.float64, num_outputs=1)


def _batches(sizes, seed=0):
  """Returns batches of these sizes, of features and labels."""
  generator = np.random.default_rng(seed)
  return [
      (generator.normal(size=[size, 3]), generator.normal(size=[size, 1]))
      for size in sizes
  ]


def _flat(state):
  return np.concatenate([w.ravel() for w in testing.trainable(state)])


def _gradient(x, batch):
  """Returns the gradient of the squared error; x is kernel and bias."""
  features, labels = batch
  features = np.hstack([features, np.ones([len(features), 1])])
  return 2 * features.T @ (features @ x - labels[:, 0]) / len(features)


@pytest.mark.usefixtures('native_runtime')
class SpecialCasesTest(tf.test.TestCase, parameterized.TestCase):

  def test_one_client_and_a_server_rate_are_lookahead(self):
    batches = _batches([4, 4, 2])
    process = algorithms.build_fed_opt(
        _MODEL, optimizers.build_sgd(0.1), optimizers.build_fedavg(0.5)
    )
    state = process.initialize()
    slow = _flat(state)
    for _ in range(3):
      fast = slow
      for batch in batches:
        fast = fast - 0.1 * _gradient(fast, batch)
      slow = slow + 0.5 * (fast - slow)
      state = process.next(state, [batches]).state
      self.assertAllClose(_flat(state), slow, rtol=1e-6)

  @parameterized.parameters(compiled_testing.installed, runtime.NativeContext)
  @pytest.mark.sample(1)
  def test_float16_counts_more_examples_than_its_range(self, context):
    model = testing.least_squares_model(np.float16, num_outputs=1)
    client = [
        tuple(part.astype(np.float16) for part in batch)
        for batch in _batches([8_000] * 5)
    ]
    models = []
    with context():
      for weighting in tff.learning.ClientWeighting:
        process = algorithms.build_fed_opt(
            model, optimizers.build_sgd(0.01), client_weighting=weighting
        )
        state = process.initialize()
        models.append(_flat(process.next(state, [client, client]).state))
    self.assertAllEqual(*models)
    self.assertNotAllClose(models[0], _flat(state))

  @parameterized.named_parameters(
      ('fedcm', optimizers.build_fedcm(0.1, alpha=1.0)),
      (
          'fedhyper_on_clients',
          optimizers.build_fedhyper_client_local(0.1, hyper_learning_rate=0.0),
      ),
      (
          'fedhyper_global',
          optimizers.build_sgd(0.1),
          optimizers.build_fedhyper_global(0.0),
      ),
      (
          'fedhyper_by_the_server',
          optimizers.build_sgd(0.1),
          optimizers.build_fedhyper_server_local(1.0, 0.0),
      ),
  )
  @pytest.mark.sample(1)
  def test_without_its_extra_term_a_rule_is_fedavg(self, client, server=None):
    cohort = [_batches([4, 2]), _batches([3], seed=1)]
    found, expected = (
        algorithms.build_fed_opt(_MODEL, *rules)
        for rules in ((client, server), (optimizers.build_sgd(0.1),))
    )
    state, plain = found.initialize(), expected.initialize()
    for _ in range(3):
      state = found.next(state, cohort).state
      plain = expected.next(plain, cohort).state
      self.assertAllClose(_flat(state), _flat(plain), rtol=1e-6)
