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
"""Tests of the papers' tables and figures: every cell, but no training."""

import collections
import os
import re

from absl.testing import absltest
from absl.testing import parameterized

from experiments import published
from experiments.published import commands
from experiments.published import given_flags
from experiments.published import table_files
from experiments.report import figures

_PAPERS = table_files.ROOT / 'experiments' / 'presets'
# Of all papers.
_OTHER_PAGES = [
    f'../../../docs/results/{name}.md'
    for name in ('claims', 'figures', 'leaderboard')
]
# The runs of a paper, those of a table and of figures that show it once.
_NUM_CELLS = {'delta_sgd': 308, 'fedcada': 92, 'fedli': 49, 'fedopt': 2062}


def _num_own_cells(tables):
  return len({cell.experiment_name for table in tables for cell in table.cells})


def _without_numbers(cell):
  """Returns the flags of a cell without their numbers: grids look the same."""
  return tuple(re.sub(r'=[-+.e\d]+$', '=', flag.text) for flag in cell.flags)


def _flagfiles(cell):
  return tuple(
      flag.text.partition('=')[2]
      for flag in cell.flags
      if flag.name == 'flagfile'
  )


class PresetsTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.tables = published.load_tables()
    # What is shared by a table and its figures, or by a grid of rates, once.
    cells = {
        _without_numbers(cell): cell
        for table in cls.tables
        for cell in table.cells
    }
    cls.cells = {cell.experiment_name: cell for cell in cells.values()}
    cls.hyperparameters = {}
    cls.errors = []
    for name, cell in cls.cells.items():
      try:
        cls.hyperparameters[name] = published.hyperparameters(cell)
      except Exception as error:  # pylint: disable=broad-exception-caught
        cls.errors.append(f'{name}: {error}')

  def setUp(self):
    super().setUp()
    # Flagfiles are given from the project's folder.
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(table_files.ROOT)

  def test_flags_of_every_cell_parse(self):
    self.assertEmpty(self.errors, '\n'.join(self.errors))

  def test_commands_find_their_flagfiles(self):
    cells = {_flagfiles(cell): cell for cell in self.cells.values()}
    for cell in cells.values():
      with self.subTest(cell.experiment_name):
        arguments = published.train_arguments(cell, seed=1)
        _, settings = published.parse_flags(arguments)
        self.assertEqual(
            settings.experiment_name, f'{cell.experiment_name}/seed_1'
        )

  def test_every_hyperparameter_has_an_origin(self):
    for name, found in self.hyperparameters.items():
      self.assertLen({h.name for h in found}, len(found), name)
      self.assertLessEqual({type(h.origin) for h in found}, {published.Origin})
      given = {h.name for h in found if h.origin != published.Origin.ASSUMED}
      self.assertIn('client_optimizer', given, name)

  def test_commands_of_a_table_differ(self):
    for table in self.tables:
      counts = collections.Counter(
          tuple(flag.text for flag in cell.flags) for cell in table.cells
      )
      (_, most), *_ = counts.most_common(1)
      self.assertEqual(most, 1, f'{table.paper}/{table.name}')

  def test_experiment_names_are_those_of_one_cell(self):
    cells = collections.defaultdict(set)
    for table in self.tables:
      for cell in table.cells:
        cells[cell.experiment_name].add(
            (cell.paper, cell.table, cell.group, cell.row, cell.column)
        )
    self.assertEmpty({name: c for name, c in cells.items() if len(c) > 1})

  def test_every_figure_has_options_that_fit(self):
    for table in self.tables:
      if 'figure' in table.name:
        self.assertIsNotNone(table.figure, table.name)
      with self.subTest(f'{table.paper}/{table.name}'):
        figures.read_options(table)

  def test_flagfiles_have_known_flags_and_reasons(self):
    known = commands._define_flags()
    for path in _PAPERS.glob('*/**/*.flags'):
      for flag in given_flags.read_flagfile(path):
        with self.subTest(f'{path.parent.name}/{path.name}: {flag.text}'):
          self.assertIn(commands._flag_name(flag), known)
          self.assertNotEmpty(flag.reason)

  def test_every_flagfile_is_used(self):
    used = {path for cell in self.cells.values() for path in _flagfiles(cell)}
    found = {
        str(path.relative_to(table_files.ROOT))
        for path in _PAPERS.glob('*/**/*.flags')
    }
    self.assertEqual(found, used)

  @parameterized.parameters(*_NUM_CELLS)
  def test_readme_links_results_where_the_report_writes_them(self, paper):
    readme = (_PAPERS / paper / 'README.md').read_text(encoding='utf-8')
    names = [table.name for table in self.tables if table.paper == paper]
    links = re.findall(r'\(([^)]*docs/results[^)]*)\)', readme)
    pages = [f'../../../docs/results/{paper}/{name}.md' for name in names]
    self.assertContainsSubset(links, [*pages, *_OTHER_PAGES])

  @parameterized.parameters(*_NUM_CELLS.items())
  def test_number_of_cells(self, paper, num_cells):
    tables = [table for table in self.tables if table.paper == paper]
    self.assertEqual(_num_own_cells(tables), num_cells)


