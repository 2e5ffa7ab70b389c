# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads Stack Overflow's posts, and the counts of their words and tags.

The files are those of `tff.simulation.datasets.stackoverflow`: a SQLite file,
and two files of counts. TFF's own loaders of the counts accept only the
original files; here they may belong to any data in this form.
"""

from collections.abc import Mapping, Sequence
import io
import json
import pathlib
from typing import TYPE_CHECKING

from tasks import data_files
from tff_adaptive import _files
from tff_adaptive.data import client_data

if TYPE_CHECKING:
  import tensorflow as tf

TRAIN = 'train'
HELDOUT = 'heldout'
TEST = 'test'
DEFAULT_VOCAB_SIZE = 10_000
DEFAULT_TAG_VOCAB_SIZE = 500
DEFAULT_SEQUENCE_LENGTH = 20
DEFAULT_NUM_TEST_EXAMPLES = 10_000

_DATASET = 'stackoverflow'
POSTS = 'tff/stackoverflow.sqlite'
WORD_COUNTS = 'tff/datasets/stackoverflow.word_count'
TAG_COUNTS = 'tff/datasets/stackoverflow.tag_count'


def find(data_dir: _files.PathLike, file: str) -> pathlib.Path:
  """Returns the path of a file; see `data_files.find_data_file`."""
  return data_files.find_data_file(data_dir, file, _DATASET)


def load_stackoverflow(
    data_dir: _files.PathLike,
    split_name: str,
    features: 'Mapping[str, tf.TensorSpec]',
) -> client_data.LazyClientArrays:
  """Opens the posts of a split, with a client for each user, read on demand.

  Args:
    data_dir: The folder of the data sets; reads `tff/stackoverflow.sqlite`.
    split_name: 'train', 'heldout' or 'test'; in the original 342,477, 38,758
      and 204,088 clients with 135,818,730, 16,491,230 and 16,586,035 examples.
    features: The features to read of an example, which is a sentence of a post:
      'tokens', 'title', 'tags', 'creation_date' and 'type', strings, and
      'score', an integer.

  Returns:
    The clients, with their numbers of examples.

  Raises:
    FileNotFoundError: If the file does not exist; says where to put it and how
      to download it.
    ValueError: If it is damaged, not in TFF's format, or has no such split.

  Example:

    >>> spec = {'tokens': tf.TensorSpec([], tf.string)}
    >>> heldout = load_stackoverflow('data', 'heldout', spec)
    >>> heldout.examples(heldout.client_ids[0])['tokens'].dtype
    dtype('O')
  """
  # Imported here because it imports TensorFlow.
  from tff_adaptive.data import sqlite  # pylint: disable=import-outside-toplevel

  path = find(data_dir, POSTS)
  # Only the prepared examples are cached, see `map_clients`.
  return sqlite.load_sqlite_clients(path, split_name, features, cache_bytes=0)


def load_word_vocabulary(
    data_dir: _files.PathLike, vocab_size: int = DEFAULT_VOCAB_SIZE
) -> list[str]:
  """Reads the words that occur with most users.

  Args:
    data_dir: The folder of the data sets; reads
      `tff/datasets/stackoverflow.word_count`, which has a word and its number
      of users in each line, in decreasing order.
    vocab_size: The number of words, a positive integer. Defaults to 10,000.

  Returns:
    The words, the most frequent first.

  Raises:
    FileNotFoundError: If the file does not exist; says where to put it and how
      to download it.
    ValueError: If it is empty or damaged, or has fewer words.

  Example:

    >>> load_word_vocabulary('data', vocab_size=3)
    ['.', 'a', 'the']

  References:
    `tff.simulation.datasets.stackoverflow.load_word_counts`.
  """
  path = find(data_dir, WORD_COUNTS)
  counts: dict[str, int] = {}
  for number, line in enumerate(io.StringIO(_read(path)), start=1):
    try:
      word, count = line.split()
      counts[word] = int(count)
    except ValueError as error:
      raise ValueError(
          f'{path} must have a word and a number in each line, found '
          f'{line.strip()!r} in line {number}; replace it by an intact copy.'
      ) from error
  return _most_frequent(path, list(counts), vocab_size, 'vocab_size', 'words')


def load_tag_vocabulary(
    data_dir: _files.PathLike, tag_vocab_size: int = DEFAULT_TAG_VOCAB_SIZE
) -> list[str]:
  """Reads the tags that occur with most users.

  Args:
    data_dir: The folder of the data sets; reads
      `tff/datasets/stackoverflow.tag_count`, a JSON object from tags to numbers
      of users.
    tag_vocab_size: The number of tags, a positive integer. Defaults to 500.

  Returns:
    The tags, the most frequent first; ties are in the order of the file.

  Raises:
    FileNotFoundError: If the file does not exist; says where to put it and how
      to download it.
    ValueError: If it is empty or damaged, or has fewer tags.

  Example:

    >>> load_tag_vocabulary('data', tag_vocab_size=2)
    ['discussion', 'support']

  References:
    `tff.simulation.datasets.stackoverflow.load_tag_counts`.
  """
  path = find(data_dir, TAG_COUNTS)
  text = _read(path)
  try:
    counts = json.loads(text or '{}', object_pairs_hook=_files.to_object)
    tags = sorted(counts, key=lambda tag: -int(counts[tag]))
  except (OverflowError, TypeError, ValueError) as error:
    raise ValueError(
        f'{path} must be a JSON object from tags to numbers ({error}); replace '
        'it by an intact copy.'
    ) from error
  return _most_frequent(path, tags, tag_vocab_size, 'tag_vocab_size', 'tags')


def _read(path: pathlib.Path) -> str:
  try:
    # Some programs write a byte order mark.
    return path.read_text(encoding='utf-8-sig')
  except UnicodeDecodeError as error:
    raise ValueError(
        f'{path} must be UTF-8 text ({error.reason}); replace it by an intact '
        'copy.'
    ) from error


def _most_frequent(
    path: pathlib.Path, entries: list[str], size: int, argument: str, kind: str
) -> list[str]:
  """Returns the first entries, after checking that there are enough."""
  if not entries:
    raise ValueError(f'{path} has no {kind}; replace it by an intact copy.')
  if not 1 <= size <= len(entries):
    raise ValueError(
        f'`{argument}` must be between 1 and {len(entries)}, the number of '
        f'{kind} in {path}, found {size}.'
    )
  return entries[:size]


def check_vocabulary(vocabulary: Sequence[str], name: str) -> tuple[str, ...]:
  """Returns a vocabulary after checking it.

  Args:
    vocabulary: The words or tags.
    name: The name of the argument, for error messages.

  Returns:
    The entries.

  Raises:
    TypeError: If it is a single string, or an entry is not a string.
    ValueError: If there are no entries, or one occurs twice.
  """
  entries = tuple(vocabulary)
  wrong = [entry for entry in entries if not isinstance(entry, str)]
  if wrong or isinstance(vocabulary, str):
    found = wrong[0] if wrong else vocabulary
    raise TypeError(f'`{name}` must be a sequence of strings, found {found!r}.')
  if not entries:
    raise ValueError(f'`{name}` must have at least one entry, found none.')
  if len(set(entries)) < len(entries):
    raise ValueError(f'`{name}` must have unique entries, found one twice.')
  return entries


class Lookup(dict):
  """Maps words (bytes) to numbers; unknown words share one number.

  Example:

    >>> lookup = Lookup(['to', 'be'], first=1, unknown=3)
    >>> [lookup[word] for word in b'to be or'.split()]
    [1, 2, 3]
  """

  def __init__(self, vocabulary: Sequence[str], *, first: int, unknown: int):
    """Initializes the mapping.

    Args:
      vocabulary: The known words.
      first: The number of the first word.
      unknown: The number of unknown words.
    """
    super().__init__(
        (word.encode(), number)
        for number, word in enumerate(vocabulary, start=first)
    )
    self._unknown = unknown

  def __missing__(self, word: bytes) -> int:
    return self._unknown
