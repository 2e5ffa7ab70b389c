# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cohorts from the pooled examples of all clients, for centralized training.

Centralized training iterates over the pool in epochs, each with its own order,
without gaps in between; a round is a segment of that endless sequence, which
depends only on the seed and the round number.
"""

from collections.abc import Callable
import math

import attrs
import numpy as np

from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import random_streams
from tff_adaptive.data import specs
from tff_adaptive.simulation import task as task_lib

POOL_ID = 'pool'

_SHUFFLE_BUFFER = 10_000


@attrs.frozen(eq=False)
class _Pool:
  """The pooled examples and their training order.

  In an epoch, clients come in random order, each with its examples in stored
  order; of that sequence, each block of `shuffle_buffer` examples is permuted.

  Attributes:
    source: The clients.
    sizes: The number of examples used of each client, the first ones; int64 of
      shape [num_clients].
    seed: The seed of the experiment.
    shuffle_buffer: The number of examples that are permuted together.
  """

  source: client_data.ClientArrays
  sizes: np.ndarray
  seed: int = attrs.field(converter=random_streams.check_seed)
  shuffle_buffer: int = attrs.field(validator=specs.positive_integer)

  @property
  def num_examples(self) -> int:
    return int(self.sizes.sum())

  def walk(self, start: int, stop: int) -> feature_arrays.Examples:
    """Returns the examples of a segment of the endless sequence."""
    size = self.num_examples
    edges = [start, *range((start // size + 1) * size, stop, size), stop]
    parts = [
        self._locate(begin // size, begin % size, begin % size + end - begin)
        for begin, end in zip(edges, edges[1:])
    ]
    clients, positions = map(np.concatenate, zip(*parts))
    return self._gather(clients, positions)

  def _locate(
      self, epoch: int, first: int, last: int
  ) -> tuple[np.ndarray, np.ndarray]:
    """Returns the clients and positions of the examples in a segment."""
    clients = self._stream(epoch).permutation(len(self.sizes))
    ends = np.cumsum(self.sizes[clients])
    places = self._shuffled(epoch, first, last)
    ranks = np.searchsorted(ends, places, side='right')
    found = clients[ranks]
    return found, places - (ends[ranks] - self.sizes[found])

  def _shuffled(self, epoch: int, first: int, last: int) -> np.ndarray:
    """Returns the permuted positions in a segment of an epoch."""
    size = self.shuffle_buffer
    begin = first // size * size
    blocks = [
        start
        + self._stream(epoch, start).permutation(
            min(size, self.num_examples - start)
        )
        for start in range(begin, last, size)
    ]
    return np.concatenate(blocks)[first - begin : last - begin]

  def _stream(self, *keys: int) -> np.random.Generator:
    return random_streams.stream(
        self.seed, random_streams.SHUFFLING, POOL_ID, *keys
    )

  def _gather(
      self, clients: np.ndarray, positions: np.ndarray
  ) -> feature_arrays.Examples:
    """Reads examples, each client once."""
    order = np.argsort(clients, kind='stable')
    found, starts = np.unique(clients[order], return_index=True)
    parts = [
        self.source.take(self.source.client_ids[client], taken)
        for client, taken in zip(found, np.split(positions[order], starts[1:]))
    ]
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return feature_arrays.as_examples(
        {
            name: np.concatenate([part[name] for part in parts])[places]
            for name in self.source.element_spec
        },
        'The pool',
    )


def _build_pool(task: task_lib.Task, seed: int, shuffle_buffer: int) -> _Pool:
  """Builds the pool of a task's clients."""
  clients = task.train_data
  sizes = np.array([clients.num_examples(name) for name in clients.client_ids])
  if task.protocol.max_examples is not None:
    sizes = np.minimum(sizes, task.protocol.max_examples)
  if not sizes.any():
    raise ValueError(
        f'The clients of task {task.name!r} have no training examples.'
    )
  pool = _Pool(clients, sizes, seed, shuffle_buffer)
  if isinstance(clients, client_data.PackedClientArrays):
    return attrs.evolve(pool, shuffle_buffer=pool.num_examples)
  return pool


def _steps_per_round(pool: _Pool, protocol: task_lib.Protocol) -> int:
  """Returns the mean number of batches in a federated round."""
  examples = protocol.clients_per_round * protocol.client_epochs
  batches = examples * pool.sizes.mean() / protocol.client_batch_size
  return max(1, math.floor(batches + 0.5))


def build_pooled_cohort_fn(
    task: task_lib.Task, seed: int, *, shuffle_buffer: int = _SHUFFLE_BUFFER
) -> Callable[[int], cohort_lib.Cohort]:
  """Builds the cohorts of centralized training on the pooled examples.

  These are the data of `tff_adaptive.algorithms.build_centralized`. The pool
  holds the examples that federated training uses: of every client the first
  `max_examples`. Each epoch has each of them once, in a new order. All batches
  have `client_batch_size` examples and may span epochs, as in
  `dataset.shuffle(...).repeat().batch(...)`.

  A round has as many examples as a federated round of the same task on average:
  `clients_per_round` times the mean number of examples of a client times
  `client_epochs`, rounded to whole batches, at least one. The next round
  continues where it ends.

  For clients in memory, every epoch is a permutation of all examples. For
  lazy clients, only those that the round needs are read: an epoch takes clients
  in random order, and permutes `shuffle_buffer` consecutive examples at a time.
  This needs the clients' numbers of examples; a client for which it is unknown
  is read once, here.

  Args:
    task: The task to train on; its augmentation applies.
    seed: The seed of the run.
    shuffle_buffer: The number of examples that are permuted together if clients
      are not in memory, a positive integer. Defaults to 10,000.

  Returns:
    A pure function from the number of finished rounds to a `Cohort` of one
    client, `'pool'`, with the examples of the round.

  Raises:
    TypeError: If `seed` or `shuffle_buffer` is not an integer.
    ValueError: If `seed` is negative, `shuffle_buffer` not positive, or there
      are no examples, or fewer than in a batch.

  Example:

    >>> cohort_fn = build_pooled_cohort_fn(digits, seed=0)
    >>> cohort_fn(3).num_steps(0)  # 10 clients, 2 epochs of 28.76, 10 a batch.
    58
  """
  pool = _build_pool(task, seed, shuffle_buffer)
  batch_size = task.protocol.client_batch_size
  if batch_size > pool.num_examples:
    raise ValueError(
        f'`client_batch_size` must be at most {pool.num_examples}, the total '
        f'number of training examples of task {task.name!r}, found '
        f'{batch_size}.'
    )
  plan = batching.BatchPlan(batch_size, shuffle=False)
  num_examples = _steps_per_round(pool, task.protocol) * plan.batch_size

  def cohort_fn(round_num: int) -> cohort_lib.Cohort:
    start = round_num * num_examples
    examples = pool.walk(start, start + num_examples)
    return cohort_lib.Cohort(
        client_data.PackedClientArrays(examples, [0, num_examples], [POOL_ID]),
        [POOL_ID],
        round_num,
        seed,
        plan,
        augmentation=task.augmentation,
    )

  return cohort_fn
