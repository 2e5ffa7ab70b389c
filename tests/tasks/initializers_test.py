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
"""Tests of `initializers`."""

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from tasks import initializers


class InitializersTest(absltest.TestCase):

  def test_kernels_depend_on_seed_and_keys_alone(self):
    first = initializers.glorot_uniform(1, 'task', 'dense')([20, 30])
    tf.random.set_seed(5)
    again = initializers.glorot_uniform(1, 'task', 'dense')([20, 30])
    np.testing.assert_array_equal(first, again)
    for other in ((2, 'task', 'dense'), (1, 'task', 'logits')):
      kernel = initializers.glorot_uniform(*other)([20, 30])
      self.assertTrue(np.all(first != kernel))

  def test_kernels_fill_the_range_of_glorot(self):
    kernel = initializers.glorot_uniform(1, 'dense')([200, 100]).numpy()
    limit = np.sqrt(6 / 300)
    self.assertBetween(np.abs(kernel).max(), 0.99 * limit, limit)
    np.testing.assert_allclose(kernel.std(), limit / np.sqrt(3), rtol=0.02)


if __name__ == '__main__':
  absltest.main()
