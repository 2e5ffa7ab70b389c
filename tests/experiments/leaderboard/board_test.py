# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the rules and the runs of a leaderboard."""

import dataclasses
import datetime
import math
import pathlib

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized
import pytest
import yaml

from experiments import published
from experiments import registry
from experiments.leaderboard import board
from experiments.leaderboard import results as results_lib
from experiments.run_results import run_folder
from experiments.sweep import scores
from tests import folder_testing
from tests.experiments.leaderboard import board_testing

_BOARD = board.load()
_TASK = {'num_seeds': 2, 'target': 90, 'margin': 1}
_METHOD = {'flags': [], 'search': ['rate']}
_COMMITTED = {
    'commit': 'abc',
    'time': datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc),
}
_RAW = {
    'total_rounds': 4,
    'rounds_per_evaluation': 2,
    'selection_rounds': 2,
    'budgets': [1, 2],
    'search_seed': 0,
    'tuning_seed': 100,
    'seconds_per_start': 1,
    'tasks': {'digits': _TASK},
    'excluded': {'emnist_ae': 'it has errors'},
    'default_tasks': ['digits'],
    'default_methods': ['FedAvg'],
    'ranges': {'rate': {'flag': 'a', 'values': 'uniform(0,1)', 'reason': 'b'}},
    'methods': {'FedAvg': _METHOD},
}


