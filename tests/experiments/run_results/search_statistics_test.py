# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the score of a method over the number of its trials."""

import itertools
import math
import statistics

from absl.testing import parameterized

from experiments.run_results import search_statistics

_NAN = math.nan


def _by_brute_force(trials, count):
  """Averages the chosen trial's score over all subsets with the first."""
  found = []
  for draws in itertools.combinations(trials[1:], count - 1):
    subset = [trials[0], *draws]
    selection, tests = zip(*subset)
    found.append(max(tests[search_statistics.choose(selection)], 0.0))
  return statistics.fmean(found)


class SearchTest(parameterized.TestCase):

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
      ('first_best', ((0.1, 80.0), (0.3, 90.0), (0.4, 20.0))),
      ('first_worst', ((0.9, 80.0), (0.3, 90.0), (0.4, 20.0), (0.5, 60.0))),
      ('diverged', ((_NAN, -math.inf), (0.1, 90.0), (_NAN, 10.0))),
      ('one', ((0.3, 80.0),)),
  )
  def test_expectation_is_that_of_all_subsets_with_the_first(self, pairs):
    expected = [
        _by_brute_force(pairs, count) for count in range(1, len(pairs) + 1)
    ]
    found = search_statistics.expected_scores(*zip(*pairs))
    self.assertLen(found, len(expected))
    for value, wanted in zip(found, expected):
      self.assertAlmostEqual(value, wanted)

  def test_expectation_by_hand(self):
    # With the defaults alone 50; of the two pairs one has the best trial; of
    # all three it is chosen.
    found = search_statistics.expected_scores(
        [0.2, 0.1, 0.3], [50.0, 90.0, 100.0]
    )
    self.assertEqual(found, [50.0, 70.0, 90.0])

  def test_diverged_runs_come_last(self):
    self.assertEqual(search_statistics.choose([_NAN, 5.0]), 1)
    self.assertEqual(search_statistics.choose([_NAN, _NAN]), 0)

  def test_area_by_hand(self):
    # Half of the axis from 1 to 4 lies between 1 and 2; the rest is flat.
    self.assertAlmostEqual(
        search_statistics.area([50.0, 90.0, 90.0, 90.0]), 80.0
    )
    self.assertEqual(search_statistics.area([50.0]), 50.0)
