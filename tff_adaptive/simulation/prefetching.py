# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prepares cohorts while rounds run."""

from collections.abc import Callable
from concurrent import futures
import time
from typing import Any

from tff_adaptive.data import cohort as cohort_lib


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
