# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the sweep binary and of its page."""

import dataclasses
import functools
import os
import pathlib
import shlex
from unittest import mock

from absl import flags
from absl.testing import parameterized
import pytest

from experiments import command_line
from experiments import hparams
from experiments import published
from experiments.sweep import __main__ as sweep
from experiments.sweep import running
from experiments.sweep import scores
from experiments.sweep import search_spaces
from experiments.sweep import searches
from tests import folder_testing
from tests import page_testing
from tests import program_testing
from tests.experiments import binary_testing
from tests.experiments import hparams_testing
from tests.experiments.report import made_up_runs
from tests.experiments.sweep import sweep_testing

_PAGE = page_testing.read('docs/sweeps.md')
_RATES = '--grid=client_learning_rate=0.01,0.1'
_SEARCH = ('--sweep_name=rates', '--client_optimizer=sgd', _RATES)
_call = functools.partial(binary_testing.call, sweep)


def _page_commands():
  """Returns the arguments of the commands of the page that call the binary."""
  commands = [
      page_testing.module_and_flags(command.text)
      for command in page_testing.commands_of(_PAGE)
  ]
  return [found for module, found in commands if module == 'experiments.sweep']


class SweepTest(folder_testing.FolderTestCase):

  def setUp(self):
    super().setUp()
    # Those of the made-up runs have no data.
    self.enter_context(mock.patch.object(hparams, 'check_data_files'))

  @parameterized.named_parameters(
      ('nothing', (), 'give --grid, --log_grid, --random or --table'),
      ('no_name', (_RATES,), 'needs --sweep_name'),
      ('seeds', (*_SEARCH, '--seeds=0,x'), "--seeds takes .* '0,x'"),
      ('seed', (*_SEARCH, '--seed=1'), 'give --seeds'),
      ('rows', (*_SEARCH, '--rows=SGD'), '--rows needs --table'),
      (
          'both',
          (*_SEARCH, '--table=delta_sgd/table_1'),
          'cannot be combined with --table: drop one of them',
      ),
  )
  def test_flags_that_do_not_fit_are_refused(self, arguments, sentence):
    with self.assertRaisesRegex(flags.Error, sentence):
      _call(*arguments)

  def test_an_unknown_table_is_named(self):
    with self.assertRaisesRegex(
        command_line.UserError, "no table 'delta_sgd/table_x'"
    ):
      _call('--table=delta_sgd/table_x')

  def test_dry_run_prints_the_commands_and_writes_nothing(self):
    out = _call(
        *_SEARCH, '--seeds=0,1', '--dry_run', f'--output_dir={self.folder}'
    )
    commands = [shlex.split(line) for line in out.splitlines()]
    self.assertLen(commands, 4)
    for command in commands:
      self.assertEqual(command[1:3], ['-m', 'experiments.train'])
      published.parse_flags(command[3:])
    self.assertEqual(list(self.folder.iterdir()), [])

  def test_flags_choose_the_parts_of_a_search(self):
    other = self.folder / 'other.flags'
    other.write_text('--task=digits\n--digits_model=cnn\n')
    with (
        mock.patch.object(
            search_spaces,
            'build_assignments',
            wraps=search_spaces.build_assignments,
        ) as draw,
        mock.patch.object(
            searches, 'build_search', wraps=searches.build_search
        ) as build,
    ):
      _call(
          '--sweep_name=rates',
          '--client_optimizer=sgd',
          '--random=client_learning_rate=log_uniform(0.01,1)',
          '--num_trials=2',
          '--search_seed=3',
          '--select_by=validation',
          '--evaluation_data=validation',
          '--metric=loss',
          '--best_per=client_learning_rate',
          f'--transfer_to={other}',
          '--seeds=4,5',
          '--dry_run',
      )
    drawn, built = draw.call_args.kwargs, build.call_args.kwargs
    self.assertEqual((drawn['num_trials'], drawn['search_seed']), (2, 3))
    self.assertIs(built['selection'], scores.VALIDATION)
    self.assertEqual(built['metric'], 'loss')
    self.assertEqual(built['best_per'], 'client_learning_rate')
    self.assertEqual(built['transfer_to'], [str(other)])
    self.assertEqual(built['seeds'], [4, 5])

  def test_runs_a_search(self):
    with mock.patch.object(running, 'TRAIN', sweep_testing.FAKE_TRAIN):
      out = _call(*_SEARCH, f'--output_dir={self.folder}')
    self.assertIn('--client_learning_rate=0.1 (0)', out.splitlines()[-1])

  def test_runs_cells_of_tables_in_their_places(self):
    arguments = (
        '--table=delta_sgd/table_1',
        '--groups=alpha = 1',
        '--columns=MNIST',
        f'--data_dir={self.folder}',
        f'--output_dir={self.folder}',
    )
    home = self.folder / 'delta_sgd' / 'table_1'
    with mock.patch.object(running, 'TRAIN', sweep_testing.FAKE_TRAIN):
      for row in ('SGD', 'Adam'):
        out = _call(*arguments, f'--rows={row}', '--seeds=0,1')
    self.assertEqual(out.splitlines()[-1], f'results: {home / "results.csv"}')
    rows = folder_testing.read_rows(home / 'results.csv')
    self.assertEqual(
        [(row['row'], row['seed'], row['metric']) for row in rows],
        [
            (row, seed, 'accuracy')
            for row in ('SGD', 'Adam')
            for seed in ('0', '1')
        ],
    )
    for row in rows:
      self.assertTrue((pathlib.Path(row['run']) / 'metrics.csv').is_file())

  def test_a_group_may_be_measured_by_something_else(self):
    table = made_up_runs.build_table(groups=['ours', 'theirs'], rows=['SGD'])
    loss = published.Measure('clients/loss', 1.0, False)
    theirs = dataclasses.replace(table.groups[1], measure=loss)
    table = dataclasses.replace(table, groups=(table.groups[0], theirs))
    with (
        mock.patch.object(published, 'find_table', return_value=table),
        mock.patch.object(running, 'TRAIN', sweep_testing.FAKE_TRAIN),
    ):
      _call(
          '--table=paper/table_1',
          f'--data_dir={self.folder}',
          f'--output_dir={self.folder}',
      )
    path = self.folder / 'paper' / 'table_1' / 'results.csv'
    rows = folder_testing.read_rows(path)
    # With its default rate of 0 the loss is 0.1, and the accuracy 0.8.
    self.assertEqual(
        [(row['group'], row['metric'], row['best']) for row in rows],
        [('ours', 'accuracy', '0.8'), ('theirs', 'clients/loss', '0.1')],
    )

  @parameterized.parameters(
      ('fedli/table_2',), ('fedli/table_1', 'fedli/table_2')
  )
  def test_a_table_of_others_runs_leaves_their_results(self, *names):
    with mock.patch.object(running, 'TRAIN', sweep_testing.FAKE_TRAIN):
      _call(
          *(f'--table={name}' for name in names),
          '--rows=FedAvg',
          '--columns=CIFAR-10',
          '--seeds=0',
          f'--data_dir={self.folder}',
          f'--output_dir={self.folder}',
      )
    (path,) = self.folder.rglob('results.csv')
    self.assertEqual(path.parent, self.folder / 'fedli' / 'table_1')
    (row,) = folder_testing.read_rows(path)
    self.assertEqual(row['metric'], 'accuracy')

  def test_a_table_needs_its_data_before_the_first_run(self):
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(self.folder)
    with self.assertRaisesRegex(
        command_line.UserError, '^--data_dir=data does not exist; give the'
    ):
      _call(
          '--table=delta_sgd/table_1',
          '--columns=MNIST',
          f'--output_dir={self.folder}',
      )

  def test_the_commands_of_the_page_are_true(self):
    commands = _page_commands()
    self.assertGreaterEqual(len(commands), 5)
    for arguments in commands:
      with self.subTest(' '.join(arguments)):
        # A sweep has written the file.
        given = [a for a in arguments if not a.startswith('--flagfile=runs/')]
        out = _call(*given, '--dry_run')
        self.assertGreaterEqual(len(out.splitlines()), 2)

  def test_the_page_names_every_flag(self):
    values = flags.FlagValues()
    sweep.define(values)
    own = [flag.name for flag in values.flags_by_module_dict()[sweep.__name__]]
    self.assertIn('grid', own)
    for name in (*own, *published.AXES):
      self.assertIn(f'--{name}', _PAGE)

  @pytest.mark.slow
  def test_real_runs_are_run_once(self):
    arguments = [
        'experiments.sweep',
        '--sweep_name=rates',
        '--client_optimizer=sgd',
        _RATES,
        '--seeds=0,1',
        *hparams_testing.SMALL,
        '--total_rounds=3',
        '--rounds_per_evaluation=1',
        f'--output_dir={self.folder}',
    ]
    lines = []
    for _ in range(2):
      result = program_testing.run(*arguments)
      self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
      lines.append(result.stdout.splitlines())
    self.assertLen([line for line in lines[0] if line.startswith('end')], 4)
    # The larger rate learns more in three rounds.
    self.assertIn('--client_learning_rate=0.1 ', lines[0][-1])
    self.assertEqual(lines[1], lines[0][-1:])
