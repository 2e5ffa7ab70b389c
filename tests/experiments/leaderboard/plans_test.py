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
"""Tests of the runs of a leaderboard and of their places."""

import dataclasses
import math
import pathlib

from absl.testing import absltest

from experiments.leaderboard import definitions
from experiments.leaderboard import plans
from experiments.run_results import run_folder
from experiments.sweep import scores
from tests.experiments.leaderboard import board_testing

_PLAN = board_testing.build_plan(pathlib.Path('runs'), num_trials=6)


def _draws(plan, method, flag):
  return [dict(values)[flag] for values in plan.assignments(method)[1:]]


class PlansTest(absltest.TestCase):

  def test_the_first_trial_is_the_defaults_of_the_library(self):
    first = _PLAN.tuning('digits', 'Delta-SGD')[0]
    self.assertEqual(_PLAN.assignments('Delta-SGD')[0], ())
    self.assertEqual(first.name, 'Delta-SGD/defaults/seed_100')
    self.assertNotIn('client_learning_rate', first.hparams)

  def test_draws_are_a_function_of_the_search_seed_and_the_ranges(self):
    again = board_testing.build_plan(pathlib.Path('x'), num_trials=6)
    fewer = board_testing.build_plan(pathlib.Path('x'), num_trials=3)
    board = _PLAN.board.restrict(methods=['Delta-SGD'], search_seed=1)
    other = dataclasses.replace(_PLAN, board=board)
    found = _PLAN.assignments('Delta-SGD')
    self.assertEqual(again.assignments('Delta-SGD'), found)
    self.assertEqual(fewer.assignments('Delta-SGD'), found[:3])
    self.assertNotEqual(other.assignments('Delta-SGD')[1:], found[1:])

  def test_choice_is_by_the_training_loss_of_the_last_rounds(self):
    rounds = list(range(1, 101))
    columns = {
        'round_num': (rounds, [float(r) for r in rounds]),
        'clients/loss': (rounds, [9.0] * 80 + [1.0, 2.0] * 10),
    }
    selection = _PLAN.selection
    self.assertEqual(selection.name, 'train_loss_last20')
    self.assertIsNone(selection.evaluation_data)
    run = run_folder.Run(pathlib.Path('run'), {'total_rounds': 100}, columns)
    self.assertEqual(scores.compute_score(selection, run, 'accuracy'), 1.5)

  def test_methods_with_one_range_have_the_same_draws(self):
    plan = plans.Plan(definitions.load(), 'runs', 'data')
    self.assertEqual(
        _draws(plan, 'FedProx', 'client_learning_rate'),
        _draws(plan, 'FedAvg', 'client_learning_rate'),
    )

  def test_draws_of_both_rates_meet_every_third_of_their_ranges(self):
    plan = plans.Plan(definitions.load(), 'runs', 'data')
    for flag, low in (
        ('client_learning_rate', 0.01),
        ('server_learning_rate', 0.001),
    ):
      values = map(float, _draws(plan, 'FedAdam', flag))
      thirds = {
          math.floor(3 * math.log(value / low) / -math.log(low))
          for value in values
      }
      self.assertEqual(thirds, {0, 1, 2}, flag)

  def test_trials_and_final_runs_differ_in_the_seed_only(self):
    trial = _PLAN.tuning('mnist', 'FedAvg')[1]
    finals = _PLAN.finals('mnist', 'FedAvg', _PLAN.assignments('FedAvg')[1])
    self.assertEqual([final.seed for final in finals], [0, 1])
    for final in finals:
      self.assertEqual({**final.hparams, 'seed': 100}, trial.hparams)
      self.assertEqual(final.folder.parent, trial.folder.parent)

  def test_methods_of_a_seed_are_paired(self):
    runs = [
        _PLAN.finals('mnist', method, plans.DEFAULTS)[1].hparams
        for method in board_testing.METHODS
    ]
    differing = {name for name in runs[0] if runs[0][name] != runs[1].get(name)}
    self.assertEqual(differing, {'client_optimizer'})

  def test_carried_values_leave_the_flags_of_the_task_alone(self):
    assignment = _PLAN.assignments('FedAvg')[1]
    from_digits = _PLAN.finals('mnist', 'FedAvg', assignment)[0]
    self.assertEqual(from_digits.hparams['mnist_alpha'], 0.1)
    on_digits = _PLAN.finals('digits', 'FedAvg', assignment)[0]
    self.assertNotIn('mnist_alpha', on_digits.hparams)
    self.assertEqual(
        on_digits.hparams['client_learning_rate'],
        from_digits.hparams['client_learning_rate'],
    )

  def test_a_method_is_not_run_on_tasks_that_it_does_not_go_with(self):
    board = definitions.load().restrict(
        tasks=['digits', 'stackoverflow_lr'], methods=['FedAvg', 'MOON']
    )
    self.assertEqual(
        plans.Plan(board, 'runs', 'data').pairs,
        [
            ('digits', 'FedAvg'),
            ('digits', 'MOON'),
            ('stackoverflow_lr', 'FedAvg'),
        ],
    )

  def test_one_run_is_one_trial(self):
    twice = [
        _PLAN.finals('digits', 'FedAvg', plans.DEFAULTS)[0] for _ in range(2)
    ]
    self.assertLen(plans.unite(twice), 1)


if __name__ == '__main__':
  absltest.main()
