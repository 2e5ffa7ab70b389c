# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the pages of published tables."""

import csv
import dataclasses
import io
import math
import shlex
from unittest import mock

from absl.testing import parameterized

from experiments import published
from experiments.run_results import run_folder
from experiments.sweep import __main__ as sweep
from tests.experiments import binary_testing
from tests.experiments.report import made_up_runs
from tests.experiments.report import page_testing
from tests.tff_adaptive import file_testing

_NAN = float('nan')
_PUBLISHED = {
    ('', 'SGD', 'digits'): 90.0,
    ('', 'Adam', 'digits'): 89.7,
    ('', 'Delta-SGD', 'digits'): 80.0,
}
# A figure with numbers, of which no panel shows any.
_NO_PICTURE = {
    'kind': 'final_over',
    'panels': {'none': {'group': 'none', 'columns': []}},
}
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


class PageTest(page_testing.PageTestCase):

  def test_begins_with_the_answer(self):
    table = made_up_runs.build_table(
        num_seeds=2,
        numbers={
            ('', 'SGD', 'digits'): 90.0,
            ('', 'Delta-SGD', 'digits'): 80.0,
        },
    )
    self.write_runs(table, [0.9, 0.8])
    differs = ('The model is smaller.', 'It explains little.')
    self.write(dataclasses.replace(table, estimate='best', differs=differs))
    _, _, first, *_ = self.read('.md').splitlines()
    self.assertStartsWith(
        first,
        f'This page is for **{published.REPLICATION_ONLY}**. **Numbers differ '
        'from the published ones by 0.0 points in the median',
    )
    self.assertEndsWith(
        first,
        ' Each measured number is over 2 seeds. The model is smaller. It '
        'explains little.',
    )

  def test_a_table_with_everything(self):
    table = made_up_runs.build_table(
        num_seeds=2,
        rows=['SGD', 'Adam', 'Delta-SGD', 'SPS'],
        numbers=_PUBLISHED,
    )
    self.write_runs(table, [0.901, 0.925, 0.5])
    made_up_runs.write_cell(self.runs_dir, table.cells[2], [[0.5], [0.5]])
    out = self.write(table)
    self.assertEqual(
        out, f'{self.output_dir}/paper/table_1.md: 2 of 4 cells measured\n'
    )
    text = self.read('.md')
    command = published.build_sweep_command(
        table.cells[3], [0, 1], output_dir=str(self.runs_dir)
    )
    for line in (
        '# paper, Table 1: Made-up numbers.',
        '| SGD | 90.1 ± 0.7 (90.0) |',
        '| Adam | 92.5 ± 0.7 (89.7) |',
        '| Delta-SGD | does not count (80.0) |',
        '| SPS | - |',
        # Gaps, measured and published.
        '| SGD | 90.1 (2.4) † |',
        '| Adam | **92.5** (0.0) |',
        '| Adam | **89.7** (0.3) |',
        '| Delta-SGD | 80.0 (10.0) † |',
        '| Delta-SGD / digits | seed 0: unfinished, 1 of 4 rounds |',
        # Two seeds of four rounds of half a second.
        f'| SPS / digits | 0, 1 | 4 s | `{command}` |',
        '| seeds | 0, 1 |',
        '| time of all rounds, without starts and evaluations | 8 s (8 s) |',
        'report --table=table_1',
    ):
      self.assertIn(f'\n{line}\n', f'\n{text}')
    # Its shares of first places would say no more.
    self.assertNotIn('## First and second places', text)
    self.assertIn('![Made-up numbers: by round', text)
    self.assert_plotted()
    self.assertIn('**92.5** (0.0)', text)

  def test_csv_has_every_cell(self):
    table = made_up_runs.build_table(numbers=_PUBLISHED)
    self.write_runs(table, [0.9])
    self.write(table)
    first, second = csv.DictReader(io.StringIO(self.read('.csv')))
    self.assertEqual(
        first,
        {
            'paper': 'paper',
            'table': 'table_1',
            'group': '',
            'row': 'SGD',
            'column': 'digits',
            'published': '90',
            'published_std': '',
            'measured_mean': '90',
            'measured_std': '0.7071067812',
            'seeds': '0 1',
            'rounds_done': '4',
            'seconds': '2',
            'gradient_evaluations': '40',
            'bytes': '600',
            'status': 'measured',
            'problems': '',
            'command': published.build_command(
                table.cells[0], output_dir=str(self.runs_dir)
            ),
        },
    )
    self.assertEqual(second['status'], 'not run')
    self.assertEqual(second['measured_mean'], '')

  def test_nothing_was_run(self):
    table = made_up_runs.build_table(figure={'kind': 'curves'})
    self.assertIn('0 of 2 cells measured', self.write(table))
    text = self.read('.md')
    self.assertIn('None yet: no valid run has its data.', text)
    self.assertIn(
        '| SGD / digits | 0 | unknown | `.venv/bin/python -m '
        'experiments.train ',
        text,
    )
    self.assertFalse((self.output_dir / 'paper' / 'table_1.png').exists())

  def test_only_missing_runs_need_the_times_of_all_runs(self):
    table = made_up_runs.build_table(num_seeds=2)
    self.write_runs(table, [0.9, 0.8])
    with mock.patch.object(run_folder, 'find_runs', return_value=()) as find:
      self.write(table)
      find.assert_not_called()
      self.write(dataclasses.replace(table, seeds=3))
      find.assert_called_once()

  def test_a_full_disk_leaves_the_pages_as_they_were(self):
    table = made_up_runs.build_table(figure={'kind': 'partition'})
    self.write_runs(table, [0.5])
    plots = self.runs_dir / table.cells[0].experiment_name / 'seed_0' / 'plots'
    plots.mkdir()
    (plots / 'partition.png').write_bytes(made_up_runs.PNG + b'one')
    self.write(table)
    before = file_testing.read_files(self.output_dir)
    self.assertLen(before, 3)
    (plots / 'partition.png').write_bytes(made_up_runs.PNG + b'twice')
    for max_size in (1, 100):  # The picture fits into the second one.
      with (
          file_testing.max_file_size(max_size),
          self.assertRaisesRegex(OSError, 'could not write .*table_1'),
      ):
        self.write(table)
      after = file_testing.read_files(self.output_dir)
      self.assertEqual(after['paper/table_1.md'], before['paper/table_1.md'])
      if max_size == 1:
        self.assertEqual(after, before)

  def test_groups_without_a_number_have_no_gaps(self):
    table = made_up_runs.build_table(groups=['g', 'h'], figure=_NO_PICTURE)
    self.write_runs(table, [0.5, 0.6])
    self.write(table)
    _, gaps = self.read('.md').split('## Gap to the best, measured')
    gaps, _ = gaps.split('## Figure')
    self.assertIn('| g | digits |', gaps)
    self.assertNotIn('| h | digits |', gaps)

  def test_published_numbers_are_shown_as_printed(self):
    numbers = {
        ('', 'a', 'digits'): 90.1,
        ('', 'b', 'digits'): 89.2,
        ('', 'c', 'digits'): 9.574,
    }
    table = made_up_runs.build_table(rows=list('abc'), numbers=numbers)
    cells = (
        *table.cells[:2],
        dataclasses.replace(table.cells[2], published_std=0.25),
    )
    self.write_runs(table, [0.90123, 0.9, 0.5])
    self.write(dataclasses.replace(table, cells=cells))
    for line in (
        '| a | 90.1 ± 0.7 (90.1) |',
        '| c | 50.0 ± 0.7 (9.574 ± 0.25) |',
        # The gap to 90.1.
        '| c | 9.574 (80.526) † |',
        '| c | 50.0 (40.1) † |',
    ):
      self.assertIn(f'\n{line}\n', self.read('.md'))

  def test_measured_numbers_that_look_the_same_share_a_place(self):
    table = made_up_runs.build_table(
        rows=['SGD', 'Adam', 'SPS'], columns=['one', 'other']
    )
    self.write_runs(table, [0.98394, 0.98394, 0.984015, 0.5, 0.9, math.nan])
    self.write(table)
    for line in (
        '| SGD | **98.4** (0.0) | **98.4** (0.0) |',
        '| Adam | **98.4** (0.0) | 50.0 (48.4) † |',
        '| SPS | 90.0 (8.4) † | - |',
        '| SGD | 100 % | 100 % |',
        '| Adam | 50 % | 100 % |',
        '| SPS | 0 % | 0 % |',
    ):
      self.assertIn(f'\n{line}\n', self.read('.md'))

  def test_first_places_and_pairs_are_counted_over_settings(self):
    numbers = {
        ('', row, column): number
        for column in ('one', 'other')
        for row, number in (('SGD', 90.0), ('Adam', 89.0), ('SPS', 80.0))
    }
    table = made_up_runs.build_table(
        rows=['SGD', 'Adam', 'SPS'], columns=['one', 'other'], numbers=numbers
    )
    self.write_runs(table, [0.9, 0.9, 0.925, 0.925])
    self.write(table)
    for line in (
        '| SGD | 0 % | 100 % | 100 % | 100 % |',
        '| Adam | 100 % | 100 % | 0 % | 100 % |',
        '| SPS | - | - | 0 % | 0 % |',
        '## Pairs that are tied or reversed here',
        '| setting | better in the paper | worse | by | here by |',
        '| one | SGD | Adam | 1.0 | -2.5 |',
        '| other | SGD | Adam | 1.0 | -2.5 |',
    ):
      self.assertIn(f'\n{line}\n', self.read('.md'))

  def test_a_part_of_a_table_says_so(self):
    table = made_up_runs.build_table(
        rows=['SGD', 'Adam', 'SPS'],
        columns=['one', 'other'],
        figure=_NO_PICTURE,
    ).part(columns=['other'])
    self.write_runs(table, [0.9])
    self.write(table)
    text = self.read('.md')
    self.assertStartsWith(
        text, '# paper, Table 1: Made-up numbers; here other.'
    )
    self.assertIn(' 1 of 6 cells were measured. ', text)

  def test_a_figure_without_numbers_shows_none(self):
    table = made_up_runs.build_table(figure={'kind': 'partition'})
    self.write_runs(table, [0.9, 0.8])
    self.write(dataclasses.replace(table, estimate='best'))
    text = self.read('.md')
    self.assertIn('2 of 2 cells were measured.\n', text)
    for absent in ('90.0', '## Measured', '## Gap', published.REPLICATION_ONLY):
      self.assertNotIn(absent, text)


