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
"""Tests of what the figures of tables show."""

from unittest import mock

from absl.testing import absltest
import numpy as np

from tests.experiments.reports import made_up_runs
from tests.experiments.reports import page_testing
from tff_adaptive import analysis

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
