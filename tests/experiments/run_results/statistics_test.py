# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the statistics of seeds and of searches."""

import itertools
import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pandas as pd

from experiments.run_results import statistics

_NAN = math.nan
_INF = math.inf


class MeanAndSpreadTest(absltest.TestCase):

  def test_numbers_by_hand(self):
    runs = pd.DataFrame(
        [['a', 0, 1.0], ['b', 0, 2.0], ['a', 1, 4.0], ['c', 0, 1.0]]
        + [['a', 2, 4.0], ['c', 1, _NAN]],
        columns=['method', 'seed', 'number'],
    )
    found = statistics.over_seeds(runs, ['method'], 'number')
    self.assertEqual(list(found.index), ['a', 'b', 'c'])
    self.assertEqual(list(found['mean'][:2]), [3.0, 2.0])
    # sqrt(((-2)^2 + 1^2 + 1^2) / 2)
    self.assertAlmostEqual(found['std']['a'], 3**0.5)
    self.assertEqual(list(found.seeds), [(0, 1, 2), (0,), (0, 1)])
    # One seed has no spread, and a run that diverged leaves no number.
    self.assertTrue(found['std'][1:].isna().all())
    self.assertTrue(math.isnan(found['mean']['c']))

  def test_nothing_has_no_rows(self):
    runs = pd.DataFrame(columns=['method', 'task', 'seed', 'number'])
    found = statistics.over_seeds(runs, ['method', 'task'], 'number')
    self.assertEmpty(found)
    self.assertEqual(found.index.names, ['method', 'task'])


class PairedDifferencesTest(absltest.TestCase):

  def test_differences_are_those_of_common_seeds(self):
    self.assertEqual(
        statistics.subtract({2: 5.0, 0: 1.0, 7: 9.0}, {0: 3.0, 2: 1.0}),
        [-2.0, 4.0],
    )

  def test_divergence_is_no_chance(self):
    differences = statistics.subtract(
        {0: -math.inf, 1: -math.inf}, {0: -math.inf, 1: 3.0}
    )
    self.assertEqual(differences, [0.0, -math.inf])
    interval = statistics.t_interval(differences)
    self.assertEqual(interval, (-math.inf, -math.inf, -math.inf))

  def test_two_divergences_in_different_seeds_say_nothing(self):
    differences = statistics.subtract(
        {0: -math.inf, 1: 0.9}, {0: 0.8, 1: -math.inf}
    )
    mean, low, high = statistics.t_interval(differences)
    self.assertTrue(math.isnan(mean))
    self.assertEqual((low, high), (-math.inf, math.inf))

  def test_interval_by_hand(self):
    # Mean 2, standard deviation 1, error 1 / sqrt(3); a table of t has 4.3027
    # for 0.975 and two degrees of freedom: 4.3027 / 1.7321 = 2.4841.
    interval = statistics.t_interval([1.0, 2.0, 3.0])
    self.assertEqual(interval.mean, 2.0)
    self.assertAlmostEqual(interval.low, -0.4841, places=4)
    self.assertAlmostEqual(interval.high, 4.4841, places=4)

  def test_one_seed_has_no_interval(self):
    interval = statistics.t_interval([1.5])
    self.assertEqual(interval, (1.5, -math.inf, math.inf))


_Answer = statistics.Answer


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
    difference = statistics.Interval(*interval)
    self.assertIs(statistics.judge(difference, 0.5), answer)

  @parameterized.parameters((0.0, _Answer.AS_GOOD), (-0.1, _Answer.WORSE))
  def test_without_a_margin_equal_is_as_good(self, mean, answer):
    difference = statistics.Interval(mean, mean, mean)
    self.assertIs(statistics.judge(difference, 0.0), answer)


def _rank(scores, margin):
  """Returns the standings for scores by seed, by method."""
  runs = [
      [method, seed, score]
      for method, by_seed in scores.items()
      for seed, score in by_seed.items()
  ]
  runs = pd.DataFrame(runs, columns=['method', 'seed', 'score'])
  return statistics.rank(runs, margin)


