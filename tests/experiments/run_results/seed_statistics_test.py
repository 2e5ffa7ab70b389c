# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the statistics of seeds."""

import math

from absl.testing import absltest
from absl.testing import parameterized

from experiments.run_results import seed_statistics


class MeanAndSpreadTest(absltest.TestCase):

  def test_numbers_by_hand(self):
    self.assertEqual(seed_statistics.mean([1.0, 4.0, 4.0]), 3.0)
    # sqrt(((-2)^2 + 1^2 + 1^2) / 2)
    self.assertAlmostEqual(seed_statistics.std([1.0, 4.0, 4.0]), 3**0.5)

  def test_nothing_has_no_mean_and_one_seed_no_spread(self):
    self.assertIsNone(seed_statistics.mean([]))
    self.assertEqual(seed_statistics.mean([2.0]), 2.0)
    self.assertIsNone(seed_statistics.std([2.0]))

  def test_a_run_that_diverged_leaves_no_number(self):
    self.assertTrue(math.isnan(seed_statistics.mean([1.0, math.nan])))
    self.assertIsNone(seed_statistics.std([1.0, math.nan]))


class PairedDifferencesTest(absltest.TestCase):

  def test_differences_are_those_of_common_seeds(self):
    self.assertEqual(
        seed_statistics.subtract({2: 5.0, 0: 1.0, 7: 9.0}, {0: 3.0, 2: 1.0}),
        [-2.0, 4.0],
    )

  def test_divergence_is_no_chance(self):
    differences = seed_statistics.subtract(
        {0: -math.inf, 1: -math.inf}, {0: -math.inf, 1: 3.0}
    )
    self.assertEqual(differences, [0.0, -math.inf])
    interval = seed_statistics.t_interval(differences)
    self.assertEqual(interval, (-math.inf, -math.inf, -math.inf))

  def test_two_divergences_in_different_seeds_say_nothing(self):
    differences = seed_statistics.subtract(
        {0: -math.inf, 1: 0.9}, {0: 0.8, 1: -math.inf}
    )
    mean, low, high = seed_statistics.t_interval(differences)
    self.assertTrue(math.isnan(mean))
    self.assertEqual((low, high), (-math.inf, math.inf))

  def test_interval_by_hand(self):
    # Mean 2, standard deviation 1, error 1 / sqrt(3); a table of t has 4.3027
    # for 0.975 and two degrees of freedom: 4.3027 / 1.7321 = 2.4841.
    interval = seed_statistics.t_interval([1.0, 2.0, 3.0])
    self.assertEqual(interval.mean, 2.0)
    self.assertAlmostEqual(interval.low, -0.4841, places=4)
    self.assertAlmostEqual(interval.high, 4.4841, places=4)

  def test_one_seed_has_no_interval(self):
    interval = seed_statistics.t_interval([1.5])
    self.assertEqual(interval, (1.5, -math.inf, math.inf))


_Answer = seed_statistics.Answer
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
    self.assertIs(seed_statistics.judge(difference, 0.5), answer)

  @parameterized.parameters((0.0, _Answer.AS_GOOD), (-0.1, _Answer.WORSE))
  def test_without_a_margin_equal_is_as_good(self, mean, answer):
    difference = seed_statistics.Interval(mean, mean, mean)
    self.assertIs(seed_statistics.judge(difference, 0.0), answer)
