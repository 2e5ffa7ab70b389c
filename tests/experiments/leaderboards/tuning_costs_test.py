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
"""Tests of what a method is worth after fewer trials."""

import itertools
import math
import statistics

from absl.testing import absltest
from absl.testing import parameterized

from experiments.leaderboards import tuning_costs

_NAN = math.nan


def _by_brute_force(trials, count):
  """The mean, over all subsets, of the test score of the one chosen."""
  found = []
  for subset in itertools.combinations(trials, count):
    chosen = subset[tuning_costs.choose(subset)]
    found.append(max(chosen.test, 0.0))
  return statistics.fmean(found)


def _trials(*pairs):
  return [tuning_costs.TrialScore(*pair) for pair in pairs]


class TuningCostsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      (
          'six',
          (
              (0.3, 80.0),
              (0.1, 90.0),
              (0.7, 20.0),
              (0.2, 95.0),
              (0.9, 10.0),
              (0.5, 60.0),
          ),
      ),
      ('ties', ((0.3, 80.0), (0.3, 90.0), (0.3, 20.0), (0.2, 95.0))),
      ('diverged', ((_NAN, -math.inf), (0.1, 90.0), (_NAN, 10.0))),
      ('one', ((0.3, 80.0),)),
  )  # pyformat: disable
  def test_expectation_is_that_of_all_subsets(self, pairs):
    trials = _trials(*pairs)
    expected = [
        _by_brute_force(trials, count) for count in range(1, len(trials) + 1)
    ]
    found = tuning_costs.expected_scores(trials)
    self.assertLen(found, len(expected))
    for value, wanted in zip(found, expected):
      self.assertAlmostEqual(value, wanted)

  def test_expectation_by_hand(self):
    # Of the pairs, two have the first trial and its 90; the third has 50.
    trials = _trials((0.1, 90.0), (0.2, 50.0), (0.3, 100.0))
    self.assertEqual(
        [round(v, 6) for v in tuning_costs.expected_scores(trials)],
        [80.0, round(230 / 3, 6), 90.0],
    )

  def test_choice_ignores_test_scores(self):
    for tests in itertools.permutations((10.0, 50.0, 90.0)):
      trials = _trials(*zip((0.3, 0.1, 0.2), tests))
      self.assertEqual(tuning_costs.choose(trials), 1)

  def test_what_diverged_comes_last(self):
    self.assertEqual(tuning_costs.choose(_trials((_NAN, 99.0), (5.0, 1.0))), 1)
    self.assertEqual(tuning_costs.choose(_trials((_NAN, 0.0), (_NAN, 1.0))), 0)


if __name__ == '__main__':
  absltest.main()
