# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `sources`."""

import collections
import gzip
import json

from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.data import data_source_testing
from tff_adaptive.data import client_data
from tff_adaptive.data import sources
from tff_adaptive.data import sqlite

_FEATURES = collections.OrderedDict(
    x=tf.TensorSpec([2, 2], tf.float32),
    y=tf.TensorSpec([], tf.int32),
    text=tf.TensorSpec([], tf.string),
)
_XY = data_source_testing.FEATURES
_SPLITS = ['train', 'train', 'test', 'train']
_OWNERS = ['bob', 'ann', 'ann', 'bob']
_X = np.arange(16.0).reshape([4, 2, 2]) / 4
_Y = np.array([3, -1, 4, 2**31 - 1])
_TEXTS = ['to, be', 'ö "or"', '', 'not']


def _rows():
  return [
      dict(x=x, y=y, text=text, client_id=owner, split=split, extra=1)
      for x, y, text, owner, split in zip(
          _X.tolist(), _Y.tolist(), _TEXTS, _OWNERS, _SPLITS
      )
  ]


def _write_npz(path):
  np.savez(
      path,
      x=_X,
      y=_Y,
      text=np.asarray(_TEXTS, str),
      client_id=np.asarray(_OWNERS, str),
      split=np.asarray(_SPLITS, str),
  )


def _write_csv(path):
  lines = ['\ufeffclient_id,text,x_0,x_1,x_2,x_3,y,split,extra']
  for row in _rows():
    text = row['text'].replace('"', '""')
    cells = [row['client_id'], f'"{text}"', *np.ravel(row['x']), row['y']]
    lines.append(','.join(map(str, [*cells, row['split'], 1])))
  path.write_text('\n'.join(lines) + '\n\n', encoding='utf-8')


def _write_jsonl(path):
  text = '\n'.join(json.dumps(row) for row in _rows()) + '\n\n'
  path.write_text(text, encoding='utf-8')


def _write_jsonl_gz(path):
  with gzip.open(path, 'wt', encoding='utf-8-sig') as file:
    file.writelines(json.dumps(row) + '\n' for row in _rows())


def _write_sqlite(path):
  texts = np.array([text.encode() for text in _TEXTS], object)
  values = {'x': np.float32(_X), 'y': _Y, 'text': texts}
  build = client_data.PackedClientArrays.from_partition
  splits = {
      'train': build(values, {'ann': [1], 'bob': [0, 3]}),
      'test': build(values, {'ann': [2]}),
  }
  sqlite.write_sqlite_clients(path, splits)


_TABLES = (
    ('npz', 'data.npz', _write_npz),
    ('csv', 'data.csv', _write_csv),
    ('jsonl', 'data.jsonl', _write_jsonl),
    ('jsonl_gz', 'data.jsonl.gz', _write_jsonl_gz),
)
_FILES = (*_TABLES, ('sqlite', 'data.sqlite', _write_sqlite))


