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
"""Tests of which tables and parts of them a binary is about."""

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized
import pytest

from experiments import hparam_errors
from experiments import published
from experiments import table_flags
from tests.experiments.report import made_up_runs


class TableFlagsTest(parameterized.TestCase):

  def test_papers_and_tables_are_found_once(self):
    found = table_flags.find_tables(['delta_sgd'], ['delta_sgd/table_1'])
    self.assertEqual(
        [table.name for table in found],
        [table.name for table in published.load_tables('delta_sgd')],
    )

  @pytest.mark.slow
  def test_unknown_papers(self):
    with self.assertRaisesRegex(
        hparam_errors.HparamError,
        '^there is no --paper=fedx; there are delta_sgd',
    ):
      table_flags.find_tables(['fedx'], [])

  def test_restricts_every_axis(self):
    table = made_up_runs.build_table(
        groups=['g', 'h'], rows=['a', 'b'], columns=['x', 'y']
    )
    found = table_flags.restrict(
        table, groups=['h'], rows=['b', 'a'], columns=['y']
    )
    self.assertEqual([entry.name for entry in found.rows], ['a', 'b'])
    self.assertEqual(
        [(cell.group, cell.row, cell.column) for cell in found.cells],
        [('h', 'a', 'y'), ('h', 'b', 'y')],
    )
    self.assertEqual(table_flags.restrict(table), table)

  @parameterized.parameters('groups', 'rows', 'columns')
  def test_unknown_entries(self, axis):
    table = made_up_runs.build_table(groups=['a'], rows=['a'], columns=['a'])
    with self.assertRaisesRegex(
        hparam_errors.HparamError,
        f"^--{axis} of paper/table_1 are a, found 'z'$",
    ):
      table_flags.restrict(table, **{axis: ['z']})

  def test_names_are_separated_by_commas(self):
    values = flags.FlagValues()
    table_flags.define(values)
    values(['report', '--rows=SGD,Delta-SGD', '--groups=alpha = 1'])
    self.assertEqual(
        table_flags.read_names(values),
        {'groups': ['alpha = 1'], 'rows': ['SGD', 'Delta-SGD'], 'columns': []},
    )

  def test_a_flag_that_is_given_twice_is_refused(self):
    values = flags.FlagValues()
    table_flags.define(values)
    with self.assertRaisesRegex(flags.Error, 'rows=b: already defined'):
      values(['report', '--rows=a', '--rows=b'])

  @pytest.mark.slow
  def test_no_published_name_has_a_comma(self):
    for table in published.load_tables():
      for axis in table_flags.AXES:
        for entry in getattr(table, axis):
          self.assertNotIn(',', entry.name)


if __name__ == '__main__':
  absltest.main()
