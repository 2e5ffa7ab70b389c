# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The score of a method over the number of its trials."""

from collections.abc import Sequence
import math
from typing import NamedTuple


class TrialScore(NamedTuple):
  """The scores of a tuning trial.

  Attributes:
    selection: The number that chooses, the smaller the better; NaN of a trial
      that diverged, which comes last.
    test: Its test score; -infinity if it diverged.
  """

  selection: float
  test: float


def choose(trials: Sequence[TrialScore]) -> int:
  """Returns the index of the trial that is chosen: the first of the best."""
  return _order(trials)[0]


def _order(trials: Sequence[TrialScore]) -> list[int]:
  """Returns the indices of the trials, that of the best first."""

  def key(place: int) -> float:
    selection = trials[place].selection
    return selection if math.isfinite(selection) else math.inf

  return sorted(range(len(trials)), key=key)


def expected_scores(trials: Sequence[TrialScore]) -> list[float]:
  """Returns the expected test score after 1, 2, ... trials.

  The first trial, the library's defaults, is always included, so one trial is
  no tuning; n - 1 of the others are sampled without replacement. The score
  after n trials is the test score of the selected one. The expectation is
  exact, over all subsets. Let t_(i) be the test score of the trial that the
  selection ranks i-th, i = 1 ... N, and d the rank of the first trial:

  ```
  E[n] = (sum_{i < d} t_(i) C(N - i - 1, n - 2) + t_(d) C(N - d, n - 1))
         / C(N - 1, n - 1)
  ```

  as trial i is selected if it is made and no better one is; those after the
  first trial never are.

  Args:
    trials: The trials. One that diverged is worth 0, as its model knows
      nothing.

  Returns:
    The expectations; the first one is the score of the first trial, the last
    one that of the chosen one.

  Example:

    >>> expected_scores([TrialScore(0.2, 80.0), TrialScore(0.1, 90.0)])
    [80.0, 90.0]

  References:
    Dodge, Gururangan, Card, Schwartz, Smith, Show Your Work: Improved Reporting
    of Experimental Results, EMNLP 2019, https://arxiv.org/abs/1909.03004, whose
    estimate draws all trials, with replacement, and takes the best by the score
    it shows.
  """
  total = len(trials)
  return [
      math.fsum(test * weight for test, weight in _searches(trials, count))
      / math.comb(total - 1, count - 1)
      for count in range(1, total + 1)
  ]


def _searches(
    trials: Sequence[TrialScore], count: int
) -> list[tuple[float, int]]:
  """Returns the test scores that searches of `count` trials select.

  Each has the number of searches that select it; see `expected_scores`.
  """
  total = len(trials)
  order = _order(trials)
  tests = [max(trials[place].test, 0.0) for place in order]
  first = order.index(0)
  found = [
      (tests[i], math.comb(total - i - 2, count - 2))
      for i in range(first if count > 1 else 0)
  ]
  return [*found, (tests[first], math.comb(total - first - 1, count - 1))]


def spread(trials: Sequence[TrialScore]) -> float:
  """Returns how much the selected trial's test score depends on the samples.

  Args:
    trials: The trials; see `expected_scores`.

  Returns:
    The standard deviation over all searches with the first trial and half of
    the others, rounded up.

  Example:

    >>> spread([TrialScore(0.2, 80.0), TrialScore(0.1, 90.0), TrialScore(1, 0)])
    5.0
  """
  found = _searches(trials, 1 + len(trials) // 2)
  total = sum(weight for _, weight in found)
  mean = math.fsum(test * weight for test, weight in found) / total
  squares = (weight * (test - mean) ** 2 for test, weight in found)
  return math.sqrt(math.fsum(squares) / total)


def area(scores: Sequence[float]) -> float:
  """Returns the area under the scores after 1, 2, ... N trials.

  It is the mean height of the line through them over a logarithmic axis, so
  that every doubling of the trials counts the same:

  ```
  area = sum_n (E[n] + E[n+1]) / 2 * log((n + 1) / n) / log(N)
  ```

  Args:
    scores: The scores, at least one; the area of one is the score.

  Example:

    >>> area([80.0, 90.0])
    85.0
  """
  if len(scores) == 1:
    return scores[0]
  pieces = (
      (before + after) / 2 * math.log((count + 1) / count)
      for count, (before, after) in enumerate(zip(scores, scores[1:]), start=1)
  )
  return math.fsum(pieces) / math.log(len(scores))
