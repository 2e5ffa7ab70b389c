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
"""Reading the clients of the next round while a round goes on."""

from collections.abc import Callable
from concurrent import futures
import time
from typing import Any, Optional

from tff_adaptive.data import cohort as cohort_lib


class CohortPrefetcher:
  """Makes cohorts in a thread of its own, one round ahead.

  While a round works on its cohort, the clients of the next one are sampled,
  read, shuffled and augmented. At most two cohorts are in memory. What a cohort
  holds does not depend on when it is made, so the rounds are the same.

  Attributes:
    seconds_waited: How long `get` has waited in all.

  Example:

    >>> with CohortPrefetcher(cohort_fn, total_rounds=2) as prefetcher:
    ...   for round_index in range(2):
    ...     state = process.next(state, prefetcher.get(round_index)).state
  """

  def __init__(self, cohort_fn: Callable[[int], Any], total_rounds: int):
    """Initializes the prefetcher; nothing is read yet.

    Args:
      cohort_fn: From the number of finished rounds to the client data of the
        next one. It must be a pure function, and is called in another thread.
      total_rounds: How many rounds there are; nothing is read beyond them.
    """
    self._cohort_fn = cohort_fn
    self._total_rounds = total_rounds
    self._executor = futures.ThreadPoolExecutor(
        max_workers=1, thread_name_prefix='cohort_prefetcher'
    )
    self._next: Optional[tuple[int, futures.Future]] = None
    self.seconds_waited = 0.0

  def __enter__(self) -> 'CohortPrefetcher':
    return self

  def __exit__(self, *unused_error) -> None:
    self.close()

  def close(self) -> None:
    """Ends the thread; what it is reading is given up when it is read."""
    self._executor.shutdown(wait=True, cancel_futures=True)

  def get(self, round_index: int) -> Any:
    """Returns the cohort of a round, and begins with the one after it.

    Args:
      round_index: The number of finished rounds.

    Returns:
      What `cohort_fn` returns; a `Cohort` has been read.

    Raises:
      Exception: What `cohort_fn` has raised for this round.
    """
    start = time.perf_counter()
    if self._next is None or self._next[0] != round_index:
      self._begin(round_index)
    assert self._next is not None
    cohort = self._next[1].result()
    self._next = None
    if round_index + 1 < self._total_rounds:
      self._begin(round_index + 1)
    self.seconds_waited += time.perf_counter() - start
    return cohort

  def _begin(self, round_index: int) -> None:
    self._next = (
        round_index,
        self._executor.submit(self._read, round_index),
    )

  def _read(self, round_index: int) -> Any:
    cohort = self._cohort_fn(round_index)
    return cohort.fetch() if isinstance(cohort, cohort_lib.Cohort) else cohort
