# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of processes whose learning rates change from round to round."""

import collections

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive import testing
from tff_adaptive import algorithms
from tff_adaptive import optimizers
from tff_adaptive import runtime
from tff_adaptive.algorithms import measured_update
from tff_adaptive.algorithms import scaled_rates
from tff_adaptive.optimizers import schedules


def _build(schedule):
  """Returns the steps of a server with a scheduled rate, on one weight."""
  weights_type = tff.to_type(
      tff.learning.models.ModelWeights((np.float32,), ())
  )
  return scaled_rates.schedule_process(
      measured_update.build_measured_update_finalizer(
          optimizers.build_sgd(0.5), weights_type
      ),
      schedule,
      'server optimizer',
  )


def _branch(round_num):
  if round_num < 2:
    return 1.0
  return 0.1


class _HalvesLate(optimizers.ServerOptimizer):
  """FedAvg that halves rates of late rounds and updates of many steps."""

  def initialize(self, specs):
    return collections.OrderedDict(rounds=tf.zeros([]))

  def next(self, state, weights, gradients, *, reports=None):
    moved = tf.nest.map_structure(tf.subtract, weights, gradients)
    return collections.OrderedDict(rounds=state['rounds'] + 1.0), moved

  def client_update(self, end):
    if end.num_steps > 9.0:
      return tuple(0.5 * t for t in end.update)
    return end.update

  def client_rate_scale(self, state):
    if state['rounds'] > 9.0:
      return 0.5
    return 1.0

  def get_hparams(self, state):
    return collections.OrderedDict()

  def set_hparams(self, state, hparams):
    return state


class ScaledRatesTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      ('statement', _branch),
      ('expression', lambda t: 1.0 if t < 2 else 0.1),
  )
  def test_schedule_may_branch_on_the_round(self, schedule):
    process = _build(schedule)
    weights = tff.learning.models.ModelWeights((np.float32(0.0),), ())
    moved = []
    with runtime.CompiledContext(strict=True):
      state = process.initialize()
      for _ in range(3):
        output = process.next(state, weights, (np.float32(-1.0),))
        state = output.state
        moved.append(output.result.trainable[0])
    self.assertAllClose(moved, [0.5, 0.5, 0.05])

  @parameterized.named_parameters(
      ('sgd', lambda: optimizers.build_sgd(0.1)),
      ('feddyn', lambda: optimizers.build_feddyn(num_clients=2)),
  )
  def test_server_rule_may_branch_on_its_state(self, build):
    process = algorithms.build_fed_opt(
        testing.least_squares_model(np.float32, 1), build(), _HalvesLate()
    )
    self.assertIsInstance(process, tff.learning.templates.LearningProcess)

  @parameterized.named_parameters(
      ('number', 0.5, TypeError, 'must be a function.*found 0.5'),
      (
          'builder',
          schedules.build_inverse_sqrt,
          TypeError,
          r'Call it: `build_inverse_sqrt\(\.\.\.\)`',
      ),
      ('power', lambda t: 0.99**t, TypeError, 'tf.cast.round_num, tf.float32'),
      ('vector', lambda t: tf.constant([0.5]), ValueError, 'one number'),
  )
  def test_what_is_no_schedule_is_named(self, schedule, error, message):
    with self.assertRaisesRegex(error, f'server optimizer.*{message}'):
      _build(schedule)
