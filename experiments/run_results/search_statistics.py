# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Statistics of a search: what its trials choose, and how luck matters."""

from collections.abc import Sequence
import math


def choose(selection: Sequence[float]) -> int:
  """Returns the index of the trial that a search chooses.

  Args:
    selection: What chooses, such as a loss, the smaller the better; NaN of a
      trial that diverged, which comes last.

  Returns:
    The first of the best.
  """
  return _order(selection)[0]


def _order(selection: Sequence[float]) -> list[int]:
  """Returns the indices of the trials, that of the best first."""
  keys = [s if math.isfinite(s) else math.inf for s in selection]
  return sorted(range(len(keys)), key=keys.__getitem__)


def expected_scores(
    selection: Sequence[float], tests: Sequence[float]
) -> list[float]:
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
    selection: What chooses among the trials; see `choose`.
    tests: Their test scores. One that diverged is worth 0, as its model knows
      nothing.

  Returns:
    The expectations; the first one is the score of the first trial, the last
    one that of the chosen one.

  Example:

    >>> expected_scores([0.2, 0.1], [80.0, 90.0])
    [80.0, 90.0]

  References:
    Dodge, Gururangan, Card, Schwartz, Smith, Show Your Work: Improved Reporting
    of Experimental Results, EMNLP 2019, https://arxiv.org/abs/1909.03004, whose
    estimate draws all trials, with replacement, and takes the best by the score
    it shows.
  """
  total = len(tests)
  return [
      math.fsum(test * weight for test, weight in found)
      / math.comb(total - 1, count - 1)
      for count in range(1, total + 1)
      for found in [_searches(selection, tests, count)]
  ]


def _searches(
    selection: Sequence[float], tests: Sequence[float], count: int
) -> list[tuple[float, int]]:
  """Returns the test scores that searches of `count` trials select.

  Each has the number of searches that select it; see `expected_scores`.
  """
  total = len(tests)
  order = _order(selection)
  ranked = [max(tests[place], 0.0) for place in order]
  first = order.index(0)
  found = [
      (ranked[i], math.comb(total - i - 2, count - 2))
      for i in range(first if count > 1 else 0)
  ]
  return [*found, (ranked[first], math.comb(total - first - 1, count - 1))]


def spread(selection: Sequence[float], tests: Sequence[float]) -> float:
  """Returns how much the selected trial's test score depends on the samples.

  Args:
    selection: What chooses among the trials; see `choose`.
    tests: Their test scores; see `expected_scores`.

  Returns:
    The standard deviation over all searches with the first trial and half of
    the others, rounded up.

  Example:

    >>> spread([0.2, 0.1, 1.0], [80.0, 90.0, 0.0])
    5.0
  """
  found = _searches(selection, tests, 1 + len(tests) // 2)
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
