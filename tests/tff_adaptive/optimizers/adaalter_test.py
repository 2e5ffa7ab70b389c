# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of AdaAlter's client rule."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import federated_testing
from tests.tff_adaptive.optimizers import rules_testing
from tff_adaptive import optimizers


def _plain_rounds(num_rounds, rate, epsilon, start):
  """AdaAlter in numpy; yields x and B after every round."""
  rate, epsilon = federated_testing.single(rate, epsilon)
  x, frozen = federated_testing.START, np.full([2], start)
  for _ in range(num_rounds):
    results = []
    for client in federated_testing.CLIENTS:
      y, accumulated = x, frozen
      for k, batch in enumerate(client):
        g = federated_testing.gradient(batch, y)
        y = y - rate * g / np.sqrt(frozen + (k + 1) * epsilon**2)
        accumulated = accumulated + g**2
      results.append((y, accumulated))
    x, frozen = (np.mean(part, axis=0) for part in zip(*results))
    yield x, frozen


class AdaAlterTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(
      dict(rate=0.1, epsilon=1.0, start=1.0),
      dict(rate=0.5, epsilon=0.2, start=4.0),
  )
  def test_rounds_equal_a_plain_loop(self, rate, epsilon, start):
    rounds = federated_testing.Rounds(
        optimizers.build_adaalter(rate, epsilon, initial_second_moment=start)
    )
    held = rounds.shared['second_moment']
    self.assertAllEqual(held, [start, start])
    for x, frozen in _plain_rounds(3, rate, epsilon, start):
      rounds.next(federated_testing.COHORT)
      self.assertAllClose(rounds.x, x, **federated_testing.EXACT)
      self.assertAllClose(
          rounds.shared['second_moment'], frozen, **federated_testing.EXACT
      )
      self.assertAllGreaterEqual(rounds.shared['second_moment'] - held, 0.0)
      held = rounds.shared['second_moment']

  def test_nothing_to_divide_by_is_no_move(self):
    rounds = federated_testing.Rounds(
        optimizers.build_adaalter(epsilon=0.0, initial_second_moment=0.0)
    )
    points, _, _ = rounds.train(federated_testing.COHORT[0])
    self.assertAllEqual(points[-1], points[0])

  def test_negative_second_moment_counts_as_zero(self):
    results = []
    for noise in (0.0, -50.0):
      rounds = federated_testing.Rounds(optimizers.build_adaalter())
      rounds.shared['second_moment'] = tf.constant([noise, 1.0], tf.float64)
      results.append(rounds.train(federated_testing.COHORT[0])[:2])
    self.assertAllEqual(results[0][0], results[1][0])
    sent = [part['second_moment'] for _, part in results]
    self.assertAllEqual(*sent)
    self.assertAllGreaterEqual(sent[1], 0.0)

  def test_weight_without_a_gradient_keeps_its_accumulator(self):
    optimizer = optimizers.build_adaalter()
    specs = (tf.TensorSpec([1], tf.float32), tf.TensorSpec([], tf.float32))
    state = optimizer.initialize(specs)
    state, weights = rules_testing.next_step(
        optimizer,
        state,
        (tf.ones([1]), tf.constant(2.0)),
        lambda _: (None, tf.constant(3.0)),
    )
    self.assertAllEqual(weights[0], [1.0])
    sent, kept = optimizer.finish_round(state)
    self.assertAllEqual(sent['second_moment'][0], [1.0])
    self.assertAllEqual(sent['second_moment'][1], 10.0)
    self.assertEmpty(kept)
