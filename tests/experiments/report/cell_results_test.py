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
"""Tests of what there is of the runs of a table, and of what is missing."""

import contextlib
import dataclasses
import io
import math
import pathlib
import shlex
import tempfile

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized

from experiments import published
from experiments.report import cell_results
from experiments.run_results import run_folder
from experiments.sweep import __main__ as sweep
from tests.experiments.report import made_up_runs
from tests.experiments.report import page_testing


class CellResultsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.runs_dir = pathlib.Path(folder)
    self.table = made_up_runs.build_table(rows=['SGD'])
    (self.cell,) = self.table.cells

  def _write(self, values_by_seed, **kwargs):
    made_up_runs.write_cell(self.runs_dir, self.cell, values_by_seed, **kwargs)

  def _collect(self):
    (result,) = cell_results.collect(self.table, self.runs_dir)
    return result

  def test_mean_and_std_over_seeds_in_the_unit_of_the_table(self):
    self._write([[0.1, 0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.7]])
    result = self._collect()
    self.assertEqual(result.status, 'measured')
    self.assertEqual(list(result.runs), [0, 1])
    self.assertAlmostEqual(result.mean, 60.0)
    self.assertAlmostEqual(result.std, math.sqrt(200.0))
    self.assertEqual(result.runs[0].seconds, 2.0)
    self.assertEqual(result.runs[0].gradient_evaluations, 40)
    self.assertEqual(result.runs[0].num_bytes, 600)

  def test_one_seed_has_no_std(self):
    self._write([[0.1, 0.2, 0.3, 0.5]])
    self.assertIsNone(self._collect().std)

  def test_nothing_was_run(self):
    result = self._collect()
    self.assertEqual(result.status, 'not run')
    self.assertIsNone(result.mean)

  @parameterized.named_parameters(
      ('unfinished', {}, 3, 'unfinished, 3 of 4 rounds'),
      (
          'a_trial_of_two_rounds',
          {'total_rounds': 2},
          2,
          r'other hyperparameters, total_rounds=2 \(the cell has 4\)',
      ),
      (
          'another_batch_size',
          {'client_batch_size': 7},
          4,
          r'other hyperparameters, client_batch_size=7 \(the cell has 5\)',
      ),
      (
          'made_up_data',
          {'use_synthetic_data': True},
          4,
          'other hyperparameters, use_synthetic_data=True',
      ),
      (
          'other_data_to_evaluate',
          {'evaluation_data': 'validation'},
          4,
          r'other hyperparameters, evaluation_data=validation \(the cell has N',
      ),
      (
          'fewer_clients',
          {'num_clients': 7},
          4,
          r'other hyperparameters, num_clients=7 \(the cell has None\)',
      ),
      (
          'a_smaller_cohort',
          {'clients_per_round': 2},
          4,
          r'other hyperparameters, clients_per_round=2 \(the cell has 10\)',
      ),
      (
          'another_seed',
          {'seed': 3},
          4,
          r'other hyperparameters, seed=3 \(the cell has 0\)',
      ),
  )
  def test_what_does_not_count(self, hparams, num_rounds, problem):
    self._write([[0.5] * num_rounds], **hparams)
    result = self._collect()
    self.assertEqual(result.status, 'does not count')
    self.assertIsNone(result.mean)
    self.assertRegex(result.problems[0], f'^seed 0: {problem}')

  def test_a_finished_seed_counts_beside_an_unfinished_one(self):
    self._write([[0.5] * 4, [0.7] * 2])
    result = self._collect()
    self.assertEqual(result.numbers, {0: 50.0})
    self.assertLen(result.problems, 1)

  @parameterized.parameters(1.0, 1000.0)
  def test_a_run_that_diverged_has_no_number(self, before):
    self.table = made_up_runs.build_table(
        rows=['SGD'], metric='loss', scale=1.0, higher_is_better=False
    )
    self._write([[before, before, before, math.nan]], metric='loss')
    result = self._collect()
    self.assertEqual(result.status, 'diverged')
    self.assertTrue(math.isnan(result.mean))

  def test_a_column_may_measure_something_else(self):
    column = dataclasses.replace(
        self.table.columns[0],
        measure=published.Measure('clients/loss', 1.0, False),
    )
    self.table = dataclasses.replace(self.table, columns=(column,))
    self._write([[0.1, 0.2, 0.3, 0.5]])
    self.assertEqual(self._collect().numbers, {0: 0.25})

  def test_damaged_runs_are_an_error(self):
    self._write([[0.5] * 4])
    path = self.runs_dir / self.cell.experiment_name / 'seed_0'
    (path / 'hparams.json').write_text('{')
    with self.assertRaisesRegex(
        run_folder.RunError, 'seed_0/hparams.json is damaged'
    ):
      self._collect()

  def test_a_damaged_row_is_an_error(self):
    self._write([[0.5] * 4])
    path = self.runs_dir / self.cell.experiment_name / 'seed_0'
    with open(path / 'metrics.csv', 'a', encoding='utf-8') as file:
      file.write('5,0.5\n')
    with self.assertRaisesRegex(
        run_folder.RunError, 'seed_0/metrics.csv, line 6 is damaged'
    ):
      self._collect()


