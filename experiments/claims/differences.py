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
"""What the difference of two methods says of a claim.

What counts is fixed here, before any run: a method is as good as another one if
`seed_statistics.judge` says so with the margin `MARGIN`. Differences are paired
by seed, since runs of one seed share weights, cohorts and batches.
"""

from collections.abc import Sequence
import dataclasses
import math
from typing import Any

from experiments.claims import claim
from experiments.run_results import seed_statistics

MARGIN = 0.5

# What a page is to say about the verdicts of this module.
RULE = (
    'Where a claim is about runs, a method is compared with every rival by the '
    '95 % t interval of the differences, paired by seed, over the seeds that '
    'it and all rivals have. It is as good if the whole interval is at or '
    f'above minus the margin, {MARGIN:g} points, and worse if all of it is '
    'below; it is ahead if the whole interval is above 0, and not ahead if '
    'none of it is. Everything else is **open**: the seeds decide nothing. '
    'One seed has no interval and so decides nothing, unless a run diverged; '
    'its numbers are given all the same. The rival that is shown is the one '
    'against which the method does worst. It is not chosen beforehand by its '
    'mean, which would take its luck on these seeds for skill: a claim holds '
    'if it is shown against every rival, and that needs no correction for '
    'their number. It fails if one rival speaks against it, and that is not '
    'corrected.'
)

Scores = dict[int, float]


@dataclasses.dataclass(frozen=True)
class Difference:
  """By how much one method is above another one.

  Attributes:
    interval: The mean over the seeds that both have, and its paired t interval.
    num_seeds: How many seeds there are.
  """

  interval: seed_statistics.Interval
  num_seeds: int

  def __str__(self) -> str:
    mean, low, high = self.interval
    if not math.isfinite(mean):
      return {math.inf: 'the other one', -math.inf: 'it'}.get(
          mean, 'each of them, in a seed of its own,'
      ) + ' diverged'
    if self.num_seeds == 1:
      return f'{mean:+.2f} (one seed, which decides nothing)'
    return (
        f'{mean:+.2f} [{low:+.2f}, {high:+.2f}] ({self.num_seeds} paired seeds)'
    )

  def to_numbers(self) -> dict[str, Any]:
    """Returns the numbers for a file; they may be infinite, or NaN."""
    mean, low, high = self.interval
    return {
        'difference': mean,
        'low': low,
        'high': high,
        'seeds': self.num_seeds,
    }


def compare(scores: Scores, others: Scores) -> Difference:
  """Compares two methods on the seeds that both have.

  Args:
    scores: The scores of one.
    others: Those of the other one.

  Returns:
    How far the first is ahead.

  Raises:
    ValueError: If they have no seed in common.
  """
  differences = seed_statistics.subtract(scores, others)
  if not differences:
    raise ValueError(
        f'no seed in common: there are {sorted(scores)} and {sorted(others)}'
    )
  return Difference(seed_statistics.t_interval(differences), len(differences))


def not_behind(difference: Difference) -> claim.Status:
  """Returns whether a method is as good as another one.

  Args:
    difference: To the other one.

  Returns:
    'holds', 'fails', or 'open' where the seeds decide nothing.
  """
  return {
      seed_statistics.Answer.AS_GOOD: claim.Status.HOLDS,
      seed_statistics.Answer.OPEN: claim.Status.OPEN,
      seed_statistics.Answer.WORSE: claim.Status.FAILS,
  }[seed_statistics.judge(difference.interval, MARGIN)]


def ahead(difference: Difference) -> claim.Status:
  """Returns whether a method is better than another one.

  That is the same question from the other side, without a margin: whether the
  other one is worse.

  Args:
    difference: To the other one.

  Returns:
    'holds', 'fails', or 'open' where the seeds decide nothing.
  """
  mean, low, high = difference.interval
  of_other = seed_statistics.Interval(-mean, -high, -low)
  return {
      seed_statistics.Answer.WORSE: claim.Status.HOLDS,
      seed_statistics.Answer.OPEN: claim.Status.OPEN,
      seed_statistics.Answer.AS_GOOD: claim.Status.FAILS,
  }[seed_statistics.judge(of_other, margin=0.0)]


# The worst first: what one comparison says, all of them together say.
FROM_WORST = (claim.Status.FAILS, claim.Status.OPEN, claim.Status.HOLDS)


def unite(statuses: Sequence[claim.Status]) -> claim.Status:
  """Returns what several comparisons say together: the worst of them."""
  return min(statuses, key=FROM_WORST.index)