class DeltaSgdTest(parameterized.TestCase):

  def _cell(self, name, row, column, group=''):
    table = published.find_table(f'delta_sgd/{name}')
    return table.cell(group, row, column)

  def _values(self, *args, **kwargs):
    found = published.hyperparameters(self._cell(*args, **kwargs))
    return {h.name: h.value for h in found}

  def test_command_of_the_readme_is_that_of_the_cell(self):
    readme = _PAPERS / 'delta_sgd' / 'README.md'
    cell = self._cell('table_1', 'SGD', 'MNIST', 'alpha = 0.1')
    self.assertIn(
        f'\n.venv/bin/{published.build_command(cell)}\n',
        readme.read_text(encoding='utf-8'),
    )

  def test_tables_and_figures(self):
    tables = published.load_tables('delta_sgd')
    self.assertEqual(
        [table.name for table in tables],
        [f'table_{i}' for i in range(1, 8)]
        + [f'figure_{i}' for i in range(1, 9)]
        + ['last_batch', 'variants_mnist'],
    )
    self.assertEqual(
        [len(table.cells) for table in tables[:7]],
        [120, 16, 16, 32, 8, 40, 24],
    )
    self.assertEqual([len(table.cells) for table in tables[-2:]], [16, 12])
    for table in tables[:7]:
      for cell in table.cells:
        self.assertIsNotNone(cell.published, cell.experiment_name)

  @parameterized.parameters(
      ('alpha = 1', 'SGD', 'MNIST', 98.3),
      ('alpha = 1', 'SPS', 'CIFAR-100 ResNet-18', 1.0),
      ('alpha = 1', 'Delta-SGD', 'CIFAR-100 ResNet-50', 65.8),
      ('alpha = 0.1', 'SGDM(down)', 'FMNIST', 86.1),
      ('alpha = 0.1', 'Adam', 'CIFAR-10 ResNet-18', 85.0),
      ('alpha = 0.01', 'SGDM', 'MNIST', 77.9),
      ('alpha = 0.01', 'Delta-SGD', 'MNIST', 97.5),
  )
  def test_numbers_of_table_1(self, group, row, column, number):
    self.assertEqual(
        self._cell('table_1', row, column, group).published, number
    )

  @parameterized.parameters(
      ('table_2', 'SPS', 'DBpedia DistilBERT', 98.9),
      ('table_3', 'Delta-SGD', 'CIFAR-100 ResNet-50', 57.5),
      ('table_4', 'Adagrad', 'CIFAR-10 ResNet-18', 10.4),
      ('table_5', 'SPS', 'CIFAR-10 ResNet-18', 9.57),
      ('table_6', 'SPS', 'MNIST', 85.5),
      ('table_7', 'SGD(down)', 'CIFAR-100 ResNet-50', 40.26),
  )
  def test_numbers_of_the_other_tables(self, name, row, column, number):
    self.assertEqual(self._cell(name, row, column).published, number)

  def test_table_7_has_three_seeds_and_their_spread(self):
    self.assertEqual(published.find_table('delta_sgd/table_7').seeds, 3)
    cell = self._cell('table_7', 'SGDM', 'FMNIST')
    self.assertEqual(cell.published_std, 1.86)

  def test_protocol_of_table_1(self):
    values = self._values('table_1', 'Delta-SGD', 'FMNIST', 'alpha = 0.01')
    self.assertContainsSubset(
        {
            'task': 'fashion_mnist',
            'algorithm': 'fed_opt',
            'client_weighting': 'uniform',
            'fashion_mnist_alpha': 0.01,
            'fashion_mnist_num_clients': 100,
            'total_rounds': 1000,
            'clients_per_round': 10,
            'client_batch_size': 64,
            'client_epochs': 1,
            'client_learning_rate': 0.2,
            'delta_sgd_delta': 0.1,
            'delta_sgd_gamma': 2.0,
        }.items(),
        values.items(),
    )

  @parameterized.parameters(
      ('SGD', 0.1, 'constant'),
      ('SGD(down)', 0.1, 'step_decay'),
      ('SGDM', 0.1, 'constant'),
      ('SGDM(down)', 0.1, 'step_decay'),
      ('Adam', 0.001, 'constant'),
      ('Adagrad', 0.01, 'constant'),
      ('Delta-SGD', 0.2, 'constant'),
  )
  def test_step_sizes_are_tuned_once(self, row, learning_rate, schedule):
    for name, column in (
        ('table_2', 'AG News DistilBERT'),
        ('table_5', 'CIFAR-10 ResNet-18'),
        ('table_6', 'MNIST'),
    ):
      values = self._values(name, row, column)
      self.assertEqual(values['client_learning_rate'], learning_rate)
      self.assertEqual(values['client_schedule'], schedule)

  @parameterized.parameters(
      (
          'table_2',
          'DBpedia DistilBERT',
          {
              'dbpedia_model': 'distilbert',
              'dbpedia_alpha': 1.0,
              'dbpedia_num_clients': 50,
              'clients_per_round': 5,
              'client_batch_size': 16,
              'total_rounds': 100,
          },
      ),
      (
          'table_3',
          'CIFAR-100 ResNet-50',
          {
              'cifar100_alpha': 0.1,
              'cifar100_examples_per_client': '100-500',
              'client_weighting': 'examples',
          },
      ),
      (
          'table_4',
          'MNIST',
          {
              'mnist_alpha': 0.1,
              'server_optimizer': 'fedadam',
              'server_learning_rate': 0.001,
              'fedadam_beta_2': 0.999,
              'fedadam_bias_correction': True,
              'fedadam_initial_second_moment': 0.0,
          },
      ),
      (
          'table_5',
          'CIFAR-10 ResNet-18',
          {'cifar10_alpha': 0.1, 'loss_term': 'moon', 'moon_mu': 1.0},
      ),
      (
          'table_6',
          'MNIST',
          {'mnist_alpha': 0.01, 'loss_term': 'fedprox', 'fedprox_mu': 0.01},
      ),
      ('table_7', 'FMNIST', {'fashion_mnist_alpha': 0.1}),
  )
  def test_what_a_table_changes(self, name, column, changes):
    values = self._values(name, 'SGD', column)
    self.assertContainsSubset(changes.items(), values.items())

  def test_figures_vary_delta_and_epochs(self):
    deltas = published.find_table('delta_sgd/figure_4')
    epochs = published.find_table('delta_sgd/figure_5')
    self.assertEqual(
        [
            self._values('figure_4', 'MNIST', column.name)['delta_sgd_delta']
            for column in deltas.columns
        ],
        [0.01, 0.1, 1.0],
    )
    (column,) = [column.name for column in epochs.columns]
    for group in epochs.groups:
      self.assertEqual(
          [
              self._values('figure_5', row.name, column, group.name)[
                  'client_epochs'
              ]
              for row in epochs.rows
          ],
          [1, 2, 3],
      )


if __name__ == '__main__':
  absltest.main()
