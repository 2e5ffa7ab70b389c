# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the report as a binary."""

import functools

from absl.testing import parameterized

from experiments import command_line
from experiments import published
from experiments.report import __main__ as report
from tests.experiments import binary_testing
from tests.experiments.report import made_up_runs
from tests.experiments.report import page_testing

_call = functools.partial(binary_testing.call, report)


class ReportTest(page_testing.PageTestCase):

  def test_the_list_can_be_restricted(self):
    out = _call(
        '--list',
        '--table=delta_sgd/table_1',
        '--rows=SGD,SPS',
        '--groups=alpha = 1',
    )
    self.assertLen(out.splitlines(), 1 + 2 * 5)

  def test_one_cell_of_a_published_table(self):
    table = published.find_table('delta_sgd/table_1')
    cell = table.cell('alpha = 1', 'SGD', 'MNIST')
    hparams = {
        item.name: item.value
        for item in published.hyperparameters(cell)
        if item.value is not None
    }
    made_up_runs.write_cell(
        self.runs_dir,
        cell,
        [[0.9] * hparams['total_rounds']],
        **{**hparams, 'rounds_per_evaluation': 1, 'client_epochs': 1},
    )
    arguments = (
        '--table=delta_sgd/table_1',
        '--groups=alpha = 1',
        '--columns=MNIST',
        f'--runs_dir={self.runs_dir}',
        f'--output_dir={self.output_dir}',
    )
    out = _call(*arguments)
    self.assertIn('delta_sgd/table_1.md: ', out)
    text = (self.output_dir / 'delta_sgd' / 'table_1.md').read_text()
    self.assertIn("--table=delta_sgd/table_1 '--groups=alpha = 1'", text)
    self.assertIn(f'--output_dir={self.output_dir}\n', text)
    self.assertNotIn('FMNIST', text.split('## Measured')[1])

  def test_a_line_a_cell(self):
    table = made_up_runs.build_table(
        groups=['alpha = 1'], numbers={('alpha = 1', 'SGD', 'digits'): 98.0}
    )
    header, *lines = report.format_cells([table])
    self.assertEqual(header.split('\t'), list(report._COLUMNS))
    self.assertLen(lines, 2)
    fields = lines[0].split('\t')
    self.assertEqual(
        fields[:5], ['paper', 'table_1', 'alpha = 1 / SGD', 'digits', '98.0']
    )
    self.assertEqual(fields[5], published.build_command(table.cells[0]))
    self.assertEqual(lines[1].split('\t')[4], '-')

  def test_hyperparameters_by_origin(self):
    cell, _ = made_up_runs.build_table().cells
    text = report._format_hyperparameters(cell)
    parts = dict(part.split(': ', 1) for part in text.split('; '))
    self.assertEqual(list(parts), ['specified', 'assumed', 'lost'])
    self.assertEqual(parts['specified'], 'task=digits total_rounds=4')
    self.assertIn('client_batch_size=5', parts['assumed'].split())
    self.assertIn('client_optimizer=delta_sgd', parts['assumed'].split())
    self.assertEqual(parts['lost'], 'client_epochs=1')
    self.assertNotIn('None', text)

  @parameterized.named_parameters(
      ('nothing', [], 'give --list, --table, --paper or --runs$'),
      ('two_things', ['--runs=a', '--list'], 'with --list: drop one of them$'),
      (
          'table',
          ['--table=x/y'],
          "there is no table 'x/y'; choose one of delta_sgd",
      ),
      (
          'row',
          ['--table=delta_sgd/table_1', '--rows=Lion'],
          "rows of delta_sgd/table_1 are SGD, .*, found 'Lion'$",
      ),
      (
          'runs_dir',
          ['--table=delta_sgd/table_1', '--runs_dir=/nowhere'],
          '--runs_dir=/nowhere is not a folder',
      ),
      (
          'long_runs_dir',
          ['--table=delta_sgd/table_1', f'--runs_dir={"a" * 256}'],
          '--runs_dir=a+ is not a folder',
      ),
      ('runs', ['--runs=/nowhere'], '/nowhere is not the folder of a run'),
  )
  def test_errors_of_the_user(self, arguments, sentence):
    if not any('runs_dir' in argument for argument in arguments):
      arguments = [*arguments, f'--runs_dir={self.runs_dir}']
    with self.assertRaisesRegex(command_line.UserError, sentence) as caught:
      _call(*arguments, f'--output_dir={self.output_dir}')
    self.assertNotIn('\n', str(caught.exception))
    self.assertFalse(self.output_dir.exists())

  def test_a_figure_without_runs_needs_no_folder_of_runs(self):
    out = _call(
        '--table=fedcada/figure_3',
        '--runs_dir=/nowhere',
        f'--output_dir={self.output_dir}',
    )
    self.assertIn('figure_3.md: 1 pictures, without runs', out)

  def test_names_with_commas_are_given_in_quotes(self):
    for name in ('a=1,b=1', 'a=1,b=2'):
      made_up_runs.write_run(self.runs_dir / name, [0.5])
    out = _call(
        f'--runs="{self.runs_dir}/a=1,b=1","{self.runs_dir}/a=1,b=2"',
        f'--output_dir={self.output_dir}',
    )
    self.assertIn('2 runs compared', out)
    text = (self.output_dir / 'comparison.md').read_text()
    self.assertIn('| a=1,b=2 | 50.00 |', text)