class StandingsTest(absltest.TestCase):

  def test_ranks_by_mean_and_pairs_by_seed(self):
    # The seeds differ by 20 points, and the methods by 0.1 in each.
    found = _rank(
        {
            'a': {0: 70.0, 1: 80.0, 2: 90.0},
            'b': {0: 70.1, 1: 80.1, 2: 90.1},
            'c': {0: 60.0, 1: 70.1, 2: 79.9},
            'd': {0: 70.0, 1: -_INF, 2: 90.0},
        },
        margin=0.5,
    )
    self.assertEqual(list(found.index), ['b', 'a', 'c', 'd'])
    self.assertEqual(
        list(found.verdict),
        [_Answer.BEST, _Answer.AS_GOOD, _Answer.WORSE, _Answer.DIVERGED],
    )
    self.assertAlmostEqual(found['mean']['a'], 80.0)
    self.assertAlmostEqual(found['std']['a'], 10.0)
    self.assertAlmostEqual(found.difference['a'].low, -0.1)
    # Differences -10.1, -10.0, -10.2: error 0.1 / sqrt(3), t 4.3027.
    self.assertAlmostEqual(found.difference['c'].high, -9.8516, places=4)
    self.assertTrue(math.isnan(found['std']['d']))
    self.assertEqual(set(found.difference['d']), {-_INF})

  def test_of_methods_that_diverged_none_is_the_best(self):
    found = _rank(
        {
            'a': {0: -_INF, 1: -_INF, 2: -_INF},
            'b': {0: -_INF, 1: 70.0, 2: 70.0},
            'c': {0: 80.0, 1: 80.0, 2: -_INF},
        },
        margin=0.5,
    )
    self.assertEqual(list(found.index), ['c', 'b', 'a'])
    self.assertEqual(list(found.num_diverged), [1, 1, 3])
    self.assertEqual(set(found.verdict), {_Answer.DIVERGED})
    self.assertEqual(set(found['mean']), {-_INF})
    for difference in found.difference:
      self.assertEqual(set(difference), {-_INF})

  def test_one_seed_decides_nothing(self):
    found = _rank({'a': {0: 70.0}, 'b': {0: 90.0}}, margin=0.5)
    self.assertEqual(list(found['mean']), [90.0, 70.0])
    self.assertEqual(list(found.verdict), [_Answer.BEST, _Answer.OPEN])


class ProfileTest(absltest.TestCase):

  def test_shares_by_hand(self):
    costs = pd.DataFrame(
        {'x': [10.0, 20.0, _INF], 'y': [30.0, 10.0, _INF], 'z': [_INF] * 3},
        index=['a', 'b', 'c'],
    )
    # On z nobody reaches the target; all three tasks count.
    found = statistics.profile(costs)
    self.assertEqual(list(found.index), [1.0, 2.0, 3.0])
    self.assertEqual(list(found.a), [1 / 3, 1 / 3, 2 / 3])
    self.assertEqual(list(found.b), [1 / 3, 2 / 3, 2 / 3])
    self.assertEqual(list(found.c), [0.0, 0.0, 0.0])


def _by_brute_force(trials, count):
  """Averages the chosen trial's score over all subsets with the first."""
  found = []
  for draws in itertools.combinations(trials[1:], count - 1):
    subset = [trials[0], *draws]
    selection, tests = zip(*subset)
    found.append(max(tests[statistics.choose(selection)], 0.0))
  return np.mean(found)


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
    found = statistics.expected_scores(*zip(*pairs))
    self.assertLen(found, len(expected))
    for value, wanted in zip(found, expected):
      self.assertAlmostEqual(value, wanted)

  def test_expectation_by_hand(self):
    # With the defaults alone 50; of the two pairs one has the best trial; of
    # all three it is chosen.
    found = statistics.expected_scores([0.2, 0.1, 0.3], [50.0, 90.0, 100.0])
    self.assertEqual(found, [50.0, 70.0, 90.0])

  def test_diverged_runs_come_last(self):
    self.assertEqual(statistics.choose([_NAN, 5.0]), 1)
    self.assertEqual(statistics.choose([_NAN, _NAN]), 0)

  def test_area_by_hand(self):
    # Half of the axis from 1 to 4 lies between 1 and 2; the rest is flat.
    self.assertAlmostEqual(statistics.area([50.0, 90.0, 90.0, 90.0]), 80.0)
    self.assertEqual(statistics.area([50.0]), 50.0)
