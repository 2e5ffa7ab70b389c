# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the checks of arguments."""

import math

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive.optimizers import arguments


class ArgumentsTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(-1.0, float('inf'), float('nan'))
  def test_check_rate_names_what_is_wrong(self, value):
    with self.assertRaisesRegex(ValueError, f'Rule `eta`.*found {value}'):
      arguments.check_rate('eta', value, 'Rule')

  @parameterized.parameters(['0.1'], [b'0.1'], [None], [{}], [(0.1, 0.2)])
  def test_values_that_are_no_numbers_raise(self, value):
    sentence = f'Rule `eta` must be a number, found {type(value).__name__}.$'
    for check in (
        arguments.check_rate,
        arguments.check_positive,
        arguments.check_share,
    ):
      with self.assertRaisesRegex(TypeError, sentence):
        check('eta', value, 'Rule')

  @parameterized.parameters(
      [0], [0.5], [np.float32(0.5)], [np.array(0.5)], [tf.constant(0.5)]
  )
  def test_numbers_of_all_kinds_pass(self, value):
    arguments.check_rate('eta', value, 'Rule')
    arguments.check_share('eta', value, 'Rule')

  def test_check_positive_refuses_zero(self):
    arguments.check_rate('eta', 0.0, 'Rule')
    for value in (0.0, 1e-50):  # float32 has no such small number.
      with self.assertRaisesRegex(ValueError, 'Rule `eta` must be above zero'):
        arguments.check_positive('eta', value, 'Rule')

  def test_check_finite_refuses_what_is_infinite_in_float32(self):
    arguments.check_finite('loss', -1e38, 'Rule')
    for value in (1e39, -1e39, math.nan):
      with self.assertRaisesRegex(ValueError, 'Rule `loss` must be finite'):
        arguments.check_finite('loss', value, 'Rule')

  def test_check_share_refuses_what_is_one_in_float32(self):
    for value in (0.0, 0.9999999):
      arguments.check_share('beta', value, 'Rule')
    with self.assertRaisesRegex(ValueError, 'in the range'):
      arguments.check_share('beta', 1.0, 'Rule')
    for value in (0.99999997, np.float64(1 - 1e-12)):
      with self.assertRaisesRegex(ValueError, 'at most 0.9999999, found 0.99'):
        arguments.check_share('beta', value, 'Rule')

  def test_symbolic_rates_are_accepted(self):
    @tf.function
    def build(rate):
      arguments.check_positive('eta', rate, 'Rule')
      return rate

    self.assertAllEqual(build(tf.constant(-1.0)), -1.0)
