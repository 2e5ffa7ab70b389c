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
"""Tests of the files of a report, from folders of runs."""

import contextlib
import csv
import dataclasses
import io
import math
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
from matplotlib import image
import numpy as np

from experiments import published
from experiments.report import writing
from experiments.run_results import run_folder
from tests.experiments.report import made_up_runs
from tests.experiments.report import page_testing
from tests.tff_adaptive import file_testing
from tff_adaptive import analysis

_PUBLISHED = {
    ('', 'SGD', 'digits'): 90.0,
    ('', 'Adam', 'digits'): 89.7,
    ('', 'Delta-SGD', 'digits'): 80.0,
}


class WritingTest(page_testing.PageTestCase):

  def _write_runs(self, table, finals, **kwargs):
    """Writes two seeds of every cell with a final number, half a point off."""
    for cell, final in zip(table.cells, finals):
      if final is not None:
        made_up_runs.write_cell(
            self.runs_dir,
            cell,
            [[0.1, 0.2, 0.3, final + spread] for spread in (-0.005, 0.005)],
            **kwargs,
        )

  def _shade(self, path):
    self.assertGreater(np.std(image.imread(path)), 0.02)

  def test_a_table_with_everything(self):
    table = made_up_runs.build_table(
        num_seeds=2,
        rows=['SGD', 'Adam', 'Delta-SGD', 'SPS'],
        numbers=_PUBLISHED,
    )
    self._write_runs(table, [0.901, 0.925, 0.5])
    made_up_runs.write_cell(self.runs_dir, table.cells[2], [[0.5], [0.5]])
    out = self.write(table)
    self.assertEqual(
        out, f'{self.output_dir}/paper/table_1.html: 2 of 4 cells measured\n'
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
        # First, and first or second, measured and published.
        '| SGD | 0 % | 100 % | 100 % | 100 % |',
        '| Adam | 100 % | 100 % | 0 % | 100 % |',
        '| Delta-SGD | - | - | 0 % | 0 % |',
        '| Delta-SGD / digits | seed 0: unfinished, 1 of 4 rounds |',
        # Two seeds of four rounds of half a second.
        f'| SPS / digits | 0, 1 | 4 s | `{command}` |',
        '| seeds | 0, 1 |',
        '| time of all rounds | 8 s (8 s) |',
        'report --table=table_1',
    ):
      self.assertIn(f'\n{line}\n', f'\n{text}')
    self.assertIn('![Made-up numbers: by round', text)
    self._shade(self.output_dir / 'paper' / 'table_1.png')
    html = self.read('.html')
    self.assertIn('<strong>92.5</strong> (0.0)', html)
    self.assertIn('src="data:image/png;base64,', html)

  def test_csv_has_every_cell(self):
    table = made_up_runs.build_table(numbers=_PUBLISHED)
    self._write_runs(table, [0.9])
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
    self.assertIn('None yet: no run that counts has what it shows.', text)
    self.assertIn(
        '| SGD / digits | 0 | unknown | `python -m experiments.train ', text
    )
    self.assertFalse((self.output_dir / 'paper' / 'table_1.png').exists())

  @parameterized.named_parameters(
      ('curves', {'kind': 'curves', 'metric': 'clients/loss'}),
      ('curves_std', {'kind': 'curves', 'band': 'std', 'y_min': 0}),
      ('step_sizes', {'kind': 'step_sizes', 'log_y': True}),
      ('heat_map', {'kind': 'heat_map', 'x_label': 'server rate'}),
      ('best_server_rate', {'kind': 'best_server_rate'}),
      ('final_over', {'kind': 'final_over', 'log_x': True}),
  )
  def test_figures_of_every_kind(self, figure):
    table = made_up_runs.build_table(
        groups=['g', 'h'],
        rows=['0.1', '0.01'],
        columns=['1', '10', '100'],
        figure=figure,
    )
    self._write_runs(
        table, [0.5, 0.6, None, 0.7, None, 0.8, 0.9], step_size=0.1
    )
    self.write(table)
    self._shade(self.output_dir / 'paper' / 'table_1.png')
    self.assertIn('Made by `report --table=table_1`.', self.read('.md'))

  @parameterized.parameters('partition', 'cka')
  def test_pictures_of_runs_are_copied_once(self, kind):
    table = made_up_runs.build_table(
        rows=['a', 'b', 'c'], figure={'kind': kind}
    )
    self._write_runs(table, [0.5, 0.5, 0.5])
    for cell, data in zip(table.cells, (b'one', b'one', b'two')):
      plots = self.runs_dir / cell.experiment_name / 'seed_0' / 'plots'
      plots.mkdir()
      (plots / f'{kind}.png').write_bytes(data)
    self.write(table)
    found = sorted((self.output_dir / 'paper').glob('*.png'))
    self.assertEqual(
        [p.name for p in found], ['table_1_1.png', 'table_1_2.png']
    )
    self.assertEqual([p.read_bytes() for p in found], [b'one', b'two'])

  def test_a_full_disk_leaves_the_pages_as_they_were(self):
    table = made_up_runs.build_table(figure={'kind': 'partition'})
    self._write_runs(table, [0.5])
    plots = self.runs_dir / table.cells[0].experiment_name / 'seed_0' / 'plots'
    plots.mkdir()
    (plots / 'partition.png').write_bytes(b'one')
    self.write(table)
    before = file_testing.read_files(self.output_dir)
    self.assertLen(before, 4)
    (plots / 'partition.png').write_bytes(b'twice')
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
    table = made_up_runs.build_table(
        groups=['g', 'h'], figure={'kind': 'partition'}
    )
    self._write_runs(table, [0.5, 0.6])
    self.write(table)
    _, gaps = self.read('.md').split('## Gap to the best, measured')
    gaps, _ = gaps.split('## Figure')
    self.assertIn('| g | digits |', gaps)
    self.assertNotIn('| h | digits |', gaps)

  def test_words_as_settings(self):
    table = made_up_runs.build_table(
        columns=['low', 'high'], figure={'kind': 'final_over'}
    )
    self._write_runs(table, [0.5, 0.6])
    self.write(table)
    self._shade(self.output_dir / 'paper' / 'table_1.png')

  def test_losses_have_a_smallest_best_and_no_thresholds_of_percents(self):
    table = made_up_runs.build_table(
        metric='loss',
        scale=1.0,
        higher_is_better=False,
        numbers={('', 'SGD', 'digits'): 9.25, ('', 'Delta-SGD', 'digits'): 1.0},
    )
    table = dataclasses.replace(table, estimate='best')
    self.write(table)
    self.assertIn('| SGD | 9.25 (8.25) |', self.read('.md'))
    self.assertIn('**1', self.read('.md'))

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
    self._write_runs(table, [0.90123, 0.9, 0.5])
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
    self._write_runs(table, [0.98394, 0.98394, 0.984015, 0.5, 0.9, math.nan])
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

  def test_a_group_may_measure_something_else(self):
    table = made_up_runs.build_table(
        groups=['images', 'errors'],
        rows=['0.1', '1'],
        columns=['1'],
        figure={'kind': 'heat_map'},
    )
    loss = published.Measure('clients/loss', 1.0, False)
    images, errors = table.groups
    table = dataclasses.replace(
        table, groups=(images, dataclasses.replace(errors, measure=loss))
    )
    self._write_runs(table, [0.5, 0.6, 0.5, 0.6])
    with mock.patch.object(analysis, 'plot_rate_grids') as plot:
      plot.side_effect = ValueError('drawn')
      with self.assertRaisesRegex(ValueError, '^drawn$'):
        self.write(table)
    panels = plot.call_args.args[0]
    np.testing.assert_allclose(panels['images'].values, [[50.0], [60.0]])
    np.testing.assert_allclose(panels['errors'].values, [[0.25], [0.25]])
    self.assertTrue(panels['images'].higher_is_better)
    self.assertFalse(panels['errors'].higher_is_better)

  def test_any_runs_are_compared(self):
    made_up_runs.write_run(self.runs_dir / 'a', [0.2, 0.9, 0.4, 0.5])
    for seed in range(2):
      made_up_runs.write_run(
          self.runs_dir / 'b' / f'seed_{seed}', [0.6, 0.8], seed=seed
      )
    with contextlib.redirect_stdout(io.StringIO()):
      writing.write_comparison(
          [f'{self.runs_dir}/a/', f'{self.runs_dir}/b'],
          self.output_dir,
          'report --runs',
      )
    text = (self.output_dir / 'comparison.md').read_text()
    self.assertIn('| a | 50.00 | 90.00 | 50.00 | 4 | 2 s | 1 |', text)
    self.assertIn(
        '| b | 80.00 ± 0.00 | 80.00 ± 0.00 | 70.00 ± 0.00 | '
        '2 of 4, unfinished | 2 s | 2 |',
        text,
    )
    self._shade(self.output_dir / 'comparison.png')
    self.assertTrue((self.output_dir / 'comparison.html').exists())

  def test_what_cannot_be_compared(self):
    made_up_runs.write_run(self.runs_dir / 'a', [0.2])
    made_up_runs.write_run(self.runs_dir / 'b', [0.2], metric='perplexity')
    for paths, sentence in (
        (['a', 'b'], '^--runs have no metric of the evaluation in common'),
        (['c'], 'c is not the folder of a run: it has no hparams.json$'),
    ):
      with self.assertRaisesRegex(run_folder.RunError, sentence):
        writing.write_comparison(
            [str(self.runs_dir / path) for path in paths],
            self.output_dir,
            'report',
        )


if __name__ == '__main__':
  absltest.main()
