# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Statistics of runs: over seeds, between methods, over tasks, of searches.

Of a method that diverged in a run the score of the run is minus infinity.
"""

from collections.abc import Iterable, Mapping, Sequence
import enum
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.run_results import run_folder

_CONFIDENCE = 0.95
# What every run costs.
COSTS = ('rounds_done', 'seconds_per_round', *run_folder.TOTALS)


def build_frame(
    runs: Iterable[tuple[Mapping[str, Any], run_folder.Run]],
    labels: Sequence[str] = (),
) -> pd.DataFrame:
  """Returns runs as a frame.

  Args:
    runs: The runs, each with its labels, such as method, task and seed, and
      with numbers of the caller's.
    labels: The names of the labels, which a frame of no runs has, too.

  Returns:
    A row for each run, in order: its labels, `run`, the run itself, and the
    columns of `COSTS`.

  Example:

    >>> build_frame([], labels=['method', 'seed']).columns[:3].tolist()
    ['method', 'seed', 'run']
  """
  rows = [
      {
          **found,
          'run': run,
          'rounds_done': run.rounds_done,
          'seconds_per_round': run.seconds_per_round,
          **{name: run.total(of) for name, of in run_folder.TOTALS.items()},
      }
      for found, run in runs
  ]
  return pd.DataFrame(rows, columns=None if rows else [*labels, 'run', *COSTS])


def read_series(runs: Iterable[run_folder.Run], column: str) -> pd.DataFrame:
  """Returns a column of metrics.csv for the rounds that all runs have.

  Args:
    runs: The runs.
    column: The column.

  Returns:
    A row for each round, a column for each run; empty if nothing was measured.
  """
  found = [run.series(column) for run in runs]
  series = [pd.Series(values, rounds, float) for rounds, values in found]
  if not series:
    return pd.DataFrame()
  return pd.concat(series, axis=1, join='inner').sort_index()


def over_seeds(
    frame: pd.DataFrame, by: Sequence[str], column: str
) -> pd.DataFrame:
  """Returns mean and spread of a column over the seeds.

  Args:
    frame: The runs, with a column `seed`; numbers of diverged runs are NaN or
      infinite.
    by: The labels; runs with equal ones are taken together.
    column: The column.

  Returns:
    By these labels, in order, `mean`, not finite if a run diverged; `std`, see
    `std`; and `seeds`, a tuple.
  """
  return frame.groupby(list(by), sort=False).agg(
      mean=(column, lambda values: values.mean(skipna=False)),
      std=(column, std),
      seeds=('seed', tuple),
  )


def std(values: Iterable[float]) -> float:
  """Returns the sample standard deviation, with n - 1.

  Args:
    values: One number per seed.

  Returns:
    The deviation; NaN for fewer than two numbers, or if a run diverged.
  """
  found = np.asarray(values, float)
  if len(found) < 2 or not np.isfinite(found).all():
    return math.nan
  return float(found.std(ddof=1))


class Interval(NamedTuple):
  """A mean and its confidence interval.

  Attributes:
    mean: The mean.
    low: The lower end; -infinity for a single value.
    high: The upper end; infinity for a single value.
  """

  mean: float
  low: float
  high: float


def subtract(
    scores: Mapping[int, float], others: Mapping[int, float]
) -> list[float]:
  """Returns the differences over the common seeds of two methods.

  Args:
    scores: The scores of one method by seed; -infinity for a diverged run.
    others: The scores of the other method.

  Returns:
    The differences, by ascending seed; 0 where both diverged.
  """
  seeds = sorted(set(scores) & set(others))
  return [
      0.0 if scores[seed] == others[seed] else scores[seed] - others[seed]
      for seed in seeds
  ]


def t_interval(differences: Sequence[float]) -> Interval:
  """Returns the mean of differences and its 95 % t interval.

  Args:
    differences: The result of `subtract`, with at least one difference.

  Returns:
    The interval. A diverged run decides: all three numbers are infinite. If
    both methods diverged, on different seeds, the mean is NaN and the interval
    is unbounded.

  Example:

    >>> t_interval([1.0, 2.0, 3.0])
    Interval(mean=2.0, low=-0.484..., high=4.484...)
  """
  from scipy import stats  # pylint: disable=import-outside-toplevel

  diverged = {found for found in differences if math.isinf(found)}
  if len(diverged) > 1:
    # Each method diverged where the other did not: nothing is known.
    return Interval(math.nan, -math.inf, math.inf)
  if diverged:
    (mean,) = diverged
    return Interval(mean, mean, mean)
  mean, half = float(np.mean(differences)), math.inf
  if len(differences) > 1:
    error = std(differences) / math.sqrt(len(differences))
    quantile = stats.t.ppf((1 + _CONFIDENCE) / 2, df=len(differences) - 1)
    half = float(error * quantile)
  return Interval(mean, mean - half, mean + half)


def compare(
    scores: Mapping[int, float], others: Mapping[int, float]
) -> Interval:
  """Returns the lead of `scores` over `others`, paired by seed."""
  return t_interval(subtract(scores, others))


class Answer(enum.StrEnum):
  """The outcome of comparing a method with another one, or with the best.

  Attributes:
    BEST: The method is the best of those compared.
    AS_GOOD: The whole interval of its difference is at or above minus the
      margin.
    OPEN: Neither; the seeds are inconclusive, which does not prove equality.
    WORSE: The whole interval is below minus the margin.
    DIVERGED: One of its runs diverged.
  """

  BEST = 'best'
  AS_GOOD = 'as good'
  OPEN = 'open'
  WORSE = 'worse'
  DIVERGED = 'diverged'


def judge(difference: Interval, margin: float) -> Answer:
  """Returns whether the first of two methods is as good as the second.

  Args:
    difference: The difference of their scores, paired by seed; larger is
      better. One seed has no interval and leaves the answer open, unless a run
      diverged.
    margin: The tolerated loss, in the unit of the scores; 0 or more.

  Returns:
    `AS_GOOD`, `OPEN` or `WORSE`.

  Example:

    >>> judge(Interval(mean=-0.2, low=-0.4, high=0.0), 0.5)
    <Answer.AS_GOOD: 'as good'>

  References:
    Piaggio, Elbourne, Pocock, Evans, Altman, Reporting of Noninferiority and
    Equivalence Randomized Trials: Extension of the CONSORT 2010 Statement, JAMA
    2012, https://doi.org/10.1001/jama.2012.87802.
  """
  if difference.low >= -margin:
    return Answer.AS_GOOD
  return Answer.WORSE if difference.high < -margin else Answer.OPEN


def rank(runs: pd.DataFrame, margin: float) -> pd.DataFrame:
  """Returns the standings of methods that ran with the same seeds.

  Methods without diverged runs are ranked by their means. Methods with diverged
  runs follow, ranked by the number of diverged runs and then by the mean of the
  others. If all methods diverged, none is the best.

  The best is chosen on the same seeds on which it is compared, so that its lead
  includes luck, and the others look worse than they are.

  Args:
    runs: The runs, with the columns `method`, `seed` and `score`.
    margin: The tolerated loss, in the unit of the scores.

  Returns:
    By method, the best first, `mean`, `std` and `seeds`, see `over_seeds`;
    `num_diverged`; `difference`, the `Interval` of the difference to the best,
    paired by seed, minus infinity if a run diverged; and `verdict`, an
    `Answer`. Ties keep their order.
  """
  found = over_seeds(runs, ['method'], 'score')
  found.index = found.index.get_level_values('method')
  by_method = runs.groupby('method', sort=False).score
  found['num_diverged'] = by_method.agg(lambda s: int(np.isinf(s).sum()))
  found['of_others'] = by_method.agg(
      lambda s: s[np.isfinite(s)].mean() if np.isfinite(s).any() else -np.inf
  )
  found = found.sort_values(
      ['num_diverged', 'of_others'], ascending=[True, False], kind='stable'
  ).drop(columns='of_others')
  scores = {
      method: dict(zip(of_one.seed, of_one.score))
      for method, of_one in runs.groupby('method', sort=False)
  }
  differences, verdicts = [], []
  for method, num_diverged in found.num_diverged.items():
    if num_diverged:
      # A diverged run decides, whatever the other seeds show.
      differences.append(Interval(-math.inf, -math.inf, -math.inf))
      verdicts.append(Answer.DIVERGED)
    else:
      differences.append(compare(scores[method], scores[found.index[0]]))
      is_best = method == found.index[0]
      verdicts.append(
          Answer.BEST if is_best else judge(differences[-1], margin)
      )
  return found.assign(difference=differences, verdict=verdicts)


def profile(costs: pd.DataFrame) -> pd.DataFrame:
  """Returns the performance profiles of methods over tasks.

  Args:
    costs: What a method, its row, takes to reach the target of a task, its
      column; infinite where it does not, or did not run.

  Returns:
    By factor, ascending from 1, the share of the tasks that each method, its
    column, solves within that factor of the cheapest method.

  References:
    Dolan, More, Benchmarking Optimization Software with Performance Profiles,
    Mathematical Programming 2002, https://arxiv.org/abs/cs/0102001.
  """
  # NaN on a task that no method solves, which still counts.
  ratios = costs / costs.min()
  factors = np.unique(ratios.to_numpy()[np.isfinite(ratios.to_numpy())])
  return pd.DataFrame(
      {
          method: [(row <= factor).mean() for factor in factors]
          for method, row in ratios.iterrows()
      },
      index=factors,
  )


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
