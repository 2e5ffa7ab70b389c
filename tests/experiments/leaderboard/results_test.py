# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the runs of the leaderboard say."""

import math

from absl.testing import absltest

from experiments.leaderboard import results as results_lib
from tests import folder_testing
from tests.experiments.leaderboard import board_testing


class ResultsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    self.plan = board_testing.build_plan(folder)

  def _results(self):
    return results_lib.Results(self.plan)

  def test_nothing_is_said_before_all_trials_have_run(self):
    trials = self.plan.tuning('digits', 'FedAvg')
    for trial in trials[:-1]:
      board_testing.write_run(trial, [0.5, 0.5])
    results = self._results()
    self.assertIsNone(results.chosen('digits', 'FedAvg'))
    self.assertEqual(results.unfinished(trials), trials[-1:])
    self.assertEmpty(results.tuned('digits'))

  def test_a_budget_counts_once_all_of_its_trials_have_run(self):
    # Budgets are 1, 2 and 3 trials; the second and the third have run.
    trials = self.plan.tuning('digits', 'FedAvg')
    for trial, loss in zip(trials[1:], (0.2, 0.1)):
      board_testing.write_run(trial, [0.5, 0.5], loss)
    self.assertEqual(self._results().budget_done('digits', 'FedAvg'), 0)
    board_testing.write_run(trials[0], [0.5, 0.5], 0.3)
    self.assertEqual(self._results().budget_done('digits', 'FedAvg'), 3)
    self.assertLen(self._results().trials('digits', 'FedAvg'), 3)

  def test_choice_among_fewer_trials(self):
    board_testing.write_tuning(self.plan, 'digits', 'FedAvg', [0.3, 0.2, 0.1])
    results, assignments = self._results(), self.plan.assignments('FedAvg')
    for budget in (1, 2, 3):
      self.assertEqual(
          results.chosen('digits', 'FedAvg', budget), assignments[budget - 1]
      )
    self.assertEqual(results.chosen('digits', 'FedAvg'), assignments[2])

  def test_methods_are_compared_at_the_largest_budget_that_two_have(self):
    healthy = {0: 0.9, 1: 0.9}
    # The second trial is the better of the first two, and of all of FedAvg.
    for method, last in (('FedAvg', 0.2), ('Delta-SGD', 0.05)):
      board_testing.write_tuning(self.plan, 'digits', method, [0.3, 0.1, last])
      board_testing.write_finals(self.plan, 'digits', method, 1, healthy)
    self.assertEqual(self._results().budget('digits'), 2)
    self.assertEqual(self._results().tuned('digits').method.nunique(), 2)
    found = self._results().tuned('digits', budget=3)
    self.assertEqual(set(found.method), {'FedAvg'})
    board_testing.write_finals(self.plan, 'digits', 'Delta-SGD', 2, healthy)
    self.assertEqual(self._results().budget('digits'), 3)
    self.assertEqual(self._results().budget('mnist'), 3)

  def test_methods_are_not_compared_before_nearly_all_are_done(self):
    plan = board_testing.build_plan(
        folder_testing.new(self),
        methods=['FedAvg', 'FedAvgM', 'FedProx', 'FedYogi', 'Delta-SGD']
        + ['SCAFFOLD', 'FedAdam'],
        num_seeds=2,
    )
    healthy = {0: 0.9, 1: 0.9}
    for i, method in enumerate([*plan.board.methods][:5]):
      board_testing.write_tuning(plan, 'digits', method, [0.3, 0.1, 0.05])
      if i < 3:
        board_testing.write_finals(plan, 'digits', method, 1, healthy)
    results = results_lib.Results(plan)
    self.assertEqual(results.budget('digits'), 3)
    board_testing.write_finals(plan, 'digits', method, 1, healthy)
    # One that has its defaults alone hides none of the others.
    for other in ('SCAFFOLD', 'FedAdam'):
      trial = plan.tuning('digits', other)[0]
      board_testing.write_run(trial, [0.9, 0.9])
    self.assertEqual(results_lib.Results(plan).budget('digits'), 2)

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
    trials = self.plan.finals('digits', 'FedAvg', results_lib.DEFAULTS)
    board_testing.write_run(trials[0], [0.5, 0.5])
    self.assertEmpty(self._results().defaults('digits'))
    board_testing.write_run(trials[1], [0.5, 0.5])
    found = self._results().defaults('digits')
    self.assertEqual(list(found.method), ['FedAvg', 'FedAvg'])

  def test_numbers_of_an_outcome(self):
    trials = self.plan.finals('digits', 'FedAvg', results_lib.DEFAULTS)
    board_testing.write_run(trials[0], [0.96, 0.98])  # At the target at once.
    board_testing.write_run(trials[1], [0.90, 0.96])  # In round 4.
    results = self._results()
    runs = results.defaults('digits')
    self.assertSequenceAlmostEqual(list(runs.score), [97.0, 93.0])
    found = results.rank('digits', runs).loc['FedAvg']
    self.assertEqual(found.rounds_to_target, 3.0)
    self.assertEqual(found.seconds_to_target, 1.5)
    self.assertEqual(found.gradient_evaluations_to_target, 300.0)
    self.assertEqual(found.megabytes_to_target, 9.0)
    self.assertEqual(found.seconds_per_round, 0.5)
    self.assertEqual(found.gradient_evaluations, 400.0)
    self.assertEqual(found.megabytes_up, 4.0)
    self.assertEqual(found.megabytes_down, 8.0)

  def test_a_run_that_diverged_has_the_worst_score(self):
    board_testing.write_finals(
        self.plan, 'digits', 'FedAvg', 0, {0: 0.9, 1: math.nan}
    )
    results = self._results()
    runs = results.defaults('digits')
    self.assertEqual(runs.score[1], -math.inf)
    found = results.rank('digits', runs).loc['FedAvg']
    self.assertEqual(found.rounds_to_target, math.inf)
    self.assertEqual(found['mean'], -math.inf)

  def test_values_are_carried_from_task_to_task(self):
    board_testing.write_tuning(self.plan, 'digits', 'FedAvg', [0.3, 0.1, 0.2])
    board_testing.write_tuning(self.plan, 'mnist', 'FedAvg', [0.3, 0.2, 0.1])
    for place, accuracy in ((1, 0.7), (2, 0.9)):
      board_testing.write_finals(
          self.plan, 'mnist', 'FedAvg', place, {0: accuracy, 1: accuracy}
      )
    results = self._results()
    tuned = results.tuned('mnist')
    carried = results.tuned('mnist', 'digits')
    self.assertSequenceAlmostEqual(list(tuned.score), [90.0, 90.0])
    self.assertSequenceAlmostEqual(list(carried.score), [70.0, 70.0])
    self.assertEmpty(results.tuned('digits'))
