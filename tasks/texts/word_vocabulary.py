# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A vocabulary of words, counted on texts, that converts texts to tokens."""

import collections
from collections.abc import Iterable
import re
from typing import Union

import attrs
import numpy as np

# The special tokens; words follow.
PAD = 0
OUT_OF_VOCABULARY = 1
START = 2
NUM_SPECIAL_TOKENS = 3

# Letters and digits, with apostrophes between them.
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")

Text = Union[str, bytes]


def to_str(text: Text) -> str:
  """Returns a text as a string, decoding UTF-8 bytes."""
  if isinstance(text, bytes):
    return text.decode('utf-8', errors='replace')
  return text


def split_words(text: Text) -> list[str]:
  """Splits a text into lowercase words, without punctuation.

  Args:
    text: The text, a string or UTF-8 bytes.

  Returns:
    Its words in order: letters and digits, joined by apostrophes.

  Example:

    >>> split_words("Fed's rates: UP 2%!")
    ["fed's", 'rates', 'up', '2']
  """
  return _WORD.findall(to_str(text).lower())


@attrs.frozen
class WordVocabulary:
  """The tokens of words: 0 is padding, 1 any other word, 2 the start of a text.

  Attributes:
    words: The words; the first is token 3.
  """

  words: tuple[str, ...]
  _tokens: dict[str, int] = attrs.field(init=False, repr=False, eq=False)

  @_tokens.default
  def _number_words(self) -> dict[str, int]:
    return {
        word: NUM_SPECIAL_TOKENS + place
        for place, word in enumerate(self.words)
    }

  def encode(self, texts: Iterable[Text], max_length: int) -> np.ndarray:
    """Returns the tokens of texts, truncated or padded to one length.

    Args:
      texts: The texts, strings or UTF-8 bytes.
      max_length: The maximum number of tokens of a text, including the start
        token.

    Returns:
      The tokens, int32 of shape [num_texts, max_length].

    Example:

      >>> WordVocabulary(('up', 'rates')).encode(['Rates are up'], 6)
      array([[2, 4, 1, 3, 0, 0]], dtype=int32)
    """
    texts = list(texts)
    tokens = np.full([len(texts), max_length], PAD, np.int32)
    tokens[:, 0] = START
    for row, text in zip(tokens, texts):
      words = split_words(text)[: max_length - 1]
      row[1 : len(words) + 1] = [
          self._tokens.get(word, OUT_OF_VOCABULARY) for word in words
      ]
    return tokens


def build_word_vocabulary(
    texts: Iterable[Text], vocab_size: int
) -> WordVocabulary:
  """Builds the vocabulary of the most frequent words in texts.

  Args:
    texts: The training texts.
    vocab_size: The number of tokens, including the three special tokens.

  Returns:
    The vocabulary, in the order of decreasing frequency; ties are in
    alphabetical order.

  Raises:
    ValueError: If the texts have too few different words.

  Example:

    >>> build_word_vocabulary(['b a b', 'c a d'], vocab_size=6).words
    ('a', 'b', 'c')
  """
  counts: collections.Counter[str] = collections.Counter()
  for text in texts:
    counts.update(split_words(text))
  num_words = vocab_size - NUM_SPECIAL_TOKENS
  if num_words > len(counts):
    raise ValueError(
        f'`vocab_size` must be at most {len(counts) + NUM_SPECIAL_TOKENS}, '
        f'since the training texts have {len(counts)} different words, found '
        f'{vocab_size}.'
    )
  ordered = sorted(counts, key=lambda word: (-counts[word], word))
  return WordVocabulary(tuple(ordered[:num_words]))
