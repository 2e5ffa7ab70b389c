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
"""Tests of what the finished runs of a leaderboard came to."""

import math
import pathlib
import tempfile

from absl.testing import absltest

from experiments.leaderboards import plans
from experiments.leaderboards import results as results_lib
from tests.experiments.leaderboards import board_testing


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
    trials = self.plan.finals('digits', 'FedAvg', plans.DEFAULTS)
    board_testing.write_run(trials[0], [0.5, 0.5])
    self.assertEqual(self._results().defaults('digits'), {})
    board_testing.write_run(trials[1], [0.5, 0.5])
    self.assertEqual(list(self._results().defaults('digits')), ['FedAvg'])

  def test_numbers_of_an_outcome(self):
    trials = self.plan.finals('digits', 'FedAvg', plans.DEFAULTS)
    board_testing.write_run(trials[0], [0.96, 0.98])  # At the target at once.
    board_testing.write_run(trials[1], [0.90, 0.96])  # In round 4.
    outcome = self._results().defaults('digits')['FedAvg']
    self.assertSequenceAlmostEqual(list(outcome.scores.values()), [97.0, 93.0])
    self.assertEqual(outcome.rounds_to_target, 3.0)
    self.assertEqual(outcome.seconds_to_target, 1.5)
    self.assertEqual(outcome.gradients_to_target, 300.0)
    self.assertEqual(outcome.megabytes_to_target, 9.0)
    self.assertEqual(outcome.seconds_per_round, 0.5)
    self.assertEqual(outcome.gradients, 400.0)
    self.assertEqual(outcome.megabytes_up, 4.0)
    self.assertEqual(outcome.megabytes_down, 8.0)

  def test_a_run_that_diverged_has_the_worst_score(self):
    board_testing.write_finals(
        self.plan, 'digits', 'FedAvg', 0, {0: 0.9, 1: math.nan}
    )
    outcome = self._results().defaults('digits')['FedAvg']
    self.assertEqual(outcome.scores[1], -math.inf)
    self.assertEqual(outcome.rounds_to_target, math.inf)
    ranked = results_lib.rank({'FedAvg': outcome}, margin=1.0)
    self.assertEqual(ranked[0].mean, -math.inf)

  def test_values_are_carried_from_task_to_task(self):
    board_testing.write_tuning(self.plan, 'digits', 'FedAvg', [0.3, 0.1, 0.2])
    board_testing.write_tuning(self.plan, 'mnist', 'FedAvg', [0.3, 0.2, 0.1])
    for place, accuracy in ((1, 0.7), (2, 0.9)):
      board_testing.write_finals(
          self.plan, 'mnist', 'FedAvg', place, {0: accuracy, 1: accuracy}
      )
    results = self._results()
    tuned = results.tuned('mnist')['FedAvg']
    carried = results.carried('mnist', 'digits')['FedAvg']
    self.assertAlmostEqual(tuned.scores[0], 90.0)
    self.assertAlmostEqual(carried.scores[0], 70.0)
    self.assertEqual(results.tuned('digits'), {})


if __name__ == '__main__':
  absltest.main()
