# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keys of random numbers: of each round, and of each call without clients."""

import collections
from collections.abc import Callable, Iterator, Sequence
import contextlib
import functools
from typing import Any, NamedTuple, Optional

import numpy as np

from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import random_streams

# Marks the streams of a round that runs again.
_REPEAT = 'repeat'
# Marks the streams of one step of a round that runs step by step.
_STEP = 'step'


# Returns a random stream: of an op of a dataset, given its place among the ops
# and the number of the epoch.
Draw = Callable[[int, int], np.random.Generator]


class Seeds(NamedTuple):
  """The seeds of a round; int32 arrays.

  Attributes:
    server: The seed of the server's computations, [2].
    clients: A seed for each client, [num_clients, 2].
  """

  server: np.ndarray
  clients: np.ndarray


class RoundKey(NamedTuple):
  """The key of a round's random numbers.

  Attributes:
    seed: The seed of the experiment.
    round_num: The round number.
    client_ids: The client ids in order; None to use their positions.
    repeat: How many times this key was used before; each time has its own
      numbers.
    step: Which step of the round it is for, from 1; 0 for a round that is one.
    reading: Which call without clients since the round began it is for, from 1,
      among those that read sequences; 0 for a round.
  """

  seed: int
  round_num: int
  client_ids: Optional[Sequence[random_streams.Key]] = None
  repeat: int = 0
  step: int = 0
  reading: int = 0

  @classmethod
  def of(cls, clients: Sequence[Any]) -> Optional['RoundKey']:
    """Returns the key that a `Cohort` brings; None of other clients."""
    cohort = getattr(clients, 'cohort', clients)
    if not isinstance(cohort, cohort_lib.Cohort):
      return None
    return cls(cohort.seed, cohort.round_num, cohort.client_ids)

  @property
  def _keys(self) -> tuple[random_streams.Key, ...]:
    """The keys of the round's streams."""
    repeat = (_REPEAT, self.repeat) if self.repeat else ()
    step = (_STEP, self.step) if self.step else ()
    return (self.round_num, *repeat, *step)

  def server_seed(self) -> np.ndarray:
    """Returns the seed of the server's computations, int32 of shape [2]."""
    return random_streams.stateless_seed(
        self.seed, random_streams.SERVER_NOISE, *self._keys
    )

  def seeds(self, num_clients: int) -> Seeds:
    """Returns the seeds of the server, and of so many clients."""
    return Seeds(self.server_seed(), self._client_seeds(num_clients))

  def of_part(self, start: int, end: int) -> 'RoundKey':
    """Returns the key for some of the clients, in order."""
    if self.client_ids is None:
      return self._replace(client_ids=range(start, end))
    return self._replace(client_ids=self.client_ids[start:end])

  def draw_of(self, num_clients: int, leaf: int) -> Callable[[int], Draw]:
    """Returns a function from a client's place to its dataset's streams.

    Args:
      num_clients: The number of clients.
      leaf: The place of the dataset in a client's value.
    """
    streams = functools.partial(
        random_streams.stream,
        self.seed,
        random_streams.SHUFFLING,
        *self._keys,
        'pipeline',
        leaf,
    )
    # The ids are looked up by what draws: most data draw nothing.
    return lambda client: lambda *keys: streams(
        self._ids(num_clients)[client], *keys
    )

  def draw_at_server(self, leaf: int) -> Draw:
    """Returns the streams of a dataset that is not at clients.

    Args:
      leaf: The place of the dataset in the argument.
    """
    return functools.partial(
        random_streams.stream,
        self.seed,
        random_streams.SHUFFLING,
        *self._keys,
        'server',
        self.reading,
        leaf,
    )

  def _ids(self, num_clients: int) -> Sequence[random_streams.Key]:
    """Returns what tells the clients' streams apart."""
    if self.client_ids is None:
      return range(num_clients)
    if num_clients and num_clients != len(self.client_ids):
      raise ValueError(
          f'`begin_round` was given {len(self.client_ids)} client ids, but the '
          f'argument has {num_clients} clients; call it again for other '
          'clients.'
      )
    return self.client_ids[:num_clients]

  def _client_seeds(self, num_clients: int) -> np.ndarray:
    """Returns the seeds of the clients, int32 of shape [num_clients, 2]."""
    streams = random_streams.StreamFamily(
        self.seed, random_streams.DROPOUT, *self._keys
    )
    return streams.stateless_seeds(self._ids(num_clients))


class RoundKeys:
  """Hands out the keys of a context.

  Two rounds without a `Cohort` never have the same key. The first call without
  clients after a round has the key of that round, but draws from other streams.
  A key counts as used when its block ends without an error, so that a call that
  fails changes nothing for later ones.
  """

  def __init__(self, seed: int):
    """Initializes the keys.

    Args:
      seed: The seed of rounds that bring no key, a non-negative integer.
    """
    self._seed = seed
    self._num_rounds = 0
    # The key that `begin` told, for the next round.
    self._told: Optional[RoundKey] = None
    # The latest round whose key was told or brought.
    self._latest: Optional[RoundKey] = None
    # By seed and round number: the calls without clients that drew numbers.
    self._num_calls: collections.Counter[tuple[int, int]] = (
        collections.Counter()
    )
    # Likewise, those that read sequences.
    self._num_readings: collections.Counter[tuple[int, int]] = (
        collections.Counter()
    )

  def begin(self, key: RoundKey) -> None:
    """Sets the key of the next round that does not bring one."""
    self._told = self._latest = key
    # Who names a round again wants its numbers again.
    for counter in (self._num_calls, self._num_readings):
      counter.pop((key.seed, key.round_num), None)

  @contextlib.contextmanager
  def of_round(self, clients: Sequence[Any]) -> Iterator[RoundKey]:
    """Yields the key of the round that begins.

    A `Cohort` brings its key. Without one it is the key of `begin` and the
    number of rounds since, or else the seed and the number of rounds.
    """
    brought = RoundKey.of(clients)
    yield brought or self._told or self._of_next()
    if brought is not None:
      self._latest = brought._replace(client_ids=None)
    elif self._told is not None:
      self._told = self._told._replace(repeat=self._told.repeat + 1)
      self._latest = self._told
    else:
      self._num_rounds += 1
      self._latest = None

  @contextlib.contextmanager
  def of_call(self, draws: bool, reads: bool = False) -> Iterator[RoundKey]:
    """Yields the key of a call without clients.

    It follows from the latest round and the number of such calls since, hence
    is the same in a run that was resumed.

    Args:
      draws: Whether the call may draw numbers.
      reads: Whether it reads sequences, which may be shuffled. Defaults to
        False.
    """
    latest = self._latest or self._of_next()
    place = (latest.seed, latest.round_num)
    yield RoundKey(
        *place,
        repeat=self._num_calls[place],
        reading=self._num_readings[place] + 1,
    )
    if draws:
      self._num_calls[place] += 1
    if reads:
      self._num_readings[place] += 1

  def _of_next(self) -> RoundKey:
    return RoundKey(self._seed, self._num_rounds)
