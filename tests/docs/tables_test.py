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
"""Tests of the tables of the documentation that follow from the code."""

from absl.testing import absltest
from absl.testing import parameterized

from experiments import published
from experiments import registry
from tests import page_testing
from tools import recommended_hyperparameters as recommended
from tools import rule_tables
from tools import tables


def _row(table, first):
  (row,) = [
      [cell.strip() for cell in line.split('|')[1:-1]]
      for line in table.splitlines()
      if line.startswith(f'| {first} |')
  ]
  return row


class PagesTest(parameterized.TestCase):

  @parameterized.parameters(*tables.PAGES)
  def test_page_is_up_to_date(self, name):
    page = page_testing.read(name)
    self.assertEqual(tables.fill(name, page), page)
    for table in tables.PAGES[name]:
      self.assertIn(f'<!-- begin {table} -->', page)

  def test_every_rule_has_its_paper(self):
    page = page_testing.read(rule_tables.PAGE)
    for kind in ('client_optimizer', 'server_optimizer', 'loss_term'):
      for row in registry.ROWS[kind].values():
        if row.builder is not None:
          self.assertRegex(page, rf'\| `{row.name}` \| .* \| \[.*\]\(http')


class RecommendedHyperparametersTest(absltest.TestCase):

  def test_has_every_task_of_a_published_table(self):
    page = page_testing.read(recommended.PAGE)
    protocols = page_testing.table_rows(page, 'source')
    for name in ('fedopt/table_1', 'delta_sgd/table_1', 'fedcada/table_1'):
      for column in published.find_table(name).columns:
        found = [row for row in protocols if column.name in row[1]]
        self.assertNotEmpty(found, column.name)

  def test_a_number_that_somebody_edited_is_stale(self):
    page = page_testing.read(recommended.PAGE)
    edited = page.replace('0.00316, 0.0001', '0.00317, 0.0001')
    self.assertNotEqual(edited, page)
    self.assertEqual(tables.fill(recommended.PAGE, edited), page)


class TablesTest(absltest.TestCase):

  def test_rates_of_a_grid_are_those_of_the_flagfile(self):
    table = recommended.grid_of('fedopt/table_1')
    flags = page_testing.read(
        'experiments/presets/fedopt_emnist_cr_fedadam.flags'
    )
    given = dict(
        line[2:].split('=') for line in flags.splitlines() if line[:2] == '--'
    )
    names = ('client_learning_rate', 'server_learning_rate', 'fedadam_epsilon')
    shown = _row(table, 'EMNIST CR')[2].split(', ')
    for text, name in zip(shown, names, strict=True):
      self.assertAlmostEqual(float(text) / float(given[name]), 1, 2)

  def test_says_what_is_lost(self):
    table = recommended.grid_of('fedopt/table_1')
    for cell in _row(table, 'CIFAR-10')[1:]:
      self.assertEndsWith(cell, ' (lost)')
    for cell in _row(table, 'CIFAR-100')[1:]:
      self.assertNotIn('lost', cell)

  def test_methods_with_other_rates_in_some_columns_have_two_rows(self):
    table = recommended.rates_of('fedcada/table_1')
    self.assertEqual(_row(table, 'FedAvg, Shakespeare')[1], '1 (lost)')
    others = _row(table, 'FedAvg, but for Shakespeare')
    self.assertEqual(others[1], '0.1 (lost)')
    self.assertLen(_row(table, 'FAFED'), 5)

  def test_what_a_method_has_beside_its_rates(self):
    table = recommended.rates_of('delta_sgd/table_1')
    self.assertEqual(
        _row(table, 'Delta-SGD'),
        [
            'Delta-SGD',
            '0.2',
            '1',
            '',
            'theta 1, gamma 2, delta 0.1, previous_gradient recompute (lost), '
            'weights uniform',
        ],
    )
    self.assertEqual(_row(table, 'SGD(down)')[4], 'weights uniform, step_decay')

  def test_an_accumulator_that_starts_at_zero_is_shown(self):
    table = recommended.rates_in('Delta-SGD', ['delta_sgd/table_4'])
    row = _row(table, 'Delta-SGD, Table 4')
    self.assertEqual(row[1:4], ['0.2', '0.001', '1e-8'])
    self.assertIn('initial_second_moment 0,', row[4])

  def test_defaults_are_those_of_the_builders(self):
    row = _row(recommended.defaults(), 'FedAdam')
    self.assertEqual(row[2:5], ['0.1', '0.1', '0.001'])
    self.assertIn('`server_learning_rate=log_uniform(0.001,1)`', row[5])

  def test_commands_are_whole_after_wrapping(self):
    place = ('fedopt/table_1', '', 'FedAvg', 'SO NWP')
    block = recommended.commands_of(place)
    (command,) = page_testing.commands_of(block)
    cell = published.find_table(place[0]).cell(*place[1:])
    self.assertEqual(command.text, f'.venv/bin/{published.build_command(cell)}')
    self.assertLess(max(map(len, block.splitlines())), 101)
