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
"""What a method is worth after fewer trials than it had.

No TensorFlow is imported here.
"""

from collections.abc import Sequence
import math
from typing import NamedTuple


class TrialScore(NamedTuple):
  """What a tuning trial came to.

  Attributes:
    selection: What chooses, the smaller the better; not a number of a trial
      that diverged, which comes last.
    test: What it is worth; -infinity of a trial that diverged.
  """

  selection: float
  test: float


def choose(trials: Sequence[TrialScore]) -> int:
  """Returns the place of the trial that is chosen: the first of the best."""
  return _order(trials)[0]


def _order(trials: Sequence[TrialScore]) -> list[int]:
  """Returns the places of the trials, that of the best first."""

  def key(place: int) -> float:
    selection = trials[place].selection
    return selection if math.isfinite(selection) else math.inf

  return sorted(range(len(trials)), key=key)


def expected_scores(trials: Sequence[TrialScore]) -> list[float]:
  """Returns the expected test score after 1, 2, ... trials.

  After n trials stands the test score of the one that is chosen among them. The
  expectation is over all subsets of n of the trials that there are, so it is
  exact for draws without replacement:

  ```
  E[n] = sum_i t_(i) C(N - i, n - 1) / C(N, n)
  ```

  where t_(i) is the test score of the trial that is i-th by what chooses, i = 1
  ... N: it is chosen if the n - 1 others come after it.

  Args:
    trials: The trials. One that diverged is worth 0, as its model knows
      nothing.

  Returns:
    The expectations; the last one is that of the chosen trial.

  Example:

    >>> expected_scores([TrialScore(0.1, 90.0), TrialScore(0.2, 80.0)])
    [85.0, 90.0]

  References:
    Dodge, Gururangan, Card, Schwartz, Smith, Show Your Work: Improved Reporting
    of Experimental Results, EMNLP 2019, https://arxiv.org/abs/1909.03004, whose
    estimate draws with replacement, and takes the best by the score it shows.
  """
  total = len(trials)
  tests = [max(trials[place].test, 0.0) for place in _order(trials)]
  return [
      math.fsum(
          test * math.comb(total - i, count - 1)
          for i, test in enumerate(tests, start=1)
      )
      / math.comb(total, count)
      for count in range(1, total + 1)
  ]
