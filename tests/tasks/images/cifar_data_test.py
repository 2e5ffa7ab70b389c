# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `cifar10` and `cifar_data`."""

import pickle

from absl.testing import parameterized
import numpy as np
import pytest

from tasks import cifar10
from tasks.images import cifar_augmentation
from tests import folder_testing
from tests.tasks import data_testing
from tests.tasks.images import cifar_testing
from tff_adaptive.data import checks
from tff_adaptive.simulation import task

_SMALL = task.Protocol(
    4, 1, clients_per_round=2, total_rounds=1, max_examples=8
)


def _load(folder):
  return cifar10.CIFAR10.data.read(folder)


class Cifar10TasksTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.data_dir = folder_testing.new(cls)
    cls.arrays = cifar_testing.arrays(200, 20, 10)
    np.savez(cls.data_dir / 'cifar10.npz', **cls.arrays)
    cls.simple = cifar10.CIFAR10.create(
        cls.data_dir, model_id='simple_cnn', seed=3
    )

  def _create(self, **kwargs):
    return cifar10.CIFAR10.create(
        self.data_dir, **{'model_id': 'simple_cnn', **kwargs}
    )

  def _scaled_images(self):
    return cifar_augmentation.to_model_inputs(
        {'x': self.arrays['x_train'], 'y': self.arrays['y_train']},
        'none',
        cifar10.CIFAR10.data.statistics,
    )['x']

  @parameterized.parameters('none', 'delta_sgd')
  def test_held_out_images_are_what_the_model_takes(self, augmentation):
    built = self._create(augmentation=augmentation)
    held_out = task.hold_out_examples(built, 0.25, seed=0)
    client_id = held_out.test_data.client_ids[0]
    found = held_out.test_data.examples(client_id)
    self.assertEqual(found['x'].dtype, np.float32)
    kept = held_out.train_data.num_examples(client_id)
    self.assertLen(found['y'], built.train_data.num_examples(client_id) - kept)
    # Without chance, as the published test images are.
    images = {tuple(image.ravel()[:9]) for image in self._scaled_images()}
    for image in found['x']:
      self.assertIn(tuple(image.ravel()[:9]), images)

  def test_images_are_trained_on_raw_and_tested_on_scaled(self):
    source = self.simple.train_data
    np.testing.assert_array_equal(source.values['x'], self.arrays['x_train'])
    self.assertEqual(source.values['x'].dtype, np.uint8)
    self.assertEqual(
        self.simple.augmentation.element_spec['x'].shape, [32, 32, 3]
    )
    mean = np.array([0.4914, 0.4822, 0.4465])
    deviation = np.array([0.2023, 0.1994, 0.2010])
    np.testing.assert_allclose(
        self.simple.central_test['x'],
        (self.arrays['x_test'] / 255 - mean) / deviation,
        atol=1e-5,
    )
    checks.check_central_examples(self.simple.central_test, num_classes=10)

  def test_from_published_data(self):
    clients = {
        name: cifar_testing.published(5, num_classes=10) for name in 'ab'
    }
    mine = cifar10.CIFAR10.create_from_data(
        clients,
        cifar_testing.published(7, num_classes=10),
        test_data=clients,
        model_id='simple_cnn',
        augmentation='none',
        protocol=_SMALL,
    )
    self.assertEqual(mine.train_data.element_spec['x'].dtype, 'uint8')
    augmented = mine.augmentation(
        mine.train_data.examples('a'), np.random.default_rng(1)
    )
    np.testing.assert_array_equal(
        augmented['x'], mine.test_data.examples('a')['x']
    )
    self.assertLen(mine.central_test['y'], 7)


class LoadCifar10Test(folder_testing.FolderTestCase):

  def _write_python_files(self, labels):
    folder = self.folder / 'cifar-10-batches-py'
    folder.mkdir()
    for name in [*(f'data_batch_{i}' for i in range(1, 6)), 'test_batch']:
      contents = {b'data': np.zeros([2, 3072], np.uint8), b'labels': labels}
      (folder / name).write_bytes(pickle.dumps(contents, 2))

  def test_labels_in_a_column_as_keras_has_them(self):
    arrays = cifar_testing.arrays(30, 10, 10)
    column = {**arrays, 'y_train': arrays['y_train'][:, np.newaxis]}
    np.savez(self.folder / 'cifar10.npz', **column)
    train, test = _load(self.folder)
    np.testing.assert_array_equal(train['label'], arrays['y_train'])
    self.assertEqual(train['label'].dtype, np.int32)
    np.testing.assert_array_equal(test['image'], arrays['x_test'])

  def test_published_archive(self):
    self._write_python_files([1, 9])
    train, test = _load(self.folder)
    self.assertEqual(train['image'].shape, (10, 32, 32, 3))
    np.testing.assert_array_equal(test['label'], [1, 9])

  def test_published_archive_with_other_classes(self):
    self._write_python_files([1, 10])
    with self.assertRaisesRegex(ValueError, 'batches-py: y_train has the'):
      _load(self.folder)

  @pytest.mark.slow
  @pytest.mark.published_data
  def test_the_real_data(self):
    folder = data_testing.real_data('cifar10')
    train, _ = _load(folder)
    self.assertEqual(train['image'].shape[1:], (32, 32, 3))
    self.assertGreaterEqual(np.bincount(train['label']).min(), 1000)
    pixels = train['image'].reshape(-1, 3) / 255
    np.testing.assert_allclose(
        pixels.mean(axis=0), cifar10.CIFAR10.data.statistics.mean, atol=0.005
    )
