# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the presets: papers' tables, and protocols of simulators."""

import collections
import os
import re

from absl.testing import absltest

from experiments import preset_flags
from experiments import published
from experiments import registry
from experiments.published import commands
from experiments.report import figures
from tests import page_testing

_PAPERS = published.ROOT / 'experiments' / 'presets'
# These are of all papers.
_OTHER_PAGES = [
    f'../../../docs/results/{name}.md'
    for name in ('claims', 'figures', 'leaderboard')
]


def _without_numbers(cell):
  """Returns the flags of a cell without their numbers: grids look the same."""
  return tuple(re.sub(r'=[-+.e\d]+$', '=', flag.text) for flag in cell.flags)


def _presets(cell):
  return tuple(flag.value for flag in cell.flags if flag.name == 'preset')


class PresetsTest(absltest.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.tables = published.load_tables()
    # Parts shared by a table and its figures, or by a grid, count once.
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

  def test_flags_of_every_cell_parse(self):
    self.assertEmpty(self.errors, '\n'.join(self.errors))

  def test_commands_of_cells_parse(self):
    cells = {_presets(cell): cell for cell in self.cells.values()}
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

  def test_what_the_sources_leave_open_is_lost(self):
    for table, row, column, flag in (
        ('fedopt/figure_1', 'SCAFFOLD', 'EMNIST CR', 'client_weighting'),
        ('fedopt/table_3', 'FedAdam', 'centralized', 'client_batch_size'),
        ('fedli/table_1', 'FedAdam', 'CIFAR-10', 'fedadam_beta_2'),
        ('fedli/table_1', 'FedExP', 'CIFAR-10', 'fedexp_epsilon'),
    ):
      cell = published.find_table(table).cell('', row, column)
      origins = {h.name: h.origin for h in published.hyperparameters(cell)}
      self.assertEqual(origins[flag], published.Origin.LOST, row)

  def test_only_numbers_chosen_on_test_data_are_stamped(self):
    stamped = {
        table.name
        for table in self.tables
        if table.paper == 'fedopt' and table.stamp
    }
    self.assertEqual(stamped, {'figure_4'})

  def test_the_last_evaluations_are_not_the_whole_run(self):
    last = [t for t in self.tables if t.estimate == 'last_10_evaluations']
    for name in {cell.experiment_name for t in last for cell in t.cells}:
      found = {h.name: h.value for h in self.hyperparameters.get(name, ())}
      if found:
        rounds = 10 * found['rounds_per_evaluation']
        self.assertLessEqual(rounds, found['total_rounds'] / 2, name)

  def test_titles_and_axes_do_not_call_test_data_validation(self):
    for table in self.tables:
      flags = {flag.text for cell in table.cells for flag in cell.flags}
      if '--evaluation_data=validation' not in flags:
        shown = f'{table.title} {figures.read_options(table).y_label}'
        self.assertNotIn('validation', shown.lower(), table.place)

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
        cells[cell.experiment_name].add((cell.paper, cell.table, *cell.key))
    self.assertEmpty({name: c for name, c in cells.items() if len(c) > 1})

  def test_every_figure_has_options_that_fit(self):
    for table in self.tables:
      if 'figure' in table.name:
        self.assertIsNotNone(table.figure, table.name)
      with self.subTest(f'{table.paper}/{table.name}'):
        figures.read_options(table)

  def test_presets_have_known_flags(self):
    known = commands._define_flags()
    for name, found in preset_flags.load().items():
      for flag in found:
        with self.subTest(f'{name}: {flag.text}'):
          self.assertIn(commands._flag_name(flag), known)

  def test_every_preset_is_used(self):
    used = {name for cell in self.cells.values() for name in _presets(cell)}
    self.assertEqual(set(preset_flags.load()), used)

  def test_a_published_table_has_a_number_in_every_cell(self):
    for table in self.tables:
      # Some numbers of FedOpt's tables are unknown.
      if table.name.startswith('table') and table.paper != 'fedopt':
        for cell in table.cells:
          self.assertIsNotNone(cell.published, cell.experiment_name)

  def test_command_of_the_readme_is_that_of_the_cell(self):
    table = published.find_table('delta_sgd/table_1')
    command = published.build_command(table.cell('alpha = 0.1', 'SGD', 'MNIST'))
    readme = (_PAPERS / 'delta_sgd' / 'README.md').read_text(encoding='utf-8')
    self.assertIn(f'\n{command}\n', readme)

  def test_readmes_link_results_where_the_report_writes_them(self):
    for paper in {table.paper for table in self.tables}:
      readme = (_PAPERS / paper / 'README.md').read_text(encoding='utf-8')
      names = [table.name for table in self.tables if table.paper == paper]
      links = re.findall(r'\(([^)]*docs/results[^)]*)\)', readme)
      pages = [f'../../../docs/results/{paper}/{name}.md' for name in names]
      self.assertNotEmpty(links, paper)
      self.assertContainsSubset(links, [*pages, *_OTHER_PAGES])


_FOLDER = 'experiments/presets/simulators'
_ROW = re.compile(r'^\| `(\w+)\.flags` \| ([^|]+) \| .+ \|$', re.M)


class SimulatorsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(published.ROOT)  # Flagfiles are given from the project's folder.

  def test_presets_have_the_numbers_of_the_page(self):
    rows = _ROW.findall(page_testing.read(f'{_FOLDER}/README.md'))
    files = sorted((published.ROOT / _FOLDER).glob('*.flags'))
    self.assertCountEqual([name for name, _ in rows], [f.stem for f in files])
    for name, protocol in rows:
      with self.subTest(name):
        choices, settings = published.parse_flags(
            [f'--flagfile={_FOLDER}/{name}.flags', '--data_dir=data']
        )
        self.assertEqual(settings.experiment_name, name)
        numbers = {
            float(n.replace(',', ''))
            for n in re.findall(r'[\d,.]*\d', protocol)
        }
        rate = choices[registry.CLIENT_OPTIMIZER].given['learning_rate']
        self.assertLessEqual(
            {
                settings.clients_per_round,
                settings.client_batch_size,
                settings.total_rounds,
                rate,
            },
            numbers,
        )
