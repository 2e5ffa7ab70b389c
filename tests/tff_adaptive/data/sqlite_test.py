# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sqlite."""

import concurrent.futures
import contextlib
import os
import sqlite3
from unittest import mock

from absl import logging
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests import case_testing
from tests import folder_testing
from tff_adaptive import data
from tff_adaptive.data import client_data
from tff_adaptive.data import sqlite

_SPEC = {
    'pixels': tf.TensorSpec([2, 2], tf.float32),
    'label': tf.TensorSpec([], tf.int32),
    'text': tf.TensorSpec([], tf.string),
}


def _examples(*values):
  return {
      'pixels': np.stack(
          [np.full([2, 2], value, np.float32) for value in values]
      ),
      'label': np.int32(values),
      'text': np.array([f'text {v}'.encode() for v in values], np.object_),
  }


class SqliteDataTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.path = self.folder / "it's #1 %20.sqlite"

  def _write(self):
    from_clients = client_data.PackedClientArrays.from_clients
    sqlite.write_sqlite_clients(
        self.path,
        {
            'train': from_clients(
                {'bob': _examples(3), 'ann': _examples(1, 2)}
            ),
            'test': from_clients({'bob': _examples(4)}),
        },
    )

  def test_relative_path_is_that_of_the_folder_at_the_time(self):
    self._write()
    with contextlib.chdir(self.folder):
      source = sqlite.load_sqlite_clients(self.path.name, 'train', _SPEC)
    self.assertEqual(source.examples('bob')['label'].tolist(), [3])

  def _execute(self, statement):
    with contextlib.closing(sqlite3.connect(self.path)) as file, file:
      file.execute(statement)

  def _load(self, split_name='train', spec=None):
    return data.load_sqlite_clients(self.path, split_name, spec or _SPEC)

  @parameterized.parameters(True, False)
  def test_reads_the_clients_of_a_split(self, with_index):
    self._write()
    if not with_index:
      self._execute('DROP INDEX clients')
    clients = self._load()
    self.assertIsInstance(clients, client_data.LazyClientArrays)
    self.assertEqual(clients.client_ids, ('ann', 'bob'))
    self.assertEqual(clients.total_examples, 3)
    self.assertEqual(clients._cache.num_bytes, 0)
    examples = clients.examples('ann')
    self.assertEqual(list(examples), list(_SPEC))
    np.testing.assert_array_equal(
        examples['pixels'], np.float32([[[1, 1]] * 2, [[2, 2]] * 2])
    )
    self.assertEqual(examples['label'].dtype, np.int32)
    self.assertEqual(examples['label'].tolist(), [1, 2])
    self.assertEqual(examples['text'].tolist(), [b'text 1', b'text 2'])
    self.assertEqual(self._load('test').examples('bob')['label'].tolist(), [4])

  def test_a_file_without_an_index_is_warned_of(self):
    self._write()
    self._execute('DROP INDEX clients')
    with self.assertLogs(level='WARNING') as logs:
      self._load()
    self.assertIn('CREATE INDEX', logs.output[0])

  @parameterized.parameters(
      ('split_name', True),
      ('client_id, split_name, serialized_example_proto', False),
  )
  def test_only_an_index_on_clients_counts(self, columns, is_warned_of):
    self._write()
    self._execute('DROP INDEX clients')
    self._execute(f'CREATE INDEX other ON examples ({columns})')
    with mock.patch.object(logging, 'warning') as warning:
      clients = self._load()
    self.assertEqual(warning.called, is_warned_of)
    self.assertEqual(clients.examples('ann')['label'].tolist(), [1, 2])

  def test_any_thread_may_read(self):
    self._write()
    clients = self._load()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
      found = list(pool.map(clients.examples, ['ann', 'bob', 'ann']))
    self.assertEqual([len(one['label']) for one in found], [2, 1, 2])

  def test_a_file_that_is_not_there_raises(self):
    with self.assertRaisesRegex(FileNotFoundError, 'There is no file .*sqlite'):
      self._load()

  @parameterized.parameters(0.3, 0.9)
  def test_a_truncated_file_raises(self, kept):
    self._write()
    content = self.path.read_bytes()
    self.path.write_bytes(content[: int(len(content) * kept)])
    with self.assertRaisesRegex(ValueError, 'replace it by an intact copy'):
      clients = self._load()
      for client_id in clients.client_ids:
        clients.examples(client_id)

  def test_a_file_that_may_not_be_read_is_not_called_damaged(self):
    self._write()
    with mock.patch.object(os, 'open', side_effect=PermissionError):
      with self.assertRaises(PermissionError):
        self._load()

  def test_a_locked_file_is_not_called_damaged(self):
    self._write()
    with mock.patch.object(
        sqlite3, 'connect', side_effect=sqlite3.OperationalError('is locked')
    ):
      with self.assertRaisesRegex(ValueError, 'could not be read: is locked'):
        self._load()

  def test_a_missing_table_or_column_raises(self):
    self._execute('CREATE TABLE examples (client_id TEXT)')
    with self.assertRaisesRegex(ValueError, 'examples .*split_name.*missing'):
      self._load()
    self._execute('DROP TABLE examples')
    with self.assertRaisesRegex(ValueError, 'the table is missing'):
      self._load()

  def test_a_file_without_clients_raises(self):
    sqlite.write_sqlite_clients(self.path, {})
    with self.assertRaisesRegex(ValueError, 'has no client'):
      self._load()

  @case_testing.named(
      missing=(
          "DELETE FROM examples WHERE client_id = 'bob'",
          "0 examples of client 'bob'.*1;",
      ),
      text=(
          "UPDATE examples SET serialized_example_proto = 'text'",
          "'bob'.* BLOB, found the str 'text'",
      ),
      integer=(
          'UPDATE examples SET serialized_example_proto = 7',
          "'bob'.* BLOB, found the int '7'",
      ),
  )
  def test_bad_examples_raise_when_they_are_read(self, change, sentence):
    self._write()
    self._execute(change)
    clients = self._load()
    with self.assertRaisesRegex(ValueError, sentence):
      clients.examples('bob')

  def test_other_features_raise_when_they_are_read(self):
    self._write()
    clients = self._load(spec={'pixels': tf.TensorSpec([3], tf.float32)})
    with self.assertRaisesRegex(ValueError, r"'ann'.*pixels.*float32.*\(3,\)"):
      clients.examples('ann')

  @parameterized.parameters((300, tf.uint8), (-1, tf.uint32), (2, tf.bool))
  def test_a_value_that_its_type_cannot_hold_raises(self, value, dtype):
    clients = _clients(**_examples(value))
    sqlite.write_sqlite_clients(self.path, {'train': clients})
    source = self._load(spec={'label': tf.TensorSpec([], dtype)})
    with self.assertRaisesRegex(ValueError, f"'a'.*'label'.* {value},"):
      source.examples('a')

  @parameterized.parameters(
      (
          "client_id = CAST(client_id AS BLOB) WHERE client_id = 'ann'",
          "text as client ids, found b'ann' in its ",
      ),
      (
          "client_id = 7 WHERE client_id = 'ann'",
          'text as client ids, found 7 in its table client_metadata; `UPDA',
      ),
      (
          "client_id = 'bob' WHERE client_id = 'ann'",
          "client 'bob' more than once in split 'train' of its table ",
      ),
      ("num_examples = 'x'", "found 'x' for client 'bob'"),
  )
  def test_bad_rows_of_clients_raise(self, change, sentence):
    self._write()
    self._execute('ALTER TABLE client_metadata RENAME TO old')
    # Columns without a type take all values.
    self._execute(
        'CREATE TABLE client_metadata (client_id, split_name, num_examples)'
    )
    self._execute('INSERT INTO client_metadata SELECT * FROM old')
    self._execute(f'UPDATE client_metadata SET {change}')
    with self.assertRaisesRegex(ValueError, sentence):
      self._load()

  @parameterized.parameters(
      'CREATE VIEW examples AS SELECT * FROM old',
      'CREATE TABLE examples (split_name TEXT, client_id TEXT, '
      'serialized_example_proto BLOB PRIMARY KEY) WITHOUT ROWID',
  )
  def test_examples_without_an_order_raise(self, statement):
    self._write()
    self._execute('ALTER TABLE examples RENAME TO old')
    self._execute(statement)
    with self.assertRaisesRegex(ValueError, 'view, or .* `CREATE TABLE copy'):
      self._load()
    self._execute('CREATE TABLE copy AS SELECT * FROM old')
    self._execute(f'DROP {"VIEW" if "VIEW" in statement else "TABLE"} examples')
    self._execute('ALTER TABLE copy RENAME TO examples')
    self.assertEqual(self._load().examples('ann')['label'].tolist(), [1, 2])

  def test_a_view_of_clients_is_read(self):
    self._write()
    self._execute('ALTER TABLE client_metadata RENAME TO old')
    self._execute('CREATE VIEW client_metadata AS SELECT * FROM old')
    self.assertEqual(self._load().client_ids, ('ann', 'bob'))

  def test_examples_of_an_unknown_client_raise_where_they_are_seen(self):
    self._write()
    self._execute('DROP INDEX clients')
    self._execute("DELETE FROM client_metadata WHERE client_id = 'bob'")
    with self.assertRaisesRegex(ValueError, "'bob' in split 'train'"):
      self._load()

  def test_an_unknown_client_raises(self):
    self._write()
    with self.assertRaisesRegex(KeyError, "no client 'anne'.*'ann'"):
      self._load().examples('anne')

  def test_a_type_that_files_do_not_have_raises(self):
    self._write()
    with self.assertRaisesRegex(TypeError, "'x'.*complex64"):
      self._load(spec={'x': tf.TensorSpec([], tf.complex64)})


