# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the schedules of `build_fed_opt`."""

import collections

import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tests.tff_adaptive.algorithms import fed_opt_testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive.optimizers import schedules


@pytest.mark.usefixtures('native_runtime')
class FedOptSchedulesTest(tf.test.TestCase):

  @pytest.mark.slow
  def test_schedules_scale_the_rates_of_clients_and_server(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(),
        optimizers.build_sgd(0.1),
        optimizers.build_fedavg(0.8),
        client_schedule=schedules.build_table({0: 1.0, 1: 0.5, 2: 0.0}),
        server_schedule=schedules.build_table({0: 1.0, 1: 0.25}),
    )
    state = process.initialize()
    steps, moves = [], []
    for _ in range(3):
      output = process.next(state, fed_opt_testing.clients())
      measured = output.metrics['client_work']['clients']
      steps.append(measured['step_size_mean'])
      moved = tf.linalg.global_norm(
          [
              new - old
              for new, old in zip(
                  testing.trainable(output.state), testing.trainable(state)
              )
          ]
      )
      moves.append(moved / (output.metrics['finalizer']['update_norm'] or 1.0))
      state = output.state
    self.assertAllClose(steps, [0.1, 0.05, 0.0])
    self.assertAllClose(moves, [0.8, 0.2, 0.0], rtol=1e-4)
    # The hyperparameters are the base rates.
    hparams = process.get_hparams(state)
    self.assertAllClose(hparams['client_work']['learning_rate'], 0.1)
    self.assertAllClose(hparams['finalizer']['learning_rate'], 0.8)
    hparams['client_work']['learning_rate'] = 0.3
    changed = process.set_hparams(process.initialize(), hparams)
    output = process.next(changed, fed_opt_testing.clients())
    measured = output.metrics['client_work']
    self.assertAllClose(measured['clients']['step_size_mean'], 0.3)

  @pytest.mark.slow
  def test_schedule_continues_in_a_round_that_changes_nothing(self):
    process = algorithms.build_fed_opt(
        testing.functional_model(),
        optimizers.build_sgd(0.1),
        optimizers.build_sgd(1.0, 0.9),
        client_schedule=schedules.build_inverse_sqrt(),
        server_schedule=schedules.build_inverse_sqrt(),
    )
    before = fed_opt_testing.run_round(process).state
    after = fed_opt_testing.run_round(process, [[]], before).state
    for part in ('client_work', 'finalizer'):
      self.assertEqual(getattr(after, part)['round_num'], 2)
    for old, new in zip(
        tf.nest.flatten(
            (before.global_model_weights, before.finalizer['inner'])
        ),
        tf.nest.flatten((after.global_model_weights, after.finalizer['inner'])),
    ):
      self.assertAllEqual(old, new)

  def test_schedule_of_an_optimizer_without_rate_raises(self):
    class NoRate(type(tff.learning.optimizers.build_sgdm(0.1))):

      def get_hparams(self, state):
        return collections.OrderedDict(speed=state['learning_rate'])

      def set_hparams(self, state, hparams):
        return collections.OrderedDict(learning_rate=hparams['speed'])

    with self.assertRaisesRegex(ValueError, "client optimizer.*'speed'"):
      algorithms.build_fed_opt(
          testing.functional_model(),
          NoRate(0.1),
          client_schedule=schedules.build_table({0: 1.0}),
      )
