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

from experiments.run_results import seed_statistics

# The scores of a method's runs, by seed; -infinity of one that diverged.
Scores = Mapping[int, float]

# To the best, of a method that diverged in a run: that is no chance.
_LOST = seed_statistics.Interval(-math.inf, -math.inf, -math.inf)


class Verdict(enum.Enum):
  """What is said of a method.

  The best, diverged in a run, or the answer of `noninferiority`.
  """

  BEST = 'best'
  DIVERGED = 'diverged'
  AS_GOOD = seed_statistics.Answer.AS_GOOD.value
  OPEN = seed_statistics.Answer.OPEN.value
  WORSE = seed_statistics.Answer.WORSE.value


@dataclasses.dataclass(frozen=True)
class Standing:
  """Where a method stands on a task.

  Attributes:
    method: The name of the method.
    mean: The mean score over the seeds; -infinity if a run diverged.
    std: The standard deviation; None of one seed, or if a run diverged.
    difference: To the best, paired by seed, with its t interval; -infinity if
      a run diverged.
    verdict: What that says.
    num_diverged: How many runs diverged.
  """

  method: str
  mean: float
  std: Optional[float]
  difference: seed_statistics.Interval
  verdict: Verdict
  num_diverged: int = 0


def rank(scores: Mapping[str, Scores], margin: float) -> list[Standing]:
  """Returns the standings, the best first.

  That is the best mean of the methods of which no run diverged. The others come
  after them: those with fewer such runs first, then by the mean of the rest. If
  there are no others, none is the best.

  The best is found on the seeds on which it is compared, so that luck is part
  of its lead, and others look worse than they are.

  Args:
    scores: The scores of every method, of the same seeds.
    margin: The loss that counts for nothing, in the unit of the scores.

  Returns:
    The standings; methods that are equal stay in their order.
  """
  order = sorted(scores, key=lambda method: _rank_key(scores[method]))
  return [_stand(method, order[0], scores, margin) for method in order]


def _rank_key(scores: Scores) -> tuple[int, float]:
  finite = list(filter(math.isfinite, scores.values()))
  return len(scores) - len(finite), -statistics.fmean(finite or [-math.inf])


def _stand(
    method: str, best: str, scores: Mapping[str, Scores], margin: float
) -> Standing:
  found = list(scores[method].values())
  mean, std = statistics.fmean(found), seed_statistics.std(found)
  num_diverged = sum(map(math.isinf, found))
  if num_diverged:
    return Standing(method, mean, std, _LOST, Verdict.DIVERGED, num_diverged)
  difference = compare(scores[method], scores[best])
  verdict = Verdict.BEST
  if method != best:
    verdict = Verdict(seed_statistics.judge(difference, margin).value)
  return Standing(method, mean, std, difference, verdict)


def compare(scores: Scores, others: Scores) -> seed_statistics.Interval:
  """Returns the difference of two methods, paired by seed."""
  return seed_statistics.t_interval(seed_statistics.subtract(scores, others))
