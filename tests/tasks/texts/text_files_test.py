# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading data sets of texts, and of their vocabularies."""

import gzip
import json
import sys
import types
from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest

from tasks import ag_news
from tasks.texts import text_files
from tasks.texts import word_vocabulary
from tests import folder_testing
from tests.tasks import data_testing

_DATASET = text_files.Texts(
    'news', 'The News', 3, 'news_subset', ('title', 'description')
)
_ROWS = (
    dict(split='train', text='One a "b"', label=0, source='x'),
    dict(split='test', text='Drei \u00e4', label=2),
    dict(split='train', text='Two, c', label=2),
)
_CSV = {
    'train.csv': '"1","One","a ""b"""\n"3","Two,","c"\n',
    'test.csv': '"3","","Drei ä"\n',
}
_TRAIN_TEXTS = [b'One a "b"', b'Two, c']
_TEST_TEXTS = ['Drei ä'.encode()]


class _FakeBuilder:
  """A builder of tensorflow-datasets that needs no files."""

  def as_dataset(self, split, batch_size):
    assert batch_size == -1
    columns = {
        'train': ([b'One', b''], [b'a "b"', b'Two, c'], [0, 2]),
        'test': ([b'Drei'], ['ä'.encode()], [2]),
    }[split]
    return dict(zip(('title', 'description', 'label'), map(np.array, columns)))


class TextFilesTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    self.jsonl = self.folder / 'news.jsonl.gz'

  def _write_jsonl(self, *rows):
    lines = [json.dumps(row) + '\n' for row in rows]
    self.jsonl.write_bytes(gzip.compress(''.join(lines).encode()))

  def _write_csv(self, **changes):
    folder = self.folder / 'news_csv'
    folder.mkdir()
    for name, text in {**_CSV, **changes}.items():
      if text is not None:
        (folder / name).write_text(text, encoding='utf-8')
    return folder

  def _fake_tfds(self):
    seen = []

    def builder_from_directory(path):
      seen.append(path.name)
      return _FakeBuilder()

    module = types.SimpleNamespace(
        as_numpy=lambda data: data,
        builder_from_directory=builder_from_directory,
    )
    self.enter_context(
        mock.patch.dict(sys.modules, {'tensorflow_datasets': module})
    )
    return seen

  def _assert_loads(self):
    train, test = _DATASET.read(str(self.folder))
    for examples in (train, test):
      self.assertEqual(list(examples), ['text', 'label'])
      self.assertEqual(examples['label'].dtype, np.int32)
    self.assertEqual(list(train['text']), _TRAIN_TEXTS)
    self.assertEqual(list(test['text']), _TEST_TEXTS)
    self.assertEqual(train['label'].tolist(), [0, 2])
    self.assertEqual(test['label'].tolist(), [2])

  def _assert_refused(self, sentence, error=ValueError):
    with self.assertRaisesRegex(error, sentence) as caught:
      _DATASET.read(self.folder)
    self.assertNotIn('\n', str(caught.exception))
    self.assertEndsWith(str(caught.exception), '.')

  def test_reads_json_lines_first(self):
    self._write_jsonl(*_ROWS)
    self._write_csv(**{'train.csv': 'damaged'})
    data_testing.prepare(self.folder, 'news_subset', '1.0.0')
    self._assert_loads()

  def test_reads_the_newest_prepared_version_next(self):
    data_testing.prepare(self.folder, 'news_subset', '3.0.1', '10.0.0', '9.0.0')
    self._write_csv(**{'train.csv': 'damaged'})
    seen = self._fake_tfds()
    self._assert_loads()
    self.assertEqual(seen, ['10.0.0'])

  def test_reads_the_original_release(self):
    self._write_csv()
    self._assert_loads()

  def test_missing_names_place_and_command(self):
    self._assert_refused(
        f'^The News was not found: put news.jsonl.gz .* at {self.jsonl}, or '
        '.* `.venv/bin/python -m tasks.fetch news --data_dir='
        rf'{self.folder}`\.$',
        FileNotFoundError,
    )

  @parameterized.named_parameters(
      ('empty', lambda good: b'', 'is empty'),
      ('text', lambda good: b'no archive', 'could not be read'),
      ('half', lambda good: good[: len(good) // 2], 'could not be read'),
      ('no_row', lambda good: gzip.compress(b''), 'has no rows'),
      ('no_json', lambda good: gzip.compress(b'one\n'), 'line 1 is not JSON'),
  )
  def test_damaged_json_lines(self, damage, sentence):
    self._write_jsonl(*_ROWS)
    self.jsonl.write_bytes(damage(self.jsonl.read_bytes()))
    self._assert_refused(f'{self.jsonl}.*{sentence}')

  @parameterized.parameters(
      (dict(split='train', label=1), "line 4 has no 'text'"),
      (dict(split='train', text='a', label='World'), 'line 4.*World'),
      (dict(split='test', text='a', label=3), "split 'test' .* label 3 at"),
      (dict(split='train', text='a', label=-1), "split 'train' .* label -1 at"),
  )
  def test_rows_that_cannot_be(self, row, sentence):
    self._write_jsonl(*_ROWS, row)
    self._assert_refused(f'{self.jsonl}.*{sentence}')

  def test_a_split_that_is_missing(self):
    self._write_jsonl(_ROWS[0])
    self._assert_refused(f"{self.jsonl} has no split 'test'")

  def test_prepared_folder_that_is_damaged(self):
    data_testing.prepare(self.folder, 'news_subset', '3.0.1')
    self._assert_refused('news_subset/3.0.1 could not be read .* delete it')

  @parameterized.named_parameters(
      ('missing', None, 'train.csv is missing', FileNotFoundError),
      ('empty', '', 'has no example'),
      ('open_quote', '"1","a","b"\n"1","a","b\n', 'train.csv, line 2 '),
      ('large_class', '"4294967297","a","b"\n', 'train.csv, line 1 .*class'),
      ('header', 'class,title,body\n', 'train.csv, line 1 .*class'),
      ('two_cells', '"1","a","b"\n"1","a"\n', 'line 2 .* found 2 cells'),
      ('class_from_zero', '"0","a","b"\n', 'the label -1 at example 0'),
  )
  def test_csv_that_cannot_be(self, text, sentence, error=ValueError):
    self._write_csv(**{'train.csv': text})
    self._assert_refused(sentence, error)

  def test_csv_of_other_programs(self):
    text = '\ufeff"1","One","' + 'b' * 200_000 + '"\r\n\r\n"2","","c"\r\n'
    self._write_csv(**{'train.csv': text})
    train, _ = text_files.Texts('news', 'News', 4).read(self.folder)
    self.assertEqual(train['label'].tolist(), [0, 1])
    self.assertEqual(list(map(len, train['text'])), [200_004, 1])

  def test_csv_that_is_not_utf8(self):
    (self._write_csv() / 'test.csv').write_bytes(b'"1","\xff","b"\n')
    self._assert_refused('test.csv could not be read .*utf-8')

  @pytest.mark.slow
  @pytest.mark.published_data
  def test_both_forms_of_the_real_data_are_one(self):
    folder = data_testing.real_data('ag_news')
    (self.folder / 'tfds').symlink_to(folder / 'tfds')
    for lines, prepared in zip(
        ag_news.AG_NEWS.data.read(folder),
        ag_news.AG_NEWS.data.read(self.folder),
    ):
      self.assertLen(prepared['text'], len(lines['text']))
      # Prepared data are shuffled, and three texts differ by a blank.
      common = set(lines['text']) & set(prepared['text'])
      self.assertGreaterEqual(len(common), len(lines['text']) - 3)
      np.testing.assert_array_equal(
          np.bincount(lines['label']), np.bincount(prepared['label'])
      )


_TEXTS = ('b a b', 'c d a b', b'd')


class WordVocabularyTest(parameterized.TestCase):

  @parameterized.parameters(
      ('Rates UP, 2%!', ['rates', 'up', '2']),
      ("The Fed's 'new' chief", ['the', "fed's", 'new', 'chief']),
      ('second\\team #36;10', ['second', 'team', '36', '10']),
      ('snake_case well-known', ['snake', 'case', 'well', 'known']),
      ('Zürich ÉCOLE'.encode(), ['zürich', 'école']),
      (b'a \xff b', ['a', 'b']),
      ('', []),
  )
  def test_splits_words(self, text, words):
    self.assertEqual(word_vocabulary.split_words(text), words)

  def test_words_are_ordered_by_count_and_then_by_alphabet(self):
    for texts in (_TEXTS, _TEXTS[::-1]):
      vocabulary = word_vocabulary.build_word_vocabulary(texts, 7)
      self.assertEqual(vocabulary.words, ('b', 'a', 'd', 'c'))
    fewer = word_vocabulary.build_word_vocabulary(_TEXTS, 5)
    self.assertEqual(fewer.words, ('b', 'a'))

  def test_tokens_begin_stand_for_words_and_pad(self):
    vocabulary = word_vocabulary.build_word_vocabulary(_TEXTS, 6)
    tokens = vocabulary.encode(['A, b c', b'', 'd b a b', 'b b'], 4)
    self.assertEqual(tokens.dtype, np.int32)
    np.testing.assert_array_equal(
        tokens, [[2, 4, 3, 1], [2, 0, 0, 0], [2, 5, 3, 4], [2, 3, 3, 0]]
    )
    self.assertEqual(vocabulary.encode([], 4).shape, (0, 4))

  def test_more_words_than_there_are_raise(self):
    with self.assertRaisesRegex(ValueError, '`vocab_size` must be at most 7'):
      word_vocabulary.build_word_vocabulary(_TEXTS, 8)
