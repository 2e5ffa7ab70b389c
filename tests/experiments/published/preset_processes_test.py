# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Every cell of the papers builds its process; some of them train."""

import collections
import contextlib
import dataclasses
import io
import os
import pathlib
import tempfile

from absl.testing import parameterized
import numpy as np
import pytest

from experiments import published
from experiments import registry
from experiments.train import run_parts
from tests import folder_testing
from tests.experiments.train import training_process

_TABLES = tuple(
    (table.place.replace('/', '_'), table.place)
    for table in published.load_tables()
)


def _own_cells(name):
  """Returns the cells of a table whose runs are its own."""
  table = published.find_table(name)
  return [cell for cell in table.cells if cell.table == table.name]


_TABLES_WITH_RUNS = tuple(entry for entry in _TABLES if _own_cells(entry[1]))
_RULES = (*registry.RULES, registry.CLIENT_SCHEDULE, registry.SERVER_SCHEDULE)
_SMALL = ('--clients_per_round=2', '--max_examples=8', '--client_batch_size=4')
# Minutes that the graph of two rounds takes to build, by tasks and models.
_COSTS = {
    'shakespeare': 1,
    'stackoverflow': 1,
    'resnet18': 3,
    'resnet50': 6,
    'distilbert': 6,
}
# What is built in the place of a model whose graph takes minutes: rules do not
# look at models, which have tests of their own.
_SMALL_MODELS = {
    'resnet18': 'simple_cnn',
    'resnet50': 'simple_cnn',
    'distilbert': 'cnn',
}
# The value that a task uses instead of its own.
_SMALL_TASK = {
    'num_clients': 10,
    'examples_per_client': '4-8',
    'min_size': 1,
    # The weights are not ours to distribute.
    'pretrained_dir': '',
}


def _small_arguments(cell, output_dir):
  """Returns the flags of a cell on few made-up examples."""
  arguments = published.train_arguments(
      cell, data_dir=None, output_dir=output_dir
  )
  choices, settings = published.parse_flags([*arguments, '--data_dir=data'])
  task = choices[registry.TASK]
  arguments += _SMALL
  if 'data_dir' in task.row.supplied:
    arguments.append('--use_synthetic_data')
  arguments += [
      f'--{name}=5'
      for name in ('num_clients', 'heldout_clients')
      if getattr(settings, name) is not None
  ]
  return arguments + [
      f'--{task.row.name}_{name}={value}'
      for name, value in _SMALL_TASK.items()
      if name in task.given
  ]


def _build_arguments(cell, output_dir):
  """Returns the flags of a cell on few examples and a model built quickly."""
  arguments = _small_arguments(cell, output_dir)
  choices, _ = published.parse_flags([*arguments, '--data_dir='])
  task = choices[registry.TASK]
  return arguments + [
      f'--{task.row.name}_model={_SMALL_MODELS[value]}'
      for value in task.given.values()
      if value in _SMALL_MODELS
  ]


def _cost(cell):
  """Returns how long the graph of a cell takes to build, roughly."""
  choices, _ = published.parse_flags(published.train_arguments(cell))
  task = choices[registry.TASK]
  described = ' '.join([task.row.name, *map(str, task.given.values())])
  costs = [cost for name, cost in _COSTS.items() if name in described]
  return max(costs, default=0)


def _sort(choice):
  """Returns what decides which operations are built for a choice.

  Of a number it matters whether it is 0 and no more: one learning rate builds
  as another does.
  """

  def generalize(value):
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return bool(value) if is_number else value

  given = {name: generalize(value) for name, value in choice.given.items()}
  return choice.row.name, tuple(sorted(given.items()))


def _task_sort(choices, settings):
  clients = (
      settings.num_clients,
      settings.heldout_clients,
      settings.heldout_fraction,
  )
  return _sort(choices[registry.TASK]), clients


def _process_sorts(choices):
  """Returns what decides which operations a process has.

  Rules do not look at models, but for loss terms on representations: models
  and rules are built together once each, not in every combination.
  """
  task = choices[registry.TASK]
  of_clients = task.row.task.clients
  names = [a.name for a in of_clients.arguments] if of_clients else []
  given = {
      name: value for name, value in task.given.items() if name not in names
  }
  rules = set(choices) - {registry.RUNTIME, registry.TASK}
  return {
      (
          _sort(dataclasses.replace(task, given=given)),
          _sort(choices[registry.LOSS_TERM]),
      ),
      tuple(_sort(choices[kind]) for kind in sorted(rules)),
  }


