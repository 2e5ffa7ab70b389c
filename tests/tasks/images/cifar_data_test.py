# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of CIFAR as tasks, and of its files."""

import pickle

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest

from tasks import cifar10
from tasks import cifar100
from tasks.images import cifar_augmentation
from tasks.images import cifar_data
from tests import folder_testing
from tests.tasks import data_testing
from tests.tasks.images import cifar_testing
from tff_adaptive.data import checks
from tff_adaptive.data import client_data
from tff_adaptive.data import partition
from tff_adaptive.data import sqlite
from tff_adaptive.simulation import task
from tff_adaptive.simulation import task as task_lib

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


_SMALL_100 = task_lib.Protocol(4, 1, clients_per_round=2, total_rounds=1)


def _write_sqlite(data_dir):
  """Writes four training and two test clients where TFF has them."""
  path = data_dir / 'tff' / 'cifar100.sqlite'
  path.parent.mkdir()
  example = cifar_testing.published(6, num_classes=100)
  example = {**example, 'coarse_label': example['label'] // 5}
  splits = {
      split: client_data.PackedClientArrays.from_clients(
          {name: example for name in names}
      )
      for split, names in (('train', '0123'), ('test', '01'))
  }
  sqlite.write_sqlite_clients(path, splits)
  return example


class Cifar100TasksTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.data_dir = folder_testing.new(cls)
    cls.arrays = cifar_testing.arrays(400, 20, 100)
    np.savez(cls.data_dir / 'cifar100.npz', **cls.arrays)

  def setUp(self):
    super().setUp()
    self.empty_dir = folder_testing.new(self)

  def _create(self, data_dir, **kwargs):
    return cifar100.CIFAR100.create(
        data_dir,
        **{'model_id': 'simple_cnn', 'protocol': _SMALL_100, **kwargs},
    )

  def test_central_data_are_split_by_pachinko_allocation(self):
    task = self._create(
        self.data_dir, num_clients=4, examples_per_client='50', seed=2
    )
    source = task.train_data
    parts = partition.pachinko_allocation(
        self.arrays['y_train'],
        np.array(cifar_data.COARSE_CLASSES)[self.arrays['y_train']],
        4,
        seed=2,
        examples_per_client=50,
    )
    for client_id, rows in parts.items():
      np.testing.assert_array_equal(source.rows(client_id), rows)
    self.assertEqual(task.num_classes, 100)
    self.assertEqual(task.central_test['x'].shape, (20, 24, 24, 3))
    checks.check_central_examples(task.central_test, num_classes=100)

  def test_defaults_are_those_of_the_experiments(self):
    # The file has 400 images.
    with self.assertRaisesRegex(ValueError, '500 clients would need 50000'):
      self._create(self.data_dir)
    task = self._create(self.data_dir, num_clients=4)
    self.assertEqual(task.train_data.total_examples, 400)
    self.assertLen(set(task.train_data.indices), 400)

  def test_clients_of_tff(self):
    example = _write_sqlite(self.empty_dir)
    task = self._create(self.empty_dir)
    self.assertEqual(task.train_data.client_ids, ('0', '1', '2', '3'))
    np.testing.assert_array_equal(
        task.train_data.examples('2')['x'], example['image']
    )
    np.testing.assert_array_equal(
        task.train_data.examples('2')['y'], example['label']
    )
    self.assertEqual(task.test_data.client_ids, ('0', '1'))
    self.assertLen(task.central_test['y'], 12)
    np.testing.assert_array_equal(
        task.test_data.examples('1')['x'], task.central_test['x'][6:]
    )

  def test_some_clients_of_tff(self):
    _write_sqlite(self.empty_dir)
    task = self._create(self.empty_dir, num_clients=3, seed=1)
    self.assertLen(task.train_data.client_ids, 3)
    with self.assertRaisesRegex(ValueError, '`num_clients`.*1 and 4.*found 5'):
      self._create(self.empty_dir, num_clients=5)
    with self.assertRaisesRegex(ValueError, '`alpha` must .*own clients'):
      self._create(self.empty_dir, alpha=0.5)

  def test_clients_of_tff_can_be_split_anew(self):
    _write_sqlite(self.empty_dir)
    task = self._create(
        self.empty_dir, partition='iid', num_clients=2, examples_per_client='12'
    )
    self.assertEqual(task.train_data.client_ids, ('client_000', 'client_001'))
    self.assertEqual(task.train_data.total_examples, 24)
    self.assertIsNone(task.test_data)


class Cifar100PreprocessingTest(absltest.TestCase):

  def test_coarse_classes(self):
    coarse = np.array(cifar_data.COARSE_CLASSES)
    np.testing.assert_array_equal(np.bincount(coarse), [5] * 20)
    # Beaver, dolphin, otter, seal and whale: aquatic mammals, the first.
    np.testing.assert_array_equal(
        np.flatnonzero(coarse == 0), [4, 30, 55, 72, 95]
    )
    # Maple, oak, palm, pine and willow: trees.
    np.testing.assert_array_equal(
        np.flatnonzero(coarse == 17), [47, 52, 56, 59, 96]
    )
    # Lawn mower, rocket, streetcar, tank and tractor: the last.
    np.testing.assert_array_equal(
        np.flatnonzero(coarse == 19), [41, 69, 81, 85, 89]
    )

  def test_published_archive_has_fine_labels(self):
    data_dir = folder_testing.new(self)
    folder = data_dir / 'cifar-100-python'
    folder.mkdir()
    for name in ('train', 'test'):
      contents = {
          b'data': np.zeros([2, 3072], np.uint8),
          b'fine_labels': [3, 99],
          b'coarse_labels': [8, 13],
      }
      (folder / name).write_bytes(pickle.dumps(contents, 2))
    train, _ = cifar100.CIFAR100.data.read(data_dir)
    np.testing.assert_array_equal(train['label'], [3, 99])
    np.testing.assert_array_equal(
        np.array(cifar_data.COARSE_CLASSES)[train['label']], [8, 13]
    )