class FilesTest(data_source_testing.DataSourceTestCase):

  def assert_examples(self, examples, places):
    """Checks that examples are those rows, of the types asked for."""
    self.assertEqual(list(examples), list(_FEATURES))
    self.assertEqual(examples['x'].dtype, np.float32)
    np.testing.assert_array_equal(examples['x'], _X[places])
    self.assertEqual(examples['y'].dtype, np.int32)
    np.testing.assert_array_equal(examples['y'], _Y[places])
    self.assertEqual(examples['text'].dtype, np.object_)
    self.assertEqual(
        examples['text'].tolist(), [_TEXTS[place].encode() for place in places]
    )

  @parameterized.named_parameters(*_FILES)
  def test_clients_of_a_split(self, name, write):
    path = self.path(name)
    write(path)
    clients = sources.read_clients(path, _FEATURES, split_name='train')
    self.assertEqual(clients.element_spec, _FEATURES)
    self.assertCountEqual(clients.client_ids, ['ann', 'bob'])
    self.assert_examples(clients.examples('ann'), [1])
    self.assert_examples(clients.examples('bob'), [0, 3])

  @parameterized.named_parameters(*_TABLES)
  def test_without_a_split_all_rows_are_read(self, name, write):
    path = self.path(name)
    write(path)
    clients = sources.read_clients(str(path), _FEATURES)
    self.assertEqual(clients.client_ids, ('bob', 'ann'))
    self.assert_examples(clients.examples('ann'), [1, 2])

  @parameterized.named_parameters(*_FILES)
  def test_examples_of_a_split(self, name, write):
    path = self.path(name)
    write(path)
    self.assert_examples(
        sources.read_examples(path, _FEATURES, split_name='test'), [2]
    )

  @parameterized.named_parameters(*_FILES)
  def test_an_unknown_split_is_named_with_the_known_ones(self, name, write):
    path = self.path(name)
    write(path)
    sentence = f"{path} has no split 'valid'; it has 'test', 'train'."
    for read in (sources.read_clients, sources.read_examples):
      self.assert_error(
          ValueError, sentence, read, path, _FEATURES, split_name='valid'
      )

  def test_sqlite_needs_a_split(self):
    path = self.path('data.sqlite')
    _write_sqlite(path)
    self.assert_no_clients("it has 'test', 'train'", path, _FEATURES)

  def test_a_file_without_splits_has_none_to_select(self):
    spec = {'y': tf.TensorSpec([], tf.int64)}
    path = self.text_file('data.csv', 'y\n1\n2\n')
    self.assert_unreadable(
        f"{path}, line 2 has no 'split', by which `split_name` selects rows",
        path,
        spec,
        split_name='train',
    )
    archive = self.path('data.npz')
    np.savez(archive, y=[1, 2])
    self.assert_unreadable(
        f"{archive} has no 'split', by which `split_name` selects rows",
        archive,
        spec,
        split_name='train',
    )
    self.assertEqual(sources.read_examples(path, spec)['y'].tolist(), [1, 2])

  @parameterized.named_parameters(*_FILES)
  def test_an_empty_file(self, name, write):
    del write
    path = self.text_file(name, '')
    self.assert_no_clients(
        f'{path} is empty; replace it by an intact copy.',
        path,
        _FEATURES,
        split_name='train',
    )

  @parameterized.named_parameters(*_FILES)
  def test_a_truncated_or_foreign_file(self, name, write):
    path = self.path(name)
    write(path)
    path.write_bytes(b'\xff' + path.read_bytes()[: path.stat().st_size // 2])
    with self.assertRaises(ValueError) as caught:
      sources.read_examples(path, _FEATURES, split_name='train')
    self.assertStartsWith(str(caught.exception), str(path))
    self.assertEndsWith(str(caught.exception), 'replace it by an intact copy.')

  def test_a_file_of_another_encoding(self):
    path = self.path('data.csv')
    path.write_bytes('caf\xe9,y\n'.encode('latin-1'))
    self.assert_unreadable('; save it as UTF-8, or replace it', path, _FEATURES)
    for encoding in ('UTF-16', 'UTF-32'):
      path.write_bytes('x,y\n'.encode(encoding))
      self.assert_unreadable(
          f'{path} must be UTF-8 text, but its byte order mark is that of '
          f'{encoding}; save it as UTF-8',
          path,
          _FEATURES,
      )
    path.write_bytes('x,y\n'.encode('utf-16-le'))
    self.assert_unreadable('which seems to be UTF-16', path, _FEATURES)

  @parameterized.parameters('data.jsonl.gz', 'data.npz')
  def test_a_file_that_ends_early(self, name):
    path = self.path(name)
    dict(file[1:] for file in _TABLES)[name](path)
    path.write_bytes(path.read_bytes()[:-20])
    self.assert_no_clients(f'{path} could not be read (', path, _FEATURES)

  @parameterized.named_parameters(*_FILES)
  def test_a_missing_file(self, name, write):
    del write
    path = self.path(name)
    self.assert_error(
        FileNotFoundError,
        f'The training data must be in a file, but {path} does not exist; ',
        sources.read_clients,
        path,
        _FEATURES,
    )

  def test_an_unknown_suffix(self):
    path = self.text_file('data.parquet', 'x')
    self.assert_unreadable(
        'The test data must be in a file that ends in one of .npz, .csv, '
        f'.jsonl, .jsonl.gz, .sqlite, found {path}; convert it, or rename it.',
        path,
        _FEATURES,
    )

  def test_features_of_unknown_shape_are_refused(self):
    path = self.text_file('data.csv', 'y\n1\n')
    self.assert_unreadable(
        "Feature 'y' must have a fixed shape to be read from a file",
        path,
        {'y': tf.TensorSpec([None], tf.int32)},
    )


class ObjectsTest(data_source_testing.DataSourceTestCase):

  def test_a_mapping_of_clients(self):
    clients = sources.read_clients(
        {
            'bob': {'y': [1], 'x': np.ones([1, 2]), 'other': ['?']},
            'ann': {'y': [], 'x': []},
        },
        _XY,
    )
    self.assertIsInstance(clients, client_data.PackedClientArrays)
    self.assertEqual(clients.client_ids, ('bob', 'ann'))
    self.assertEqual(clients.element_spec, _XY)
    self.assertEqual(clients.num_examples('ann'), 0)
    self.assertEqual(clients.examples('bob')['y'].tolist(), [1])

  def test_an_empty_client_where_a_size_is_unknown(self):
    clients = sources.read_clients(
        {'a': {'x': np.zeros([2, 5])}, 'b': {'x': np.zeros([0, 5])}},
        {'x': tf.TensorSpec([None], tf.float32)},
    )
    self.assertEqual(clients.examples('b')['x'].shape, (0, 5))
    examples = sources.read_examples(
        {'x': []}, {'x': tf.TensorSpec([None, 2], tf.float32)}
    )
    self.assertEqual(examples['x'].shape, (0, 0, 2))

  def test_a_mapping_of_arrays(self):
    examples = sources.read_examples(
        {'y': np.array([1, 2], np.int64), 'x': np.ones([2, 2], np.uint8)}, _XY
    )
    self.assertEqual(list(examples), ['x', 'y'])
    self.assertEqual(examples['x'].dtype, np.float32)
    self.assertEqual(examples['y'].dtype, np.int32)

  def test_examples_of_all_clients(self):
    data = {
        'bob': {'y': [1], 'x': [[1, 2]]},
        'ann': {'y': [2, 3], 'x': [[1, 2], [3, 4]]},
    }
    for source in (data, sources.read_clients(data, _XY)):
      examples = sources.read_examples(source, _XY)
      self.assertEqual(examples['y'].tolist(), [1, 2, 3])

  def test_suitable_arrays_are_not_copied(self):
    x = np.ones([2, 2], np.float32)
    examples = sources.read_examples(
        {'x': x, 'y': np.zeros([2], np.int32)}, _XY
    )
    self.assertTrue(np.shares_memory(examples['x'], x))

  def test_client_data_are_converted_when_they_are_read(self):
    data = tff.simulation.datasets.TestClientData(
        {
            'bob': {'y': np.array([1]), 'x': [[0.5, 2.0]], 'other': ['?']},
            'ann': {'y': [2**31, 0], 'x': [[1.0, 2.0]] * 2, 'other': ['?'] * 2},
        }
    )
    clients = sources.read_clients(data, _XY)
    self.assertEqual(clients.client_ids, ('bob', 'ann'))
    self.assertEqual(clients.element_spec, _XY)
    self.assertEqual(clients.examples('bob')['y'].tolist(), [1])
    self.assert_error(
        ValueError,
        "The training data, client 'ann', example 0: feature 'y' has the value "
        '2147483648, which int32 cannot hold; correct or scale it.',
        clients.examples,
        'ann',
    )

  def test_client_data_without_a_feature(self):
    data = tff.simulation.datasets.TestClientData({'a': {'y': [1]}})
    self.assert_no_clients(
        "The training data must have the features ['x', 'y'], found ['y']; add "
        "or rename ['x'].",
        data,
    )

  def test_client_arrays_are_returned_if_they_are_as_asked_for(self):
    source = sources.read_clients({'a': {'x': [[1, 2]], 'y': [0]}}, _XY)
    self.assertIs(sources.read_clients(source, _XY), source)

  @parameterized.named_parameters(
      ('names', ['y', 'x'], tf.int32, "the order ['x', 'y']; make it ['y', 'x"),
      ('types', ['x', 'y'], tf.int64, "found int32[?] in field 'y'; make it "),
  )
  def test_client_arrays_of_another_spec(self, names, dtype, sentence):
    source = sources.read_clients({'a': {'x': [[1, 2]], 'y': [0]}}, _XY)
    spec = {**_XY, 'y': tf.TensorSpec([], dtype)}
    self.assert_no_clients(
        sentence, source, {name: spec[name] for name in names}
    )

  @parameterized.named_parameters(
      ('number', 7, TypeError, 'The training data must be a path, a mapping, '),
      ('none', {}, ValueError, 'The training data must hold at least one cli'),
      ('client', {'a': [1]}, TypeError, "client 'a' must be a mapping from fe"),
      ('feature', {'a': {'y': [1]}}, ValueError, "client 'a' must have the fe"),
      ('single', {'a': {'x': 1, 'y': [1]}}, ValueError, 'the single value 1.'),
  )
  def test_errors_of_clients(self, data, kind, sentence):
    self.assert_error(kind, sentence, sources.read_clients, data, _XY)

  def test_features_of_different_length(self):
    self.assert_unreadable(
        'The test data must have the same number of examples in every feature, '
        "found {'x': 1, 'y': 2}.",
        {'x': [[1, 2]], 'y': [1, 2]},
    )
