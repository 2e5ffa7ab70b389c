# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests of `_feature_conversion`, through `data_sources`."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.simulation import data_source_testing
from tff_adaptive.simulation import data_sources


class ConversionTest(data_source_testing.DataSourceTestCase):

  @parameterized.named_parameters(
      ('int_to_int', np.array([0, 255]), tf.uint8),
      ('int_to_float', np.array([0, 2**24]), tf.float32),
      ('unsigned', np.array([2**63], np.uint64), tf.uint64),
      ('float_narrower', np.array([0.5, np.nan, np.inf]), tf.float32),
      ('float_wider', np.array([0.5], np.float32), tf.float64),
      ('bool', np.array([True]), tf.bool),
  )
  def test_what_keeps_its_value(self, values, dtype):
    converted = data_sources.read_examples(
        {'x': values}, {'x': tf.TensorSpec([], dtype)}
    )['x']
    self.assertEqual(converted.dtype, dtype.as_numpy_dtype)
    np.testing.assert_array_equal(converted, values)

  @parameterized.named_parameters(
      ('wraps', np.array([0, 256]), tf.uint8, 'has the value 256'),
      ('negative', np.array([0, -1]), tf.uint64, 'has the value -1'),
      ('sign', np.array([2**63], np.uint64), tf.int64, 'has the value 92233'),
      ('digits', np.array([2**24 + 1]), tf.float32, 'has the value 16777217'),
      ('infinite', np.array([1e300]), tf.float32, 'has the value 1e+300'),
      ('float_to_int', np.array([1.0]), tf.int32, 'found float64 such as 1.0'),
      ('bool_to_int', np.array([True]), tf.int32, 'found bool such as True'),
      ('int_to_bool', np.array([1]), tf.bool, 'give values of type bool'),
      ('text_to_int', np.array(['1']), tf.int32, 'found strings such as '),
      ('int_to_text', np.array([1]), tf.string, 'give strings'),
      ('object', np.array(['a', 1], object), tf.string, 'example 1: feature '),
  )
  def test_what_does_not(self, values, dtype, sentence):
    self.assert_error(
        ValueError,
        sentence,
        data_sources.read_examples,
        {'x': values},
        {'x': tf.TensorSpec([], dtype)},
    )

  def test_strings_of_every_kind_become_bytes(self):
    for values in (
        np.array([['ö', ''], ['a', 'b']]),
        np.array([['ö', b''], [b'a', 'b']], object),
        np.array([['ö'.encode(), b''], [b'a', b'b']]),
    ):
      converted = data_sources.read_examples(
          {'x': values}, {'x': tf.TensorSpec([2], tf.string)}
      )['x']
      self.assertEqual(converted.dtype, np.object_)
      self.assertEqual(converted.tolist(), [['ö'.encode(), b''], [b'a', b'b']])


if __name__ == '__main__':
  absltest.main()
