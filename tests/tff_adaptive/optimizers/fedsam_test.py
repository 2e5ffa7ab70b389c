# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of FedSAM."""

from absl.testing import parameterized
import tensorflow as tf

from tests.tff_adaptive.optimizers import federated_testing
from tff_adaptive import optimizers


class FedSAMTest(tf.test.TestCase, parameterized.TestCase):

  def test_gradient_is_of_the_perturbed_weights(self):
    rule = optimizers.build_fedsam(0.25, rho=0.5, epsilon=0.0)
    x = federated_testing.START
    state = rule.initialize(tf.TensorSpec(x.shape, tf.float64))
    batch = federated_testing.CLIENTS[0][0]
    evaluate = federated_testing.to_batch(batch)
    _, moved = rule.next(
        state, tf.constant(x), evaluate(x)[1], value_and_grad_fn=evaluate
    )
    self.assertAllClose(
        moved, x - 0.25 * federated_testing.perturbed_gradient(batch, x, 0.5)
    )
    self.assertEqual(rule.report(state)['gradient_evaluations'], 2)

  def test_without_perturbation_it_is_sgd_with_one_gradient(self):
    rule = optimizers.build_fedsam(0.25, rho=0.0)
    self.assertFalse(rule.evaluates_again)
    state = rule.initialize(tf.TensorSpec([], tf.float32))
    _, moved = rule.next(state, tf.constant(1.0), tf.constant(2.0))
    self.assertAllClose(moved, 0.5)
