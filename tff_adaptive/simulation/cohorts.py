# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions from a round to its cohort: pooled, faulty, or prepared ahead."""

from collections.abc import Callable, Mapping
from concurrent import futures
import math
import time
from typing import Any

import attrs
import numpy as np

from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import random_streams
from tff_adaptive.data import specs
from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation import task as task_lib

# Maps the number of finished rounds to the next round's clients.
CohortFn = Callable[[int], cohort_lib.Cohort]

POOL_ID = 'pool'
_SHUFFLE_BUFFER = 10_000


@attrs.frozen(eq=False)
class _Pool:
  """The pooled examples and their training order.

  Centralized training iterates over the pool in epochs, each with its own
  order, without gaps in between; a round is a segment of that endless sequence,
  which depends only on the seed and the round number. In an epoch, clients come
  in random order, each with its examples in stored order; of that sequence,
  each block of `shuffle_buffer` examples is permuted.

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
) -> CohortFn:
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


def _checked(cohort: Any, user: str) -> cohort_lib.Cohort:
  """Returns the clients of a round if they are a `Cohort`, or raises."""
  if isinstance(cohort, cohort_lib.Cohort):
    return cohort
  raise TypeError(
      f'`{user}` needs a `cohort_fn` that returns `Cohort`s, found '
      f'{type(cohort).__name__}.'
  )


def _sample_faulty(
    cohort: cohort_lib.Cohort, use: str, probability: float
) -> set[str]:
  """Samples the faulty clients of a cohort independently."""
  streams = random_streams.StreamFamily(cohort.seed, use, cohort.round_num)
  return {
      client_id
      for client_id in cohort.client_ids
      if streams.start(client_id).random() < probability
  }


def _drop_out(
    cohort: cohort_lib.Cohort, dropped: set[str]
) -> cohort_lib.Cohort:
  """Returns the cohort without some of its clients."""
  ids = cohort.client_ids
  return attrs.evolve(
      cohort,
      packed=None,
      client_ids=[name for name in ids if name not in dropped],
      dropped_out=[
          *cohort.dropped_out,
          *(name for name in ids if name in dropped),
      ],
  )


def _slow_down(
    cohort: cohort_lib.Cohort, stragglers: set[str]
) -> cohort_lib.Cohort:
  """Returns the cohort with step limits for stragglers."""
  streams = random_streams.StreamFamily(
      cohort.seed, random_streams.STRAGGLING, cohort.round_num, 'num_steps'
  )
  limits, dropped = {}, set()
  for index, client_id in enumerate(cohort.client_ids):
    if client_id not in stragglers:
      continue
    num_steps = cohort.num_steps(index)
    if num_steps > 1:
      limits[client_id] = int(streams.start(client_id).integers(1, num_steps))
    elif num_steps == 1:
      dropped.add(client_id)
  limits = {**cohort.step_limits, **limits}
  cohort = attrs.evolve(cohort, packed=None, step_limits=limits)
  return _drop_out(cohort, dropped)


def inject_faults(
    cohort_fn: CohortFn,
    *,
    drop_clients: float = 0.0,
    straggler_fraction: float = 0.0,
) -> CohortFn:
  """Makes clients of each round drop out, or finish only a part of their steps.

  A client that drops out does not participate: its data are not read, it sends
  nothing, and it counts only in the metric `clients/num_dropped_out`. If all
  clients of a round drop out, its cohort is empty: the state of the process
  does not change, except for counts of rounds, means over clients are NaN, and
  the metrics in `train/` are those of no example, such as an accuracy of 0.

  A straggler trains only on the first of its k batches; their number is sampled
  uniformly from 1 to k - 1. A straggler with a single batch drops out. The work
  of stragglers counts: if clients are weighted by examples, with the number of
  examples trained on, and otherwise like that of any other client.

  A client's faults depend only on the seed of the cohort, the round and the
  client id, and do not change other random draws: sampling, shuffling,
  augmentation and dropout. The faulty clients at a smaller probability are a
  subset of those at a larger one.

  Args:
    cohort_fn: Maps the number of finished rounds to the next round's clients, a
      `Cohort`.
    drop_clients: The probability that a sampled client drops out, in [0, 1].
      Defaults to 0.
    straggler_fraction: The probability that a participating client is a
      straggler, in [0, 1]. Defaults to 0.

  Returns:
    A function like `cohort_fn`, pure if `cohort_fn` is. It raises a `TypeError`
    if the clients are not a `Cohort`.

  Raises:
    ValueError: If a probability is not in [0, 1].

  Example:

    >>> result = run_training(
    ...     process,
    ...     cohort_fn=inject_faults(cohort_fn, drop_clients=0.1),
    ...     total_rounds=3,
    ...     callbacks=[FaultCounts()],
    ... )

  References:
    Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020,
    https://arxiv.org/abs/1812.06127, section 5.2, simulates stragglers by "x
    epochs (chosen uniformly at random between [1, E])". Deviations: steps are
    sampled instead, so that runs of one epoch have stragglers, too; a straggler
    never finishes all; and each client is a straggler independently, where the
    paper has a fixed share of each cohort. As in FedProx, partial work counts;
    that paper's FedAvg drops stragglers, which corresponds to `drop_clients`.
  """
  for name, probability in (
      ('drop_clients', drop_clients),
      ('straggler_fraction', straggler_fraction),
  ):
    if not 0.0 <= probability <= 1.0:
      raise ValueError(f'`{name}` must be in [0, 1], found {probability}.')

  def faulty_cohort_fn(round_index: int) -> cohort_lib.Cohort:
    cohort = cohort_fn(round_index)
    for use, probability, harm in (
        (random_streams.CLIENT_DROP_OUT, drop_clients, _drop_out),
        (random_streams.STRAGGLING, straggler_fraction, _slow_down),
    ):
      if probability:
        cohort = _checked(cohort, 'inject_faults')
        cohort = harm(cohort, _sample_faulty(cohort, use, probability))
    return cohort

  return faulty_cohort_fn


class FaultCounts(callbacks.Callback):
  """Counts the clients of each round that dropped out, and its stragglers.

  The counts are in each round's row as `clients/num_dropped_out` and
  `clients/num_stragglers`. `clients/num_clients` counts the participants,
  including stragglers. Cohorts must be `tff_adaptive.data.Cohort`s; lists raise
  a `TypeError`.
  """

  def measure(self, round_end: callbacks.RoundEnd) -> Mapping[str, Any]:
    """Returns both counts; see the base class."""
    cohort = _checked(round_end.cohort, 'FaultCounts')
    stragglers = [name in cohort.step_limits for name in cohort.client_ids]
    return {
        'clients/num_dropped_out': len(cohort.dropped_out),
        'clients/num_stragglers': sum(stragglers),
    }


class CohortPrefetcher:
  """Prepares cohorts in another thread, one round ahead.

  While a round runs, the clients of the next one are sampled, read, shuffled
  and augmented. At most two cohorts are in memory. Prefetching does not affect
  the results.

  Attributes:
    seconds_waited: The total time that `get` has waited.

  Example:
    >>> with CohortPrefetcher(cohort_fn, total_rounds=2) as prefetcher:
    ...   for round_index in range(2):
    ...     state = process.next(state, prefetcher.get(round_index)).state
  """

  def __init__(self, cohort_fn: Callable[[int], Any], total_rounds: int):
    """Initializes the prefetcher; nothing is read yet.

    Args:
      cohort_fn: Maps the number of finished rounds to the client data of the
        next one. It must be a pure function, and is called in another thread,
        where it must not run TFF computations: contexts are per thread.
      total_rounds: The number of rounds; nothing is read beyond them.
    """
    self._cohort_fn = cohort_fn
    self._total_rounds = total_rounds
    self._executor = futures.ThreadPoolExecutor(
        max_workers=1, thread_name_prefix='cohort_prefetcher'
    )
    self._begun: dict[int, futures.Future] = {}
    self.seconds_waited = 0.0

  def __enter__(self) -> 'CohortPrefetcher':
    return self

  def __exit__(self, *unused_error) -> None:
    """Ends the thread; discards the cohort that is being read."""
    self._executor.shutdown(wait=True, cancel_futures=True)

  def get(self, round_index: int) -> Any:
    """Returns the cohort of a round, and starts to prepare the next one.

    Args:
      round_index: The number of finished rounds.

    Returns:
      The result of `cohort_fn`; a `Cohort` is in memory.

    Raises:
      Exception: Any error of `cohort_fn` in this round.
    """
    start = time.perf_counter()
    begun = self._begun.pop(round_index, None) or self._begin(round_index)
    cohort = begun.result()
    self._begun.clear()
    if round_index + 1 < self._total_rounds:
      self._begun[round_index + 1] = self._begin(round_index + 1)
    self.seconds_waited += time.perf_counter() - start
    return cohort

  def _begin(self, round_index: int) -> futures.Future:
    return self._executor.submit(self._read, round_index)

  def _read(self, round_index: int) -> Any:
    cohort = self._cohort_fn(round_index)
    return cohort.fetch() if isinstance(cohort, cohort_lib.Cohort) else cohort
