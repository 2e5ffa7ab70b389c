# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the server rule of FedExP."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.optimizers import reports_testing
from tff_adaptive import optimizers


def _step_size(deltas, **kwargs):
  """Returns the server's step size, with which it also moves."""
  rule = optimizers.build_fedexp(kwargs.pop('epsilon', 1e-3))
  x = np.zeros(len(deltas[0]))
  step = reports_testing.step(rule, x, deltas, **kwargs)
  weights = kwargs.get('weights', np.full(len(deltas), 1 / len(deltas)))
  step_size = step.report['server_step_size']
  np.testing.assert_allclose(
      step.x, step_size * np.dot(weights, deltas), rtol=1e-6, atol=1e-12
  )
  return step_size


class FedExPTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.named_parameters(
      ('orthogonal', [[1.0, 0.0], [0.0, 1.0]], 1.0),
      ('equal', [[1.0, 0.0], [1.0, 0.0]], 1.0),
      ('cancelling', [[1.0, 0.0], [-1.0, 0.0]], 500.0),
      ('zero', [[0.0, 0.0], [0.0, 0.0]], 1.0, 0.0),
      ('one_client', [[3.0, 4.0]], 1.0),
  )
  def test_step_size(self, deltas, expected, epsilon=1e-3):
    found = _step_size(deltas, epsilon=epsilon)
    self.assertAllClose(found, expected, rtol=1e-6)

  def test_norm_is_over_all_weights(self):
    rule = optimizers.build_fedexp()
    flat = tf.constant([0.1, -0.2, 0.3, 0.1])
    results = []
    for gradients in (flat, (flat[:1], {'a': tf.reshape(flat[1:], [3, 1])})):
      weights = tf.nest.map_structure(tf.ones_like, gradients)
      specs = tf.nest.map_structure(
          lambda t: tf.TensorSpec(t.shape, t.dtype), weights
      )
      reports = {'squared_norm': tf.constant(2.0)}
      state, moved = rule.next(
          rule.initialize(specs), weights, gradients, reports=reports
      )
      self.assertGreater(state['server_step_size'], 2.0)
      results.append([tf.reshape(t, [-1]) for t in tf.nest.flatten(moved)])
    self.assertAllClose(tf.concat(results[0], 0), tf.concat(results[1], 0))

  @parameterized.parameters(tf.float16, tf.bfloat16, tf.float32, tf.float64)
  def test_changes_that_cancel_do_not_move_any_dtype(self, dtype):
    # The step size is 5e6, which is no float16.
    step = reports_testing.step(
        optimizers.build_fedexp(),
        [1.0, 2.0],
        [[100.0, 0.0], [-100.0, 0.0]],
        dtype=dtype,
    )
    self.assertAllEqual(step.x, [1.0, 2.0])
    self.assertEqual(step.x.dtype, dtype.as_numpy_dtype)
    self.assertAllClose(step.report['server_step_size'], 5e6)

  def test_epsilon_is_a_hyperparameter(self):
    rule = optimizers.build_fedexp(epsilon=0.5)
    state = rule.initialize(tf.TensorSpec([2], tf.float64))
    self.assertEqual(rule.get_hparams(state), {'epsilon': 0.5})
    state = rule.set_hparams(state, {'epsilon': tf.constant(1.0, tf.float64)})
    step = reports_testing.step(
        rule, np.zeros(2), [[2.0, 0.0], [-2.0, 0.0]], state=state
    )
    self.assertAllClose(step.report['server_step_size'], 2.0)

  @parameterized.parameters(
      (optimizers.build_fedexp, 'squared_norm', 1.0),
      (optimizers.build_fedexprox_grads, 'squared_norm', 1.0),
      (optimizers.build_fednova, 'normalizer', 0.0),
  )
  def test_noise_does_not_make_the_server_ascend(self, build, name, step):
    rule = build()
    state = rule.initialize(tf.TensorSpec([2], tf.float32))
    reports = {name: tf.constant(-3.0)}
    _, x = rule.next(state, tf.zeros([2]), tf.ones([2]), reports=reports)
    self.assertAllClose(x, [-step] * 2)

  def test_without_reports_says_what_to_do(self):
    rule = optimizers.build_fedexp()
    state = rule.initialize(tf.TensorSpec([2], tf.float32))
    with self.assertRaisesRegex(ValueError, 'squared_norm.*build_fed_opt'):
      rule.next(state, tf.zeros([2]), tf.ones([2]))
