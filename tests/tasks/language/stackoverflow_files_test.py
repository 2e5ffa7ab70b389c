# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `stackoverflow_files`."""

import json
from unittest import mock

from absl.testing import parameterized
import tensorflow as tf
import tensorflow_federated as tff

from tasks.language import stackoverflow_files
from tests import folder_testing
from tests.tasks import data_testing
from tests.tasks.language import stackoverflow_testing

_SPEC = {'tokens': tf.TensorSpec([], tf.string)}


class CountsTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    stackoverflow_testing.write_counts(self.folder)
    self.counts = self.folder / 'tff' / 'datasets'

  def test_most_frequent_words_come_first(self):
    words = stackoverflow_files.load_word_vocabulary(self.folder, 4)
    self.assertEqual(words, ['.', 'how', 'do', 'i'])
    words = stackoverflow_files.load_word_vocabulary(self.folder, 9)
    self.assertEqual(words, list(stackoverflow_testing.WORDS))

  def test_tags_are_sorted_and_equal_ones_in_the_order_of_the_file(self):
    tags = stackoverflow_files.load_tag_vocabulary(self.folder, 5)
    self.assertEqual(tags, list(stackoverflow_testing.TAGS))

  @parameterized.parameters(0, -1, 10)
  def test_vocabulary_larger_than_the_data_raises(self, vocab_size):
    with self.assertRaisesRegex(
        ValueError,
        '`vocab_size` must be between 1 and 9, the number of words in .*'
        f'stackoverflow.word_count, found {vocab_size}',
    ):
      stackoverflow_files.load_word_vocabulary(self.folder, vocab_size)

  def test_more_tags_than_there_are_raise(self):
    with self.assertRaisesRegex(ValueError, '`tag_vocab_size` must be between'):
      stackoverflow_files.load_tag_vocabulary(self.folder, 6)

  @parameterized.named_parameters(
      ('words_empty', 'word', b'', 'has no words'),
      ('words_no_count', 'word', b'a 3\nb\n', "found 'b' in line 2"),
      ('words_no_number', 'word', b'a three\n', "found 'a three' in line 1"),
      ('words_binary', 'word', b'\xff\xfe 3\n', 'must be UTF-8 text'),
      ('tags_empty', 'tag', b'', 'has no tags'),
      ('tags_truncated', 'tag', b'{"a": 3, "b', 'must be a JSON object'),
      ('tags_a_list', 'tag', b'["a"]', 'must be a JSON object'),
      ('tags_twice', 'tag', b'{"a": 3, "b": 2, "a": 1}', "key 'a' more than"),
      ('tags_no_number', 'tag', b'{"a": null}', 'must be a JSON object'),
      ('tags_infinite', 'tag', b'{"a": 1e999}', 'must be a JSON object'),
  )
  def test_damaged_counts_are_one_sentence(self, kind, content, sentence):
    path = self.counts / f'stackoverflow.{kind}_count'
    path.write_bytes(content)
    load = {
        'word': stackoverflow_files.load_word_vocabulary,
        'tag': stackoverflow_files.load_tag_vocabulary,
    }[kind]
    with self.assertRaisesRegex(ValueError, sentence) as caught:
      load(self.folder, 1)
    self.assertIn(str(path), str(caught.exception))
    self.assertNotIn('\n', str(caught.exception))

  def test_a_byte_order_mark_is_no_part_of_a_word(self):
    for kind in ('word', 'tag'):
      path = self.counts / f'stackoverflow.{kind}_count'
      path.write_bytes(b'\xef\xbb\xbf' + path.read_bytes())
    words = stackoverflow_files.load_word_vocabulary(self.folder, 1)
    self.assertEqual(words, ['.'])
    tags = stackoverflow_files.load_tag_vocabulary(self.folder, 5)
    self.assertEqual(tags, list(stackoverflow_testing.TAGS))

  def test_missing_counts_say_how_they_are_downloaded(self):
    for load, kind in (
        (stackoverflow_files.load_word_vocabulary, 'word'),
        (stackoverflow_files.load_tag_vocabulary, 'tag'),
    ):
      path = self.counts / f'stackoverflow.{kind}_count'
      path.unlink()
      with self.assertRaisesRegex(
          FileNotFoundError,
          f'put it at {path}, .*tasks.fetch stackoverflow --data_dir=',
      ):
        load(self.folder)

  def test_real_counts_are_those_that_tff_reads(self):
    folder = data_testing.SAMPLE
    counts = folder / 'tff' / 'datasets'

    def get_file(name, **kwargs):
      del kwargs  # Where it comes from, and a checksum.
      return str(counts / name)

    datasets = tff.simulation.datasets.stackoverflow
    with mock.patch.object(tf.keras.utils, 'get_file', get_file):
      words = list(datasets.load_word_counts(vocab_size=10_000))
      tags = list(datasets.load_tag_counts())[:500]
    self.assertEqual(stackoverflow_files.load_word_vocabulary(folder), words)
    self.assertEqual(stackoverflow_files.load_tag_vocabulary(folder), tags)
    num_tags = len(json.loads((counts / 'stackoverflow.tag_count').read_text()))
    with self.assertRaisesRegex(ValueError, f'between 1 and {num_tags}'):
      stackoverflow_files.load_tag_vocabulary(folder, num_tags + 1)


class PostsTest(folder_testing.FolderTestCase):

  def test_splits_are_opened_with_what_is_asked_for(self):
    stackoverflow_testing.write(self.folder)
    clients = stackoverflow_files.load_stackoverflow(
        self.folder, 'train', _SPEC
    )
    self.assertEqual(clients.client_ids, ('ann', 'bob'))
    self.assertEqual(clients.total_examples, 12)
    self.assertEqual(
        tuple(clients.examples('ann')['tokens']), stackoverflow_testing.TOKENS
    )
    self.assertEqual(clients._cache.num_bytes, 0)


class VocabularyTest(parameterized.TestCase):

  def test_lookup_numbers_words_and_has_one_number_for_others(self):
    lookup = stackoverflow_files.Lookup(['a', 'é'], first=4, unknown=9)
    words = [b'a', 'é'.encode(), b'', b'b']
    self.assertEqual([lookup[word] for word in words], [4, 5, 9, 9])
    # Nothing is added by looking.
    self.assertLen(lookup, 2)

  @parameterized.parameters(
      ('abc', TypeError, "sequence of strings, found 'abc'"),
      ([b'a'], TypeError, "found b'a'"),
      ([], ValueError, 'at least one entry'),
      (['a', 'b', 'a'], ValueError, 'unique entries'),
  )
  def test_bad_vocabulary_raises(self, vocabulary, error, sentence):
    with self.assertRaisesRegex(error, f'`words` must .*{sentence}'):
      stackoverflow_files.check_vocabulary(vocabulary, 'words')
