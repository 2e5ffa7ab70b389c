# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the client work with rules whose state crosses rounds."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime

_UNIFORM = tff.learning.ClientWeighting.UNIFORM
_NUM_WEIGHTS = (testing.NUM_FEATURES + 1) * testing.NUM_CLASSES


def _first_moment(output):
  return output.state.client_work['shared']['first_moment'][0]


class ClientWorkTest(tf.test.TestCase, parameterized.TestCase):

  @pytest.mark.slow
  def test_bytes_are_those_of_the_model_and_what_is_shared(self):
    (output,) = federated_testing.run_process(
        optimizers.build_fedcada_adam(0.1), 1, client_weighting=_UNIFORM
    )
    measured = output.metrics['client_work']['clients']
    # Down: the model, the moments, four hyperparameters, the round. Up: the
    # change and the moments, each with its weight.
    self.assertEqual(measured['bytes_down'], 2 * 4 * (3 * _NUM_WEIGHTS + 5))
    self.assertEqual(measured['bytes_up'], 2 * 4 * (3 * _NUM_WEIGHTS + 2))

  @pytest.mark.slow
  def test_mean_that_is_not_finite_leaves_what_is_shared(self):
    # Weighted by examples, the sum of these second moments overflows.
    outputs = federated_testing.run_process(
        optimizers.build_adaalter(0.0, initial_second_moment=1e38),
        clients=testing.clients([10, 7]),
    )
    for output in outputs:
      kernel, _ = output.state.client_work['shared']['second_moment']
      self.assertAllEqual(kernel, np.full_like(kernel, 1e38))
      measured = output.metrics['client_work']['clients']
      self.assertEqual(measured['num_rejected'], 0)
    self.assertEqual(output.state.client_work['round_num'], 0)

  @pytest.mark.slow
  def test_schedule_reaches_a_federated_optimizer(self):
    norms = []
    for schedule in (None, lambda round_num: tf.constant(0.5)):
      (output,) = federated_testing.run_process(
          optimizers.build_adaalter(0.1),
          num_rounds=1,
          clients=[testing.client(4, seed=0)],
          client_schedule=schedule,
      )
      norms.append(output.metrics['finalizer']['update_norm'])
    self.assertAllClose(norms[0], 2 * norms[1], rtol=1e-5)
    self.assertEqual(output.state.client_work['inner']['round_num'], 1)

  @pytest.mark.slow
  def test_weights_of_the_change_are_those_of_what_is_sent(self):
    clients = [testing.client(12, 0), testing.client(4, 1)]
    outputs = []
    with runtime.CompiledContext(strict=True):
      for weighting, cohorts in (
          (_UNIFORM, [clients[:1], clients[1:], clients]),
          (tff.learning.ClientWeighting.NUM_EXAMPLES, [clients]),
      ):
        process = algorithms.build_fed_opt(
            testing.functional_model(),
            optimizers.build_fedcada_adam(0.1),
            client_weighting=weighting,
        )
        state = process.initialize()
        outputs += [process.next(state, cohort) for cohort in cohorts]
    first, second, uniform, examples = map(_first_moment, outputs)
    self.assertAllClose(uniform, (first + second) / 2, atol=1e-7)
    self.assertAllClose(examples, (3 * first + second) / 4, atol=1e-7)

  @pytest.mark.slow
  def test_trace_tells_clients_apart(self):
    (output,) = federated_testing.run_process(
        optimizers.build_adaalter(),
        num_rounds=1,
        clients=[*testing.clients([10, 7]), []],
        trace_steps=True,
    )
    steps = output.metrics['client_work']['steps']
    self.assertCountEqual(steps['num_steps'], [3, 2, 0])
    self.assertLen(steps['loss'], 5)
    self.assertTrue(np.isfinite(steps['loss']).all())
