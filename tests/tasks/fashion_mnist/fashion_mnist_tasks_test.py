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
"""Tests of `fashion_mnist_tasks`."""

import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tasks.fashion_mnist import fashion_mnist_tasks
from tasks.mnist import mnist_tasks
from tff_adaptive.data import checks
from tff_adaptive.simulation import task


def _arrays(seed):
  generator = np.random.default_rng(seed)
  return dict(
      x_train=generator.integers(0, 256, [600, 28, 28]).astype(np.uint8),
      y_train=(np.arange(600) % 10).astype(np.uint8),
      x_test=generator.integers(0, 256, [50, 28, 28]).astype(np.uint8),
      y_test=(np.arange(50) % 10).astype(np.uint8),
  )


class FashionMnistTasksTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(folder.cleanup)
    cls.data_dir = pathlib.Path(folder.name)
    np.savez(cls.data_dir / 'fashion_mnist.npz', **_arrays(1))

  def _create(self, **kwargs):
    return fashion_mnist_tasks.create_fashion_mnist_task(
        self.data_dir, **{'model_id': 'logistic', **kwargs}
    )

  @parameterized.parameters(('cnn', 8), ('mlp', 6), ('logistic', 2))
  def test_protocol_and_models(self, model_id, num_weights):
    fashion = self._create(model_id=model_id)
    self.assertEqual(fashion.name, 'fashion_mnist')
    self.assertEqual(fashion.protocol, task.Protocol(64, 1, 10, 1000))
    self.assertLen(fashion.functional_model.initial_weights[0], num_weights)
    self.assertEqual(fashion.num_classes, 10)
    self.assertLen(fashion.train_data.client_ids, 100)
    self.assertLen(fashion.central_test['y'], 50)

  def test_all_arguments_do_as_on_mnist(self):
    np.savez(self.data_dir / 'mnist.npz', **_arrays(1))
    for arguments in (
        dict(num_clients=12, alpha=1.0, examples_per_client='10-20'),
        dict(num_clients=12, partition='shards', shards_per_client=3),
        dict(num_clients=12, partition='dirichlet_per_class', min_size=4),
        dict(num_clients=12, partition='dirichlet_per_class', cap=True),
    ):
      with self.subTest(str(arguments)):
        fashion = self._create(seed=5, **arguments)
        mnist = mnist_tasks.create_mnist_task(
            self.data_dir, model_id='logistic', seed=5, **arguments
        )
        np.testing.assert_array_equal(
            fashion.train_data.indices, mnist.train_data.indices
        )
        np.testing.assert_array_equal(
            fashion.train_data.offsets, mnist.train_data.offsets
        )
        np.testing.assert_array_equal(
            fashion.functional_model.initial_weights[0][0],
            mnist.functional_model.initial_weights[0][0],
        )

  def test_data_are_good(self):
    fashion = self._create()
    checked = checks.check_clients(
        fashion.train_data, num_classes=fashion.num_classes
    )
    self.assertEmpty(checked.bad_clients)

  def test_from_data_is_scaled_as_the_files_are(self):
    arrays = _arrays(1)
    test = {'x': arrays['x_test'], 'y': arrays['y_test']}
    fashion = fashion_mnist_tasks.create_fashion_mnist_task_from_data(
        {'mine': test},
        test,
        model_id='mlp',
        protocol=task.Protocol(2, 1, clients_per_round=1, total_rounds=3),
    )
    self.assertEqual(fashion.name, 'fashion_mnist')
    for examples in (fashion.central_test, fashion.train_data.examples('mine')):
      np.testing.assert_array_equal(
          examples['x'], self._create().central_test['x']
      )

  def test_default_protocol_wants_ten_clients(self):
    with self.assertRaisesRegex(ValueError, '`clients_per_round` must be at'):
      self._create(num_clients=5)


if __name__ == '__main__':
  absltest.main()
