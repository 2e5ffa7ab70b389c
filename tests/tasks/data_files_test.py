# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the files of data sets, and of the clients kept in memory."""

from absl.testing import absltest
import numpy as np
import tensorflow as tf

from tasks import data_files
from tests import folder_testing
from tests.tasks import data_testing
from tff_adaptive.data import client_data


class PreparedVersionTest(absltest.TestCase):

  def test_finds_the_newest_version_that_is_complete(self):
    data_dir = folder_testing.new(self)
    self.assertIsNone(data_files.prepared_version(data_dir, 'letters'))
    data_testing.prepare(data_dir, 'letters', '3.0.1', '10.0.0', '9.0.0')
    # This one is not complete.
    (data_dir / 'tfds' / 'letters' / '11.0.0').mkdir()
    self.assertEqual(
        data_files.prepared_version(str(data_dir), 'letters'),
        data_dir / 'tfds' / 'letters' / '10.0.0',
    )
    self.assertIsNone(data_files.prepared_version(data_dir, 'other'))


class ClientMemoryTest(absltest.TestCase):

  def _clients(self, spec=None):
    # Three examples of 2 * 4 + 1 bytes.
    return client_data.LazyClientArrays(
        ['a', 'b'],
        self._load,
        spec
        or {
            'x': tf.TensorSpec([2], tf.float32),
            'y': tf.TensorSpec([], tf.uint8),
        },
        client_sizes={'a': 1, 'b': 2},
    )

  def _load(self, client_id):
    self.loaded.append(client_id)
    size = {'a': 1, 'b': 2}[client_id]
    return {
        'x': np.ones([size, 2], np.float32),
        'y': np.zeros([size], np.uint8),
    }

  def setUp(self):
    super().setUp()
    self.loaded = []

  def test_clients_that_just_fit_are_read(self):
    kept = data_files.keep_if_small(self._clients(), 27)
    self.assertIsInstance(kept, client_data.PackedClientArrays)
    self.assertEqual(kept.client_ids, ('a', 'b'))
    np.testing.assert_array_equal(kept.values['x'], np.ones([3, 2]))

  def test_clients_a_byte_too_large_are_left_unread(self):
    clients = self._clients()
    self.assertIs(data_files.keep_if_small(clients, 26), clients)
    self.assertEmpty(self.loaded)

  def test_examples_without_a_fixed_size_are_left_unread(self):
    for spec in (
        {'x': tf.TensorSpec([None], tf.float32)},
        {'x': tf.TensorSpec([], tf.string)},
    ):
      clients = self._clients(spec)
      self.assertIs(data_files.keep_if_small(clients), clients)
    self.assertEmpty(self.loaded)


class FindDataFileTest(folder_testing.FolderTestCase):

  def test_returns_the_path_of_a_file(self):
    (self.folder / 'tff').mkdir()
    path = self.folder / 'tff' / 'emnist.sqlite'
    path.touch()
    for data_dir in (self.folder, str(self.folder)):
      self.assertEqual(
          data_files.find_data_file(data_dir, 'tff/emnist.sqlite', 'emnist'),
          path,
      )

  def test_missing_file_raises_and_says_what_to_do(self):
    with self.assertRaises(FileNotFoundError) as caught:
      data_files.find_data_file(self.folder, 'tff/emnist.sqlite', 'emnist')
    self.assertEqual(
        str(caught.exception),
        f'emnist.sqlite was not found: put it at {self.folder}/tff/'
        'emnist.sqlite, or download it with `.venv/bin/python -m tasks.fetch '
        f'emnist --data_dir={self.folder}`.',
    )