class RulesTest(parameterized.TestCase):

  def _load(self, **changes):
    folder = folder_testing.new(self)
    path = folder / 'board.yaml'
    path.write_text(yaml.safe_dump({**_RAW, **changes}), encoding='utf-8')
    return board.load(path)

  def test_reads_a_file(self):
    rules = self._load()
    self.assertEqual(rules.protocol.tuning_seed, 100)
    self.assertEqual(rules.tasks['digits'].seeds, range(2))
    self.assertEqual(rules.methods['FedAvg'].search[0].text, 'a=uniform(0,1)')

  # What is wrong, its place, and what was found there.
  @parameterized.parameters(
      ({'rounds': 1}, 'board.yaml', "'rounds'"),
      ({'total_rounds': 0}, "'total_rounds'", '0'),
      ({'tasks': {'digit': _TASK}}, 'tasks', "'digit'"),
      ({'tasks': {'digits': {}}}, "tasks['digits'].num_seeds", 'missing'),
      ({'tasks': {'digits': {**_TASK, 'metric': 'loss'}}}, 'digits', "'loss'"),
      ({'tuning_seed': 1}, 'task digits', '1'),
      (
          {'methods': {'FedAvg': {'flags': [], 'search': ['rates']}}},
          'method FedAvg: search',
          "'rates'",
      ),
      ({'methods': {'FedAvg': {**_METHOD, 'defaults': 'me'}}}, 'FedAvg', 'me'),
      (
          {'methods': {'FedAvg': {**_METHOD, 'not_on': ['mnits']}}},
          "methods['FedAvg'].not_on",
          "'mnits'",
      ),
      ({'excluded': {'digits': 'it is small'}}, 'excluded', "'digits'"),
      ({'default_methods': ['FedAvgM']}, 'default_methods', "'FedAvgM'"),
      ({'default_tasks': ['emnist_ae']}, 'default_tasks', "'emnist_ae'"),
      (
          {'registered': [{**_COMMITTED, 'entries': ['mnits']}]},
          'registered',
          "'mnits'",
      ),
  )
  def test_an_error_names_the_place_and_what_was_found(self, changes, *named):
    with self.assertRaises(published.PublishedError) as caught:
      self._load(**changes)
    for name in named:
      self.assertIn(name, str(caught.exception))

  def test_a_run_is_registered_with_the_later_one_of_task_and_method(self):
    later = {**_COMMITTED, 'time': datetime.datetime(2026, 1, 3, 4)}
    later['time'] = later['time'].astimezone(datetime.timezone.utc)
    rules = self._load(
        registered=[
            {**_COMMITTED, 'entries': ['digits', 'fedavgm']},
            {**later, 'entries': ['FedAvg']},
        ]
    )
    first, second = rules.registered
    self.assertEqual(rules.find_registration('digits', 'FedAvg'), second)
    self.assertEqual(rules.find_registration('digits', 'fedavgm'), first)
    self.assertIsNone(rules.find_registration('digits', 'fedyogi'))

  def test_rule_without_an_entry_is_tuned_around_its_defaults(self):
    methods = self._load().methods
    self.assertEqual(
        [item.text for item in methods['fedyogi'].search],
        [
            'client_learning_rate=log_uniform(0.01,1)',
            'server_learning_rate=log_uniform(0.01,1)',
        ],
    )
    self.assertEqual(
        methods['fedprox'].flags,
        ('--client_optimizer=sgd', '--loss_term=fedprox'),
    )
    self.assertEqual(
        [item.flag for item in methods['fedprox'].search],
        ['client_learning_rate', 'fedprox_mu'],
    )
    (searched,) = methods['sps'].search
    self.assertEqual(searched.text, 'sps_c=log_uniform(0.05,5)')
    self.assertEqual(
        searched.reason, 'a decade to each side of the default 0.5'
    )

  def test_restricts(self):
    rules = _BOARD.restrict(tasks=['mnist'], num_seeds=7, total_rounds=None)
    self.assertEqual(list(rules.tasks), ['mnist'])
    self.assertEqual(rules.tasks['mnist'].num_seeds, 7)
    self.assertEqual(tuple(rules.methods), _BOARD.default_methods)
    self.assertEqual(rules.protocol, _BOARD.protocol)
    self.assertEqual(tuple(_BOARD.restrict().tasks), _BOARD.default_tasks)
    rules = _BOARD.restrict(methods=['delta_sgd', 'FEDAVG', 'FedAvg'])
    self.assertEqual(list(rules.methods), ['Delta-SGD', 'FedAvg'])
    everything = _BOARD.restrict(tasks=['all'], methods=['all'])
    self.assertEqual(everything.tasks, _BOARD.tasks)
    self.assertEqual(everything.methods, _BOARD.methods)

  @parameterized.parameters('tasks', 'methods')
  def test_an_empty_choice_is_refused(self, flag):
    with self.assertRaisesRegex(flags.Error, f'^--{flag} is empty; give names'):
      _BOARD.restrict(**{flag: []})

  def test_the_seed_of_the_trials_is_no_final_one(self):
    rules = _BOARD.restrict(tasks=['mnist'], num_seeds=100)
    self.assertLen(rules.tasks['mnist'].seeds, 100)
    with self.assertRaisesRegex(
        published.PublishedError, 'but task mnist has 100 among them'
    ):
      _BOARD.restrict(tasks=['mnist'], num_seeds=101)

  def test_fewer_trials_leave_the_smaller_budgets(self):
    self.assertEqual(_BOARD.protocol.budgets, (1, 2, 6, 12))
    for num_trials, expected in ((1, (1,)), (4, (1, 2, 4)), (6, (1, 2, 6))):
      rules = _BOARD.restrict(num_trials=num_trials).protocol
      self.assertEqual(rules.budgets, expected)
      self.assertEqual(rules.num_trials, num_trials)

  def test_compares_the_tuning_free_with_the_others_on_four_tasks(self):
    self.assertLen(_BOARD.default_tasks, 4)
    free = [_BOARD.methods[n].tuning_free for n in _BOARD.default_methods]
    self.assertGreaterEqual(sum(free), 12)
    self.assertGreaterEqual(free.count(False), 12)

  def test_an_excluded_task_is_refused_with_the_reason(self):
    with self.assertRaisesRegex(
        flags.Error, '--tasks=emnist_ae is not on .*: it has errors'
    ):
      self._load().restrict(tasks=['digits', 'emnist_ae'])

  def test_every_task_is_compared_or_excluded(self):
    self.assertCountEqual(
        [*_BOARD.tasks, *_BOARD.excluded], registry.ROWS[registry.TASK]
    )

  @parameterized.parameters(1, 12)
  @pytest.mark.sample(1)
  def test_every_trial_of_every_method_on_every_task_fits(self, num_trials):
    rules = _BOARD.restrict(
        tasks=['all'], methods=['all'], num_trials=num_trials
    )
    plan = results_lib.Plan(rules, 'runs', 'data')
    for task, method in plan.pairs:
      trials = plan.tuning(task, method)
      # A rule without numbers has only its defaults.
      self.assertLen(trials, num_trials if rules.methods[method].search else 1)
      self.assertEqual({trial.hparams['task'] for trial in trials}, {task})

  def test_every_value_that_is_searched_is_one_of_its_rule(self):
    plan = results_lib.Plan(_BOARD, 'runs', 'data')
    for method in _BOARD.methods:
      for trial in plan.tuning('digits', method):
        choices, _ = published.parse_flags(trial.arguments)
        for kind in registry.RULES:
          # Raises if it is not.
          choices[kind].build(num_clients=10, representation_fn=lambda x: x)

  def test_every_row_of_the_registry_is_compared(self):
    plan = results_lib.Plan(_BOARD, 'runs', 'data')
    used = {
        (kind, plan.tuning('digits', method)[0].hparams[kind])
        for method in _BOARD.methods
        for kind in (registry.ALGORITHM, *registry.RULES)
    }
    rows = {
        (kind, name)
        for kind in dict(used)
        for name in registry.ROWS[kind]
        # One has no clients, and so is no rival; others are a test's own.
        if name != 'centralized' and ':' not in name
    }
    self.assertEqual(used, rows)


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
    rules = _PLAN.board.restrict(methods=['Delta-SGD'], search_seed=1)
    other = dataclasses.replace(_PLAN, board=rules)
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
    plan = results_lib.Plan(board.load(), 'runs', 'data')
    self.assertEqual(
        _draws(plan, 'FedProx', 'client_learning_rate'),
        _draws(plan, 'FedAvg', 'client_learning_rate'),
    )

  def test_draws_of_both_rates_meet_every_third_of_their_ranges(self):
    plan = results_lib.Plan(board.load(), 'runs', 'data')
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
        _PLAN.finals('mnist', method, results_lib.DEFAULTS)[1].hparams
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
    rules = board.load().restrict(
        tasks=['digits', 'stackoverflow_lr'], methods=['FedAvg', 'MOON']
    )
    self.assertEqual(
        results_lib.Plan(rules, 'runs', 'data').pairs,
        [
            ('digits', 'FedAvg'),
            ('digits', 'MOON'),
            ('stackoverflow_lr', 'FedAvg'),
        ],
    )

  def test_one_run_is_one_trial(self):
    twice = [
        _PLAN.finals('digits', 'FedAvg', results_lib.DEFAULTS)[0]
        for _ in range(2)
    ]
    self.assertLen(set(twice), 1)
