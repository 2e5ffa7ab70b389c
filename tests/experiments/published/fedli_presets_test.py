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
"""Tests of FedLi's tables and figures: what they run, and no training."""

from absl.testing import absltest
from absl.testing import parameterized

from experiments import published

_METHODS = ('LU', 'LS', 'FedAdam', 'FedAvg', 'FedProx', 'SCAFFOLD', 'FedExP')
_COLUMNS = ('CIFAR-10', 'CIFAR-100', 'FEMNIST', 'Shakespeare')


def _hyperparameters(table, row, column='', group=''):
  cell = published.find_table(f'fedli/{table}').cell(group, row, column)
  found = published.hyperparameters(cell)
  return {hyperparameter.name: hyperparameter for hyperparameter in found}


def _values(*args, **kwargs):
  found = _hyperparameters(*args, **kwargs)
  return {name: hyperparameter.value for name, hyperparameter in found.items()}


class FedliPresetsTest(parameterized.TestCase):

  def test_tables_and_figures(self):
    self.assertEqual(
        {
            table.name: len(table.cells)
            for table in published.load_tables('fedli')
        },
        {
            'table_1': 28,
            'table_2': 28,
            'comparison_mnist': 14,
            'logistic_mnist': 7,
            'figure_1': 21,
            'figure_2': 21,
            'figure_3': 7,
        },
    )

  @parameterized.parameters('table_1', 'table_2')
  def test_every_cell_has_a_published_number(self, name):
    table = published.find_table(f'fedli/{name}')
    self.assertEqual(table.seeds, 5)
    self.assertEqual([row.name for row in table.rows], list(_METHODS))
    self.assertEqual([column.name for column in table.columns], list(_COLUMNS))
    for cell in table.cells:
      self.assertIsNotNone(cell.published, cell.experiment_name)

  @parameterized.parameters(
      ('LU', 'CIFAR-10', 86.02, 0.1053),
      ('LS', 'CIFAR-100', 50.72, 0.6582),
      ('FedAdam', 'CIFAR-10', 81.42, 0.60832),
      ('FedAvg', 'FEMNIST', 84.67, 0.8168),
      ('FedProx', 'CIFAR-100', 29.72, 2.2937),
      ('SCAFFOLD', 'Shakespeare', 34.86, 2.3290),
      ('FedExP', 'FEMNIST', 82.51, 0.1995),
  )
  def test_numbers(self, row, column, accuracy, loss):
    for name, number in (('table_1', accuracy), ('table_2', loss)):
      cell = published.find_table(f'fedli/{name}').cell('', row, column)
      self.assertEqual(cell.published, number)

  def test_table_2_measures_the_runs_of_table_1(self):
    accuracies = published.find_table('fedli/table_1')
    losses = published.find_table('fedli/table_2')
    self.assertEqual(
        [cell.experiment_name for cell in losses.cells],
        [cell.experiment_name for cell in accuracies.cells],
    )
    self.assertEqual(losses.metric, 'clients/loss')
    self.assertEqual(losses.scale, 1.0)
    self.assertFalse(losses.higher_is_better)
    self.assertTrue(accuracies.higher_is_better)

  def test_protocol_of_lu_on_cifar10(self):
    self.assertContainsSubset(
        {
            'task': 'cifar10',
            'cifar10_model': 'resnet18',
            'cifar10_norm': 'group',
            'cifar10_partition': 'dirichlet_per_class',
            'cifar10_min_size': 10,
            'cifar10_cap': True,
            'cifar10_num_clients': 100,
            'algorithm': 'fedli_lu',
            'client_optimizer': 'sgd',
            'client_learning_rate': 0.01,
            'client_weight_decay': 0.001,
            'client_weighting': 'examples',
            'server_optimizer': 'frank_wolfe',
            'frank_wolfe_objective_at': 'local_mean',
            'clients_per_round': 10,
            'client_batch_size': 32,
            'client_epochs': 1,
            'total_rounds': 500,
        }.items(),
        _values('table_1', 'LU', 'CIFAR-10').items(),
    )

  def test_ls_searches_on_the_clients(self):
    values = _values('table_1', 'LS', 'Shakespeare')
    self.assertEqual(values['client_optimizer'], 'armijo')
    self.assertEqual(values['line_search_step_scale'], 'max')
    self.assertEqual(values['armijo_c'], 0.1)
    self.assertNotIn('client_learning_rate', values)

  def test_ls_takes_whole_steps_on_a_convex_problem(self):
    values = _values('logistic_mnist', 'LS')
    self.assertEqual(values['mnist_model'], 'logistic')
    self.assertEqual(values['line_search_step_scale'], 'unit')

  @parameterized.parameters('FEMNIST', 'Shakespeare')
  def test_a_hundred_clients_are_drawn(self, column):
    self.assertEqual(_values('table_1', 'FedAvg', column)['num_clients'], 100)

  @parameterized.parameters(
      ('LU', 'client_learning_rate', 'lost'),
      ('LU', 'client_clip_norm', 'lost'),
      ('LU', 'client_weight_decay', 'lost'),
      ('LU', 'cifar10_alpha', 'lost'),
      ('LU', 'cifar10_min_size', 'specified'),
      ('LU', 'cifar10_augmentation', 'assumed'),
      ('LU', 'server_learning_rate', 'lost'),
      ('LU', 'frank_wolfe_objective_at', 'lost'),
      ('LS', 'armijo_c', 'specified'),
      ('LS', 'armijo_batches_per_epoch', 'specified'),
      ('LS', 'armijo_max_step_size', 'lost'),
      ('LS', 'line_search_step_scale', 'specified'),
      ('FedAdam', 'server_learning_rate', 'lost'),
      ('FedAdam', 'fedadam_epsilon', 'assumed'),
      ('FedProx', 'fedprox_mu', 'specified'),
      ('SCAFFOLD', 'client_weighting', 'assumed'),
      ('FedExP', 'client_weighting', 'specified'),
  )
  def test_origins(self, row, name, origin):
    found = _hyperparameters('table_1', row, 'CIFAR-10')
    self.assertEqual(found[name].origin, published.Origin(origin))

  @parameterized.parameters('alpha = 0.1', 'alpha = 0.01')
  def test_comparison_has_one_rate_for_all(self, group):
    table = published.find_table('fedli/comparison_mnist')
    self.assertEqual(table.seeds, 2)
    for method in _METHODS:
      values = _values('comparison_mnist', method, group=group)
      self.assertEqual(values['total_rounds'], 100)
      if method != 'LS':
        self.assertEqual(values['client_learning_rate'], 0.1)
      self.assertIsNone(table.cell(group, method, '').published)


if __name__ == '__main__':
  absltest.main()
