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
"""Tests of the list of cells."""

from absl.testing import absltest

from experiments import published
from experiments.report import listing
from tests.experiments.report import made_up_runs


class ListingTest(absltest.TestCase):

  def test_a_line_a_cell(self):
    table = made_up_runs.build_table(
        groups=['alpha = 1'], numbers={('alpha = 1', 'SGD', 'digits'): 98.0}
    )
    header, *lines = listing.format_lines([table])
    self.assertEqual(header.split('\t'), list(listing.HEADER))
    self.assertLen(lines, 2)
    fields = lines[0].split('\t')
    self.assertEqual(
        fields[:5], ['paper', 'table_1', 'alpha = 1 / SGD', 'digits', '98.0']
    )
    self.assertEqual(fields[5], published.build_command(table.cells[0]))
    self.assertEqual(lines[1].split('\t')[4], '-')

  def test_hyperparameters_by_origin(self):
    cell, _ = made_up_runs.build_table().cells
    text = listing.format_hyperparameters(cell)
    parts = dict(part.split(': ', 1) for part in text.split('; '))
    self.assertEqual(list(parts), ['specified', 'assumed', 'lost'])
    self.assertEqual(parts['specified'], 'task=digits total_rounds=4')
    self.assertIn('client_batch_size=5', parts['assumed'].split())
    self.assertIn('client_optimizer=delta_sgd', parts['assumed'].split())
    self.assertEqual(parts['lost'], 'client_epochs=1')
    self.assertNotIn('None', text)

  def test_figures_have_lines_under_their_own_name(self):
    tables = published.load_tables('delta_sgd')
    lines = list(listing.format_lines(tables))[1:]
    self.assertLen(lines, sum(len(table.cells) for table in tables))
    names = {tuple(line.split('\t')[:2]) for line in lines}
    self.assertEqual(names, {(t.paper, t.name) for t in tables})
    self.assertEqual({line.count('\t') for line in lines}, {6})


if __name__ == '__main__':
  absltest.main()
