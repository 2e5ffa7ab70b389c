# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The comparison of methods over seeds: means, intervals, non-inferiority."""

from collections.abc import Collection, Mapping, Sequence
import enum
import math
import statistics
from typing import NamedTuple, Optional

_CONFIDENCE = 0.95


def mean(values: Collection[float]) -> Optional[float]:
  """Returns the mean; None without values, NaN if a run diverged."""
  return math.fsum(values) / len(values) if values else None


def std(values: Collection[float]) -> Optional[float]:
  """Returns the standard deviation, divided by n - 1.

  Args:
    values: A number a seed.

  Returns:
    The deviation; None of less than two numbers, or if a run diverged.
  """
  if len(values) < 2 or not all(map(math.isfinite, values)):
    return None
  return statistics.stdev(values)


class Interval(NamedTuple):
  """A mean and its confidence interval.

  Attributes:
    mean: The mean.
    low: The lower end; -infinity of one value.
    high: The upper end; infinity of one value.
  """

  mean: float
  low: float
  high: float


def subtract(
    scores: Mapping[int, float], others: Mapping[int, float]
) -> list[float]:
  """Returns the differences in the seeds that both have.

  Args:
    scores: The scores of one method by seed; -infinity of a run that diverged.
    others: Those of the other one.

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
    differences: What `subtract` returned; at least one.

  Returns:
    The interval. A run that diverged is not chance: all three are infinite.
    Where each of the methods diverged in a seed of its own, the mean is NaN and
    the interval is everything.

  Example:

    >>> t_interval([1.0, 2.0, 3.0])
    Interval(mean=2.0, low=-0.484..., high=4.484...)
  """
  from scipy import stats  # pylint: disable=import-outside-toplevel

  diverged = {found for found in differences if math.isinf(found)}
  if len(diverged) > 1:
    # Each method diverged where the other one did not: nothing is known.
    return Interval(math.nan, -math.inf, math.inf)
  if diverged:
    (mean,) = diverged
    return Interval(mean, mean, mean)
  mean, half = statistics.fmean(differences), math.inf
  if len(differences) > 1:
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    quantile = stats.t.ppf((1 + _CONFIDENCE) / 2, df=len(differences) - 1)
    half = float(error * quantile)
  return Interval(mean, mean - half, mean + half)


class Answer(str, enum.Enum):
  """The answer of the seeds: a method against another, or against the best.

  Attributes:
    BEST: It is the best of those that are compared.
    AS_GOOD: The whole interval of its difference is at or above minus the
      margin.
    OPEN: Neither; the seeds decide nothing, and nothing is proven equal.
    WORSE: The whole interval is below minus the margin.
    DIVERGED: One of its runs did.
  """

  BEST = 'best'
  AS_GOOD = 'as good'
  OPEN = 'open'
  WORSE = 'worse'
  DIVERGED = 'diverged'


def judge(difference: Interval, margin: float) -> Answer:
  """Returns whether the first of two methods is as good as the second.

  Args:
    difference: The difference of their scores, the larger the better, paired by
      seed. One seed has no interval and leaves the answer open; a run that
      diverged decides.
    margin: The loss that counts for nothing, in the unit of the scores; 0 or
      more.

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
