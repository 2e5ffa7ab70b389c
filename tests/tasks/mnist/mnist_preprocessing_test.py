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
"""Tests of `mnist_preprocessing`."""

import tempfile

from absl.testing import absltest
import numpy as np
import pytest

from tasks.mnist import mnist_preprocessing
from tests.tasks import data_testing


class MnistPreprocessingTest(absltest.TestCase):

  def test_file_and_name(self):
    with tempfile.TemporaryDirectory() as folder:
      with self.assertRaisesRegex(
          FileNotFoundError,
          '^MNIST was not found: put mnist.npz .*fetch mnist ',
      ):
        mnist_preprocessing.load_mnist(folder)

  @pytest.mark.published_data
  def test_the_real_data(self):
    folder = data_testing.real_data('mnist')
    train, test = mnist_preprocessing.load_mnist(folder)
    self.assertEqual(train['x'].shape, (60000, 28, 28, 1))
    self.assertEqual(test['x'].shape, (10000, 28, 28, 1))
    self.assertAlmostEqual(float(train['x'].mean()), 0.0, places=3)
    self.assertAlmostEqual(float(train['x'].std()), 1.0, places=3)
    np.testing.assert_array_equal(
        np.bincount(train['y']),
        [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
    )


if __name__ == '__main__':
  absltest.main()
