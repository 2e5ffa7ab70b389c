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
"""Who is as good as the best: paired differences against a margin.

No TensorFlow is imported here.
"""

from collections.abc import Mapping
import dataclasses
import enum
import math
import statistics
from typing import Optional

from experiments import paired_differences
from experiments.reports import seed_statistics

# The scores of a method's runs, by seed; -infinity of one that diverged.
Scores = Mapping[int, float]


class Verdict(enum.Enum):
  """What the interval of the difference to the best says.

  With m the margin: the whole interval is above -m, below -m, or neither.
  """

  BEST = 'best'
  AS_GOOD = 'as good'
  OPEN = 'open'
  WORSE = 'worse'


@dataclasses.dataclass(frozen=True)
class Standing:
  """Where a method stands on a task.

  Attributes:
    method: The name of the method.
    mean: The mean score over the seeds; -infinity if a run diverged.
    std: The standard deviation; None of one seed, or if a run diverged.
    difference: To the best, paired by seed, with its t interval.
    verdict: What that says.
  """

  method: str
  mean: float
  std: Optional[float]
  difference: paired_differences.Interval
  verdict: Verdict


def rank(scores: Mapping[str, Scores], margin: float) -> list[Standing]:
  """Returns the standings, the best mean first.

  Args:
    scores: The scores of every method, of the same seeds.
    margin: The loss that counts for nothing, in the unit of the scores.

  Returns:
    The standings; methods of the same mean stay in their order.
  """
  means = {
      method: statistics.fmean(by_seed.values())
      for method, by_seed in scores.items()
  }
  order = sorted(scores, key=lambda method: -means[method])
  return [
      _stand(method, order[0], scores, means[method], margin)
      for method in order
  ]


def _stand(
    method: str,
    best: str,
    scores: Mapping[str, Scores],
    mean: float,
    margin: float,
) -> Standing:
  difference = compare(scores[method], scores[best])
  verdict = Verdict.BEST if method == best else judge(difference, margin)
  std = seed_statistics.std(list(scores[method].values()))
  return Standing(method, mean, std, difference, verdict)


def compare(scores: Scores, others: Scores) -> paired_differences.Interval:
  """Returns the difference of two methods, paired by seed."""
  return paired_differences.t_interval(
      paired_differences.subtract(scores, others)
  )


def judge(difference: paired_differences.Interval, margin: float) -> Verdict:
  """Returns what a difference to the best says.

  Args:
    difference: The difference.
    margin: The loss that counts for nothing.

  Returns:
    `AS_GOOD` if the method loses no more than the margin anywhere in the
    interval, `WORSE` if it loses more everywhere in it or diverged, else
    `OPEN`: a tie for want of seeds, and no proof of equality.
  """
  if difference.low >= -margin and math.isfinite(difference.low):
    return Verdict.AS_GOOD
  return Verdict.WORSE if difference.high < -margin else Verdict.OPEN
