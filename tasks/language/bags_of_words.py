# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Stack Overflow's sentences as bags of words, for predicting tags.

Words and tags are numbered from 0, the most frequent ones first, as in TFF's
baseline; others are ignored.
"""

import abc
import collections
from collections.abc import Mapping, Sequence
import itertools

import numpy as np

from tasks.language import stackoverflow_files
from tff_adaptive.data import feature_arrays

DEFAULT_MAX_WORDS = 1024
_NO_WORD = -1
_TAG_SEPARATOR = b'|'


class BagsOfWords(abc.ABC):
  """Converts sentences to words, in a subclass' form, and counts of tags."""

  def __init__(self, vocabulary: Sequence[str], tag_vocabulary: Sequence[str]):
    """Initializes the conversion.

    Args:
      vocabulary: The words, the most frequent first.
      tag_vocabulary: The tags, the most frequent first.

    Raises:
      TypeError: If a word or a tag is not a string.
      ValueError: If a vocabulary is empty or has an entry twice.
    """
    words = stackoverflow_files.check_vocabulary(vocabulary, 'vocabulary')
    tags = stackoverflow_files.check_vocabulary(
        tag_vocabulary, 'tag_vocabulary'
    )
    self._num_words, self._num_tags = len(words), len(tags)
    self._words = stackoverflow_files.Lookup(words, first=0, unknown=_NO_WORD)
    self._tags = stackoverflow_files.Lookup(tags, first=0, unknown=_NO_WORD)

  @abc.abstractmethod
  def _bags(self, texts: Sequence[Sequence[bytes]]) -> np.ndarray:
    """Returns the feature 'x' of all examples."""

  def __call__(
      self, examples: Mapping[str, np.ndarray]
  ) -> feature_arrays.Examples:
    """Converts sentences to words and tags.

    Args:
      examples: Examples with the features 'tokens', 'title' and 'tags', bytes
        of shape [n]: words separated by white space, and tags separated by '|'.

    Returns:
      'x', the words of sentence and title in the form of the class, and 'y',
      the count of each tag: float32 of shape [n, num_tags].
    """
    texts = [
        (b'%s %s' % pair).split()
        for pair in zip(examples['tokens'], examples['title'])
    ]
    tags = [tags.split(_TAG_SEPARATOR) for tags in examples['tags']]
    return collections.OrderedDict(
        x=self._bags(texts), y=_counts(tags, self._tags, self._num_tags)
    )


class WordFrequencies(BagsOfWords):
  """Converts sentences to the frequencies of the vocabulary's words.

  ```
  x_w = (count of word w) / (count of all words of the vocabulary)
  ```

  in the sentence and its title together, zeros if there are none: float32 of
  shape [n, num_words]. The input of a dense layer, as in TFF's baseline.

  Example:

    >>> to_bags = WordFrequencies(['to', 'be'], ['drama'])
    >>> text = dict(tokens=[b'to be or'], title=[b'be ?'], tags=[b'drama|old'])
    >>> to_bags(text)['x'].round(2), to_bags(text)['y']
    (array([[0.33, 0.67]], dtype=float32), array([[1.]], dtype=float32))

  References:
    `tff.simulation.baselines.stackoverflow.create_tag_prediction_task`.
  """

  def _bags(self, texts):
    counts = _counts(texts, self._words, self._num_words)
    totals = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, totals, out=counts, where=totals > 0)


class WordLists(BagsOfWords):
  """Converts sentences to the numbers of the vocabulary's words.

  The words of the sentence and its title in order, padded by -1 to `max_words`:
  int32 of shape [n, max_words]. The input of `layers.BagOfWordsDense`, which
  computes the frequencies of `WordFrequencies`; an example takes 4 KB, its
  frequencies would take 40 KB.

  Example:

    >>> to_lists = WordLists(['to', 'be'], ['drama'], max_words=5)
    >>> text = dict(tokens=[b'to be or'], title=[b'be ?'], tags=[b'drama|old'])
    >>> to_lists(text)['x']
    array([[ 0,  1,  1, -1, -1]], dtype=int32)
  """

  def __init__(
      self,
      vocabulary: Sequence[str],
      tag_vocabulary: Sequence[str],
      max_words: int = DEFAULT_MAX_WORDS,
  ):
    """Initializes the conversion.

    Args:
      vocabulary: The words, the most frequent first.
      tag_vocabulary: The tags, the most frequent first.
      max_words: The maximum number of words of an example, a positive integer;
        of longer texts the first ones are used. Defaults to 1024.

    Raises:
      TypeError: If a word or a tag is not a string.
      ValueError: If a vocabulary is empty or has an entry twice.
    """
    super().__init__(vocabulary, tag_vocabulary)
    self._max_words = max_words

  def _bags(self, texts):
    rows, words = _numbers(texts, self._words)
    firsts = np.searchsorted(rows, np.arange(len(texts)))
    places = np.arange(len(rows)) - firsts[rows]
    kept = places < self._max_words
    lists = np.full([len(texts), self._max_words], _NO_WORD, np.int32)
    lists[rows[kept], places[kept]] = words[kept]
    return lists


def _numbers(
    texts: Sequence[Sequence[bytes]], lookup: stackoverflow_files.Lookup
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the ascending row indices and the numbers of all known entries."""
  sizes = np.fromiter(map(len, texts), np.int64, len(texts))
  numbers = np.fromiter(
      map(lookup.__getitem__, itertools.chain.from_iterable(texts)),
      np.int32,
      sizes.sum(),
  )
  known = numbers != _NO_WORD
  return np.repeat(np.arange(len(texts)), sizes)[known], numbers[known]


def _counts(
    texts: Sequence[Sequence[bytes]],
    lookup: stackoverflow_files.Lookup,
    num_columns: int,
) -> np.ndarray:
  """Returns the count of each known entry in each text."""
  rows, numbers = _numbers(texts, lookup)
  counts = np.zeros([len(texts), num_columns], np.float32)
  places, occurrences = np.unique(
      rows * num_columns + numbers, return_counts=True
  )
  counts.flat[places] = occurrences
  return counts
