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
"""Tests of FedCAda's tables and figures: what they run, and no training."""

from absl.testing import absltest
from absl.testing import parameterized

from experiments import published

_SILO, _DEVICE = 'cross-silo', 'cross-device'
_METHODS = ('FedAvg', 'FedAdam', 'FedAMS', 'FedSPS', 'FAFED', 'FedCAda')


def _cell(table, row, column, group=''):
  return published.find_table(f'fedcada/{table}').cell(group, row, column)


def _hyperparameters(*args, **kwargs):
  found = published.hyperparameters(_cell(*args, **kwargs))
  return {hyperparameter.name: hyperparameter for hyperparameter in found}


def _values(*args, **kwargs):
  found = _hyperparameters(*args, **kwargs)
  return {name: hyperparameter.value for name, hyperparameter in found.items()}


class FedcadaPresetsTest(parameterized.TestCase):

  def test_tables_and_figures(self):
    self.assertEqual(
        {
            table.name: len(table.cells)
            for table in published.load_tables('fedcada')
        },
        {
            'table_1': 60,
            'table_2': 12,
            'table_3': 5,
            'ablation_mnist': 7,
            'figure_2': 2,
            'figure_3': 5,
            'figure_4': 12,
            'figure_5': 12,
            'figure_6': 6,
        },
    )

  @parameterized.parameters('table_1', 'table_2', 'table_3')
  def test_every_cell_has_a_published_number(self, name):
    table = published.find_table(f'fedcada/{name}')
    self.assertEqual((table.metric, table.scale), ('accuracy', 100.0))
    self.assertEqual(table.estimate, 'best')
    for cell in table.cells:
      self.assertIsNotNone(cell.published, cell.experiment_name)

  @parameterized.parameters(
      (_SILO, 'FedAvg', 'CIFAR-10 IID', 65.79),
      (_SILO, 'FedAMS', 'CIFAR-10 non-IID', 61.19),
      (_SILO, 'FedAdam', 'FashionMNIST IID', 89.20),
      (_SILO, 'FedSPS', 'FashionMNIST non-IID', 82.58),
      (_SILO, 'FedCAda', 'Shakespeare', 45.84),
      (_DEVICE, 'FedCAda', 'CIFAR-10 IID', 66.508),
      (_DEVICE, 'FedAdam', 'CIFAR-10 non-IID', 59.06),
      (_DEVICE, 'FedSPS', 'FashionMNIST non-IID', 76.78),
      (_DEVICE, 'FAFED', 'Shakespeare', 55.74),
  )
  def test_numbers_of_table_1(self, group, row, column, number):
    self.assertEqual(_cell('table_1', row, column, group).published, number)

  @parameterized.parameters(
      ('table_2', 'FedSPS', 'ResNet-18', 44.44),
      ('table_2', 'FedCAda', 'ResNet-18', 61.32),
      ('table_3', 'without adjustment', 'SimpleCNN', 57.29),
      ('table_3', '1 + (b^t)^2', 'SimpleCNN', 63.40),
      ('table_3', '1 + sqrt(b^t)', 'SimpleCNN', 62.48),
  )
  def test_numbers_of_tables_2_and_3(self, table, row, column, number):
    self.assertEqual(_cell(table, row, column).published, number)

  def test_tables_repeat_numbers_of_table_1(self):
    for method in _METHODS:
      self.assertEqual(
          _cell('table_2', method, 'SimpleCNN').published,
          _cell('table_1', method, 'CIFAR-10 non-IID', _DEVICE).published,
      )
    self.assertEqual(
        _cell('table_3', '1 + b^t', 'SimpleCNN').published,
        _cell('table_1', 'FedCAda', 'CIFAR-10 non-IID', _SILO).published,
    )

  def test_protocol_of_fedcada_on_fashion_mnist(self):
    self.assertContainsSubset(
        {
            'task': 'fashion_mnist',
            'fashion_mnist_model': 'mlp',
            'fashion_mnist_partition': 'dirichlet_per_class',
            'fashion_mnist_alpha': 0.1,
            'fashion_mnist_num_clients': 100,
            'heldout_fraction': 0.25,
            'algorithm': 'fedcada',
            'client_optimizer': 'fedcada_adam',
            'fedcada_adam_option': 'option1',
            'fedcada_adam_beta_1': 0.9,
            'fedcada_adam_beta_2': 0.99,
            'fedcada_adam_time': 'round',
            'client_weighting': 'uniform',
            'client_epochs': 3,
            'clients_per_round': 20,
            'total_rounds': 200,
        }.items(),
        _values('table_1', 'FedCAda', 'FashionMNIST non-IID', _DEVICE).items(),
    )

  @parameterized.parameters((_SILO, 20, '2500'), (_DEVICE, 100, '500'))
  def test_iid_clients_share_all_examples(self, group, num_clients, size):
    values = _values('table_1', 'FAFED', 'CIFAR-10 IID', group)
    self.assertEqual(values['cifar10_partition'], 'iid')
    self.assertEqual(values['cifar10_num_clients'], num_clients)
    self.assertEqual(values['cifar10_examples_per_client'], size)
    self.assertEqual(num_clients * int(size), 50_000)

  @parameterized.parameters((_SILO, 20), (_DEVICE, 100))
  def test_shakespeare_is_tested_on_twenty_other_clients(self, group, clients):
    values = _values('table_1', 'FedSPS', 'Shakespeare', group)
    self.assertEqual(values['shakespeare_model'], 'small_lstm')
    self.assertEqual(values['num_clients'], clients)
    self.assertEqual(values['heldout_clients'], 20)
    self.assertEqual(values['client_epochs'], 1)
    self.assertNotIn('heldout_fraction', values)

  @parameterized.parameters(*_METHODS)
  def test_what_is_tuned_or_not_printed_is_lost(self, method):
    found = _hyperparameters('table_1', method, 'CIFAR-10 IID', _SILO)
    lost = {h.name for h in found.values() if h.origin == published.Origin.LOST}
    self.assertEqual(
        lost,
        {
            'FedAvg': {'client_batch_size', 'client_learning_rate'},
            'FedAdam': {
                'client_batch_size',
                'client_learning_rate',
                'server_learning_rate',
            },
            'FedAMS': {
                'client_batch_size',
                'client_learning_rate',
                'server_learning_rate',
            },
            'FedSPS': {
                'client_batch_size',
                'sps_max_c',
                'sps_max_max_step_size',
            },
            'FAFED': {
                'client_batch_size',
                'client_learning_rate',
                'fafed_alpha',
            },
            'FedCAda': {
                'client_batch_size',
                'client_learning_rate',
                'fedcada_adam_beta_1',
                'fedcada_adam_time',
            },
        }[method],
    )

  @parameterized.parameters(
      ('FedAdam', 'fedadam_beta_1', 'specified'),
      ('FedAdam', 'fedadam_epsilon', 'assumed'),
      ('FAFED', 'fafed_beta', 'specified'),
      ('FAFED', 'fafed_rho', 'assumed'),
      ('FedCAda', 'fedcada_adam_beta_2', 'specified'),
      ('FedCAda', 'fedcada_adam_epsilon', 'assumed'),
      ('FedCAda', 'cifar10_min_size', 'assumed'),
      ('FedCAda', 'cifar10_alpha', 'specified'),
  )
  def test_origins(self, method, name, origin):
    found = _hyperparameters('table_1', method, 'CIFAR-10 non-IID', _SILO)
    self.assertEqual(found[name].origin, published.Origin(origin))

  @parameterized.parameters('table_3', 'ablation_mnist')
  def test_denominators(self, name):
    table = published.find_table(f'fedcada/{name}')
    options = [
        _values(name, row.name, table.columns[0].name)['fedcada_adam_option']
        for row in table.rows
        if row.name != 'FedAvg'
    ]
    self.assertEqual(
        [option for option in options if option != 'adam'],
        ['none', 'option1', 'option2', 'option3', 'option4'],
    )

  def test_moments_are_kept_by_clients_to_be_compared(self):
    table = published.find_table('fedcada/figure_2')
    self.assertEqual(table.figure['kind'], 'cka')
    for column in table.columns:
      values = _values('figure_2', 'Adam', column.name)
      self.assertTrue(values['fedcada_adam_carry_state'])
      self.assertEqual(values['fedcada_adam_option'], 'adam')
      self.assertEqual(values['cifar10_num_clients'], 20)

  def test_ablation_is_no_published_table(self):
    table = published.find_table('fedcada/ablation_mnist')
    self.assertEqual(table.seeds, 2)
    for cell in table.cells:
      self.assertIsNone(cell.published)


if __name__ == '__main__':
  absltest.main()
