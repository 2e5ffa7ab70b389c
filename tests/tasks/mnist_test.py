# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `mnist`."""

from absl.testing import parameterized
import numpy as np

from tasks import mnist as mnist_lib
from tests import folder_testing
from tests.tasks import data_testing
from tests.tasks.images import cifar_testing
from tff_adaptive.simulation import task


def _labels(mnist):
  source = mnist.train_data
  return [source.values['y'][source.rows(i)] for i in source.client_ids]


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

  def test_defaults_are_those_of_the_experiments(self):
    mnist = mnist_lib.MNIST.create(self.data_dir)
    self.assertLen(mnist.train_data.client_ids, 100)
    for labels in _labels(mnist):
      self.assertBetween(len(labels), 500, 504)
    # 4.97 by the distribution, with a deviation of 0.14.
    num_classes = np.mean([len(set(y)) for y in _labels(mnist)])
    self.assertBetween(num_classes, 4.5, 5.5)
    self.assertEqual(mnist.protocol.batch_plan().num_epochs, 1)
    self.assertLen(mnist.functional_model.initial_weights[0], 8)
    self.assertLen(mnist.central_test['y'], 50)
    self.assertEqual(mnist.num_classes, 10)

  def test_clients_share_the_images_and_carry_the_partition(self):
    mnist = self._create(seed=3)
    source = mnist.train_data
    self.assertLen(source.values['y'], 600)
    data_testing.assert_default_partition(
        source, source.values['y'], 100, 0.1, seed=3
    )

  @parameterized.named_parameters(
      ('alpha', dict(alpha=0.0), '`alpha`'),
      ('clients', dict(num_clients=0), '`num_clients`'),
      ('size', dict(examples_per_client='x'), '`examples_per_client`'),
      ('too_many', dict(partition='iid'), 'need 50000 examples.*found 600'),
      (
          'size_of_shards',
          dict(partition='shards', examples_per_client='5'),
          '`examples_per_client` does not apply',
      ),
      (
          'min_size',
          dict(partition='dirichlet_per_class', min_size=7),
          '`min_size` must be at most 6',
      ),
      (
          'few_clients',
          dict(num_clients=5),
          '`clients_per_round` must be at most 5',
      ),
  )
  def test_bad_argument_raises(self, change, message):
    with self.assertRaisesRegex(ValueError, message):
      self._create(**change)

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

  @parameterized.named_parameters(
      ('shape', np.zeros([3, 8, 8], np.uint8), "'x'.*28, 28.*8, 8"),
      ('type', np.full([3, 28, 28], 0.5, np.float32), "'x'.*uint8.*float32"),
  )
  def test_from_data_of_another_kind_raises(self, images, message):
    examples = {'x': images, 'y': np.arange(3, dtype=np.int32)}
    with self.assertRaisesRegex(ValueError, message):
      mnist_lib.MNIST.create_from_data(
          {'mine': examples}, examples, model_id='logistic'
      )
