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
"""Tests of the largest value of a cohort."""

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import maximum


def _create(dtype=np.float32):
  return maximum.MaximumFactory().create(
      tff.TensorType(dtype), tff.TensorType(np.float32)
  )


@pytest.mark.usefixtures('native_runtime')
class MaximumTest(tf.test.TestCase, parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self._process = _create()

  def _next(self, values, weights):
    return self._process.next(self._process.initialize(), values, weights)

  @parameterized.named_parameters(
      ('one_client', [0.5], [3.0], 0.5),
      ('not_the_first', [0.5, 0.7, 0.2], [1.0, 1.0, 1.0], 0.7),
      ('not_the_heaviest', [0.5, 0.7], [9.0, 1.0], 0.7),
      ('negative', [-0.5, -0.7], [1.0, 1.0], -0.5),
      ('no_weight_does_not_count', [-0.5, 0.7, 0.0], [1.0, 0.0, 0.0], -0.5),
  )
  def test_takes_the_largest(self, values, weights, expected):
    output = self._next(values, weights)
    self.assertAllClose(output.result, expected)
    self.assertEqual(output.state, ())

  def test_not_a_number_without_weight_does_not_count(self):
    output = self._next([np.nan, 0.5, np.inf], [0.0, 1.0, 0.0])
    self.assertEqual(output.result, 0.5)

  @parameterized.parameters(([], []), ([0.5], [0.0]))
  def test_without_a_healthy_client_is_the_smallest_number(self, values, zeros):
    self.assertEqual(self._next(values, zeros).result, np.finfo(np.float32).min)

  def test_keeps_the_dtype(self):
    process = _create(np.int32)
    result = process.next(process.initialize(), [3, 7], [1.0, 1.0]).result
    self.assertEqual((result, result.dtype), (7, np.int32))


if __name__ == '__main__':
  tf.test.main()
