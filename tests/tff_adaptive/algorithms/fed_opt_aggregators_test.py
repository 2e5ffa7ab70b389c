# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of aggregators of the change of the model."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.algorithms import fed_opt_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers

_UNIFORM = tff.learning.ClientWeighting.UNIFORM


@pytest.mark.usefixtures('native_runtime')
class FedOptAggregatorsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      ('plain', lambda: tff.aggregators.MeanFactory()),
      ('zeroing', lambda: tff.learning.robust_aggregator(clipping=False)),
      ('clipping', lambda: tff.learning.robust_aggregator(zeroing=False)),
      ('compression', lambda: tff.learning.compression_aggregator()),
  )
  @pytest.mark.sample(1)
  def test_weighted_aggregators(self, build):
    process = algorithms.build_fed_opt(
        testing.functional_model(),
        optimizers.build_delta_sgd(),
        model_aggregator=build(),
    )
    state = process.initialize()
    losses = []
    for _ in range(4):
      output = process.next(state, fed_opt_testing.clients())
      state = output.state
      losses.append(output.metrics['client_work']['clients']['loss'])
    self.assertLess(losses[-1], losses[0])

  @pytest.mark.slow
  def test_differential_privacy(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(),
        optimizers.build_sgd(0.1),
        client_weighting=_UNIFORM,
        model_aggregator=tff.learning.dp_aggregator(1e-6, 2.0),
    )
    plain = algorithms.build_fed_opt(
        testing.functional_model(),
        optimizers.build_sgd(0.1),
        client_weighting=_UNIFORM,
    )
    # Adaptive clipping starts at 0.1; noise of 1e-6 hides nothing.
    start = testing.trainable(process.initialize())[0]
    private = (
        testing.trainable(
            fed_opt_testing.run_round(process, fed_opt_testing.clients()).state
        )[0]
        - start
    )
    change = (
        testing.trainable(
            fed_opt_testing.run_round(plain, fed_opt_testing.clients()).state
        )[0]
        - start
    )
    cosine = np.sum(private * change) / (
        np.linalg.norm(private) * np.linalg.norm(change)
    )
    self.assertGreater(cosine, 0.9)
    self.assertLessEqual(np.linalg.norm(private), 0.1 + 1e-4)


class SecureAggregatorTest(tf.test.TestCase):

  @pytest.fixture(autouse=True)
  def _use_secure_runtime(self, secure_test_runtime):
    with tff.framework.get_context_stack().install(secure_test_runtime):
      yield

  @pytest.mark.slow
  def test_secure_aggregation_equals_plain_up_to_its_quantization(self):
    plain, secure = (
        algorithms.build_fed_opt(
            testing.functional_model(),
            optimizers.build_delta_sgd(),
            model_aggregator=aggregator,
        )
        for aggregator in (None, tff.learning.secure_aggregator())
    )
    for w, v in zip(
        testing.trainable(
            fed_opt_testing.run_round(plain, fed_opt_testing.clients()).state
        ),
        testing.trainable(
            fed_opt_testing.run_round(secure, fed_opt_testing.clients()).state
        ),
    ):
      self.assertAllClose(w, v, atol=1e-3)
