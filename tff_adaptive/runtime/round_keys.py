# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""What the random numbers of a round depend on, and the seeds made of it."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import numpy as np

from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import random_streams


class RoundKey(NamedTuple):
  """What random numbers of a round depend on.

  Attributes:
    seed: The seed of the experiment.
    round_num: The number of the round.
    client_ids: The ids of the clients in their order; None for their places.
  """

  seed: int
  round_num: int
  client_ids: Optional[Sequence[str]]

  def server_seed(self) -> np.ndarray:
    """The seed of what happens at the server, int32 of shape [2]."""
    return random_streams.stateless_seed(
        self.seed, random_streams.SERVER_NOISE, self.round_num
    )

  def client_seeds(self, num_clients: int) -> np.ndarray:
    """The seeds of the first clients, int32 of shape [num_clients, 2]."""
    ids: Sequence[random_streams.Key] = self.client_ids or range(num_clients)
    seeds = [
        random_streams.stateless_seed(
            self.seed, random_streams.DROPOUT, self.round_num, client_id
        )
        for client_id in list(ids)[:num_clients]
    ]
    return np.asarray(seeds, np.int32).reshape([-1, 2])


class RoundKeys:
  """The keys of the rounds that a context runs.

  A `Cohort` brings its key. Without one it is what `begin_round` was told, or
  else the seed of the context and how many rounds it has run.
  """

  def __init__(self, seed: int):
    """Initializes the keys.

    Args:
      seed: The seed of the context.
    """
    self._seed = seed
    self._told: Optional[RoundKey] = None
    self._num_rounds = 0

  def begin_round(
      self, seed: int, round_num: int, client_ids: Optional[Sequence[str]]
  ) -> None:
    """Sets the key of the rounds from now on, see `CompiledContext`."""
    self._told = RoundKey(
        random_streams.check_seed(seed),
        random_streams.check_seed(round_num),
        None if client_ids is None else list(client_ids),
    )

  def current(self) -> RoundKey:
    """The key of a computation without clients."""
    return self._told or RoundKey(self._seed, self._num_rounds, None)

  def next_of(self, clients: Sequence[Any]) -> RoundKey:
    """The key of the round that begins.

    Args:
      clients: What a computation takes at the clients.

    Returns:
      The key.

    Raises:
      ValueError: If `begin_round` was told of more or fewer clients.
    """
    if isinstance(clients, cohort_lib.Cohort):
      return RoundKey(clients.seed, clients.round_num, clients.client_ids)
    key = self.current()
    if self._told is None:
      self._num_rounds += 1
    elif key.client_ids is not None and len(key.client_ids) != len(clients):
      raise ValueError(
          f'`begin_round` was told of {len(key.client_ids)} clients, found '
          f'{len(clients)}.'
      )
    return key
