# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what there is of the runs of a table, and of what is missing."""

import dataclasses
import math

from absl.testing import parameterized

from experiments import published
from experiments.report import cell_results
from experiments.run_results import run_folder
from tests import folder_testing
from tests.experiments.report import made_up_runs


class CellResultsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.runs_dir = folder_testing.new(self)
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

  @parameterized.parameters(
      ('total_rounds', 2, 4),  # A trial of two rounds.
      ('client_batch_size', 7, 5),
      ('use_synthetic_data', True, False),
      ('evaluation_data', 'validation', None),
      ('num_clients', 7, None),
      ('clients_per_round', 2, 10),
      ('seed', 3, 0),
  )
  def test_other_hyperparameters_do_not_count(self, name, found, wanted):
    rounds = found if name == 'total_rounds' else 4
    self._write([[0.5] * rounds], **{name: found})
    result = self._collect()
    self.assertEqual(result.status, 'does not count')
    self.assertIsNone(result.mean)
    self.assertEqual(
        result.problems,
        (
            f'seed 0: other hyperparameters, {name}={found} (the cell has '
            f'{wanted})',
        ),
    )

  def test_a_finished_seed_counts_beside_an_unfinished_one(self):
    self._write([[0.5] * 4, [0.7] * 2])
    result = self._collect()
    self.assertEqual(result.numbers, {0: 50.0})
    self.assertEqual(result.problems, ('seed 1: unfinished, 2 of 4 rounds',))

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


class ExpectedTimesTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.runs_dir = folder_testing.new(self)
    (self.cell,) = made_up_runs.build_table(rows=['SGD']).cells

  def _write(self, name='run', seconds=(0.5,), num_rounds=3, **kwargs):
    made_up_runs.write_run(
        self.runs_dir / 'any' / name,
        [0.5] * num_rounds,
        seconds=seconds,
        **kwargs,
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

  def test_a_few_long_rounds_count(self):
    self._write(seconds=(90.0, 1.0, 1.0, 7.0), num_rounds=4)
    # Four rounds of three seconds, the mean.
    self.assertEqual(self._describe(), '12 s')

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
    # Others have the median.
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
