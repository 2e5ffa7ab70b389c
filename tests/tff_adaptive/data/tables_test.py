# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tables."""

import os
from unittest import mock
import zipfile

from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests import case_testing
from tests.tff_adaptive.data import data_source_testing
from tff_adaptive.data import sources

_FEATURES = data_source_testing.FEATURES
_NUMBERS = {'y': tf.TensorSpec([], tf.int32)}


class NpzTest(data_source_testing.DataSourceTestCase):

  def _npz(self, **arrays):
    path = self.path('data.npz')
    np.savez(path, **arrays)
    return path

  @case_testing.named(
      missing=({'x': np.zeros([1, 2])}, "lacks the arrays 'y', found 'x'; "),
      of_a_task=(
          {'x_train': np.zeros([1, 2]), 'y_train': np.zeros([1])},
          "found 'x_train', 'y_train'; that is the layout of a file of a task",
      ),
      lengths=(
          {'x': np.zeros([2, 2]), 'y': np.zeros([3], int)},
          "the same number of rows in every array, found {'x': 2, 'y': 3}.",
      ),
      scalar=(
          {'x': np.zeros([1, 2]), 'y': np.int32(3)},
          "array 'y' must have a row for each example, found the single value ",
      ),
      value=(
          {'x': np.zeros([2, 2]), 'y': np.array([0, 2**32])},
          "data.npz, row 1: feature 'y' has the value 4294967296, which int32 ",
      ),
      no_rows=(
          {'x': np.zeros([0, 2]), 'y': np.zeros([0], int)},
          'has no rows; it must have a row for each example.',
      ),
      objects=(
          {'x': np.zeros([1, 2]), 'y': np.array(['a'], object)},
          "array 'y' could not be read (Object arrays cannot be loaded when ",
      ),
  )
  def test_errors(self, arrays, sentence):
    self.assert_unreadable(sentence, self._npz(**arrays))

  def test_rows_are_counted_in_the_file_not_in_the_split(self):
    path = self._npz(
        x=np.zeros([3, 2]),
        y=np.array([0, 1, 2**40]),
        split=np.array(['test', 'train', 'train']),
    )
    self.assert_unreadable('row 2: ', path, split_name='train')

  def test_clients_must_be_names(self):
    arrays = dict(x=np.zeros([1, 2]), y=np.zeros([1], int))
    self.assert_no_clients(
        "array 'client_id' must hold a string for each row, found type float64",
        self._npz(**arrays, client_id=np.zeros([1])),
    )
    for names in (np.array([7]), np.array([b'7']), np.array(['7'])):
      path = self._npz(**arrays, client_id=names)
      clients = sources.read_clients(path, _FEATURES)
      self.assertEqual(clients.client_ids, ('7',))

  def test_names_of_another_encoding(self):
    path = self._npz(
        x=np.zeros([1, 2]),
        y=np.zeros([1], int),
        client_id=np.array(['gr\u00f6\u00dfe'.encode('latin-1')]),
    )
    self.assert_no_clients(
        f"{path}: array 'client_id' must hold UTF-8 strings (", path
    )

  def test_two_arrays_of_one_name_are_refused(self):
    path = self._npz(x=np.zeros([1, 2]), y=np.zeros([1], int))
    with zipfile.ZipFile(path, 'a') as archive:
      archive.writestr('y', archive.read('y.npy'))
    self.assert_unreadable(
        f"{path} could not be read (it has 2 arrays 'y'); replace it by ", path
    )

  @parameterized.parameters(True, False)
  def test_a_damaged_shape_loses_no_rows(self, is_compressed):
    path = self.path('data.npz')
    save = np.savez_compressed if is_compressed else np.savez
    save(path, x=np.zeros([3, 2]), y=np.arange(3))
    with zipfile.ZipFile(path) as archive:
      members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, 'w') as archive:
      for name, content in members.items():
        archive.writestr(name, content.replace(b'(3', b'(2'))
    self.assert_unreadable("array 'x' could not be read (there are more", path)

  def test_bfloat16_that_numpy_saved(self):
    values = np.array([1.5, -3], tf.bfloat16.as_numpy_dtype)
    path = self._npz(x=values)
    for dtype in (tf.float32, tf.float16, tf.bfloat16):
      found = sources.read_examples(path, {'x': tf.TensorSpec([], dtype)})
      self.assertEqual(found['x'].dtype, dtype.as_numpy_dtype)
      self.assertEqual(found['x'].tolist(), [1.5, -3])

  def test_one_array_is_no_archive(self):
    path = self.path('data.npz')
    with open(path, 'wb') as file:
      np.save(file, np.zeros([3]))
    self.assert_unreadable(
        f'{path} could not be read (File is not a zip file); replace it by ',
        path,
    )


