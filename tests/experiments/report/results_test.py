# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what there is of the runs of a table, and of what is missing."""

import dataclasses
import math

from absl.testing import parameterized

from experiments import published
from experiments.report import results as results_lib
from experiments.run_results import run_folder
from tests import folder_testing
from tests.experiments.report import made_up_runs


class ResultsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.runs_dir = folder_testing.new(self)
    self.table = made_up_runs.build_table(rows=['SGD'])
    (self.cell,) = self.table.cells

  def _write(self, values_by_seed, **kwargs):
    made_up_runs.write_cell(self.runs_dir, self.cell, values_by_seed, **kwargs)

  def _collect(self):
    """Returns the results, and the row of the only cell."""
    results = results_lib.collect(self.table, self.runs_dir)
    return results, results.cells.iloc[0]

  def test_mean_and_std_over_seeds_in_the_unit_of_the_table(self):
    self._write([[0.1, 0.2, 0.3, 0.5], [0.1, 0.2, 0.3, 0.7]])
    results, cell = self._collect()
    self.assertEqual(cell.status, 'measured')
    self.assertEqual(cell.seeds, (0, 1))
    self.assertAlmostEqual(cell['mean'], 60.0)
    self.assertAlmostEqual(cell['std'], math.sqrt(200.0))
    run = results.runs.iloc[0]
    self.assertEqual(run.seconds, 2.0)
    self.assertEqual(run.gradient_evaluations, 40)
    self.assertEqual(run.bytes_up + run.bytes_down, 600)

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
    results, cell = self._collect()
    self.assertEqual(cell.status, 'does not count')
    self.assertEqual(cell.seeds, ())
    self.assertEqual(
        results.problems[self.cell.key],
        [
            f'seed 0: other hyperparameters, {name}={found} (the cell has '
            f'{wanted})'
        ],
    )

  @parameterized.parameters(1.0, 1000.0)
  def test_a_run_that_diverged_has_no_number(self, before):
    self.table = made_up_runs.build_table(
        rows=['SGD'], metric='loss', scale=1.0, higher_is_better=False
    )
    self._write([[before, before, before, math.nan]], metric='loss')
    _, cell = self._collect()
    self.assertEqual(cell.status, 'diverged')
    self.assertEqual(cell.ours, -math.inf)

  def test_a_column_may_measure_something_else(self):
    column = dataclasses.replace(
        self.table.columns[0],
        measure=published.Measure('clients/loss', 1.0, False),
    )
    self.table = dataclasses.replace(self.table, columns=(column,))
    self._write([[0.1, 0.2, 0.3, 0.5]])
    results, _ = self._collect()
    self.assertEqual(results.numbers(self.cell), {0: 0.25})

  @parameterized.parameters(
      ('hparams.json', '{', 'hparams.json is damaged'),
      ('metrics.csv', 'round_num,x\n5\n', 'metrics.csv, line 2 is damaged'),
  )
  def test_damaged_runs_are_an_error(self, name, text, sentence):
    self._write([[0.5] * 4])
    path = self.runs_dir / self.cell.experiment_name / 'seed_0' / name
    path.write_text(text)
    with self.assertRaisesRegex(run_folder.RunError, f'seed_0/{sentence}'):
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
    times = results_lib.ExpectedTimes(self.runs_dir)
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
