# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the conversion of features."""

from absl.testing import parameterized
import numpy as np
import pandas as pd
import tensorflow as tf

from tests.tff_adaptive.data import data_source_testing
from tff_adaptive.data import sources

_BFLOAT16 = tf.bfloat16.as_numpy_dtype


class ConversionTest(data_source_testing.DataSourceTestCase):

  @parameterized.named_parameters(
      ('int_to_int', np.array([0, 255]), tf.uint8),
      ('int_to_float', np.array([0, 2**24]), tf.float32),
      ('unsigned', np.array([2**63], np.uint64), tf.uint64),
      ('float_narrower', np.array([0.5, np.nan, np.inf]), tf.float32),
      ('float_wider', np.array([0.5], np.float32), tf.float64),
      ('bool', np.array([True]), tf.bool),
      ('half_to_narrower', np.array([1.5, np.nan], _BFLOAT16), tf.float16),
      ('half_to_wider', np.array([1e30, np.inf], _BFLOAT16), tf.float64),
      ('to_half', np.array([1.5, np.nan]), tf.bfloat16),
      ('large_integers', [2**63, 1, 2**64 - 1], tf.uint64),
      ('integers_among_floats', [1, 0.5, -(2**40)], tf.float64),
      ('very_large_integers', [2**64, 1], tf.float32),
      ('whole_floats', np.array([1.0, -2.0]), tf.int64),
      ('whole_halves', np.array([1.0, -2.0], _BFLOAT16), tf.int16),
      ('whole_floats_among_integers', [1, 2.0], tf.int32),
      ('booleans', [True, False], tf.bool),
  )
  def test_what_keeps_its_value(self, values, dtype):
    converted = sources.read_examples(
        {'x': values}, {'x': tf.TensorSpec([], dtype)}
    )['x']
    self.assertEqual(converted.dtype, dtype.as_numpy_dtype)
    self.assertEqual(
        list(map(str, converted.tolist())),
        list(map(str, np.asarray(values, dtype.as_numpy_dtype).tolist())),
    )

  @parameterized.named_parameters(
      ('wraps', np.array([0, 256]), tf.uint8, 'has the value 256'),
      ('negative', np.array([0, -1]), tf.uint64, 'has the value -1'),
      ('sign', np.array([2**63], np.uint64), tf.int64, 'has the value 92233'),
      ('digits', np.array([2**24 + 1]), tf.float32, 'has the value 16777217'),
      ('infinite', np.array([1e300]), tf.float32, 'has the value 1e+300'),
      (
          'float_to_int',
          np.array([1.0, 1.5]),
          tf.int32,
          "example 1: feature 'x' must be of type int32, found float64 such as "
          '1.5',
      ),
      ('nan_to_int', np.array([np.nan]), tf.int32, 'found float64 such as nan'),
      ('float_among_ints', [1, 2.0, 0.5], tf.int32, 'found float64 such as 0.'),
      ('rounded', np.array([2.0**54]), tf.int64, 'such as 1.801439850948198'),
      ('large', np.array([256.0]), tf.int8, 'has the value 256'),
      ('bytes', np.array([0.0, 1.0]), tf.uint8, 'found float64 such as 0.0'),
      ('bool_to_int', np.array([True]), tf.int32, 'found bool such as True'),
      ('int_to_bool', np.array([1]), tf.bool, 'must be of type bool'),
      ('text_to_int', np.array(['1']), tf.int32, 'found strings such as '),
      ('int_to_text', np.array([1]), tf.string, 'must be of type string'),
      (
          'half',
          np.array([1e30], _BFLOAT16),
          tf.float16,
          'has the value 1.00026e+30',
      ),
      ('half_to_int', np.array([1.5], _BFLOAT16), tf.int16, 'found bfloat16 '),
      ('bool_among_ints', [1, True], tf.int32, "example 1: feature 'x' must"),
      ('bool_among_floats', [0.5, True], tf.float32, 'found bool such as True'),
      ('none', [1, None], tf.int32, "example 1: feature 'x' must be of type "),
      ('text_among_ints', [1, 'b'], tf.int32, "found strings such as 'b'"),
      ('int64', [1, 2**63], tf.int64, "example 1: feature 'x' has the value 9"),
      ('mixed_signs', [2**63, -1], tf.uint64, 'has the value -1, which uint64'),
      ('too_large', [1, 2**64], tf.uint64, 'has the value 1844674407370955161'),
      ('too_large_float', [0.5, 10**400], tf.float64, 'has the value 1000000'),
      ('surrogate', ['a', '\ud800'], tf.string, "found '\\ud800'; it has half"),
      ('nested', [1, [2]], tf.int32, 'found lists of different lengths'),
      ('object', np.array(['a', 1], object), tf.string, 'example 1: feature '),
  )
  def test_what_does_not(self, values, dtype, sentence):
    self.assert_error(
        ValueError,
        sentence,
        sources.read_examples,
        {'x': values},
        {'x': tf.TensorSpec([], dtype)},
    )

  def test_a_column_of_pandas_may_hold_lists_or_arrays(self):
    for column in ([[1, 2], [3, 4]], [np.array([1, 2]), np.array([3, 4])]):
      clients = sources.read_clients(
          {'a': {'x': pd.Series(column)}}, {'x': tf.TensorSpec([2], tf.float32)}
      )
      self.assertEqual(clients.values['x'].tolist(), [[1, 2], [3, 4]])
    self.assert_error(
        ValueError,
        'found lists of different lengths',
        sources.read_examples,
        {'x': pd.Series([[1, 2], [3]])},
        {'x': tf.TensorSpec([2], tf.float32)},
    )

  def test_strings_of_every_kind_become_bytes(self):
    for values in (
        np.array([['ö', ''], ['a', 'b']]),
        np.array([['ö', b''], [b'a', 'b']], object),
        np.array([['ö'.encode(), b''], [b'a', b'b']]),
        np.array([['ö', ''], ['a', 'b']], np.dtypes.StringDType()),
        pd.Series([['ö', ''], ['a', 'b']]),
    ):
      converted = sources.read_examples(
          {'x': values}, {'x': tf.TensorSpec([2], tf.string)}
      )['x']
      self.assertEqual(converted.dtype, np.object_)
      self.assertEqual(converted.tolist(), [['ö'.encode(), b''], [b'a', b'b']])
