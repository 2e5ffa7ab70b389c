# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the conversion of elements to arrays."""

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime.datasets import elements

_BFLOAT16 = tf.bfloat16.as_numpy_dtype


class ToArraysTest(parameterized.TestCase):

  def _convert(self, component, dtype):
    leaf_type = tff.SequenceType(tff.TensorType(dtype.as_numpy_dtype, [None]))
    spec = tf.TensorSpec([None], dtype)
    (array,) = elements.to_arrays([component], [spec], leaf_type)
    return array

  @parameterized.parameters(
      ([1, 2], tf.int32),
      ([1, 2], tf.bfloat16),
      ([1, 2**62], tf.uint64),
      (np.array([1.5, np.nan], _BFLOAT16), tf.float32),
      (np.array([1.5, np.inf], _BFLOAT16), tf.float16),
      (np.array([1.5, np.inf]), tf.bfloat16),
  )
  def test_values_are_kept(self, component, dtype):
    array = self._convert(component, dtype)
    self.assertEqual(array.dtype, dtype.as_numpy_dtype)
    np.testing.assert_array_equal(
        array.astype(np.float64), np.asarray(component, np.float64)
    )

  @parameterized.parameters(
      ([[1], [1, 2]], tf.int32, ValueError, 'lists of different lengths'),
      ([1, 2**64], tf.int64, ValueError, 'found integers that are out of rang'),
      (np.array([1.5], _BFLOAT16), tf.int32, TypeError, 'of type bfloat16'),
      (np.array([1e30], _BFLOAT16), tf.float16, ValueError, 'out of range'),
      (np.array([1e39]), tf.bfloat16, ValueError, 'is out of range'),
      (
          tf.ragged.constant([[1], [1, 2]]),
          tf.int32,
          TypeError,
          'found a RaggedTensor: make it dense',
      ),
      (
          np.array([257]),
          tf.bfloat16,
          ValueError,
          'the number 257 of type int64',
      ),
  )
  def test_other_values_are_refused(self, component, dtype, error, sentence):
    with self.assertRaisesRegex(error, sentence):
      self._convert(component, dtype)


class LeavesTest(parameterized.TestCase):

  @parameterized.parameters(
      (3, np.int32),
      (2**63 + 5, np.uint64),
      (0.1, np.float32),
      (float('inf'), np.float32),
      (2**24, np.float32),
  )
  def test_numbers_are_kept(self, number, dtype):
    (tensor,) = elements.build_conversion(tff.TensorType(dtype))(number)
    self.assertEqual(tensor.numpy(), dtype(number))
    leaf_type = tff.TensorType(dtype, [2])
    (tensor,) = elements.build_conversion(leaf_type)([number, 1])
    self.assertEqual(tensor.numpy().tolist(), [dtype(number), 1])

  @parameterized.parameters(
      (2**40, np.int32),
      (-1, np.uint8),
      (1e300, np.float32),
      (2**24 + 1, np.float32),
  )
  def test_numbers_that_would_change_are_refused(self, number, dtype):
    for value, shape in ((number, []), ([number, 1], [2])):
      convert = elements.build_conversion(tff.TensorType(dtype, shape))
      with self.assertRaisesRegex(ValueError, 'is out of range'):
        convert(value)


class NumAtOnceTest(parameterized.TestCase):

  @parameterized.parameters(
      ([], tf.int64, 256),
      ([784], tf.float32, 256),
      ([2**16], tf.float32, 16),
      ([2**30], tf.float32, 1),
      ([None], tf.float32, 256),
      ([], tf.string, 256),
  )
  def test_large_elements_are_read_alone(self, shape, dtype, count):
    self.assertEqual(elements.num_at_once([tf.TensorSpec(shape, dtype)]), count)
