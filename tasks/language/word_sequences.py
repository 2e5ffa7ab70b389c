# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stack Overflow's sentences as sequences of words, for next-word prediction.

With a vocabulary of n words the tokens are those of TFF's baseline:

| token | stands for |
| --- | --- |
| 0 | padding |
| 1 to n | the words of the vocabulary, the most frequent first |
| n + 1 | any other word |
| n + 2 | the start of a sentence |
| n + 3 | the end of a sentence |
"""

import collections
from collections.abc import Mapping, Sequence
import itertools

import numpy as np

from tasks.language import stackoverflow_files
from tff_adaptive.data import feature_arrays

PADDING = 0
NUM_SPECIAL_TOKENS = 4

_SEPARATOR = b' '


def out_of_vocabulary(vocab_size: int) -> int:
  """Returns the token of words that are not in the vocabulary."""
  return vocab_size + 1


def beginning(vocab_size: int) -> int:
  """Returns the token at the start of every sentence."""
  return vocab_size + 2


def end(vocab_size: int) -> int:
  """Returns the token after the last word of a sentence."""
  return vocab_size + 3


class WordSequences:
  """Converts sentences to sequences of tokens and of the next tokens.

  A sentence becomes a start token, its first `sequence_length` words, an end
  token if it has fewer words, and padding up to `sequence_length + 1` tokens;
  'x' is all but the last of them and 'y' all but the first.

  Example:

    >>> to_sequences = WordSequences(['to', 'be'], sequence_length=4)
    >>> sentences = np.array([b'to be or'], np.object_)
    >>> to_sequences({'tokens': sentences})['y']
    array([[1, 2, 3, 5]], dtype=int32)

  References:
    `tff.simulation.baselines.stackoverflow`, with one bucket for words out of
    the vocabulary.
  """

  def __init__(
      self,
      vocabulary: Sequence[str],
      sequence_length: int = stackoverflow_files.DEFAULT_SEQUENCE_LENGTH,
  ):
    """Initializes the conversion.

    Args:
      vocabulary: The words, the most frequent first.
      sequence_length: The length of the sequences, a positive integer. Defaults
        to 20.

    Raises:
      TypeError: If a word is not a string.
      ValueError: If the vocabulary is empty or has a word twice.
    """
    words = stackoverflow_files.check_vocabulary(vocabulary, 'vocabulary')
    self._vocab_size = len(words)
    self._sequence_length = sequence_length
    self._lookup = stackoverflow_files.Lookup(
        words, first=PADDING + 1, unknown=out_of_vocabulary(len(words))
    )

  def __call__(
      self, examples: Mapping[str, np.ndarray]
  ) -> feature_arrays.Examples:
    """Converts sentences to sequences.

    Args:
      examples: Examples with the feature 'tokens', bytes of shape [n]: words
        separated by spaces.

    Returns:
      'x' and 'y', int32 of shape [n, sequence_length]. They share memory.
    """
    length = self._sequence_length
    sentences = [
        sentence.split(_SEPARATOR, length)[:length]
        for sentence in examples['tokens']
    ]
    sizes = np.fromiter(map(len, sentences), np.int64, len(sentences))
    words = itertools.chain.from_iterable(sentences)
    tokens = np.full([len(sentences), length + 1], PADDING, np.int32)
    tokens[:, 0] = beginning(self._vocab_size)
    # In row-major order, like the words.
    tokens[:, 1:][np.arange(length) < sizes[:, np.newaxis]] = np.fromiter(
        map(self._lookup.__getitem__, words), np.int32, sizes.sum()
    )
    short = np.flatnonzero(sizes < length)
    tokens[short, sizes[short] + 1] = end(self._vocab_size)
    return collections.OrderedDict(x=tokens[:, :-1], y=tokens[:, 1:])
