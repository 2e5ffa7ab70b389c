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
"""What a round on workers has taken."""

import collections
from collections.abc import Iterator
import contextlib
import time
from typing import Any, NamedTuple


class RoundCosts(NamedTuple):
  """What a round on workers has taken, from state to state.

  Attributes:
    seconds: The time of the round, on the driver's clock.
    server_seconds: The driver's part before and after the clients' work:
      prepare, report, update.
    merge_seconds: The driver's part in adding the sums of the chunks.
    work_seconds: The workers' part: the times of all chunks together.
    num_chunks: How many chunks the cohort was cut into.
    broadcast_bytes: What all clients get, sent once to each machine.
    chunk_bytes: What says of all chunks who their clients are, or what they
      hold.
    sum_bytes: The sums of all chunks, sent to the driver.
  """

  seconds: float
  server_seconds: float
  merge_seconds: float
  work_seconds: float
  num_chunks: int
  broadcast_bytes: int
  chunk_bytes: int
  sum_bytes: int


class Meter:
  """Adds up the costs of a round that is being run."""

  def __init__(self):
    """Begins with the round."""
    self._start = time.perf_counter()
    self._sums: dict[str, Any] = collections.defaultdict(int)

  @contextlib.contextmanager
  def timing(self, name: str) -> Iterator[None]:
    """Adds the time of a block to the costs of a name."""
    start = time.perf_counter()
    yield
    self._sums[name] += time.perf_counter() - start

  def add(self, **costs: Any) -> None:
    """Adds to costs."""
    for name, cost in costs.items():
      self._sums[name] += cost

  def finish(self) -> RoundCosts:
    """Returns the costs, when the round is over."""
    self._sums['seconds'] = time.perf_counter() - self._start
    parts = (self._sums[name] for name in RoundCosts._fields)
    return RoundCosts(*parts)
