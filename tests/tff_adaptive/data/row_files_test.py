# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the rows of CSV and JSON lines files."""

import csv

import tensorflow as tf

from tests import case_testing
from tests.tff_adaptive.data import data_source_testing
from tff_adaptive.data import sources

_TEXTS = {'y': tf.TensorSpec([], tf.int32), 't': tf.TensorSpec([], tf.string)}


class RowFilesTest(data_source_testing.DataSourceTestCase):

  @case_testing.named(
      cells=('x_0,x_1,y\n1,2,3\n1,2\n', 'line 3 has 2 cells, where the he'),
      header=('x_0,y\n1,3\n', "lacks the columns 'x_1' of feature 'x' with"),
      twice=('x_0,x_1,y,y\n1,2,3,4\n', "has several columns 'y'; give "),
      float=('x_0,x_1,y\n1,a,3\n', "line 2: column 'x_1' must hold values "),
      int=('x_0,x_1,y\n1,2,3\n1,2,3.5\n', "line 3: column 'y' must hold va"),
      large=('x_0,x_1,y\n1,2,3000000000\n', "line 2: feature 'y' has the v"),
      no_rows=('x_0,x_1,y\n', 'has no rows; it must have a row for each '),
      quote=('x_0,x_1,y\n1,2,"\n', 'line 2 cannot be split into cells: it '),
      text_after_quote=(
          'x_0,x_1,y\n\n1,2,"3" \n',
          'line 3 cannot be split into cells: the double quote that closes a '
          'cell is followed by text; ',
      ),
      underscore=('x_0,x_1,y\n1,2,1_0\n', "of type int32, found '1_0'; "),
      floating=('x_0,x_1,y\n1_0,2,1\n', "of type float32, found '1_0'; "),
      infinite=('x_0,x_1,y\n1e400,2,1\n', "found '1e400'; correct "),
      no_whole=('x_0,x_1,y\n1,2,1_0.0\n', "of type int32, found '1_0.0'; "),
      no_digit=('x_0,x_1,y\n1,2,.0\n', "of type int32, found '.0'; "),
      empty_cell=('x_0,x_1,y\n1,2,\n', "of type int32, found ''; correct "),
      trailing=('x_0,x_1,y\n1,2,3,\n', 'line 2 has 4 cells, where the '),
      header_again=(
          'x_0,x_1,y\n1,2,3\nx_0,x_1,y\n1,2,3\n',
          'line 3 begins another file, with a header or a byte order mark ',
      ),
      mark_again=('x_0,x_1,y\n\ufeff1,2,3\n', 'line 2 begins another fi'),
      semicolons=('x_0;x_1;y\n1;2;3\n', 'separate the cells of all lines'),
      no_header=('\n\n', "lacks the columns 'x_0', 'x_1' of feature 'x'"),
  )
  def test_errors_of_csv(self, text, sentence):
    path = self.text_file('data.csv', text)
    self.assert_unreadable(sentence, path)

  @case_testing.named(
      json=('{"x": [1, 2], "y": 1}\n{"x": [1,\n', 'line 2 is not JSON ('),
      list=('[1, 2]\n', "line 1 must be an object with the keys 'x', 'y', "),
      key=('{"x": [1, 2], "z": 0}\n', "line 1 has no 'y', found 'x', 'z'; "),
      type=('{"x": [1, 2], "y": 1.5}\n', "line 1: feature 'y' must be of t"),
      shape=('{"x": [1, 2, 3], "y": 1}\n', "line 1: feature 'x' must have "),
      key_twice=(
          '{"x": [1, 2], "y": 1}\n{"y": 1, "x": [1, 2], "y": 2}\n',
          "line 2 has the key 'y' more than once; keep the right value.",
      ),
      inner_key_twice=(
          '{"x": [1, 2], "y": 1, "z": {"a": 1, "a": 2}}\n',
          "line 1 has the key 'a' more than once; ",
      ),
      large=(
          '{"x": [1, 2], "y": 1}\n{"x": [1, 2], "y": 9223372036854775808}\n',
          "line 2: feature 'y' has the value 9223372036854775808, which int32 ",
      ),
      mark_again=('\n\ufeff{"x": [1, 2], "y": 1}\n', 'line 2 is not JSON ('),
      infinite=('{"x": [1, -1e400], "y": 1}\n', "line 1: feature 'x' has a"),
      deep=('[' * 100_000, 'line 1 is not JSON ('),
      two=('{"x": [1, 2], "y": 1}{}\n', 'line 1 is not JSON (Extra data'),
      cut=('{"x": [1, 2], "y": 1}\n{"x": [1, 2], "y"', 'line 2 is not JSON'),
      ragged=('{"x": [[1], [1, 2]], "y": 1}\n', 'lists of different length'),
      no_rows=('\n\n', 'has no rows; it must have a row for each example.'),
  )
  def test_errors_of_json_lines(self, text, sentence):
    path = self.text_file('data.jsonl', text)
    self.assert_unreadable(sentence, path)

  @case_testing.named(
      to_the_end=('a,0,ok\na,1,"hello\nb,0,bye\nb,1,again\n', 3, 'never '),
      to_another_quote=(
          'a,0,"hello\nb,1,x\nb,0,bye" he said\nc,1,last\n',
          2,
          'closes a cell in line 4 is followed by text',
      ),
      to_a_quoted_cell=('a,0,"hello\nb,1,"bye"\n', 2, 'in line 3 is follo'),
  )
  def test_a_stray_quote_swallows_no_rows(self, text, line, reason):
    path = self.text_file('data.csv', f'client_id,y,t\n{text}')
    for kept in (path, self._with_other_ends(path)):
      self.assert_no_clients(
          f'{kept}, line {line} cannot be split into cells: ', kept, _TEXTS
      )
      self.assert_no_clients(reason, kept, _TEXTS)

  def _with_other_ends(self, path):
    text = path.read_text(encoding='utf-8').replace('\n', '\r\n')
    other = path.with_name('other.csv')
    other.write_bytes(b'\xef\xbb\xbf' + text.encode())
    return other

  @case_testing.named(
      last=('client_id,y,t', 'a,0,"hello\nb,1,bye"\n'),
      between=('client_id,y,t', 'a,0,"hello\nb,1,x\nbye"\n'),
      first_column=('t,client_id,y', '"hello,a,0\nbye",b,1\n'),
      middle=('client_id,t,y', 'a,"hello,0\nb,bye",1\n'),
  )
  def test_two_stray_quotes_swallow_no_rows(self, header, text):
    path = self.text_file('data.csv', f'{header}\n{text}')
    self.assert_no_clients(
        'reads as a row of its own; remove the stray quotes, or use JSON ',
        path,
        _TEXTS,
    )

  def test_cells_of_several_lines_are_kept(self):
    texts = ['one\ntwo', 'a, b\r\n"c", d', '1,b\nc,4', '\n', 'x,y,z\n1,2,']
    rows = ['"' + text.replace('"', '""') + '"' for text in texts]
    for header, line in (('t,y', '{},7\n'), ('y,t', '7,{}\n')):
      path = self.path('data.csv')
      path.write_bytes(
          '\n'.join([header, *(line.format(row) for row in rows)]).encode()
      )
      examples = sources.read_examples(path, _TEXTS)
      self.assertEqual(examples['t'].tolist(), [t.encode() for t in texts])

  def test_whole_numbers_may_be_written_as_floats(self):
    path = self.text_file('data.csv', 'y,t\n1.0,a\n-2.,1.0\n 3.00 ,\n')
    examples = sources.read_examples(path, _TEXTS)
    self.assertEqual(examples['y'].tolist(), [1, -2, 3])
    self.assertEqual(examples['t'].tolist(), [b'a', b'1.0', b''])
    # Images in [0, 1] would be black.
    with self.assertRaisesRegex(ValueError, "'y' must hold .*found '1.0'"):
      sources.read_examples(path, {'y': tf.TensorSpec([], tf.uint8)})

  def test_cells_have_any_length(self):
    limit = csv.field_size_limit()
    text = 'z' * (limit + 1)
    path = self.text_file('data.csv', f'y,t\n1,{text}\n2,"{text}"\n')
    examples = sources.read_examples(path, _TEXTS)
    self.assertEqual(examples['t'].tolist(), [text.encode()] * 2)
    self.assertEqual(csv.field_size_limit(), limit)

  def test_booleans(self):
    path = self.text_file('data.csv', 'a,b_0,b_1\nTrue,0,1\nfalse,1,1\n')
    specs = {'a': tf.TensorSpec([], tf.bool), 'b': tf.TensorSpec([2], tf.bool)}
    examples = sources.read_examples(path, specs)
    self.assertEqual(examples['a'].tolist(), [True, False])
    self.assertEqual(examples['b'].tolist(), [[False, True], [True, True]])
    path = self.text_file('data.csv', 'a\n2\n')
    with self.assertRaisesRegex(ValueError, "'a' must hold .* bool, found '2'"):
      sources.read_examples(path, {'a': specs['a']})

  def test_large_integers_are_exact(self):
    large = [2**63, 1, 2**64 - 1, 0]
    spec = {
        'y': tf.TensorSpec([], tf.uint64),
        'x': tf.TensorSpec([2], tf.uint64),
    }
    lines = ''.join(f'{n},{n},1\n' for n in large)
    rows = ''.join(f'{{"y": {n}, "x": [{n}, 1]}}\n' for n in large)
    for path in (
        self.text_file('data.csv', f'y,x_0,x_1\n{lines}'),
        self.text_file('data.jsonl', rows),
    ):
      examples = sources.read_examples(path, spec)
      self.assertEqual(examples['y'].tolist(), large)
      self.assertEqual(examples['x'].tolist(), [[n, 1] for n in large])

  def test_json_may_have_infinities_and_empty_lists(self):
    path = self.text_file('data.jsonl', '{"x": [[NaN], [-Infinity]], "y": []}')
    spec = {
        'x': tf.TensorSpec([2, 1], tf.float32),
        'y': tf.TensorSpec([0], tf.int32),
    }
    examples = sources.read_examples(path, spec)
    self.assertEqual(str(examples['x'].tolist()), '[[[nan], [-inf]]]')
    self.assertEqual(examples['y'].shape, (1, 0))
    self.assertEqual(examples['y'].dtype, 'int32')

  def test_half_of_a_surrogate_pair_is_refused(self):
    path = self.text_file(
        'data.jsonl',
        '{"t": "\\ud83d\\ude00", "client_id": "a"}\n'
        '{"t": "\\ud83d", "client_id": "\\ude00"}\n',
    )
    spec = {'t': tf.TensorSpec([], tf.string)}
    self.assert_unreadable(
        f"{path}, line 2: feature 't' must hold text, found '\\ud83d'; it has ",
        path,
        spec,
    )
    self.assert_no_clients(
        f"{path}, line 2: the client id 'client_id' must be text, found ",
        path,
        spec,
    )

  def test_a_column_beyond_the_shape_is_refused(self):
    path = self.text_file('data.csv', 'x_0,x_1,x_2\n1,2,3\n')
    spec = {'x': tf.TensorSpec([2], tf.float32)}
    self.assert_unreadable(
        f"{path} has the column 'x_2' beyond the shape [2] of feature 'x'",
        path,
        spec,
    )

  def test_strings_must_be_strings(self):
    path = self.text_file('data.jsonl', '{"text": "a"}\n{"text": 7}\n')
    self.assert_unreadable(
        f"{path}, line 2: feature 'text' must hold strings, found 7; convert ",
        path,
        {'text': tf.TensorSpec([], tf.string)},
    )

  def test_wide_headers_are_shown_in_part(self):
    path = self.text_file('data.csv', ','.join(f'p{i}' for i in range(99)))
    self.assert_unreadable("'p7', 91 more; add them", path)