_NAN = float('nan')


_NO_PICTURE = {'kind': 'partition'}  # Of these runs there is none to copy.
_SEEDS = {
    'all': ([0.9, 0.9, 0.9], '90.0 ± 0.0, n = 3', []),
    'some': ([0.9, 0.9], '90.0 ± 0.0, n = 2', [2]),
    'one': ([0.9], '90.0, n = 1', [1, 2]),
    'more than all': ([0.9] * 4, '90.0 ± 0.0, n = 4', []),
    'one diverged': ([0.9, _NAN, 0.9], '1 of 3 diverged', []),
    'all diverged': ([_NAN] * 3, '3 of 3 diverged', []),
    'some diverged': ([0.9, _NAN], '1 of 2 diverged', [2]),
    'the only one': ([_NAN], 'diverged, n = 1', [1, 2]),
    'none': ([], '-', [0, 1, 2]),
}


class MissingRunsTest(page_testing.PageTestCase):

  def _write_seeds(self, cell, finals):
    """Writes seeds of a cell, with a final number each."""
    made_up_runs.write_cell(
        self.runs_dir, cell, [[0.5, 0.5, 0.5, final] for final in finals]
    )

  def test_a_cell_says_how_many_seeds_it_has(self):
    table = made_up_runs.build_table(
        num_seeds=3, rows=list(_SEEDS), figure=_NO_PICTURE
    )
    for cell in table.cells:
      self._write_seeds(cell, _SEEDS[cell.row][0])
    self.write(table)
    text = self.read('.md')
    self.assertIn('8 of 9 cells were measured, 4 with all 3 seeds. ', text)
    self.assertIn(
        ' The cells differ in their seeds: n is how many a cell has, and gaps '
        'and places compare means over different seeds. ',
        text,
    )
    for cell in table.cells:
      _, shown, missing = _SEEDS[cell.row]
      self.assertIn(f'\n| {cell.row} | {shown} |\n', text)
      # What is missing is listed with its time, of four rounds of half a
      # second a run, and with its command.
      command = (
          published.build_command(
              cell, seed=missing[0], output_dir=str(self.runs_dir)
          )
          if len(missing) == 1
          else published.build_sweep_command(
              cell, missing, output_dir=str(self.runs_dir)
          )
      )
      seeds = ', '.join(map(str, missing))
      line = (
          f'\n| {cell.row} / digits | {seeds} | {2 * len(missing)} s | '
          f'`{command}` |\n'
      )
      (self.assertIn if missing else self.assertNotIn)(line, text)
    self.assertEqual(text.count('/ digits |'), 5)

  @parameterized.parameters(
      ([0.9, 0.9], [0.8, 0.8], 'Each measured number is of 2 seeds. '),
      ([0.9], [0.8], 'Each measured number is of 1 seed. '),
      ([], [0.8], 'Each measured number is of 1 seed. '),
      ([], [], ''),
  )
  def test_a_page_says_how_many_seeds_all_cells_have(self, sgd, delta, text):
    table = made_up_runs.build_table(num_seeds=3, figure=_NO_PICTURE)
    for cell, finals in zip(table.cells, (sgd, delta)):
      self._write_seeds(cell, finals)
    self.write(table)
    found = self.read('.md')
    self.assertIn(f'it is the mean ± the standard deviation. {text}How', found)
    self.assertNotIn('n = ', found)

  def test_as_many_other_seeds_are_not_the_same(self):
    table = made_up_runs.build_table(num_seeds=2, figure=_NO_PICTURE)
    for seed, cell in enumerate(table.cells):
      folder = self.runs_dir / cell.experiment_name / f'seed_{seed}'
      made_up_runs.write_run(folder, [0.9] * 4, seed=seed)
    self.write(table)
    self.assertIn('The cells differ in their seeds', self.read('.md'))
    self.assertIn('\n| SGD | 90.0, n = 1 |\n', self.read('.md'))

  def test_a_single_seed_is_not_counted(self):
    table = made_up_runs.build_table(rows=['SGD'], figure=_NO_PICTURE)
    self._write_seeds(table.cells[0], [_NAN])
    self.write(table)
    text = self.read('.md')
    self.assertIn('\n| SGD | diverged |\n', text)
    self.assertIn('1 of 1 cells were measured. ', text)
    self.assertNotIn('## Not run', text)

  def test_a_run_that_does_not_count_is_missing(self):
    table = made_up_runs.build_table(
        num_seeds=2, rows=['SGD'], figure=_NO_PICTURE
    )
    self._write_seeds(table.cells[0], [0.9, 0.9])
    folder = self.runs_dir / table.cells[0].experiment_name / 'seed_1'
    made_up_runs.write_run(folder, [0.1], seed=1)
    self.write(table)
    text = self.read('.md')
    self.assertIn('| SGD / digits | seed 1: unfinished, 1 of 4 rounds |', text)
    self.assertIn('| SGD / digits | 1 | ', text)
    self.assertIn('An unfinished run goes on with its command', text)

  def test_the_command_of_several_seeds_runs_just_these(self):
    cell = published.find_table('delta_sgd/table_3').cells[0]
    command = published.build_sweep_command(cell, [1, 2], output_dir='out')
    _, *arguments = command.split(' -m ')
    values = flags.FlagValues()
    sweep.define(values)
    values([*shlex.split(arguments[0]), '--dry_run'])
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
      sweep.main(values)
    found = out.getvalue().splitlines()
    self.assertLen(found, 2)
    for line, seed in zip(found, (1, 2)):
      self.assertEqual(
          set(shlex.split(line)[1:]),
          set(
              shlex.split(
                  published.build_command(cell, seed=seed, output_dir='out')
              )[1:]
          ),
      )

  def test_pictures_of_kept_states_have_a_command(self):
    table = made_up_runs.build_table(num_seeds=2, figure={'kind': 'cka'})
    self.write(table)
    trace = 'python -m experiments.trace --run='
    self.assertIn(f'\n{trace}RUN --round=ROUND --cka', self.read('.md'))
    self._write_seeds(table.cells[0], [0.9, 0.9])
    folder = self.runs_dir / table.cells[0].experiment_name
    (folder / 'seed_0' / 'plots').mkdir()
    (folder / 'seed_0' / 'plots' / 'cka.png').write_bytes(b'picture')
    self.write(table)
    text = self.read('.md')
    self.assertIn('](table_1_1.png)', text)
    self.assertIn(
        f'\n{trace}{folder}/seed_1 --round=4 --cka --data_dir=data\n', text
    )
    self.assertEqual(text.count(trace), 1)

  @parameterized.parameters(
      ({}, False),
      ({'estimate': 'best'}, True),
      ({'chosen_on_test': True}, True),
  )
  def test_numbers_chosen_on_the_test_data_are_stamped(self, changes, stamped):
    table = made_up_runs.build_table(
        rows=['1'], columns=['1'], figure={'kind': 'best_server_rate'}
    )
    self._write_seeds(table.cells[0], [0.9])
    self.write(dataclasses.replace(table, **changes))
    text = self.read('.md')
    for line in (
        f'This page is for **{published.REPLICATION_ONLY}**.',
        f'\nMade-up numbers ({published.REPLICATION_ONLY}): the best server',
    ):
      self.assertEqual(line in text, stamped)

  def test_curves_choose_nothing(self):
    table = made_up_runs.build_table(figure={'kind': 'curves'})
    self._write_seeds(table.cells[0], [0.9])
    self.write(dataclasses.replace(table, estimate='best'))
    text = self.read('.md')
    self.assertIn('\nMade-up numbers: by round', text)
    self.assertIn('This page is for **replication only', text)


class ExpectedTimesTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.runs_dir = pathlib.Path(folder)
    (self.cell,) = made_up_runs.build_table(rows=['SGD']).cells

  def _write(self, name='run', seconds=(0.5,), **kwargs):
    made_up_runs.write_run(
        self.runs_dir / 'any' / name, [0.5] * 3, seconds=seconds, **kwargs
    )

  def _describe(self, seeds=1):
    times = cell_results.ExpectedTimes(self.runs_dir)
    return times.describe(self.cell, seeds)

  def test_without_runs_it_is_unknown(self):
    self.assertEqual(self._describe(), 'unknown')

  def test_rounds_and_seeds_are_multiplied(self):
    self._write()
    # Four rounds of half a second, with three seeds.
    self.assertEqual(self._describe(seeds=3), '6 s')

  def test_the_first_round_compiles_and_does_not_count(self):
    self._write(seconds=(90.0, 2.0))
    self.assertEqual(self._describe(), '8 s')

  @parameterized.named_parameters(
      ('model', {'digits_model': 'logistic'}),
      ('task', {'task': 'mnist'}),
      ('made_up_data', {'use_synthetic_data': True}),
      ('fewer_clients', {'num_clients': 5}),
      ('cohort', {'clients_per_round': 2}),
      ('batches', {'client_batch_size': 50}),
      ('epochs', {'client_epochs': 2}),
      ('examples', {'max_examples': 8}),
  )
  def test_runs_of_other_work_do_not_count(self, hparams):
    self._write('other', seconds=(9.0,), **hparams)
    self.assertEqual(self._describe(), 'unknown')
    self._write()
    self.assertEqual(self._describe(), '2 s')

  def test_the_same_method_counts_before_others(self):
    self._write('other', seconds=(9.0,), client_optimizer='adam')
    self._write('another', seconds=(7.0,), algorithm='scaffold')
    # Of others the median.
    self.assertEqual(self._describe(), '32 s')
    self._write()
    self.assertEqual(self._describe(), '2 s')

  def test_damaged_runs_are_left_out(self):
    self._write()
    self._write('bad')
    self._write('worse')
    (self.runs_dir / 'any' / 'bad' / 'hparams.json').write_text('{')
    (self.runs_dir / 'any' / 'worse' / 'metrics.csv').write_text('x\n1,2\n')
    self.assertEqual(self._describe(), '2 s')


if __name__ == '__main__':
  absltest.main()