@contextlib.contextmanager
def _named(cell):
  """Puts the name of a cell on what goes wrong."""
  try:
    yield
  except Exception as error:
    raise AssertionError(f'{cell.experiment_name} does not build') from error


class PresetProcessesTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.output_dir = cls.enterClassContext(tempfile.TemporaryDirectory())
    # The sorts of tasks and processes that have been built.
    cls.built = set()

  def setUp(self):
    super().setUp()
    # Flagfiles are given from the project's folder.
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(published.ROOT)
    self.enter_context(contextlib.redirect_stdout(io.StringIO()))

  def _by_task(self, cells):
    """Returns cells with their choices and settings, by the sort of task."""
    found = collections.defaultdict(list)
    for cell in cells:
      choices, settings = published.parse_flags(
          _build_arguments(cell, self.output_dir)
      )
      sort = _task_sort(choices, settings)
      found[sort].append((cell, choices, settings))
    return found

  @parameterized.named_parameters(*_TABLES)
  @pytest.mark.slow
  def test_every_cell_builds(self, name):
    by_task = self._by_task(published.find_table(name).cells)
    for task_sort, cells in by_task.items():
      new = [
          (cell, choices)
          for cell, choices, _ in cells
          if not _process_sorts(choices) <= self.built
      ]
      if task_sort in self.built and not new:
        continue
      cell, choices, settings = cells[0]
      with _named(cell):
        task = run_parts.build_task(choices, settings)
      self.built.add(task_sort)
      for cell, choices in new:
        sorts = _process_sorts(choices)
        if not sorts <= self.built:
          with _named(cell):
            run_parts.build_process(choices, settings, task)
          self.built |= sorts

  @pytest.mark.slow
  def test_rules_take_the_values_of_every_cell(self):
    supplied = {
        'num_clients': 5,
        'total_rounds': 10,
        'representation_fn': lambda *args: None,
    }
    built = set()
    for table in published.load_tables():
      for cell in table.cells:
        choices, _ = published.parse_flags(published.train_arguments(cell))
        for kind in _RULES:
          choice = choices[kind]
          key = (kind, choice.row.name, tuple(sorted(choice.given.items())))
          if key not in built:
            with _named(cell):
              choice.build(**supplied)
            built.add(key)

  @parameterized.named_parameters(*_TABLES_WITH_RUNS[::3])
  @pytest.mark.slow
  def test_a_cell_trains_two_rounds(self, name):
    cell = min(_own_cells(name), key=_cost)
    training_process.train(
        *_small_arguments(cell, self.output_dir), '--total_rounds=2'
    )
    path = pathlib.Path(self.output_dir, cell.experiment_name, 'seed_0')
    rows = folder_testing.read_rows(path / 'metrics.csv')
    self.assertLen(rows, 2)
    for row in rows:
      self.assertTrue(np.isfinite(float(row['clients/loss'])))
    evaluated = [
        float(value)
        for name, value in rows[-1].items()
        if name.startswith('evaluation/') and value
    ]
    self.assertNotEmpty(evaluated)
    self.assertTrue(np.isfinite(evaluated).all())

  @parameterized.parameters(
      'FAFED', 'FedCAda', 'FedAvg', 'FedAdam', 'FedAMS', 'FedSPS'
  )
  @pytest.mark.sample(1)
  def test_first_rounds_of_fedcada_on_images_train(self, row):
    (cell,) = (
        cell
        for cell in _own_cells('fedcada/table_1')
        if (cell.row, cell.column, cell.group)
        == (row, 'FashionMNIST non-IID', 'cross-silo')
    )
    training_process.train(
        *published.train_arguments(
            cell, data_dir=None, output_dir=self.output_dir
        ),
        '--use_synthetic_data',
        '--client_batch_size=16',
        '--total_rounds=5',
        '--rounds_per_evaluation=5',
    )
    path = pathlib.Path(self.output_dir, cell.experiment_name, 'seed_0')
    rows = folder_testing.read_rows(path / 'metrics.csv')
    self.assertEqual({row['clients/num_rejected'] for row in rows}, {'0'})
    losses = [float(row['clients/loss']) for row in rows]
    self.assertLess(losses[-1], losses[0])
