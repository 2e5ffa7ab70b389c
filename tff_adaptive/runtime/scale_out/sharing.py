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
"""How the chunks of a cohort are shared among workers."""

from collections.abc import Sequence


def share(loads: Sequence[float], speeds: Sequence[float]) -> list[list[int]]:
  """Gives every chunk to the worker that will have finished it first.

  The largest chunks are given away first, so that small ones fill the gaps.
  What a worker takes grows with its speed. Results do not depend on it: sums of
  chunks are merged in the order of the chunks.

  Args:
    loads: What each chunk costs, in any unit; not negative.
    speeds: How much of it each worker does in a second; positive.

  Returns:
    The numbers of the chunks of each worker, in ascending order; none for a
    worker that gets nothing.

  Raises:
    ValueError: If there is no worker.

  Example:

    >>> share([3.0, 1.0, 1.0, 1.0], [1.0, 1.0])
    [[0], [1, 2, 3]]

  References:
    Graham, Bounds on Multiprocessing Timing Anomalies, SIAM Journal on Applied
    Mathematics 17 (1969), section 4: the longest task first; here with speeds.
  """
  if not speeds:
    raise ValueError('`speeds` must name a worker or more, found none.')
  shares: list[list[int]] = [[] for _ in speeds]
  totals = [0.0] * len(speeds)
  for chunk in sorted(range(len(loads)), key=lambda i: -loads[i]):
    worker = min(
        range(len(speeds)), key=lambda w: (totals[w] + loads[chunk]) / speeds[w]
    )
    shares[worker].append(chunk)
    totals[worker] += loads[chunk]
  return [sorted(found) for found in shares]
