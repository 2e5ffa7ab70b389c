# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chooses the examples to hold out, all copies of an example alike."""

from collections.abc import Mapping
import hashlib
import math

import numpy as np

from tff_adaptive.data import random_streams
from tff_adaptive.data import specs

# Rows are converted in blocks of this many words, to bound memory.
_BLOCK_WORDS = 1 << 20


def row_digests(examples: Mapping[str, np.ndarray]) -> np.ndarray:
  """Returns a number for each example that depends on its features alone.

  ```
  digest(row) = sum_name sum_j a[name, j] * word_j(row[name])   mod 2^64
  ```

  The words are the 32-bit words of a feature, and the a[name, j] fixed 64-bit
  random numbers. Equal examples have equal digests, in every process and on
  every machine; 0.0 and -0.0 are equal, and so are strings as `str` and in
  UTF-8. Different examples have equal digests with a probability of at most
  2^-33 a pair.

  Args:
    examples: Feature names and arrays of shape [num_examples, ...].

  Returns:
    uint64 of shape [num_examples].

  Example:

    >>> first, second, third = row_digests({'x': np.array([0.5, 1.5, 0.5])})
    >>> bool(first == third), bool(first == second)
    (True, False)
  """
  num_rows = len(next(iter(examples.values())))
  digests = np.zeros([num_rows], np.uint64)
  for name, array in examples.items():
    if array.dtype.kind in 'OSU':
      array = _string_digests(array)
    row_bytes = math.prod(array.shape[1:]) * array.dtype.itemsize
    num_words = -(-row_bytes // 4)
    generator = random_streams.stream(0, random_streams.DATA_SPLIT, 'row', name)
    factors = generator.integers(0, 2**64, num_words, np.uint64)
    step = max(1, _BLOCK_WORDS // max(1, num_words))
    for start in range(0, num_rows, step):
      words = _to_words(array[start : start + step], num_words)
      digests[start : start + step] += words @ factors
  return digests


def choose_examples(
    digests: Mapping[str, np.ndarray], fraction: float, seed: int
) -> dict[str, np.ndarray]:
  """Chooses a part of each client's examples, and all copies of these.

  That fraction of the rows that occur more than once is sampled for all
  clients. Each client then chooses as many of its other rows as it lacks, so
  that clients without copies have exactly their part.

  Args:
    digests: The `row_digests` of each client's examples.
    fraction: The fraction of a client's examples, in (0, 1); their number is
      rounded down.
    seed: The seed of the choice, which also depends on the client id.

  Returns:
    Whether each example is chosen, bool of shape [num_examples], by client.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the seed is negative.

  Example:

    >>> digests = {'a': np.array([5, 6, 7, 8]), 'b': np.array([5, 6])}
    >>> chosen = choose_examples(digests, 0.5, seed=0)
    >>> int(chosen['a'].sum()), int(chosen['b'].sum())
    (2, 1)
  """
  rows, places, counts = np.unique(
      np.concatenate(list(digests.values())),
      return_inverse=True,
      return_counts=True,
  )
  repeated = random_streams.stream(
      seed, random_streams.DATA_SPLIT, 'examples', 'repeated'
  ).permutation(np.flatnonzero(counts > 1))
  is_chosen_row = np.zeros(len(rows), bool)
  is_chosen_row[repeated[: round(len(repeated) * fraction)]] = True
  ends = np.cumsum([len(part) for part in digests.values()])
  chosen = {}
  for name, part in zip(digests, np.split(places, ends[:-1])):
    order = random_streams.stream(
        seed, random_streams.DATA_SPLIT, name
    ).permutation(len(part))
    single = order[counts[part[order]] == 1]
    chosen[name] = is_chosen_row[part]
    missing = int(len(part) * fraction) - int(chosen[name].sum())
    chosen[name][single[: max(missing, 0)]] = True
  return chosen


def _to_words(block: np.ndarray, num_words: int) -> np.ndarray:
  """Returns the bytes of rows as uint64 in [0, 2^32), [num_rows, num_words]."""
  if specs.kind(block.dtype) in 'fc':
    block = block + block.dtype.type(0)  # Of the two zeros, one has a sign.
  flat = np.ascontiguousarray(block).reshape([-1])
  row_bytes = flat.nbytes // max(1, len(block))
  padded = np.zeros([len(block), 4 * num_words], np.uint8)
  padded[:, :row_bytes] = flat.view(np.uint8).reshape([len(block), row_bytes])
  return padded.view('<u4').astype(np.uint64)


def _string_digests(array: np.ndarray) -> np.ndarray:
  """Returns a number for each string of an array."""
  digests = np.empty(array.size, np.uint64)
  for place, item in enumerate(array.flat):
    text = item.encode() if isinstance(item, str) else item
    digest = hashlib.blake2b(text, digest_size=8).digest()
    digests[place] = int.from_bytes(digest, 'little')
  return digests.reshape(array.shape)
