# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedPAC: its common part, SOAP and Sophia."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import federated_testing
from tests.tff_adaptive.optimizers import unit_cases_testing
from tff_adaptive import optimizers
from tff_adaptive.optimizers.client import fedpac_soap

_MATRIX = np.array([[2.0, 0.5, -1.0], [0.25, 1.0, 0.5]])
_SPEC = tf.TensorSpec([2, 3], tf.float64)
_RULES = (
    optimizers.build_fedpac_soap,
    optimizers.build_fedpac_sophia,
    optimizers.build_fedadamw,
    optimizers.build_fedmuon,
)


def _steps(rule, gradients, round_num=0, shared=None):
  """Returns the points of a client's round on a matrix, and what it sends."""
  shared = shared or rule.initialize_shared(_SPEC)
  state = rule.start_round(rule.initialize(_SPEC), shared, {}, round_num)
  points = [tf.zeros([2, 3], tf.float64)]
  for g in gradients:
    state, x = rule.next(
        state, points[-1], tf.constant(g), value=tf.constant(1.0)
    )
    points.append(x)
  return np.array(points), rule.finish_round(state)[0]


class FedPACTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(*_RULES)
  def test_equal_clients_are_one(self, build):
    one, two = (federated_testing.Rounds(build(0.1)) for _ in range(2))
    client = federated_testing.COHORT[1]
    for _ in range(3):
      one.next({0: client})
      two.next({0: client, 1: client})
    self.assertAllClose(one.x, two.x)
    for name, part in one.shared.items():
      self.assertAllClose(part, two.shared[name])

  @parameterized.parameters(
      optimizers.build_fedpac_soap, optimizers.build_fedpac_sophia
  )
  def test_with_alpha_one_nothing_ever_moves(self, build):
    rounds = federated_testing.Rounds(build(0.1, alpha=1.0))
    for _ in range(3):
      rounds.next(federated_testing.COHORT)
    self.assertAllEqual(rounds.x, federated_testing.START)

  def test_direction_is_added_to_every_step(self):
    rule = optimizers.build_fedpac_sophia(0.5, 0.25, weight_decay=0.0)
    shared = rule.initialize_shared(_SPEC)
    shared['global_direction'] = tf.constant(4.0 * np.ones([2, 3]))
    points, sent = _steps(rule, [_MATRIX], 1, shared)
    own = 0.75 * np.sign(_MATRIX)  # The bound of Sophia holds.
    self.assertAllClose(points[1], -0.5 * (own + 0.25 * 4.0))
    self.assertAllClose(sent['global_direction'], own + 1.0)


class SophiaTest(tf.test.TestCase):

  def test_step_by_hand(self):
    rule = optimizers.build_fedpac_sophia(
        0.5, 0.0, 0.5, 0.75, rho=4.0, weight_decay=0.0, epsilon=0.5
    )
    shared = rule.initialize_shared(_SPEC)
    # Noise may leave negative numbers.
    shared['mean_second_moment'] = -tf.ones([2, 3], tf.float64)
    points, sent = _steps(rule, [_MATRIX], 1, shared)
    h = 0.25 * _MATRIX**2
    u = np.clip(0.5 * _MATRIX / (4.0 * h + 0.5), -1.0, 1.0)
    self.assertAllClose(points[1], -0.5 * u)
    self.assertAllClose(sent['mean_second_moment'], h)


class SOAPTest(tf.test.TestCase, parameterized.TestCase):

  def test_reference_gram_matrices_and_bases(self):
    for case in unit_cases_testing.cases('grams'):
      tensor = tf.constant(case['tensor'], tf.float64)
      bases = []
      for axis, expected in enumerate(case['grams']):
        gram = fedpac_soap._gram(tensor, axis)
        self.assertAllClose(gram, expected)
        bases.append(fedpac_soap._eigenvectors(gram))
      rule = optimizers.build_fedpac_soap()
      turned = tf.square(rule._turn(tensor, bases, 0))
      # Signs of eigenvectors are arbitrary.
      self.assertAllClose(turned, case['rotated'], atol=1e-9)
      back = rule._turn(rule._turn(tensor, bases, 0), bases, 1)
      self.assertAllClose(back, tensor)

  def test_turning_back_undoes_the_turn_of_three_axes(self):
    rng = np.random.default_rng(0)
    tensor = tf.constant(rng.normal(size=[2, 3, 4]))
    bases = [np.linalg.qr(rng.normal(size=[n, n]))[0] for n in (2, 3, 4)]
    rule = optimizers.build_fedpac_soap()
    turned = rule._turn(tensor, bases, 0)
    expected = np.einsum('abc,ai,bj,ck->ijk', tensor, *bases)
    self.assertAllClose(turned, expected)
    self.assertAllClose(rule._turn(turned, bases, 1), tensor)

  def test_first_round_waits_and_later_ones_may(self):
    gradients = [_MATRIX, 0.5 * _MATRIX]
    for skip, round_num, still in (
        ('cold', 0, 2),
        ('cold', 1, 0),
        ('always', 1, 1),
    ):
      rule = optimizers.build_fedpac_soap(0.1, cold_steps=2, skip=skip)
      points, sent = _steps(rule, gradients, round_num)
      moved = [bool(np.any(a != b)) for a, b in zip(points, points[1:])]
      self.assertEqual(moved, [False] * still + [True] * (2 - still))
      gram = (0.95 * 0.05 + 0.05 * 0.25) * _MATRIX @ _MATRIX.T
      self.assertAllClose(sent['gram'][0], gram)

  def test_with_sorted_diagonal_matrices_it_is_adam(self):
    g = np.array([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    rule = optimizers.build_fedpac_soap(
        0.1, 0.0, 0.5, 0.75, 0.5, weight_decay=0.0, epsilon=0.25
    )
    points, _ = _steps(rule, [g, 2.0 * g, -g])
    x, m, v = np.zeros([3, 2, 3])
    for k, (found, gradient) in enumerate(zip(points[2:], [2.0 * g, -g])):
      m, v = 0.5 * m + 0.5 * gradient, 0.75 * v + 0.25 * gradient**2
      scale = np.sqrt(1 - 0.75 ** (k + 1)) / (1 - 0.5 ** (k + 1))
      x = x - 0.1 * scale * m / (np.sqrt(v) + 0.25)
      self.assertAllClose(found, x, atol=1e-6)

  def test_axes_that_are_too_long_have_no_matrix(self):
    rule = optimizers.build_fedpac_soap(max_dimension=2)
    shared = rule.initialize_shared((_SPEC, tf.TensorSpec([5])))
    self.assertEqual([m.shape for m in shared['gram']], [(2, 2)])
    rule = optimizers.build_fedpac_soap(max_dimension=1)
    self.assertNotIn('gram', rule.initialize_shared(_SPEC))

  def test_gradients_that_are_not_finite_show_while_it_waits(self):
    bad = np.array([[np.inf, 0.0, 0.0], [0.0, 1.0, 0.0]])
    points, sent = _steps(optimizers.build_fedpac_soap(), [bad, _MATRIX])
    self.assertFalse(np.all(np.isfinite(points[1])))
    self.assertFalse(np.any(np.isfinite(points[2])))
    self.assertFalse(np.all(np.isfinite(sent['gram'][0])))
