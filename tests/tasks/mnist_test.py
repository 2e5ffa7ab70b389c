# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `mnist`."""

from absl.testing import parameterized
import numpy as np

from tasks import mnist as mnist_lib
from tests import folder_testing
from tests.tasks.images import cifar_testing
from tff_adaptive.simulation import task


class MnistTasksTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.data_dir = folder_testing.new(cls)
    arrays = cifar_testing.arrays(600, 50, 10, (28, 28))
    np.savez(cls.data_dir / 'mnist.npz', **arrays)

  def _create(self, **kwargs):
    return mnist_lib.MNIST.create(
        self.data_dir, **{'model_id': 'logistic', **kwargs}
    )

  def test_from_data_is_scaled_as_the_files_are(self):
    arrays = dict(np.load(self.data_dir / 'mnist.npz'))
    clients = {
        'even': {'x': arrays['x_train'][::2], 'y': arrays['y_train'][::2]},
        'odd': {'x': arrays['x_train'][1::2], 'y': arrays['y_train'][1::2]},
    }
    mnist = mnist_lib.MNIST.create_from_data(
        clients,
        {'x': arrays['x_test'], 'y': arrays['y_test']},
        model_id='logistic',
        protocol=task.Protocol(2, 1, clients_per_round=2, total_rounds=3),
    )
    loaded = self._create()
    self.assertEqual(mnist.protocol.total_rounds, 3)
    for name in ('x', 'y'):
      np.testing.assert_array_equal(
          mnist.central_test[name], loaded.central_test[name]
      )
      np.testing.assert_array_equal(
          mnist.train_data.examples('odd')[name],
          loaded.train_data.values[name][1::2],
      )
