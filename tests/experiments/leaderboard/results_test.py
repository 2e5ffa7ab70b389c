# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the runs of the leaderboard say."""

import itertools
import math
import pathlib
import statistics
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

from experiments.leaderboard import board
from experiments.leaderboard import results as results_lib
from experiments.run_results import seed_statistics
from tests.experiments.leaderboard import board_testing

_Verdict = seed_statistics.Answer
_INF = math.inf


class StandingsTest(absltest.TestCase):

  def test_ranks_by_mean_and_pairs_by_seed(self):
    # The seeds differ by 20 points, and the methods by 0.1 in each.
    found = results_lib.rank(
        {
            'a': {0: 70.0, 1: 80.0, 2: 90.0},
            'b': {0: 70.1, 1: 80.1, 2: 90.1},
            'c': {0: 60.0, 1: 70.1, 2: 79.9},
            'd': {0: 70.0, 1: -_INF, 2: 90.0},
        },
        margin=0.5,
    )
    self.assertEqual([s.method for s in found], ['b', 'a', 'c', 'd'])
    self.assertEqual(
        [s.verdict for s in found],
        [_Verdict.BEST, _Verdict.AS_GOOD, _Verdict.WORSE, _Verdict.DIVERGED],
    )
    self.assertAlmostEqual(found[1].mean, 80.0)
    self.assertAlmostEqual(found[1].std, 10.0)
    self.assertAlmostEqual(found[1].difference.low, -0.1)
    # Differences -10.1, -10.0, -10.2: error 0.1 / sqrt(3), t 4.3027.
    self.assertAlmostEqual(found[2].difference.high, -9.8516, places=4)
    self.assertIsNone(found[3].std)
    self.assertEqual(set(found[3].difference), {-_INF})

  def test_of_methods_that_diverged_none_is_the_best(self):
    found = results_lib.rank(
        {
            'a': {0: -_INF, 1: -_INF, 2: -_INF},
            'b': {0: -_INF, 1: 70.0, 2: 70.0},
            'c': {0: 80.0, 1: 80.0, 2: -_INF},
        },
        margin=0.5,
    )
    self.assertEqual([s.method for s in found], ['c', 'b', 'a'])
    self.assertEqual([s.num_diverged for s in found], [1, 1, 3])
    for standing in found:
      self.assertEqual(standing.verdict, _Verdict.DIVERGED)
      self.assertEqual(standing.mean, -_INF)
      self.assertEqual(set(standing.difference), {-_INF})

  def test_one_seed_decides_nothing(self):
    found = results_lib.rank({'a': {0: 70.0}, 'b': {0: 90.0}}, margin=0.5)
    self.assertEqual([s.mean for s in found], [90.0, 70.0])
    self.assertEqual([s.verdict for s in found], [_Verdict.BEST, _Verdict.OPEN])


_NAN = math.nan


def _by_brute_force(trials, count):
  """The mean, over all subsets, of the test score of the one chosen."""
  found = []
  for subset in itertools.combinations(trials, count):
    chosen = subset[results_lib.choose(subset)]
    found.append(max(chosen.test, 0.0))
  return statistics.fmean(found)


def _trials(*pairs):
  return [results_lib.TrialScore(*pair) for pair in pairs]


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
    found = results_lib.expected_scores(trials)
    self.assertLen(found, len(expected))
    for value, wanted in zip(found, expected):
      self.assertAlmostEqual(value, wanted)

  def test_expectation_by_hand(self):
    # Of the pairs, two have the first trial and its 90; the third has 50.
    trials = _trials((0.1, 90.0), (0.2, 50.0), (0.3, 100.0))
    self.assertEqual(
        [round(v, 6) for v in results_lib.expected_scores(trials)],
        [80.0, round(230 / 3, 6), 90.0],
    )

  def test_choice_ignores_test_scores(self):
    for tests in itertools.permutations((10.0, 50.0, 90.0)):
      trials = _trials(*zip((0.3, 0.1, 0.2), tests))
      self.assertEqual(results_lib.choose(trials), 1)

  def test_what_diverged_comes_last(self):
    self.assertEqual(results_lib.choose(_trials((_NAN, 99.0), (5.0, 1.0))), 1)
    self.assertEqual(results_lib.choose(_trials((_NAN, 0.0), (_NAN, 1.0))), 0)


class ResultsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.plan = board_testing.build_plan(pathlib.Path(folder))

  def _results(self):
    return results_lib.Results(self.plan)

  def test_nothing_is_said_before_all_trials_have_run(self):
    trials = self.plan.tuning('digits', 'FedAvg')
    for trial in trials[:-1]:
      board_testing.write_run(trial, [0.5, 0.5])
    results = self._results()
    self.assertIsNone(results.chosen('digits', 'FedAvg'))
    self.assertEqual(results.unfinished(trials), trials[-1:])
    self.assertEqual(results.tuned('digits'), {})

  def test_choice_is_by_training_loss_and_ignores_test_data(self):
    losses = [0.3, 0.1, 0.2]
    for method, tests in (
        ('FedAvg', [0.1, 0.2, 0.9]),
        ('Delta-SGD', [0.9] * 3),
    ):
      board_testing.write_tuning(self.plan, 'digits', method, losses, tests)
      self.assertEqual(
          self._results().chosen('digits', method),
          self.plan.assignments(method)[1],
      )

  def test_outcome_waits_for_every_seed(self):
    trials = self.plan.finals('digits', 'FedAvg', board.DEFAULTS)
    board_testing.write_run(trials[0], [0.5, 0.5])
    self.assertEqual(self._results().defaults('digits'), {})
    board_testing.write_run(trials[1], [0.5, 0.5])
    self.assertEqual(list(self._results().defaults('digits')), ['FedAvg'])

  def test_numbers_of_an_outcome(self):
    trials = self.plan.finals('digits', 'FedAvg', board.DEFAULTS)
    board_testing.write_run(trials[0], [0.96, 0.98])  # At the target at once.
    board_testing.write_run(trials[1], [0.90, 0.96])  # In round 4.
    outcome = self._results().defaults('digits')['FedAvg']
    self.assertSequenceAlmostEqual(list(outcome.scores.values()), [97.0, 93.0])
    self.assertEqual(outcome.rounds_to_target, 3.0)
    self.assertEqual(outcome.seconds_to_target, 1.5)
    self.assertEqual(outcome.gradient_evaluations_to_target, 300.0)
    self.assertEqual(outcome.megabytes_to_target, 9.0)
    self.assertEqual(outcome.seconds_per_round, 0.5)
    self.assertEqual(outcome.gradient_evaluations, 400.0)
    self.assertEqual(outcome.megabytes_up, 4.0)
    self.assertEqual(outcome.megabytes_down, 8.0)

  def test_a_run_that_diverged_has_the_worst_score(self):
    board_testing.write_finals(
        self.plan, 'digits', 'FedAvg', 0, {0: 0.9, 1: math.nan}
    )
    outcomes = self._results().defaults('digits')
    self.assertEqual(outcomes['FedAvg'].scores[1], -math.inf)
    self.assertEqual(outcomes['FedAvg'].rounds_to_target, math.inf)
    (ranked,) = self._results().rank('digits', outcomes)
    self.assertEqual(ranked.mean, -math.inf)

  def test_values_are_carried_from_task_to_task(self):
    board_testing.write_tuning(self.plan, 'digits', 'FedAvg', [0.3, 0.1, 0.2])
    board_testing.write_tuning(self.plan, 'mnist', 'FedAvg', [0.3, 0.2, 0.1])
    for place, accuracy in ((1, 0.7), (2, 0.9)):
      board_testing.write_finals(
          self.plan, 'mnist', 'FedAvg', place, {0: accuracy, 1: accuracy}
      )
    results = self._results()
    tuned = results.tuned('mnist')['FedAvg']
    carried = results.tuned('mnist', 'digits')['FedAvg']
    self.assertAlmostEqual(tuned.scores[0], 90.0)
    self.assertAlmostEqual(carried.scores[0], 70.0)
    self.assertEqual(results.tuned('digits'), {})
