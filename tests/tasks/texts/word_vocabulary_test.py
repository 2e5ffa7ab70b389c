# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of vocabularies of words."""

from absl.testing import parameterized
import numpy as np

from tasks.texts import word_vocabulary

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
