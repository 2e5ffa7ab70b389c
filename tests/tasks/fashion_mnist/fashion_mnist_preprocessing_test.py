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
"""Tests of `fashion_mnist_preprocessing`."""

import pathlib
import tempfile

from absl.testing import absltest
import numpy as np

from tasks.fashion_mnist import fashion_mnist_preprocessing


class FashionMnistPreprocessingTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.data_dir = pathlib.Path(folder)

  def test_reads_its_own_file_and_scales_it_as_mnist(self):
    images = np.full([3, 28, 28], 255, np.uint8)
    labels = np.array([9, 0, 5], np.uint8)
    np.savez(
        self.data_dir / 'fashion_mnist.npz',
        x_train=images,
        y_train=labels,
        x_test=images[:1],
        y_test=labels[:1],
    )
    train, test = fashion_mnist_preprocessing.load_fashion_mnist(self.data_dir)
    np.testing.assert_allclose(
        train['x'], np.full([3, 28, 28, 1], (1 - 0.1307) / 0.3081), rtol=1e-6
    )
    np.testing.assert_array_equal(train['y'], [9, 0, 5])
    self.assertEqual(test['x'].shape, (1, 28, 28, 1))

  def test_missing_names_place_and_command(self):
    with self.assertRaises(FileNotFoundError) as caught:
      fashion_mnist_preprocessing.load_fashion_mnist(self.data_dir)
    self.assertEqual(
        str(caught.exception),
        'Fashion-MNIST was not found: put fashion_mnist.npz (arrays x_train, '
        f'y_train, x_test, y_test) at {self.data_dir}/fashion_mnist.npz, or '
        'download it by `python -m tasks.fetch fashion_mnist '
        f'--data_dir={self.data_dir}`.',
    )


if __name__ == '__main__':
  absltest.main()
