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
"""Whether a method is as good as another one: an interval and a margin.

One definition for all pages. A margin is fixed before any run, and the paired t
interval of the difference says one of three things about it. No TensorFlow is
imported here.
"""

import enum

from experiments.run_results import seed_statistics


class Answer(str, enum.Enum):
  """What the interval of a difference says of the first of two methods.

  Attributes:
    AS_GOOD: The whole interval is at or above minus the margin.
    WORSE: All of it is below.
    OPEN: Neither; the seeds decide nothing, and nothing is proven equal.
  """

  AS_GOOD = 'as good'
  OPEN = 'open'
  WORSE = 'worse'


def judge(difference: seed_statistics.Interval, margin: float) -> Answer:
  """Returns what a difference says.

  Args:
    difference: Of the scores of two methods, the larger the better, paired by
      seed. One seed has no interval, and leaves the answer open; a run that
      diverged is no chance, and decides.
    margin: The loss that counts for nothing, in the unit of the scores; 0 or
      more.

  Returns:
    The answer.

  Example:

    >>> judge(seed_statistics.Interval(mean=-0.2, low=-0.4, high=0.0), 0.5)
    <Answer.AS_GOOD: 'as good'>

  References:
    Piaggio, Elbourne, Pocock, Evans, Altman, Reporting of Noninferiority and
    Equivalence Randomized Trials: Extension of the CONSORT 2010 Statement, JAMA
    2012, https://doi.org/10.1001/jama.2012.87802.
  """
  if difference.low >= -margin:
    return Answer.AS_GOOD
  return Answer.WORSE if difference.high < -margin else Answer.OPEN
