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
"""Tests the presets of Adaptive Federated Optimization."""

import os

from absl.testing import absltest
from absl.testing import parameterized

from experiments import published

_SPECIFIED = published.Origin.SPECIFIED
_LOST = published.Origin.LOST
_RATES = ('client_learning_rate', 'server_learning_rate')
_ADAPTIVE = ('FedAdagrad', 'FedAdam', 'FedYogi')


class FedoptPresetsTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.tables = {
        table.name: table for table in published.load_tables('fedopt')
    }

  def setUp(self):
    super().setUp()
    # Flagfiles are given from the project's folder.
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(os.path.join(os.path.dirname(__file__), '..', '..', '..'))

  def _hyperparameters(self, table, row, column, group=''):
    cell = self.tables[table].cell(group, row, column)
    return {
        found.name: (found.value, found.origin)
        for found in published.hyperparameters(cell)
    }

  @parameterized.parameters(
      ('table_1', 35), ('table_2', 10), ('table_3', 15), ('figure_1', 42)
  )
  def test_every_cell_of_a_table_is_there_and_parses(self, name, num_cells):
    cells = self.tables[name].cells
    self.assertLen(cells, num_cells)
    for cell in cells:
      with self.subTest(cell.experiment_name):
        self.assertNotEmpty(published.hyperparameters(cell))
        self.assertEqual(cell.published is None, cell.row == 'SCAFFOLD')

  def test_there_are_all_figures(self):
    self.assertContainsSubset(
        [f'figure_{i}' for i in range(1, 12)], self.tables
    )

  def test_rates_of_table_1_are_specified_but_of_cifar10(self):
    for cell in self.tables['table_1'].cells:
      found = self._hyperparameters('table_1', cell.row, cell.column)
      tuned = list(_RATES)
      if cell.row in _ADAPTIVE:
        tuned.append(f'{cell.row.lower()}_epsilon')
      origin = _LOST if cell.column == 'CIFAR-10' else _SPECIFIED
      with self.subTest(cell.experiment_name):
        for name in tuned:
          self.assertEqual(found[name][1], origin, name)

  # Of the authors' document, which has logarithms to the base of 10.
  @parameterized.parameters(
      ('FedAdagrad', 'CIFAR-100', -1, -1, -2),
      ('FedAvg', 'CIFAR-100', -1, 0.5, None),
      ('FedAdam', 'EMNIST CR', -1.5, -2.5, -4),
      ('FedYogi', 'Shakespeare', 0, -2, -3),
      ('FedAdam', 'SO NWP', -0.5, -2, -5),
      ('FedAdagrad', 'SO LR', 2, 1, -2),
      ('FedAvgM', 'EMNIST AE', 0.5, 0, None),
  )
  def test_rates_are_those_of_the_authors(
      self, row, column, client, server, tau
  ):
    found = self._hyperparameters('table_1', row, column)
    self.assertAlmostEqual(found['client_learning_rate'][0], 10**client)
    self.assertAlmostEqual(found['server_learning_rate'][0], 10**server)
    if tau is not None:
      self.assertAlmostEqual(found[f'{row.lower()}_epsilon'][0], 10**tau)

  def test_other_tables_have_the_rates_of_table_1(self):
    for table, column, column_1 in (
        ('table_2', 'SO NWP', 'SO NWP'),
        ('table_2', 'SO LR', 'SO LR'),
        ('table_3', 'constant', 'EMNIST CR'),
    ):
      for row in self.tables[table].rows:
        found = self._hyperparameters(table, row.name, column)
        wanted = self._hyperparameters('table_1', row.name, column_1)
        with self.subTest(f'{table}: {row.name}, {column}'):
          for name in _RATES:
            self.assertEqual(found[name], wanted[name])

  @parameterized.parameters(
      ('table_1', 'FedYogi', 'CIFAR-10', 78.0),
      ('table_1', 'FedAvg', 'EMNIST AE', 6.47),
      ('table_2', 'FedAvgM', 'SO LR', 46.5),
      ('table_3', 'FedAdam', 'centralized', 87.9),
      ('table_3', 'FedAdam', 'ExpDecay', 86.2),
  )
  def test_published_numbers(self, table, row, column, number):
    self.assertEqual(self.tables[table].cell('', row, column).published, number)

  @parameterized.parameters(
      ('table_1', 'CIFAR-10', '', 'accuracy', 100, True),
      ('table_1', 'SO LR', '', 'recall_at_5', 100, True),
      ('table_1', 'EMNIST AE', '', 'mean_squared_error', 1000, False),
      ('figure_1', 'EMNIST AE', '', 'mean_squared_error', 1000, False),
      ('figure_3', '0.01', 'SO LR', 'recall_at_5', 100, True),
      (
          'figure_4',
          '0.1',
          'EMNIST AE FedAvg',
          'mean_squared_error',
          1000,
          False,
      ),
      ('figure_4', '0.1', 'CIFAR-10 FedAvg', 'accuracy', 100, True),
  )
  def test_every_task_has_its_metric(
      self, table, column, group, metric, scale, higher_is_better
  ):
    self.assertEqual(
        self.tables[table].measure(column, group),
        published.Measure(metric, scale, higher_is_better),
    )

  def test_full_test_set_is_evaluated_after_the_last_round(self):
    for cell in self.tables['table_2'].cells:
      found = self._hyperparameters('table_2', cell.row, cell.column)
      self.assertEqual(found['evaluations'][0], ('per_client',))
      self.assertEqual(
          found['rounds_per_evaluation'][0], found['total_rounds'][0]
      )

  def test_decay_is_a_staircase_with_rates_of_our_own(self):
    found = self._hyperparameters('table_3', 'FedYogi', 'ExpDecay')
    self.assertEqual(found['client_schedule'], ('exp_decay', _SPECIFIED))
    self.assertEqual(found['client_schedule_rounds_per_decay'][0], 500)
    self.assertEqual(found['client_schedule_decay_rate'][0], 0.1)
    for name in (*_RATES, 'fedyogi_epsilon'):
      self.assertEqual(found[name][1], _LOST)

  def test_centralized_rates_are_lost(self):
    for row in self.tables['table_3'].rows:
      found = self._hyperparameters('table_3', row.name, 'centralized')
      self.assertEqual(found['algorithm'], ('centralized', _SPECIFIED))
      self.assertEqual(found['client_learning_rate'][1], _LOST)

  def test_figure_1_shares_the_runs_of_table_1(self):
    names = {cell.experiment_name for cell in self.tables['table_1'].cells}
    others = [
        cell
        for cell in self.tables['figure_1'].cells
        if cell.experiment_name not in names
    ]
    self.assertEqual({cell.row for cell in others}, {'SCAFFOLD'})
    self.assertLen(others, 7)

  def test_heat_maps_have_the_grid_of_server_rates_at_one_tau(self):
    name = 'CIFAR-100 FedAdam'
    figure = self.tables['figure_6']
    self.assertLen([c for c in figure.cells if c.group == name], 54)
    servers = [entry.name for entry in figure.columns]
    self.assertEqual(
        (len(servers), servers[0], servers[-1]), (9, '0.001', '10')
    )
    found = self._hyperparameters('figure_6', '0.316', '0.00316', name)
    self.assertEqual(found['server_learning_rate'], (0.00316227766, _SPECIFIED))
    self.assertEqual(found['client_learning_rate'], (0.316227766, _LOST))
    self.assertEqual(found['fedadam_epsilon'], (0.001, _SPECIFIED))

  def test_best_server_rates_are_of_the_runs_of_the_heat_maps(self):
    shown = {cell.experiment_name for cell in self.tables['figure_4'].cells}
    cells = [
        cell for i in range(5, 12) for cell in self.tables[f'figure_{i}'].cells
    ]
    self.assertEqual({cell.experiment_name for cell in cells}, shown)
    self.assertLen(shown, 7 * 5 * 6 * 9)

  def test_figures_that_choose_afterwards_are_stamped(self):
    stamped = [name for name, table in self.tables.items() if table.stamp]
    self.assertEqual(stamped, ['figure_3', 'figure_4'])

  def test_figure_3_varies_tau_alone(self):
    found = self._hyperparameters('figure_3', 'FedAdam', '1e-05', 'EMNIST CR')
    self.assertEqual(found['fedadam_epsilon'], (1e-5, _SPECIFIED))
    self.assertEqual(found['server_learning_rate'], (0.00316227766, _LOST))


if __name__ == '__main__':
  absltest.main()