class RowsTest(data_source_testing.DataSourceTestCase):

  @parameterized.parameters(1, 2)
  def test_a_row_without_a_split_is_refused_where_others_have_one(self, line):
    rows = ['{"y": 1, "split": "train"}', '{"y": 2, "split": "test"}']
    rows.insert(line - 1, '{"y": 3}')
    path = self.text_file('data.jsonl', '\n'.join(rows))
    for options in (
        {'split_name': 'train'},
        {'split_name': 'test'},
        {'split_name': 'test', 'needs_split': False},
    ):
      self.assert_unreadable(
          f"{path}, line {line} has no 'split', by which `split_name` selects "
          'rows; add it, or leave out `split_name` to read all rows.',
          path,
          _NUMBERS,
          **options,
      )
    examples = sources.read_examples(path, _NUMBERS)
    self.assertCountEqual(examples['y'].tolist(), [1, 2, 3])

  def test_splits_may_be_numbers(self):
    path = self.text_file(
        'data.jsonl', '{"y": 1, "split": 0}\n{"y": 2, "split": 1}\n'
    )
    examples = sources.read_examples(path, _NUMBERS, split_name='1')
    self.assertEqual(examples['y'].tolist(), [2])

  @parameterized.parameters(1023, 1024, 1025)
  def test_many_rows(self, num_rows):
    path = self.text_file(
        'data.csv', 'y\n' + '\n'.join(map(str, range(num_rows)))
    )
    examples = sources.read_examples(path, _NUMBERS)
    self.assertEqual(examples['y'].tolist(), list(range(num_rows)))
    with open(path, 'a', encoding='utf-8') as file:
      file.write('\n3000000000\n7\n')
    self.assert_unreadable(f'{path}, line {num_rows + 2}: ', path, _NUMBERS)

  @case_testing.named(
      csv=('data.csv', 'y\n1\n'), jsonl=('data.jsonl', '{"y": 1}\n')
  )
  def test_rows_without_a_client(self, name, text):
    path = self.text_file(name, text)
    self.assert_no_clients(
        "lacks the client id 'writer', found 'y'; add it to ",
        path,
        _NUMBERS,
        client_key='writer',
    )

  @parameterized.parameters('null', '""', 'true', '1.5')
  def test_bad_client_ids(self, value):
    path = self.text_file('data.jsonl', f'{{"y": 1, "client_id": {value}}}')
    self.assert_no_clients(
        "line 1: the client id 'client_id' must be a string", path, _NUMBERS
    )

  def test_integers_are_client_ids(self):
    path = self.text_file('data.jsonl', '{"y": 1, "client_id": 7}')
    clients = sources.read_clients(path, _NUMBERS)
    self.assertEqual(clients.client_ids, ('7',))

  @parameterized.parameters('csv', 'jsonl', 'npz')
  def test_a_file_that_may_not_be_read_is_not_called_damaged(self, kind):
    path = self.text_file(f'data.{kind}', 'y\n')
    with mock.patch.object(os, 'open', side_effect=PermissionError):
      with self.assertRaises(PermissionError):
        sources.read_examples(path, _FEATURES)
