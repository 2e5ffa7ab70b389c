# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the numbers of a table: its runs, gaps, places and pairs."""

import dataclasses
import itertools
import math

from absl.testing import parameterized
import pandas as pd

from experiments import published
from experiments.report import results as results_lib
from experiments.report import views
from experiments.run_results import run_folder
from experiments.run_results import statistics
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


def _build(measured, theirs=None, **kwargs):
  """Returns results from numbers by row, one for each setting."""
  groups = kwargs.get('groups', ('',))
  columns = kwargs.get('columns', ('digits',))
  settings = list(itertools.product(groups, columns))
  table = made_up_runs.build_table(
      rows=list(measured),
      numbers={
          (group, row, column): number
          for row, numbers in (theirs or {}).items()
          for (group, column), number in zip(settings, numbers)
      },
      **kwargs,
  )
  runs = [
      [group, row, column, 0, number]
      for row, numbers in measured.items()
      for (group, column), number in zip(settings, numbers)
      if number is not None
  ]
  names = [*results_lib.KEYS, 'seed', 'number']
  runs = pd.DataFrame(runs, columns=names).reindex(
      columns=[*names, 'run', *statistics.COSTS]
  )
  return results_lib.Results(table, runs, {})


def _places(results, column=views.MEASURED):
  """Returns the places by group, row and column."""
  return views.rank(results.cells, column).place.to_dict()


class RankingTest(parameterized.TestCase):

  @parameterized.named_parameters(
      # 98.4 - 97.9 is 0.5000000000000000 and a bit in binary.
      ('within', 97.9, 0.5, '**97.9** (0.5)'),
      ('between', 97.8, 0.6, '97.8 (0.6)'),
      ('at_two', 96.4, 2.0, '96.4 (2.0)'),
      ('beyond_two', 96.3, 2.1, '96.3 (2.1) †'),
  )
  def test_gaps_and_thresholds(self, value, gap, cell):
    results = _build({'best': [98.4], 'other': [value]})
    standings = views.rank(results.cells, views.MEASURED)
    self.assertEqual(list(standings.gap), [0.0, gap])
    self.assertEqual(list(standings.place), [1, 2])
    legend, shown = views.build_gaps(results, views.MEASURED)
    self.assertIn('† marks numbers more than 2 points behind.', legend)
    self.assertIn('| best | **98.4** (0.0) |\n', shown)
    self.assertEndsWith(shown, f'\n| other | {cell} |')

  def test_ties_share_the_better_place(self):
    results = _build({'a': [3.0], 'b': [3.0], 'c': [1.0], 'd': [2.0]})
    self.assertEqual(list(_places(results).values()), [1, 1, 4, 3])

  def test_the_smallest_loss_is_the_best_without_thresholds_of_percents(self):
    results = _build(
        {'a': [1.0], 'b': [9.25]},
        metric='loss',
        scale=1.0,
        higher_is_better=False,
    )
    standings = views.rank(results.cells, views.MEASURED)
    self.assertEqual(list(standings.place), [1, 2])
    self.assertEqual(list(standings.gap), [0.0, 8.25])
    shown = ''.join(views.build_gaps(results, views.MEASURED))
    self.assertIn('| a | **1.000** (0.000) |\n| b | 9.250 (8.250) |', shown)
    self.assertNotIn('†', shown)

  def test_settings_are_compared_within_themselves(self):
    results = _build(
        {'a': [1.0, 1.0, 1.0, 5.0], 'b': [2.0, None, None, 3.0]},
        groups=('g', 'h'),
        columns=('c', 'd'),
    )
    self.assertEqual(
        _places(results),
        {
            ('g', 'a', 'c'): 2,
            ('g', 'b', 'c'): 1,
            ('g', 'a', 'd'): 1,
            ('h', 'a', 'c'): 1,
            ('h', 'a', 'd'): 1,
            ('h', 'b', 'd'): 2,
        },
    )

  def test_what_was_not_measured_or_diverged_has_no_standing(self):
    results = _build({'a': [1.0], 'b': [None], 'c': [math.nan]})
    self.assertEqual(list(_places(results)), [('', 'a', 'digits')])

  def test_a_row_without_a_rival_wins_nothing(self):
    results = _build({'a': [1.0], 'b': [None]})
    self.assertEmpty(
        views.share_of_places(results.cells, views.MEASURED, max_place=1)
    )

  def test_a_row_that_diverged_is_behind_all(self):
    results = _build(
        {'SPS': [2.0, math.nan, math.nan], 'SGD': [1.0, 1.0, math.nan]},
        columns=('c', 'd', 'e'),
    )
    for place, sps, sgd in ((1, 1 / 3, 1 / 3), (2, 1 / 3, 2 / 3)):
      shares = views.share_of_places(results.cells, views.MEASURED, place)
      self.assertEqual(shares.to_dict(), {'SPS': sps, 'SGD': sgd})

  @parameterized.parameters((1, 11, '73 %'), (2, 15, '100 %'))
  def test_delta_sgd_leads_its_published_table(self, place, count, percent):
    table = published.find_table('delta_sgd/table_1')
    cells = results_lib.without_runs(table).cells
    shares = views.share_of_places(cells, views.PUBLISHED, place)
    self.assertEqual(shares['Delta-SGD'], count / 15)
    self.assertEqual(f'{100 * shares["Delta-SGD"]:.0f} %', percent)


