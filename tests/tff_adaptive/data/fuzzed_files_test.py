# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that 500 CSV and JSON files have the rows of a second reader."""

import collections
import gzip
import json
import random

import tensorflow as tf

from tests import case_testing
from tests.tff_adaptive.data import data_source_testing
from tests.tff_adaptive.data import second_reader_testing
from tff_adaptive.data import sources

_FEATURES = {
    'y': tf.TensorSpec([], tf.int32),
    'x': tf.TensorSpec([2], tf.float64),
    't': tf.TensorSpec([], tf.string),
}
_NUM_FILES = 250
_PIECES = (
    'a',
    'Ω',
    '"',
    '""',
    ',',
    '\n',
    '\r\n',
    ' ',
    '1',
    '\ufeff',
    '\0',
    '7,',
)
_NUMBERS = ('0', '-1', '2.5', '1e3', '.5', 'nan', '-inf', '0.1', '1E-320')
_LINE_ENDS = ('\n', '\r\n', '\r', '\n\n')
# What is put anywhere into a file.
_CSV_STRAYS = ('"', '"', ',', '\n', '\r', '\ufeff', '\0', ' ', '_', '9', '""')
_JSON_STRAYS = (
    '"', ',', '\n', '{', '}', '\ufeff', '0', '9', 'e', '\\ud800', 'true',
    'null', '"y": 5, ', '"t": "b", ', '"client_id": "z", ', '[1], ',
)  # fmt: skip


def _draw_text(draw):
  return ''.join(draw.choices(_PIECES, k=draw.randrange(5)))


def _draw_rows(draw):
  return [
      {
          'client_id': draw.choice(['ann', 'bob', 'c,d', '7', 'Ω"']),
          'y': str(draw.choice([0, 1, -5, 2**31 - 1])),
          'x_0': draw.choice(_NUMBERS),
          'x_1': draw.choice(_NUMBERS),
          't': _draw_text(draw),
          'other': draw.choice(['', '1', 'a']),
      }
      for _ in range(draw.randrange(1, 7))
  ]


def _damage(draw, text, strays):
  """Puts strays into a text, and cuts or repeats parts of it."""
  for _ in range(draw.choice([0, 1, 1, 2, 3])):
    start = draw.randrange(len(text) + 1)
    end = start + draw.choice([0, 0, 0, 1, 2, 30])
    inserted = draw.choice(strays) * draw.choice([0, 1, 1, 1])
    text = text[:start] + inserted + text[end:]
  if draw.random() < 0.1:
    text += text[draw.randrange(len(text) + 1) :]
  return text


def _quoted(draw, cell, is_last):
  must = any(char in cell for char in '",\r\n') or (is_last and not cell)
  if must or draw.random() < 0.3:
    return '"' + cell.replace('"', '""') + '"'
  return cell


def _draw_csv(draw):
  header = ['client_id', 'y', 'x_0', 'x_1', 't', 'other']
  draw.shuffle(header)
  rows = [header, *([row[name] for name in header] for row in _draw_rows(draw))]
  text = draw.choice(['', '\ufeff', '\n'])
  for cells in rows:
    text += ','.join(
        _quoted(draw, cell, place == len(cells) - 1)
        for place, cell in enumerate(cells)
    )
    text += draw.choice(_LINE_ENDS)
  return _damage(draw, text, _CSV_STRAYS)


def _draw_json_lines(draw):
  text = draw.choice(['', '\ufeff', '\n'])
  for row in _draw_rows(draw):
    pairs = [
        ('client_id', draw.choice([row['client_id'], 7])),
        ('y', int(row['y'])),
        ('x', [float(row['x_0']), draw.choice([float(row['x_1']), 3])]),
        ('t', row['t']),
        ('other', draw.choice([None, [1], {'y': 1}])),
    ]
    draw.shuffle(pairs)
    is_ascii = draw.random() < 0.5
    text += json.dumps(dict(pairs), ensure_ascii=is_ascii)
    text += draw.choice(_LINE_ENDS)
  return _damage(draw, text, _JSON_STRAYS)


class FuzzedFilesTest(data_source_testing.DataSourceTestCase):

  def _read(self, path):
    """Returns the rows by client, in order, as the library reads them."""
    clients = sources.read_clients(path, _FEATURES)
    found = []
    for client_id in clients.client_ids:
      examples = clients.examples(client_id)
      columns = (examples[name].tolist() for name in ('y', 'x', 't'))
      found.append((client_id, [repr(row) for row in zip(*columns)]))
    return found

  def _expected(self, rows):
    clients = collections.defaultdict(list)
    for client_id, y, x, t in rows:
      clients[client_id].append(repr((y, x, t.encode())))
    return list(clients.items())

  def _check(self, path, text, read):
    """Compares both readers; returns what became of the file."""
    try:
      expected = self._expected(read(text))
    except second_reader_testing.ERROR:
      expected = None
    try:
      found = self._read(path)
    except ValueError as error:
      self.assertStartsWith(str(error), str(path))
      self.assertNotIn('\n', str(error))
      if expected and 'reads as a row of its own' in str(error):
        cells = sum(second_reader_testing.split_csv(text), [])
        self.assertTrue(any('\n' in c or '\r' in c for c in cells), text)
        return 'swallowed'
      self.assertIsNone(expected, f'{error}\n{text!r}')
      return 'refused'
    self.assertEqual(found, expected, repr(text))
    return 'read'

  @case_testing.named(
      csv=('csv', _draw_csv, second_reader_testing.read_csv),
      json=('jsonl', _draw_json_lines, second_reader_testing.read_json_lines),
  )
  def test_rows_are_those_of_the_second_reader(self, kind, draw_text, read):
    folder = self.path('.')
    counts = collections.Counter()
    for seed in range(_NUM_FILES):
      draw = random.Random(seed)
      text = draw_text(draw)
      path = folder / f'{seed}.{kind}'
      content = text.encode()
      if kind == 'jsonl' and draw.random() < 0.2:
        path = path.with_name(f'{path.name}.gz')
        content = gzip.compress(content)
      path.write_bytes(content)
      counts[self._check(path, text, read)] += 1
    # Most of the files would say nothing if they were all alike.
    self.assertGreater(counts['read'], _NUM_FILES // 5, counts)
    self.assertGreater(counts['refused'], _NUM_FILES // 4, counts)
    self.assertLess(counts['swallowed'], _NUM_FILES // 20, counts)
