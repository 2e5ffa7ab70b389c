# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tasks on digits, MNIST and EMNIST."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
from sklearn import datasets

from tasks import emnist
from tasks import mnist as mnist_lib
from tasks.images import digits_data
from tests import folder_testing
from tests.tasks.images import cifar_testing
from tests.tasks.images import emnist_testing
from tff_adaptive.data import client_data
from tff_adaptive.simulation import task


class DigitsPreprocessingTest(absltest.TestCase):

  def test_examples_are_scaled_images_and_labels(self):
    for examples, size in zip(digits_data.load_digits(), (1438, 359)):
      self.assertEqual(list(examples), ['x', 'y'])
      self.assertEqual(examples['x'].shape, (size, 8, 8, 1))
      self.assertEqual(examples['x'].dtype, np.float32)
      self.assertEqual(examples['y'].shape, (size,))
      self.assertEqual(examples['y'].dtype, np.int32)
      self.assertEqual(examples['x'].min(), 0.0)
      self.assertEqual(examples['x'].max(), 1.0)

  def test_split_is_stratified(self):
    train, test = digits_data.load_digits()
    self.assertEqual(
        np.bincount(test['y']).tolist(),
        [36, 36, 35, 37, 36, 36, 36, 36, 35, 36],
    )
    self.assertEqual(
        np.bincount(train['y']).tolist(),
        [142, 146, 142, 146, 145, 146, 145, 143, 139, 144],
    )

  def test_split_holds_every_image_once_with_its_label(self):
    digits = datasets.load_digits()
    train, test = digits_data.load_digits()
    found = sorted(
        (image.tobytes(), int(label))
        for part in (train, test)
        for image, label in zip(part['x'], part['y'])
    )
    expected = sorted(
        ((image / 16.0).astype(np.float32).tobytes(), int(label))
        for image, label in zip(digits.images, digits.target)
    )
    self.assertEqual(found, expected)

  def test_split_is_fixed(self):
    _, test = digits_data.load_digits()
    self.assertEqual(test['y'][:10].tolist(), [8, 1, 2, 7, 3, 4, 7, 0, 9, 0])


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
    np.testing.assert_equal(mnist.central_test, loaded.central_test)
    np.testing.assert_equal(
        mnist.train_data.examples('odd'),
        {name: v[1::2] for name, v in loaded.train_data.values.items()},
    )


_SMALL = task.Protocol(2, 1, clients_per_round=2, total_rounds=3)


class EmnistTasksTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.data_dir = folder_testing.new(cls)
    emnist_testing.write(cls.data_dir)

  @classmethod
  def _create_cr(cls, **kwargs):
    return emnist.EMNIST_CR.create(
        cls.data_dir, **{'model_id': '2nn', 'protocol': _SMALL, **kwargs}
    )

  def test_digits_alone(self):
    cr = self._create_cr(only_digits=True)
    self.assertEqual(cr.num_classes, 10)
    self.assertEqual(cr.functional_model.initial_weights[0][-1].shape, (10,))
    self.assertLess(cr.train_data.values['y'].max(), 10)
    self.assertGreater(self._create_cr().train_data.values['y'].max(), 9)
    ae = emnist.EMNIST_AE.create(
        self.data_dir, only_digits=True, protocol=_SMALL
    )
    np.testing.assert_array_equal(
        ae.central_test['x'], 1 - cr.central_test['x'].reshape(-1, 784)
    )

  @parameterized.named_parameters(
      ('cr', emnist.EMNIST_CR, dict(model_id='2nn')),
      ('ae', emnist.EMNIST_AE, {}),
  )
  def test_own_data_are_preprocessed_as_the_file_is(self, definition, options):
    splits = emnist_testing.splits()
    options = dict(protocol=_SMALL, **options)
    found = definition.create_from_data(
        splits['all_train'],
        splits['all_test'],
        test_data=splits['all_test'],
        **options,
    )
    wanted = definition.create(self.data_dir, max_bytes_in_memory=0, **options)
    self.assertIsInstance(wanted.train_data, client_data.LazyClientArrays)
    self.assertCountEqual(
        found.train_data.client_ids, wanted.train_data.client_ids
    )
    for client_id in wanted.train_data.client_ids:
      for ours, theirs in (
          (found.train_data, wanted.train_data),
          (found.test_data, wanted.test_data),
      ):
        np.testing.assert_equal(
            ours.examples(client_id), theirs.examples(client_id)
        )

  def test_fewer_writers_than_a_round_needs_raise(self):
    with self.assertRaisesRegex(ValueError, '`clients_per_round`.*at most 2'):
      self._create_cr(protocol=None)
