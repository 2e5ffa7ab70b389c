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
"""Tests of which tables and parts of them a report is about."""

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from experiments import published
from experiments.reports import selection
from tests.experiments.reports import made_up_runs


class SelectionTest(parameterized.TestCase):

  def test_papers_and_tables_are_found_once(self):
    found = selection.find_tables(['delta_sgd'], ['delta_sgd/table_1'])
    self.assertEqual(
        [table.name for table in found],
        [table.name for table in published.load_tables('delta_sgd')],
    )

  @pytest.mark.slow
  def test_unknown_papers(self):
    with self.assertRaisesRegex(
        selection.SelectionError,
        '^there is no --paper=fedx; there are delta_sgd',
    ):
      selection.find_tables(['fedx'], [])

  def test_restricts_every_axis(self):
    table = made_up_runs.build_table(
        groups=['g', 'h'], rows=['a', 'b'], columns=['x', 'y']
    )
    found = selection.restrict(
        table, groups=['h'], rows=['b', 'a'], columns=['y']
    )
    self.assertEqual([entry.name for entry in found.rows], ['a', 'b'])
    self.assertEqual(
        [(cell.group, cell.row, cell.column) for cell in found.cells],
        [('h', 'a', 'y'), ('h', 'b', 'y')],
    )
    self.assertEqual(selection.restrict(table), table)

  @parameterized.parameters('groups', 'rows', 'columns')
  def test_unknown_entries(self, axis):
    table = made_up_runs.build_table(groups=['a'], rows=['a'], columns=['a'])
    with self.assertRaisesRegex(
        selection.SelectionError,
        f"^--{axis} of paper/table_1 are a, found 'z'$",
    ):
      selection.restrict(table, **{axis: ['z']})


if __name__ == '__main__':
  absltest.main()
