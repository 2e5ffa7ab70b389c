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
"""Tests for `noninferiority`."""

import math

from absl.testing import absltest
from absl.testing import parameterized

from experiments import noninferiority
from experiments.run_results import seed_statistics

_Answer = noninferiority.Answer
_INF = math.inf


class JudgeTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('inside', (-0.2, -0.4, 0.0), _Answer.AS_GOOD),
      ('on_the_margin', (-0.2, -0.5, 0.1), _Answer.AS_GOOD),
      ('better', (2.0, 1.0, 3.0), _Answer.AS_GOOD),
      ('across', (-0.2, -0.6, 0.2), _Answer.OPEN),
      ('behind_but_maybe_within', (-0.5, -0.9, -0.1), _Answer.OPEN),
      ('below', (-2.0, -3.0, -0.6), _Answer.WORSE),
      ('one_seed', (-9.0, -_INF, _INF), _Answer.OPEN),
      ('diverged', (-_INF, -_INF, -_INF), _Answer.WORSE),
      ('the_other_one_diverged', (_INF, _INF, _INF), _Answer.AS_GOOD),
      ('both_diverged_apart', (math.nan, -_INF, _INF), _Answer.OPEN),
  )
  def test_answers(self, interval, answer):
    difference = seed_statistics.Interval(*interval)
    self.assertIs(noninferiority.judge(difference, 0.5), answer)

  @parameterized.parameters((0.0, _Answer.AS_GOOD), (-0.1, _Answer.WORSE))
  def test_without_a_margin_equal_is_as_good(self, mean, answer):
    difference = seed_statistics.Interval(mean, mean, mean)
    self.assertIs(noninferiority.judge(difference, 0.0), answer)


if __name__ == '__main__':
  absltest.main()