class SeedsTest(page_testing.PageTestCase):

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
        'Cells have different seeds (n is their number); gaps and places '
        'compare means over different seeds.',
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
      ([0.9, 0.9], [0.8, 0.8], 'Each measured number is over 2 seeds.'),
      ([0.9], [0.8], 'Each measured number is over 1 seed.'),
      ([], [0.8], 'Each measured number is over 1 seed.'),
      ([], [], 'Source: no paper, Table 1.'),
  )
  def test_a_page_says_how_many_seeds_all_cells_have(self, sgd, delta, text):
    table = made_up_runs.build_table(num_seeds=3, figure=_NO_PICTURE)
    for cell, finals in zip(table.cells, (sgd, delta)):
      self._write_seeds(cell, finals)
    self.write(table)
    found = self.read('.md')
    _, _, first, *_ = found.splitlines()
    self.assertIn(text, first)
    self.assertNotIn('n = ', found)

  def test_as_many_other_seeds_are_not_the_same(self):
    table = made_up_runs.build_table(num_seeds=2, figure=_NO_PICTURE)
    for seed, cell in enumerate(table.cells):
      folder = self.runs_dir / cell.experiment_name / f'seed_{seed}'
      made_up_runs.write_run(folder, [0.9] * 4, seed=seed)
    self.write(table)
    self.assertIn('Cells have different seeds', self.read('.md'))
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
    self.assertIn('The command below resumes an unfinished run', text)

  def test_the_command_of_several_seeds_runs_just_these(self):
    cell = published.find_table('delta_sgd/table_3').cells[0]
    command = published.build_sweep_command(cell, [1, 2], output_dir='out')
    arguments = shlex.split(command.partition(' -m ')[2])[1:]
    found = binary_testing.call(sweep, *arguments, '--dry_run').splitlines()
    self.assertLen(found, 2)
    for line, seed in zip(found, (1, 2)):
      self.assertEqual(
          set(shlex.split(line)[3:]),
          set(published.train_arguments(cell, seed=seed, output_dir='out')),
      )

  def test_pictures_of_kept_states_have_a_command(self):
    table = made_up_runs.build_table(num_seeds=2, figure={'kind': 'cka'})
    self.write(table)
    trace = '.venv/bin/python -m experiments.trace --run='
    self.assertIn(f'\n{trace}RUN --round=ROUND --cka', self.read('.md'))
    self._write_seeds(table.cells[0], [0.9, 0.9])
    folder = self.runs_dir / table.cells[0].experiment_name
    (folder / 'seed_0' / 'plots').mkdir()
    (folder / 'seed_0' / 'plots' / 'cka.png').write_bytes(made_up_runs.PNG)
    self.write(table)
    text = self.read('.md')
    self.assertIn('](table_1_1.png)', text)
    self.assertIn(
        f'\n{trace}{folder}/seed_1 --round=4 --cka --data_dir=data\n', text
    )
    self.assertEqual(text.count(trace), 1)

  def test_figures_of_numbers_chosen_on_the_test_data_are_stamped(self):
    table = made_up_runs.build_table(
        rows=['1'], columns=['1'], figure={'kind': 'best_server_rate'}
    )
    self._write_seeds(table.cells[0], [0.9])
    stamped = f'\nMade-up numbers ({published.REPLICATION_ONLY}): the best ser'
    for chosen in (False, True):
      self.write(dataclasses.replace(table, chosen_on_test=chosen))
      self.assertEqual(stamped in self.read('.md'), chosen)

  def test_curves_choose_nothing(self):
    table = made_up_runs.build_table(figure={'kind': 'curves'})
    self._write_seeds(table.cells[0], [0.9])
    self.write(dataclasses.replace(table, estimate='best'))
    text = self.read('.md')
    self.assertIn('\nMade-up numbers: by round', text)
    self.assertIn('This page is for **replication only', text)
