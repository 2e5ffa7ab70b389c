# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seeded random streams, one for each purpose.

The seed of an experiment has to fix its initial weights, cohorts, shuffles and
dropout masks, and two algorithms with the same seed have to see the same ones
(common random numbers). Every random draw of a simulation therefore uses its
own stream, a pure function of the seed, the use and the keys of that use (round
number, client id). No stream continues from one round to the next, so a resumed
run draws the same numbers as an uninterrupted one.
"""

from collections.abc import Iterable
import hashlib
import numbers
from typing import Any, Union

import numpy as np

from tff_adaptive.data import specs

# The uses of streams. They are part of the key: no two uses share numbers. Two
# functions may have one use: `sample_examples_evenly` and `held_out` have
# DATA_SPLIT, `sample_examples` and `sample_client_examples` EXAMPLE_SUBSET.
AUGMENTATION = 'augmentation'
CLIENT_DROP_OUT = 'client_drop_out'
CLIENT_SUBSET = 'client_subset'
DATA_SPLIT = 'data_split'
DROPOUT = 'dropout'
EXAMPLE_SUBSET = 'example_subset'
INITIAL_WEIGHTS = 'initial_weights'
PARTITION = 'partition'
SAMPLING = 'sampling'
SERVER_NOISE = 'server_noise'
SHUFFLING = 'shuffling'
STRAGGLING = 'straggling'

# A part of the key of a stream.
Key = Union[int, str]

_DIGEST_BYTES = 32  # The state and the increment of PCG64.


def check_seed(seed: int) -> int:
  """Returns `seed` as an int if it is a valid seed.

  Args:
    seed: A non-negative Python or NumPy integer of any size.

  Returns:
    The seed as a Python integer.

  Raises:
    TypeError: If `seed` is not an integer.
    ValueError: If `seed` is negative.

  Example:

    >>> check_seed(np.int64(3))
    3
  """
  specs.check_not_negative('seed', seed)
  return int(seed)


def stream(seed: int, use: str, *keys: Key) -> np.random.Generator:
  """Returns the random stream of one use, at its start.

  The stream is a PCG64 generator whose state is a BLAKE2b hash of the
  arguments, hence equal in every process and on every machine. The results of
  methods such as `Generator.permutation` may change with NumPy's releases; this
  project's lock file pins NumPy.

  Args:
    seed: The seed of the experiment, a non-negative integer.
    use: The purpose of the numbers; one of the constants of this module, or a
      custom string.
    *keys: Integers and strings that distinguish the streams of one use, such as
      round number and client id. The integer 1 and the string '1' are different
      keys, and so are `('a', 'b')` and `('ab',)`.

  Returns:
    A new `np.random.Generator`; equal arguments give equal numbers.

  Raises:
    TypeError: If `seed` is not an integer, or a key neither integer nor string.
    ValueError: If `seed` is negative.

  Example:

    >>> first = stream(1, SHUFFLING, 3, 'client_007')
    >>> second = stream(1, SHUFFLING, 3, 'client_007')
    >>> bool(first.integers(1000) == second.integers(1000))
    True
  """
  generator = np.random.Generator(np.random.PCG64(0))
  _restart(generator, _hash(seed, use, keys).digest())
  return generator


class StreamFamily:
  """Streams of one use that differ only in their last key.

  It gives the same numbers as `stream`, several times faster, but one stream at
  a time.

  Example:

    >>> family = StreamFamily(1, SHUFFLING, 3)
    >>> number = family.start('client_007').integers(1000)
    >>> bool(number == stream(1, SHUFFLING, 3, 'client_007').integers(1000))
    True
  """

  def __init__(self, seed: int, use: str, *keys: Key):
    """Initializes the family.

    Args:
      seed: See `stream`.
      use: See `stream`.
      *keys: All keys of a stream except the last.

    Raises:
      TypeError: If `seed` is not an integer, or a key neither integer nor
        string.
      ValueError: If `seed` is negative.
    """
    self._hash = _hash(seed, use, keys)
    self._generator = np.random.Generator(np.random.PCG64(0))

  def start(self, key: Key) -> np.random.Generator:
    """Returns the stream of a key at its start; ends the previous stream.

    Args:
      key: The last key.

    Returns:
      A `np.random.Generator`, the same object for every call.

    Raises:
      TypeError: If the key is neither an integer nor a string.
    """
    _restart(self._generator, self._digest(key))
    return self._generator

  def stateless_seeds(self, keys: Iterable[Key]) -> np.ndarray:
    """Returns the `stateless_seed` of each key.

    Args:
      keys: The last keys.

    Returns:
      An int32 array of shape [num_keys, 2].

    Raises:
      TypeError: If a key is neither an integer nor a string.
    """
    seeds = b''.join(self._digest(key)[:8] for key in keys)
    return np.frombuffer(seeds, '<i4').astype(np.int32).reshape([-1, 2])

  def _digest(self, key: Key) -> bytes:
    digest = self._hash.copy()
    digest.update(_encode(key))
    return digest.digest()


def derived_seed(seed: int, use: str, *keys: Key) -> int:
  """Returns a 31-bit seed for a library that draws its own numbers.

  The arguments are those of `stream`.

  Returns:
    An integer in [0, 2**31), which Keras initializers, stateless TensorFlow ops
    and scikit-learn all accept; equal arguments give equal seeds.

  Raises:
    TypeError: If `seed` is not an integer, or a key neither integer nor string.
    ValueError: If `seed` is negative.

  Example:

    >>> kernel_seed = derived_seed(1, INITIAL_WEIGHTS, 'dense', 0)
    >>> 0 <= kernel_seed < 2**31
    True
  """
  return int.from_bytes(_hash(seed, use, keys).digest()[:4], 'little') % 2**31


def stateless_seed(seed: int, use: str, *keys: Key) -> np.ndarray:
  """Returns a seed for TensorFlow's stateless random ops.

  The arguments are those of `stream`.

  Returns:
    An int32 array of shape [2]; equal arguments give equal seeds.

  Raises:
    TypeError: If `seed` is not an integer, or a key neither integer nor string.
    ValueError: If `seed` is negative.

  Example:

    >>> mask_seed = stateless_seed(1, DROPOUT, 3, 'client_007')
    >>> mask_seed.shape, mask_seed.dtype.name
    ((2,), 'int32')
  """
  return np.frombuffer(_hash(seed, use, keys).digest()[:8], '<i4').astype(
      np.int32
  )


def _encode(part: Key) -> bytes:
  """Encodes a part of a stream's key, with its type and size."""
  if isinstance(part, str):
    tag, text = b's', part.encode('utf-8')
  elif isinstance(part, numbers.Integral) and not isinstance(part, bool):
    tag, text = b'i', str(int(part)).encode('ascii')
  else:
    raise TypeError(
        'The keys of a random stream must be integers or strings, found '
        f'{part!r}.'
    )
  return tag + len(text).to_bytes(8, 'little') + text


def _hash(seed: int, use: str, keys: tuple[Key, ...]) -> Any:
  """Hashes the arguments of a stream."""
  digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
  for part in (check_seed(seed), use) + keys:
    digest.update(_encode(part))
  return digest


def _restart(generator: np.random.Generator, digest: bytes) -> None:
  """Sets the state of a PCG64 generator to a digest."""
  half = _DIGEST_BYTES // 2
  generator.bit_generator.state = {
      'bit_generator': 'PCG64',
      'state': {
          'state': int.from_bytes(digest[:half], 'little'),
          # The increment of a congruential generator has to be odd.
          'inc': int.from_bytes(digest[half:], 'little') | 1,
      },
      'has_uint32': 0,
      'uinteger': 0,
  }
