# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of feature_arrays."""

import collections

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tff_adaptive.data import feature_arrays


class FeatureArraysTest(parameterized.TestCase):

  def test_as_examples_keeps_order_and_does_not_copy(self):
    y, x = np.arange(3), np.ones([3, 2])
    examples = feature_arrays.as_examples({'y': y, 'x': x}, 'Data')
    self.assertIsInstance(examples, collections.OrderedDict)
    self.assertEqual(list(examples), ['y', 'x'])
    self.assertTrue(np.shares_memory(examples['x'], x))

  def test_as_examples_gives_read_only_views_and_leaves_the_original(self):
    x = np.ones([3])
    examples = feature_arrays.as_examples({'x': x}, 'Data')
    with self.assertRaisesRegex(ValueError, 'read-only'):
      examples['x'][0] = 2.0
    x[0] = 2.0
    self.assertEqual(examples['x'][0], 2.0)

  def test_as_examples_keeps_the_values_of_lists(self):
    for values in (
        [2**63, 2**64 - 1],
        [1, 0.5, 2**53],
        [[1.5, float('inf')]],
        ['Ω', '\ue000'],
        [b'\xff'],
        [b'a\0', b'\0\0'],
        ['a\0', b'\xff'],
        [['a', b'a']],
    ):
      (array,) = feature_arrays.as_examples({'x': values}, 'Data').values()
      self.assertEqual(array.tolist(), values)

  def test_as_examples_takes_arrays_of_arrays_and_numpys_strings(self):
    boxed = np.empty([2], np.object_)
    boxed[0], boxed[1] = np.array([1, 2]), np.array([3, 4])
    text = np.array(['a', 'ö'], np.dtypes.StringDType())
    x, t = feature_arrays.as_examples({'x': boxed, 't': text}, 'Data').values()
    self.assertEqual(x.tolist(), [[1, 2], [3, 4]])
    self.assertEqual(x.dtype, np.int64)
    self.assertEqual(tf.convert_to_tensor(t).numpy()[1], 'ö'.encode())

  def test_as_examples_takes_no_number_for_a_string(self):
    with self.assertRaisesRegex(ValueError, 'example 1: .* strings, found 2.5'):
      feature_arrays.as_examples({'x': ['a', 2.5]}, 'Data')

  def test_spec_of_leaves_out_the_dimension_of_examples(self):
    spec = feature_arrays.spec_of(
        {
            'x': np.zeros([5, 2, 3], np.float32),
            'y': np.zeros([5], np.int64),
            'text': np.array([b'a', b'bc'], object),
        }
    )
    self.assertEqual(spec['x'], tf.TensorSpec([2, 3], tf.float32))
    self.assertEqual(spec['y'], tf.TensorSpec([], tf.int64))
    self.assertEqual(spec['text'], tf.TensorSpec([], tf.string))

  def test_spec_of_names_a_feature_of_another_type(self):
    dates = np.array(['2020-02-29'], 'datetime64[D]')
    with self.assertRaisesRegex(TypeError, r"'t' has the type datetime64\[D\]"):
      feature_arrays.spec_of({'t': dates})

  def test_check_match_sorts_features(self):
    spec = {'x': tf.TensorSpec([], tf.float64), 'y': tf.TensorSpec([], tf.bool)}
    examples = {'y': np.array([True]), 'x': np.array([1.0])}
    found = feature_arrays.check_match(examples, spec, 'a')
    self.assertEqual(list(found), ['x', 'y'])

  def test_check_match_lets_open_dimensions_vary(self):
    spec = {'x': tf.TensorSpec([None], tf.float64)}
    found = feature_arrays.check_match({'x': np.ones([2, 7])}, spec, 'a')
    self.assertEqual(found['x'].shape, (2, 7))

  def test_num_bytes_counts_the_contents_of_strings(self):
    examples = {
        'x': np.zeros([2, 3], np.float32),
        'text': np.array([b'four', b'sixsix'], object),
    }
    self.assertEqual(feature_arrays.num_bytes(examples), 24 + 16 + 10)