def _clients(**features):
  return client_data.PackedClientArrays.from_clients({'a': features})


class WriteSqliteClientsTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.path = self.folder / 'clients.sqlite'

  def test_written_clients_are_read_back(self):
    features = dict(
        x=np.arange(12, dtype=np.float32).reshape(3, 2, 2),
        y=np.int32([1, -2, 3]),
        b=np.bool_([True, False, True]),
        s=np.array([b'one\0\0', b'', 'zw\u00f6lf'], np.object_),
    )
    clients = _clients(**features)
    path = self.folder / 'new' / 'clients.sqlite'
    sqlite.write_sqlite_clients(path, {'train': clients})
    read = sqlite.load_sqlite_clients(
        path, 'train', clients.element_spec
    ).examples('a')
    for name in ('x', 'y', 'b'):
      np.testing.assert_array_equal(read[name], features[name])
    self.assertEqual(
        read['s'].tolist(), [b'one\0\0', b'', 'zw\u00f6lf'.encode()]
    )
    self.assertEqual(list(path.parent.iterdir()), [path])

  def test_tff_reads_it(self):
    clients = _clients(x=np.float32([[1, 2], [3, 4]]))
    sqlite.write_sqlite_clients(self.path, {'test': clients})
    theirs = tff.simulation.datasets.SqlClientData(str(self.path), 'test')
    self.assertEqual(theirs.client_ids, ['a'])
    parsed = [
        tf.io.parse_single_example(
            one, {'x': tf.io.FixedLenFeature([2], tf.float32)}
        )['x']
        .numpy()
        .tolist()
        for one in theirs.create_tf_dataset_for_client('a')
    ]
    self.assertEqual(parsed, [[1, 2], [3, 4]])

  def test_an_existing_file_stays(self):
    self.path.write_text('precious')
    with self.assertRaisesRegex(FileExistsError, 'delete it first'):
      sqlite.write_sqlite_clients(self.path, {})
    self.assertEqual(self.path.read_text(), 'precious')

  def test_writes_to_a_file_system_without_links(self):
    clients = _clients(x=np.float32([1, 2]))
    with mock.patch.object(os, 'link', side_effect=OSError('Not supported')):
      self.test_of_two_writers_the_faster_one_keeps_its_file()
      self.path.unlink()
      sqlite.write_sqlite_clients(self.path, {'train': clients})
    found = sqlite.load_sqlite_clients(self.path, 'train', clients.element_spec)
    self.assertEqual(found.examples('a')['x'].tolist(), [1, 2])
    self.assertEqual(list(self.folder.iterdir()), [self.path])

  def test_of_two_writers_the_faster_one_keeps_its_file(self):
    fast = _clients(x=np.float32([1, 2]))

    def load(client_id):
      del client_id  # Unused.
      sqlite.write_sqlite_clients(self.path, {'train': fast})
      return {'x': np.float32([3])}

    slow = client_data.LazyClientArrays(['slow'], load, fast.element_spec)
    with self.assertRaisesRegex(FileExistsError, 'exists already'):
      sqlite.write_sqlite_clients(self.path, {'train': slow})
    found = sqlite.load_sqlite_clients(self.path, 'train', fast.element_spec)
    self.assertEqual(found.client_ids, ('a',))
    self.assertEqual(found.examples('a')['x'].tolist(), [1, 2])
    self.assertEqual(list(self.folder.iterdir()), [self.path])

  def test_of_many_writers_one_succeeds(self):
    sources = {
        name: client_data.PackedClientArrays.from_clients(
            {f'{name}{i}': {'x': np.float32([i])} for i in range(20)}
        )
        for name in 'abcd'
    }

    def write(name):
      try:
        sqlite.write_sqlite_clients(self.path, {'train': sources[name]})
      except FileExistsError:
        return ''
      return name

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
      written = ''.join(pool.map(write, sources))
    self.assertLen(written, 1)
    found = sqlite.load_sqlite_clients(
        self.path, 'train', sources['a'].element_spec
    )
    self.assertCountEqual(found.client_ids, sources[written].client_ids)
    self.assertEqual(list(self.folder.iterdir()), [self.path])

  @parameterized.parameters(tf.float64, tf.float16, tf.bfloat16)
  def test_floats_of_any_width_are_stored(self, dtype):
    values = np.array([1.5, np.inf, np.nan], dtype.as_numpy_dtype)
    clients = _clients(x=values)
    sqlite.write_sqlite_clients(self.path, {'train': clients})
    found = sqlite.load_sqlite_clients(
        self.path, 'train', clients.element_spec
    ).examples('a')['x']
    self.assertEqual(found.dtype, values.dtype)
    np.testing.assert_array_equal(
        found.astype(np.float64), values.astype(np.float64)
    )

  def test_a_float_that_would_become_infinite_raises(self):
    with self.assertRaisesRegex(ValueError, "^Client 'a'.*'x'.* 1e.300"):
      sqlite.write_sqlite_clients(
          self.path, {'train': _clients(x=np.array([1.0, 1e300]))}
      )
    self.assertEmpty(list(self.folder.iterdir()))

  def test_an_unknown_type_raises_and_leaves_no_file(self):
    with self.assertRaisesRegex(TypeError, "'x'.*complex64"):
      sqlite.write_sqlite_clients(
          self.path, {'train': _clients(x=np.complex64([1]))}
      )
    self.assertEmpty(list(self.folder.iterdir()))
