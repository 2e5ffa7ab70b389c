# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the protocol of optimizers."""

import collections
from unittest import mock

from absl.testing import parameterized
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import optimizers
from tff_adaptive.optimizers import optimizer


class OptimizerTest(tf.test.TestCase, parameterized.TestCase):

  def test_plain_optimizers_are_told_apart(self):
    self.assertFalse(
        optimizer.takes_extra_args(tff.learning.optimizers.build_sgdm(0.1))
    )
    self.assertTrue(optimizer.takes_extra_args(optimizers.build_delta_sgd()))

  def test_report_of_a_plain_optimizer_is_its_learning_rate(self):
    adam = tff.learning.optimizers.build_adam(0.25)
    state = adam.initialize(tf.TensorSpec([], tf.float32))
    report = optimizer.step_report(adam, state)
    self.assertEqual(list(report), ['step_size'])
    self.assertAllEqual(report['step_size'], 0.25)

  @parameterized.named_parameters(
      ('no_pair', {'a': 1.0}, 'a pair, the new state and the new weights'),
      ('three', (1.0, 2.0, 3.0), 'a pair'),
      ('swapped', ((2.0,), {'a': 1.0}), r"state had the entries \['a'\]"),
      ('no_state', ({}, (2.0,)), r"state had the entries \['a'\], found.*\[\]"),
      ('one_weight', ({'a': 1.0}, 2.0), 'weights had 1 entries, found a float'),
  )
  def test_steps_that_return_something_else(self, result, sentence):
    rule = optimizers.build_sgd()
    with self.assertRaisesRegex(TypeError, f'`next` of SGD must.*{sentence}'):
      optimizer.check_step(result, {'a': 0.0}, (0.0,), rule)

  def test_a_step_may_have_other_containers(self):
    result = optimizer.check_step(
        [collections.OrderedDict(a=1.0), [2.0]], {'a': 0.0}, (0.0,), None
    )
    self.assertEqual(result[1], [2.0])

  def test_report_of_vectors_is_refused(self):
    with self.assertRaisesRegex(ValueError, "`report` of SGD.*'a'.*(2,).*mean"):
      optimizer.reported_scalars({'a': tf.ones([2])}, optimizers.build_sgd())

  def test_report_of_a_name_that_the_loop_has_is_refused(self):
    rule = optimizers.build_sps()
    with mock.patch.object(rule, 'report', lambda state: {'loss': tf.ones([])}):
      with self.assertRaisesRegex(ValueError, "`report` of SPS.*'loss'.*other"):
        optimizer.step_report(rule, None)

  def test_report_of_an_unknown_state_is_empty(self):
    report = optimizer.step_report(tff.learning.optimizers.build_sgdm(0.1), ())
    self.assertEqual(report, collections.OrderedDict())

  @parameterized.named_parameters(
      (
          'builder',
          optimizers.build_sgd,
          'The rule must be a .*, found the function build_sgd. Call it, as in '
          r'`build_sgd\(...\)`.$',
      ),
      (
          'keras_factory',
          lambda: tf.keras.optimizers.SGD(0.1),
          r'found function. Call a builder .* such as `build_sgd\(0.1\)`. '
          'Keras optimizers, and functions that return one, do not work.$',
      ),
      ('number', 0.1, r'found float. Call a builder .*`build_sgd\(0.1\)`.$'),
  )
  def test_values_that_are_no_optimizers_raise(self, value, sentence):
    with self.assertRaisesRegex(TypeError, sentence):
      optimizer.check_optimizer(value, 'The rule')

  @parameterized.parameters(tf.keras.optimizers, tf.keras.optimizers.legacy)
  def test_a_keras_optimizer_raises(self, module):
    with self.assertRaisesRegex(TypeError, 'SGD. .* Keras optimizers, and'):
      optimizer.check_optimizer(module.SGD(0.1), '`optimizer`')

  def test_matching_state_passes_and_other_dtypes_raise(self):
    weights = (tf.ones([2]),)
    optimizer.check_weights_state_match(weights, (tf.zeros([2]),), 'history')
    with self.assertRaisesRegex(ValueError, 'history'):
      optimizer.check_weights_state_match(
          weights, (tf.zeros([2], tf.float64),), 'history'
      )

  def test_hparams_are_the_part_of_the_state_that_can_be_set(self):
    rule = optimizer.HparamsInState({'eta': 0.5})
    state = collections.OrderedDict(eta=0.25, moment=1.0)
    self.assertEqual(rule.get_hparams(state), {'eta': 0.25})
    self.assertEqual(
        rule.set_hparams(state, {'eta': 2.0}), {'eta': 2.0, 'moment': 1.0}
    )
    self.assertEqual(state['eta'], 0.25)
    with self.assertRaisesRegex(ValueError, r"'moment'; it has \['eta'\]"):
      rule.set_hparams(state, {'moment': 2.0})

  def test_dense_gradients_have_no_slices_and_keep_none(self):
    weights = (tf.zeros([3]), tf.zeros([2]))
    slices = tf.IndexedSlices(tf.ones([1]), tf.constant([1]), tf.constant([3]))
    dense, missing = optimizer.dense_gradients(weights, (slices, None))
    self.assertAllEqual(dense, [0.0, 1.0, 0.0])
    self.assertIsNone(missing)
    with self.assertRaises(ValueError):
      optimizer.dense_gradients(weights, (slices,))

  def test_dense_gradients_have_the_shapes_of_the_weights(self):
    weights = (tf.zeros([3, 2]),)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def make(rows):
      slices = tf.IndexedSlices(
          tf.ones([tf.size(rows), 2]), rows, tf.stack([3 * rows[0], 2])
      )
      (dense,) = optimizer.dense_gradients(weights, (slices,))
      self.assertEqual(dense.shape, [3, 2])
      return dense

    self.assertAllEqual(make(tf.constant([1])), [[0, 0], [1, 1], [0, 0]])

  def test_moments_of_half_precision_are_checked_in_single(self):
    weights = (tf.ones([2], tf.bfloat16),)
    optimizer.check_moments(weights, {'m': (tf.ones([2]),)}, ['m'])
    with self.assertRaisesRegex(ValueError, '`m`'):
      optimizer.check_moments(weights, {'m': weights}, ['m'])
