# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of Mechanic."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import federated_testing
from tests.tff_adaptive.optimizers import unit_cases_testing
from tff_adaptive import optimizers

_SCALE = tf.constant([1.0, 3.0], tf.float64)


def _run(rule, num_steps=6):
  x = tf.constant([2.0, -1.0], tf.float64)
  state, points = rule.initialize(tf.TensorSpec([2], tf.float64)), []
  for _ in range(num_steps):
    state, x = rule.next(state, x, _SCALE * x)
    points.append(x.numpy())
  return np.array(points), state


class MechanicTest(tf.test.TestCase, parameterized.TestCase):

  def test_reference_numbers(self):
    for case in unit_cases_testing.cases('mechanic'):
      found, expected = unit_cases_testing.sent_by_client(case)
      self.assertAllClose(found, expected, atol=1e-7)

  @parameterized.parameters(
      (optimizers.build_mechanic_sgd, optimizers.build_sgd),
      (optimizers.build_mechanic_adam, optimizers.build_adam),
  )
  def test_first_step_is_the_scaled_base(self, build, build_base):
    found, state = _run(build(0.5, initial_scale=0.25), 1)
    x = tf.constant([2.0, -1.0], tf.float64)
    base = build_base(0.125)
    _, expected = base.next(
        base.initialize(tf.TensorSpec([2], tf.float64)), x, _SCALE * x
    )
    self.assertAllClose(found[0], expected, rtol=1e-6)
    self.assertAllClose(state['scale'], 0.25)

  @parameterized.parameters(
      optimizers.build_mechanic_sgd, optimizers.build_mechanic_adam
  )
  def test_a_client_that_returns_steps_from_the_received_model(self, build):
    rule = build(initial_scale=0.125, carry_state=True)
    rounds = federated_testing.Rounds(rule)
    rounds.next({0: federated_testing.COHORT[0]})
    first = float(rounds.kept[0]['scale'])
    rounds.x = tf.constant([50.0, 40.0], tf.float64)
    rounds.next({0: federated_testing.COHORT[0]})
    self.assertNotEqual(float(rounds.kept[0]['scale']), first)
    self.assertEqual(int(rounds.kept[0]['base_steps']), 4)
    # It neither goes back to its old model nor starts with the first scale.
    self.assertAllClose(rounds.x, [50.0, 40.0], atol=30.0)
    self.assertNotIn('offset', rounds.kept[0])
    self.assertNotIn('initial_weights', rounds.kept[0])
