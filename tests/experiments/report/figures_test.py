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
"""Tests of the figures of a table, and of their numbers."""

from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import pytest

from experiments import published
from experiments.report import figures
from tests.experiments.report import made_up_runs
from tests.experiments.report import page_testing
from tff_adaptive import analysis


class FiguresTest(parameterized.TestCase):

  def test_defaults(self):
    table = made_up_runs.build_table()
    self.assertEqual(figures.read_options(table), figures.DEFAULT)

  def test_options(self):
    table = made_up_runs.build_table(
        figure={'kind': 'curves', 'log_y': True, 'y_min': 50, 'title': 'T'}
    )
    self.assertEqual(
        figures.read_options(table),
        figures.FigureOptions('curves', log_y=True, y_min=50, title='T'),
    )

  @parameterized.named_parameters(
      ('no_kind', {}, 'kind is one of curves, heat_map, .*, found None$'),
      ('kind', {'kind': 'pie'}, "kind is one of .*, found 'pie'$"),
      (
          'option',
          {'kind': 'curves', 'log': True},
          "of kind curves takes title, .*, metric, band, found 'log'$",
      ),
      (
          'option_of_another_kind',
          {'kind': 'heat_map', 'band': 'std'},
          "of kind heat_map takes .*, found 'band'$",
      ),
      (
          'switch',
          {'kind': 'curves', 'log_y': 'yes'},
          "log_y is true or false, found 'yes'$",
      ),
      (
          'limit',
          {'kind': 'curves', 'y_max': True},
          'y_max is a number, found True$',
      ),
      ('text', {'kind': 'curves', 'title': 1}, 'title is a text, found 1$'),
      (
          'band',
          {'kind': 'curves', 'band': 'all'},
          "band is range or std, found 'all'$",
      ),
      (
          'rates',
          {'kind': 'heat_map'},
          'rows must be numbers above 0, found SGD, Delta-SGD$',
      ),
      (
          'logarithm_of_words',
          {'kind': 'final_over', 'log_x': True},
          'columns must be numbers above 0, found digits$',
      ),
  )
  def test_errors_name_the_place_and_what_would_be_right(self, figure, text):
    table = made_up_runs.build_table(figure=figure)
    with self.assertRaisesRegex(
        figures.FigureError, f'^paper/table_1: figure.*{text}'
    ):
      figures.read_options(table)

  @parameterized.parameters('0', '-1', 'inf', 'nan')
  def test_rates_that_no_axis_can_show(self, name):
    with self.assertRaisesRegex(figures.FigureError, f'found 0.1, {name}$'):
      figures.to_rates(['0.1', name], 'here')

  @pytest.mark.slow
  def test_the_figures_of_the_papers_can_be_drawn(self):
    tables = published.load_tables()
    self.assertNotEmpty([table for table in tables if table.figure])
    for table in tables:
      figures.read_options(table)


_NAN = float('nan')


class FigureDataTest(page_testing.PageTestCase):

  def _draw_grids(self, finals_by_cell):
    """Returns the heat maps of two groups of one row and three columns."""
    table = made_up_runs.build_table(
        groups=['g', 'h'],
        rows=['0.1'],
        columns=['1', '10', '100'],
        figure={'kind': 'heat_map'},
    )
    for cell, finals in zip(table.cells, finals_by_cell):
      made_up_runs.write_cell(
          self.runs_dir, cell, [[0.5, 0.5, 0.5, final] for final in finals]
      )
    with mock.patch.object(analysis, 'plot_rate_grids') as plot:
      plot.side_effect = ValueError('drawn')
      with self.assertRaisesRegex(ValueError, '^drawn$'):
        self.write(table)
    return plot.call_args.args[0]

  def test_a_run_that_diverged_is_not_one_that_is_missing(self):
    grids = self._draw_grids([[0.5], [0.5, _NAN], []])
    self.assertEqual(list(grids), ['g'])
    np.testing.assert_array_equal(grids['g'].values, [[50.0, _NAN, _NAN]])
    np.testing.assert_array_equal(grids['g'].diverged, [[False, True, False]])

  def test_a_group_of_which_all_runs_diverged_is_shown(self):
    grids = self._draw_grids([[0.5], [0.5], [], [_NAN]])
    self.assertEqual(list(grids), ['g', 'h'])
    self.assertTrue(grids['h'].diverged[0, 0])
    self.assertIsNone(grids['h'].best())

  def test_pages_of_heat_maps_say_what_a_cross_is(self):
    table = made_up_runs.build_table(
        rows=['0.1'], columns=['1', '10'], figure={'kind': 'heat_map'}
    )
    made_up_runs.write_cell(self.runs_dir, table.cells[0], [[0.5] * 3 + [_NAN]])
    self.write(table)
    self.assertIn('a cross stands where a run diverged', self.read('.md'))
    table = made_up_runs.build_table(
        rows=['0.1'], columns=['1', '10'], figure={'kind': 'best_server_rate'}
    )
    self.write(table)
    self.assertIn('None yet', self.read('.md'))


if __name__ == '__main__':
  absltest.main()
