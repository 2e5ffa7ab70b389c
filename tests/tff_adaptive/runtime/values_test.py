# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the leaves of values, and that arrays become tensors again."""

import collections
import gc

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import values

_Swapped = collections.namedtuple('_Swapped', ['b', 'a'])


class SharedArraysTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters(tf.float32, tf.float64, tf.int32, tf.int64, tf.bool)
  def test_array_shares_the_memory_of_its_tensor(self, dtype):
    tensor = tf.cast([[1, 0, 3]], dtype)
    array = values.to_array(tensor)
    self.assertAllEqual(array, tensor)
    self.assertEqual(array.dtype, dtype.as_numpy_dtype)
    self.assertIs(values.to_tensor(array, dtype), tensor)
    with self.assertRaisesRegex(ValueError, 'read-only'):
      array[0, 0] = 1
    copy = array.copy()
    copy[0, 0] = 0
    self.assertAllEqual(values.to_tensor(copy, dtype), copy)

  @parameterized.parameters(
      (tf.constant(3.5), np.float32),
      (tf.constant(True), np.bool_),
      (tf.constant('a'), bytes),
      (tf.constant(['a']), np.ndarray),
      (tf.constant([1.5], tf.bfloat16), np.ndarray),
      (tf.constant([1.5], tf.float16), np.ndarray),
  )
  def test_others_are_copied(self, tensor, expected_type):
    value = values.to_array(tensor)
    self.assertIsInstance(value, expected_type)
    again = values.to_tensor(value, tensor.dtype)
    self.assertIsNot(again, tensor)
    self.assertAllEqual(again, tensor)

  def test_another_dtype_is_another_tensor(self):
    array = values.to_array(tf.constant([1.5]))
    tensor = values.to_tensor(array, tf.float64)
    self.assertEqual(tensor.dtype, tf.float64)
    self.assertAllEqual(tensor, [1.5])

  def test_other_arrays_and_numbers_are_converted(self):
    values.to_array(tf.constant([1.5]))
    for value in (np.array([2.5]), [2.5], 2.5):
      tensor = values.to_tensor(value, tf.float32)
      self.assertEqual(tensor.dtype, tf.float32)
      self.assertAllEqual(tensor, value)

  @parameterized.named_parameters(
      ('dictionary', {'b': 1, 'a': 2}),
      ('named_tuple', _Swapped(b=1, a=2)),
      ('struct', tff.structure.Struct([('b', 1), ('a', 2)])),
      ('without_names', [2, 1]),
  )
  def test_fields_are_found_by_name(self, value):
    flatten = values.build_flatten(
        tff.to_type([('a', np.int32), ('b', np.int32)])
    )
    self.assertEqual(flatten(value), [2, 1])

  @pytest.mark.slow
  def test_nothing_is_kept_of_an_array_that_is_gone(self):
    gc.collect()  # Other tests have left arrays that wait to be collected.
    before = len(values._tensors)
    array = values.to_array(tf.constant([1.5]))
    self.assertLen(values._tensors, before + 1)
    del array
    gc.collect()
    self.assertLen(values._tensors, before)
