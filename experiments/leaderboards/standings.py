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
import statistics
from typing import Optional

from experiments import noninferiority
from experiments.run_results import seed_statistics

# The scores of a method's runs, by seed; -infinity of one that diverged.
Scores = Mapping[int, float]


class Verdict(enum.Enum):
  """What is said of a method: the best, or the answer of `noninferiority`."""

  BEST = 'best'
  AS_GOOD = noninferiority.Answer.AS_GOOD.value
  OPEN = noninferiority.Answer.OPEN.value
  WORSE = noninferiority.Answer.WORSE.value


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
  difference: seed_statistics.Interval
  verdict: Verdict


def rank(scores: Mapping[str, Scores], margin: float) -> list[Standing]:
  """Returns the standings, the best mean first.

  The best is found on the seeds on which it is compared, so that luck is part
  of its lead, and others look worse than they are.

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
  verdict = Verdict.BEST
  if method != best:
    verdict = Verdict(noninferiority.judge(difference, margin).value)
  std = seed_statistics.std(list(scores[method].values()))
  return Standing(method, mean, std, difference, verdict)


def compare(scores: Scores, others: Scores) -> seed_statistics.Interval:
  """Returns the difference of two methods, paired by seed."""
  return seed_statistics.t_interval(seed_statistics.subtract(scores, others))
