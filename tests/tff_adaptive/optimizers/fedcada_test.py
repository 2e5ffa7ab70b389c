# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedCAda's client rule."""

import math

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive import property_testing
from tests.tff_adaptive.optimizers import federated_testing
from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers
from tff_adaptive.optimizers.client import fedcada

# Of beta ** t.
_CORRECTIONS = {
    'option1': lambda power: 1 + power,
    'option2': lambda power: 1 + power**2,
    'option3': lambda power: 1 + math.sin(power),
    'option4': lambda power: 1 + math.sqrt(power),
    'none': lambda power: 1.0,
    'adam': lambda power: 1 - power,
}


def _plain_rounds(cohorts, option, time, carry_state, rate=0.1, eps=1e-8):
  """FedCAda in numpy; yields the model and the moments after every round."""
  rate, eps, beta_1, beta_2 = federated_testing.single(rate, eps, 0.9, 0.99)
  x = federated_testing.START
  shared = (np.zeros(2), np.zeros(2), 0.0)
  own = {}
  for round_num, cohort in enumerate(cohorts, start=1):
    results = {}
    for i in cohort:
      y, (m, v, n) = x, own.get(i, shared) if carry_state else shared
      for k, batch in enumerate(federated_testing.CLIENTS[i], start=1):
        g = federated_testing.gradient(batch, y)
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        t = {'round': round_num, 'local_step': k, 'global_step': n + k}[time]
        c1, c2 = (_CORRECTIONS[option](b**t) for b in (beta_1, beta_2))
        y = y - rate * (m / c1) / (np.sqrt(v / c2) + eps)
      results[i] = (y, (m, v, n + k))
    x = np.mean([y for y, _ in results.values()], axis=0)
    if carry_state:
      own.update({i: moments for i, (_, moments) in results.items()})
    else:
      sent = [moments for _, moments in results.values()]
      shared = tuple(np.mean(part, axis=0) for part in zip(*sent))
    yield x, dict(own) if carry_state else shared


def _cohort(ids):
  return {i: federated_testing.COHORT[i] for i in ids}


class FedCAdaTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.product(option=list(_CORRECTIONS), time=fedcada.TIMES)
  def test_rounds_equal_a_plain_loop(self, option, time):
    rounds = federated_testing.Rounds(
        optimizers.build_fedcada_adam(0.1, option=option, time=time)
    )
    cohorts = [(0, 1)] * 3
    for x, moments in _plain_rounds(cohorts, option, time, carry_state=False):
      rounds.next(_cohort((0, 1)))
      self.assertAllClose(rounds.x, x, **federated_testing.EXACT)
      self.assertLen(rounds.shared, 3 if time == 'global_step' else 2)
      for held, expected in zip(rounds.shared.values(), moments):
        self.assertAllClose(held, expected, **federated_testing.EXACT)

  @parameterized.parameters(*fedcada.TIMES)
  def test_carried_moments_stay_with_their_client(self, time):
    cohorts = [(0,), (1,), (0, 1), (0,)]
    rounds = federated_testing.Rounds(
        optimizers.build_fedcada_adam(0.1, time=time, carry_state=True)
    )
    self.assertEmpty(rounds.shared)
    expected_rounds = _plain_rounds(cohorts, 'option1', time, carry_state=True)
    for cohort, (x, own) in zip(cohorts, expected_rounds):
      rounds.next(_cohort(cohort))
      self.assertAllClose(rounds.x, x, **federated_testing.EXACT)
      self.assertEqual(rounds.kept.keys(), own.keys())
      for i, kept in rounds.kept.items():
        for held, expected in zip(kept.values(), own[i]):
          self.assertAllClose(held, expected, **federated_testing.EXACT)

  @parameterized.product(option=list(_CORRECTIONS), epsilon=[0.0, 1e-8])
  def test_zero_gradients_do_not_move(self, option, epsilon):
    gradients = np.zeros([4, property_testing.SIZE])
    path = path_testing.run(
        optimizers.build_fedcada_adam,
        property_testing.linear(gradients),
        epsilon=epsilon,
        option=option,
    )
    self.assertAllEqual(path.points, np.zeros_like(path.points))
    for moment in path.sent.values():
      self.assertAllEqual(moment, gradients[0])

  def test_negative_second_moment_and_steps_count_as_zero(self):
    runs = []
    for noise in (0.0, -1.0):
      rounds = federated_testing.Rounds(
          optimizers.build_fedcada_adam(time='global_step')
      )
      rounds.shared['second_moment'] += tf.constant([noise, 0.5], tf.float64)
      rounds.shared['num_steps'] += noise
      rounds.next(_cohort((0, 1)))
      runs.append((rounds.x, rounds.shared))
    self.assertAllClose(*runs, **federated_testing.EXACT)
    self.assertAllGreaterEqual(runs[1][1]['second_moment'], 0.0)

  def test_moments_of_half_precision_are_single(self):
    optimizer = optimizers.build_fedcada_adam()
    shared = optimizer.initialize_shared(tf.TensorSpec([2], tf.float16))
    self.assertEqual(shared['second_moment'].dtype, tf.float32)
