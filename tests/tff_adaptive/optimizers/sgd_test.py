# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sgd."""

from absl.testing import parameterized
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.optimizers import path_testing
from tff_adaptive import optimizers
from tff_adaptive.optimizers.client import sgd


class SgdTest(tf.test.TestCase, parameterized.TestCase):

  def _run(self, optimizer, num_steps=4, state=None):
    gradients = [(1.0 + k, 0.5) for k in range(num_steps)]
    points, _ = path_testing.follow(
        optimizer, gradients, (1.0, -2.0), state, tf.float32
    )
    return points

  @parameterized.parameters(0.0, 0.5, 0.9)
  def test_equals_tff(self, momentum):
    ours = self._run(sgd.build_sgd(0.3, momentum))
    theirs = self._run(
        tff.learning.optimizers.build_sgdm(0.3, momentum or None)
    )
    self.assertAllEqual(ours, theirs)

  def test_momentum_that_is_set_to_zero_is_plain(self):
    optimizer = sgd.build_sgd(0.3, 0.9)
    state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
    state = optimizer.set_hparams(state, {'momentum': 0.0})
    self.assertAllEqual(
        self._run(optimizer, state=state), self._run(sgd.build_sgd(0.3))
    )

  def test_without_momentum_holds_no_accumulator(self):
    state = sgd.build_sgd(0.1).initialize(tf.TensorSpec([7], tf.float32))
    self.assertEqual(list(state), ['learning_rate'])


class FedAvgTest(tf.test.TestCase):

  def test_moves_by_the_rate_times_the_mean_change(self):
    optimizer = optimizers.build_fedavg(0.5)
    state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
    change = tf.constant([0.25, -1.0])
    _, weights = optimizer.next(state, tf.constant([1.0, 2.0]), -change)
    self.assertAllClose(weights, [1.125, 1.5])


class FedAvgMTest(tf.test.TestCase):

  def test_literal_numbers(self):
    # u = 1; then .9 + 1 = 1.9; then 1.71 - 1 = .71; x moves by .5 u.
    points, states = path_testing.follow(
        optimizers.build_fedavgm(0.5), [-1.0, -1.0, 1.0], dtype=tf.float32
    )
    self.assertAllClose(points, [0.5, 1.45, 1.805])
    self.assertAllClose(-states[-1]['accumulator'], 0.71)
