# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of texts of other libraries' errors."""

from absl.testing import absltest
import tensorflow as tf

from tff_adaptive import _error_texts


class FirstLineTest(absltest.TestCase):

  def test_takes_the_first_line(self):
    self.assertEqual(_error_texts.first_line(ValueError('one.\ntwo')), 'one')
    self.assertEqual(_error_texts.first_line(KeyError()), 'KeyError')

  def test_drops_what_tensorflow_puts_around_it(self):
    with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
      tf.io.parse_example([b''], {'x': tf.io.FixedLenFeature([], tf.float32)})
    line = _error_texts.first_line(caught.exception)
    self.assertRegex(line, '^Feature: x .*could not be found$')


class GraphErrorLineTest(absltest.TestCase):

  def test_takes_what_the_op_says(self):
    with self.assertRaises(tf.errors.InvalidArgumentError) as caught:
      tf.function(
          lambda label: tf.nn.sparse_softmax_cross_entropy_with_logits(
              [label], tf.zeros([1, 3])
          )
      )(tf.constant(7))
    self.assertEqual(
        _error_texts.graph_error_line(caught.exception),
        'Received a label value of 7 which is outside the valid range of '
        '[0, 3)',
    )

  def test_takes_one_of_several_errors(self):
    error = ValueError(
        'Graph execution error:\n\n2 root error(s) found.\n'
        '  (0) INVALID_ARGUMENT:  No number.\n\t [[{{node one}}]]\n'
        '0 successful operations.\n0 derived errors ignored. [Op:__inference]'
    )
    self.assertEqual(_error_texts.graph_error_line(error), 'No number')

  def test_takes_the_type_of_what_says_nothing(self):
    self.assertEqual(_error_texts.graph_error_line(KeyError()), 'KeyError')
