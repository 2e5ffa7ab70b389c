# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads Shakespeare's plays and cuts them into sequences of characters.

The tokens are those of TFF's baseline:

| token | stands for |
| --- | --- |
| 0 | padding |
| 1 to 86 | the characters of `CHARACTERS`, in this order |
| 87 | any other character |
| 88 | the start of a snippet |
| 89 | the end of a snippet |
"""

import collections
from collections.abc import Mapping

import numpy as np

from tasks import data
from tasks import data_files
from tasks import synthetic_data
from tasks.arguments import Argument
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import transforms

CHARACTERS = (
    'dhlptx@DHLPTX $(,048cgkoswCGKOSW[_#\'/37;?bfjnrvzBFJNRVZ"&*.26:\n'
    'aeimquyAEIMQUY]!%)-159\r'
)
PADDING = 0
OUT_OF_VOCABULARY = len(CHARACTERS) + 1
BEGINNING = len(CHARACTERS) + 2
END = len(CHARACTERS) + 3
NUM_TOKENS = len(CHARACTERS) + 4
DEFAULT_SEQUENCE_LENGTH = 80
_FILE = 'tff/shakespeare.sqlite'


class Shakespeare(data.Data):
  """Sequences of characters, with the next characters as labels.

  There is a client for each role in a play: 715 roles with 16,068 training and
  2,356 test examples. A published example has the feature 'snippets', the bytes
  of one speech of the role.

  References:
    Caldas et al., LEAF: A Benchmark for Federated Settings,
    https://arxiv.org/abs/1812.01097; `tff.simulation.datasets.shakespeare`.
  """

  arguments = (
      Argument(
          'sequence_length',
          DEFAULT_SEQUENCE_LENGTH,
          'The number of characters in a sequence.',
          minimum=1,
      ),
  )
  # A snippet may become several sequences; all of them take 24 MB.
  keeps_sizes = False
  in_memory = True
  cache_bytes = 0

  def check_files(self, data_dir):
    data_files.find_data_file(data_dir, _FILE, 'shakespeare')

  def load(self, args, data_dir, seed):
    del args, seed  # Unused.
    # Imported here because it imports TensorFlow.
    from tff_adaptive.data import sqlite  # pylint: disable=import-outside-toplevel

    path = data_files.find_data_file(data_dir, _FILE, 'shakespeare')
    train, test = (
        sqlite.load_sqlite_clients(path, split, self.published_spec())
        for split in ('train', 'test')
    )
    return data.Splits(train, transforms.concatenate(test), test)

  def published_spec(self):
    return data.spec(snippets=('string', []))

  def element_spec(self, args):
    tokens = ('int32', [args.sequence_length])
    return data.spec(x=tokens, y=tokens)

  def num_classes(self, args):
    return NUM_TOKENS

  def build_prepare(self, args, train, data_dir):
    return lambda examples: to_sequences(examples, args.sequence_length)

  @property
  def synthetic_files(self):
    return {_FILE: synthetic_data.write_shakespeare}


def to_sequences(
    examples: Mapping[str, np.ndarray],
    sequence_length: int = DEFAULT_SEQUENCE_LENGTH,
) -> feature_arrays.Examples:
  """Cuts snippets into sequences of tokens and of the next tokens.

  A snippet becomes a start token, its characters, an end token, and padding up
  to a multiple of `sequence_length + 1`; it is cut into rows of that length.
  'x' is a row without its last token and 'y' a row without its first.

  Args:
    examples: Examples with the feature 'snippets', bytes of shape [n].
    sequence_length: The length of the sequences, a positive integer. Defaults
      to 80.

  Returns:
    'x' and 'y', int32 of shape [m, sequence_length], m >= n; an empty snippet
    gives a row, too. They share memory.

  Example:

    >>> snippets = np.array([b'Hark!'], np.object_)
    >>> to_sequences({'snippets': snippets}, sequence_length=7)['y']
    array([[ 9, 64, 46, 23, 79, 89,  0]], dtype=int32)

  References:
    McMahan et al., Communication-Efficient Learning of Deep Networks from
    Decentralized Data, AISTATS 2017, https://arxiv.org/abs/1602.05629, for the
    length; `tff.simulation.baselines.shakespeare`, for the rows. TFF computes
    them again in every round, after shuffling the snippets.
  """
  snippets = examples['snippets']
  row_length = sequence_length + 1
  num_rows = np.array(
      [-(-(len(snippet) + 2) // row_length) for snippet in snippets], np.int64
  )
  tokens = np.full(num_rows.sum() * row_length, PADDING, np.int32)
  ends = np.cumsum(num_rows) * row_length
  for snippet, start in zip(snippets, ends - num_rows * row_length):
    end = start + 1 + len(snippet)
    tokens[start] = BEGINNING
    tokens[start + 1 : end] = _TOKENS[np.frombuffer(snippet, np.uint8)]
    tokens[end] = END
  rows = tokens.reshape(-1, row_length)
  return collections.OrderedDict(x=rows[:, :-1], y=rows[:, 1:])


def _token_table() -> np.ndarray:
  """Returns the tokens of all bytes."""
  table = np.full(256, OUT_OF_VOCABULARY, np.int32)
  for token, character in enumerate(CHARACTERS, start=PADDING + 1):
    table[ord(character)] = token
  return table


_TOKENS = _token_table()
