# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the leaderboard binary."""

import functools
import io
import pathlib
import shlex
from unittest import mock

from absl import flags
from absl.testing import parameterized
import attrs
import pytest

from experiments import command_line
from experiments import published
from experiments.leaderboard import __main__ as leaderboard
from experiments.leaderboard import board
from experiments.sweep import running
from tests import folder_testing
from tests import program_testing
from tests.experiments import binary_testing
from tests.experiments.leaderboard import board_testing
from tests.experiments.sweep import sweep_testing

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_SMALL = (
    '--methods=FedAvg,Delta-SGD',
    '--trials=2',
    '--num_seeds=2',
    '--total_rounds=3',
)
_call = functools.partial(binary_testing.call, leaderboard)


class LeaderboardTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    # Few methods stand for all: plans of all are tested elsewhere.
    rules = board.load()
    names = ('FedAvg', 'Delta-SGD', 'SCAFFOLD')
    few = attrs.evolve(
        rules,
        methods={name: rules.methods[name] for name in names},
        default_methods=names,
    )
    self.enter_context(mock.patch.object(board, 'load', return_value=few))
    self.places = (
        f'--output_dir={self.folder / "runs"}',
        f'--results_dir={self.folder / "results"}',
    )

  @parameterized.named_parameters(
      (
          'data',
          ('--tasks=mnist',),
          command_line.UserError,
          'mnist needs --data',
      ),
      ('task', ('--tasks=mnis',), flags.Error, 'did you mean mnist'),
      (
          'seeds',
          ('--tasks=digits', '--num_seeds=101', '--dry_run'),
          command_line.UserError,
          'final seeds, but task digits has 100 among them',
      ),
      ('trials', ('--trials=0',), flags.Error, 'trials'),
      ('hours', ('--max_hours=-1',), flags.Error, 'max_hours'),
      ('empty', ('--methods=',), flags.Error, '--methods is empty'),
      ('empty_list', ('--list', '--tasks='), flags.Error, '--tasks is empty'),
  )
  def test_flags_that_do_not_fit_are_refused(self, arguments, kind, sentence):
    with self.assertRaisesRegex(kind, sentence):
      _call(*arguments)

  def test_dry_run_prints_the_tuning_trials_and_writes_nothing(self):
    out = _call(*_SMALL, *self.places, '--data_dir=data', '--dry_run')
    commands = [shlex.split(line) for line in out.splitlines()]
    # Two trials of two methods on four tasks.
    self.assertLen(commands, 16)
    for command in commands:
      self.assertEqual(command[1:3], ['-m', 'experiments.train'])
      published.parse_flags(command[3:])
    self.assertEqual(list(self.folder.iterdir()), [])

  def test_a_page_of_what_is_finished_needs_no_data(self):
    _call(*_SMALL, *self.places, '--tasks=mnist', '--report_only')
    page = self.folder / 'results' / 'leaderboard.md'
    self.assertIn('Nothing to compare yet', page.read_text())

  def test_list_names_every_task_with_a_command_that_is_understood(self):
    out = _call('--methods=FedAvg', *self.places, '--list')
    header, *lines, total = [line.split('\t') for line in out.splitlines()]
    self.assertEqual(header[0], 'task')
    tasks = [line[0] for line in lines]
    self.assertContainsSubset(['digits', 'stackoverflow_lr', 'cifar10'], tasks)
    for line in lines:
      arguments = shlex.split(line[-1])[3:]
      self.assertContainsSubset(self.places, arguments)
      self.assertIn(f'--task={line[0]}', _call(*arguments, '--dry_run'))
    self.assertEqual(total[0], 'all')
    self.assertEqual(int(total[2]), sum(int(line[2]) for line in lines))
    # The time of some tasks is unknown.
    self.assertRegex(total[3], r'^over \d+ h')
    self.assertIn(f'--tasks={",".join(tasks)}', total[4])

  def test_runs_reports_and_continues(self):
    arguments = (*_SMALL, *self.places, '--tasks=digits', '--jobs=2')
    with mock.patch.object(running, 'TRAIN', sweep_testing.FAKE_TRAIN):
      stopped = _call(*arguments, '--max_hours=0')
      out = _call(*arguments)
      again = _call(*arguments)
    # Of each method two trials, the defaults with two seeds and the chosen.
    self.assertIn('12 runs to go, one after the other: ', stopped)
    self.assertIn('Stopped after 0 hours with 12 runs to go', stopped)
    self.assertIn('tuning trials: 4 to run', out)
    self.assertEqual(again, f'{self.folder / "results" / "leaderboard.md"}\n')
    text = (self.folder / 'results' / 'leaderboard.md').read_text()
    self.assertIn('One budget for all on digits (2 methods, up to 2 ', text)
    self.assertIn('--trials=2', text)
    not_run = text[text.index('## Not run') :]
    for task in board.load().tasks:
      is_left_out = f'--tasks={task} --methods=all' in not_run
      self.assertTrue(is_left_out, task)
    self.assertIn('methods compared above: no runs to go.', not_run)
    self.assertIn('--num_seeds=2', not_run)

  def test_a_failed_run_leaves_the_page_and_another_exit_code(self):
    arguments = (*_SMALL, *self.places, '--tasks=digits', '--jobs=2')
    rules = board_testing.break_method(board.load(), 'Delta-SGD')
    out = io.StringIO()
    with (
        mock.patch.object(running, 'TRAIN', sweep_testing.FAKE_TRAIN),
        mock.patch.object(board, 'load', return_value=rules),
        self.assertRaisesRegex(
            command_line.EnvironmentalError, '^4 runs failed, see the logs'
        ),
    ):
      _call(*arguments, out=out)
    self.assertRegex(
        out.getvalue(),
        r'(?m)^failed: digits/Delta-SGD/\S+/seed_100, see \S+\.log$',
    )
    text = (self.folder / 'results' / 'leaderboard.md').read_text()
    self.assertRegex(text, r'\| FedAvg \| \d')
    self.assertIn('| Delta-SGD | - | - | failed |', text)

  def test_a_damaged_run_is_one_sentence(self):
    plan = board_testing.build_plan(
        self.folder / 'runs',
        tasks=('digits',),
        methods=('FedAvg',),
        num_trials=1,
        num_seeds=1,
    )
    board_testing.write_tuning(plan, 'digits', 'FedAvg', [0.1])
    metrics = plan.tuning('digits', 'FedAvg')[0].folder / 'metrics.csv'
    metrics.write_text(metrics.read_text().replace('0.1', 'small', 1))
    with self.assertRaisesRegex(
        command_line.UserError, 'metrics.csv, line 2 is'
    ):
      _call(
          *self.places,
          '--tasks=digits',
          '--methods=FedAvg',
          '--trials=1',
          '--num_seeds=1',
          f'--total_rounds={board_testing.ROUNDS}',
          '--report_only',
      )

  def test_the_page_names_every_flag(self):
    values = flags.FlagValues()
    leaderboard.define(values)
    page = (_ROOT / 'docs/leaderboard.md').read_text(encoding='utf-8')
    self.assertNotEmpty(list(values))
    for name in values:
      self.assertIn(f'--{name}', page)

  @pytest.mark.slow
  def test_real_runs_are_compared(self):
    methods = '--methods=FedAvg,docs.examples.submission:build_normalized_sgd'
    arguments = (*_SMALL, methods, *self.places, '--tasks=digits')
    result = program_testing.run('experiments.leaderboard', *arguments)
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
    text = (self.folder / 'results' / 'leaderboard.md').read_text()
    self.assertIn('One budget for all on digits (2 methods, up to 2 ', text)
    self.assertRegex(text, r'\| Normalized-SGD \| \d')
    again = _call(*arguments)
    self.assertLen(again.splitlines(), 1)