def _other_pairs(*args, **kwargs):
  """Returns the rows of the table of pairs in another order; see `_build`."""
  found = views.build_other_pairs(_build(*args, **kwargs))
  return found[1].splitlines()[2:] if found else []


class PairsTest(parameterized.TestCase):

  def test_pairs_in_another_order_are_listed(self):
    # Of six pairs, B and C are tied, and D is ahead of the other three.
    self.assertEqual(
        _other_pairs(
            {'A': [90.0], 'B': [88.0], 'C': [88.5], 'D': [91.0]},
            {'A': [90.0], 'B': [87.0], 'C': [86.0], 'D': [85.0]},
        ),
        [
            '| digits | B | D | 2.0 | -3.0 |',
            '| digits | C | D | 1.0 | -2.5 |',
            '| digits | A | D | 5.0 | -1.0 |',
            '| digits | B | C | 1.0 | -0.5 |',
        ],
    )

  @parameterized.parameters((90.5, 50.0, 0), (80.0, 90.6, 1), (80.0, 89.0, 0))
  def test_half_a_point_sets_nothing_apart(self, theirs, ours, count):
    numbers = ({'A': [90.0], 'B': [ours]}, {'A': [90.0], 'B': [theirs]})
    self.assertLen(_other_pairs(*numbers), count)

  @parameterized.parameters((1.1, 0.6), (0.6, 1.1), (16.1, 15.6))
  def test_half_a_point_is_a_tie_here(self, a, b):
    # In binary, 1.1 - 0.6 is a bit more.
    numbers = ({'A': [a], 'B': [b]}, {'A': [90.0], 'B': [80.0]})
    self.assertLen(_other_pairs(*numbers), 1)

  @parameterized.parameters((88.0,), (math.nan,))
  def test_rows_that_diverged_are_behind_or_tied(self, other):
    numbers = ({'A': [math.nan], 'B': [other]}, {'A': [90.0], 'B': [87.0]})
    self.assertEqual(_other_pairs(*numbers), ['| digits | A | B | 3.0 | - |'])

  def test_columns_are_compared_within_themselves(self):
    # On mnist B is ahead of A, and C of A.
    self.assertEqual(
        _other_pairs(
            {'A': [90.0, 10.0], 'B': [80.0, 30.0], 'C': [None, 20.0]},
            {'A': [90.0, 20.0], 'B': [80.0, 10.0], 'C': [85.0, 0.0]},
            columns=('digits', 'mnist'),
        ),
        [
            '| mnist | A | B | 10.0 | -20.0 |',
            '| mnist | A | C | 20.0 | -10.0 |',
        ],
    )

  def test_groups_are_named(self):
    (row,) = _other_pairs(
        {'A': [90.0, 80.0], 'B': [80.0, 90.0]},
        {'A': [90.0, 90.0], 'B': [80.0, 80.0]},
        groups=('alpha = 1', 'alpha = 0.1'),
    )
    self.assertEqual(row, '| alpha = 0.1, digits | A | B | 10.0 | -10.0 |')

  def test_a_column_without_a_name_is_that_of_its_metric(self):
    (row,) = _other_pairs(
        {'A': [80.0], 'B': [90.0]}, {'A': [90.0], 'B': [80.0]}, columns=('',)
    )
    self.assertStartsWith(row, '| accuracy | A | B |')

  def test_any_difference_of_other_metrics_counts(self):
    numbers = ({'A': [1.2], 'B': [1.1]}, {'A': [1.0], 'B': [1.1]})
    options = {'scale': 1.0, 'higher_is_better': False}
    self.assertLen(_other_pairs(*numbers, **options), 1)
