# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tables and their cells, and of the flags and commands of these."""

import dataclasses
import shlex

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized
import pytest

from experiments import flag_table
from experiments import preset_flags
from experiments import published
from experiments import registry
from experiments.published import commands
from experiments.published import tables
from tests.experiments.report import made_up_runs


def _cell(group, row, column):
  return tables.Cell('paper', 'table_1', group, row, column, flags=())


def _table(paper, name, cells=()):
  return tables.Table(
      paper=paper,
      name=name,
      title='',
      source='',
      default_measure=tables.Measure('accuracy', 100.0, True),
      estimate='final',
      seeds=1,
      groups=(tables.Entry(''),),
      rows=(tables.Entry('SGD'), tables.Entry('Adam')),
      columns=(tables.Entry('MNIST'),),
      cells=cells,
  )


class TablesTest(parameterized.TestCase):

  @parameterized.parameters(
      ('', 'SGD', 'MNIST', 'sgd.mnist'),
      ('alpha = 0.1', 'SGDM(down)', 'MNIST', 'alpha_0.1.sgdm_down.mnist'),
      ('', 'Delta-SGD', 'CIFAR-10 ResNet-18', 'delta-sgd.cifar-10_resnet-18'),
      ('10^{-0.5}', '1 + b^t', '', '10_-0.5.1_+_b_t'),
  )
  def test_experiment_name_is_a_folder(self, group, row, column, folder):
    self.assertEqual(
        _cell(group, row, column).experiment_name, f'paper/table_1/{folder}'
    )

  @parameterized.parameters(
      ('delta_sgd', 'table_1', 'Delta-SGD, Table 1'),
      ('fedli', 'figure_10', 'FedLi, Figure 10'),
      ('fedcada', 'ablation_mnist', 'FedCAda'),
      ('another', 'table_2', 'another, Table 2'),
  )
  def test_heading_is_that_of_the_paper(self, paper, name, heading):
    self.assertEqual(_table(paper, name).heading, heading)

  @parameterized.parameters(
      ({}, ''),
      ({'estimate': 'best'}, tables.REPLICATION_ONLY),
      ({'chosen_on_test': True}, tables.REPLICATION_ONLY),
  )
  def test_what_is_chosen_on_the_test_data_is_stamped(self, changes, stamp):
    table = dataclasses.replace(_table('paper', 'table_1'), **changes)
    self.assertEqual(table.stamp, stamp)

  def test_cell_is_found_by_its_names(self):
    cells = (_cell('', 'SGD', 'MNIST'), _cell('', 'Adam', 'MNIST'))
    table = _table('paper', 'table_1', cells)
    self.assertIs(table.cell('', 'Adam', 'MNIST'), cells[1])
    with self.assertRaisesRegex(KeyError, 'Yogi'):
      table.cell('', 'Yogi', 'MNIST')

  def test_every_axis_is_restricted(self):
    cells = tuple(_cell('', row, 'MNIST') for row in ('SGD', 'Adam'))
    table = _table('paper', 'table_1', cells)
    found = table.restrict(rows=['Adam'], columns=())
    self.assertEqual([entry.name for entry in found.rows], ['Adam'])
    self.assertEqual(found.columns, table.columns)
    self.assertEqual(found.cells, cells[1:])
    self.assertEqual(table.restrict(), table)
    with self.assertRaisesRegex(
        tables.PublishedError,
        "^the rows of paper/table_1 are SGD, Adam, found 'z'$",
    ):
      table.restrict(rows=['Adam', 'z'])
    table = _table('paper', 'table_1', cells[:1])
    with self.assertRaisesRegex(tables.PublishedError, 'table_1 has no cells'):
      table.restrict(rows=['Adam'])


_SPECIFIED = preset_flags.Origin.SPECIFIED
_ASSUMED = preset_flags.Origin.ASSUMED
_LOST = preset_flags.Origin.LOST
_METHOD = '--preset=delta_sgd/delta_sgd'


def _found_cell(specified=(), lost=()):
  given = preset_flags.FlagsByOrigin(specified=specified, lost=lost).given
  return tables.Cell('paper', 'table_1', '', 'SGD', 'MNIST', flags=given)


def _origins(cell):
  found = commands.hyperparameters(cell)
  return {found.name: (found.value, found.origin) for found in found}


def _parse(*arguments):
  values = flags.FlagValues()
  flag_table.define(commands.AxisFlags, values)
  values(['report', *arguments])
  return values


class AxisFlagsTest(absltest.TestCase):

  def test_names_are_separated_by_commas_and_tables_are_there_once(self):
    table = made_up_runs.build_table(
        groups=['alpha = 1', 'h'], rows=['a', 'b', 'c']
    )
    (found,) = commands.restrict(
        [table, table], _parse('--rows=c,a', '--groups=alpha = 1')
    )
    self.assertEqual(
        [cell.key for cell in found.cells],
        [('alpha = 1', 'a', 'digits'), ('alpha = 1', 'c', 'digits')],
    )
    self.assertEqual(commands.restrict([table], _parse()), [table])

  def test_a_flag_that_is_given_twice_is_refused(self):
    with self.assertRaisesRegex(flags.Error, 'rows=b: already defined'):
      _parse('--rows=a', '--rows=b')

  @pytest.mark.slow
  def test_no_published_name_has_a_comma(self):
    for table in published.load_tables():
      for axis in published.AXES:
        for entry in getattr(table, axis):
          self.assertNotIn(',', entry.name)


class CommandsTest(parameterized.TestCase):

  def test_command_is_a_line_for_a_shell(self):
    command = commands.build_command(
        _found_cell(['--task=mnist']),
        seed=2,
        data_dir='my data',
        output_dir='out',
    )
    self.assertEqual(
        shlex.split(command),
        [
            '.venv/bin/python',
            '-m',
            'experiments.train',
            '--task=mnist',
            '--seed=2',
            '--data_dir=my data',
            '--output_dir=out',
            '--experiment_name=paper/table_1/sgd.mnist/seed_2',
        ],
    )

  def test_command_of_several_seeds_names_the_folder_of_runs(self):
    command = commands.build_sweep_command(
        _found_cell(['--task=mnist']), [1, 2], output_dir='my runs'
    )
    self.assertEqual(
        shlex.split(command)[3:],
        [
            '--table=paper/table_1',
            '--rows=SGD',
            '--columns=MNIST',
            '--seeds=1,2',
            '--data_dir=data',
            '--output_dir=my runs',
        ],
    )

  def test_made_up_data_have_no_folder(self):
    arguments = commands.train_arguments(
        _found_cell(['--task=mnist', '--use_synthetic_data']),
        data_dir=None,
    )
    self.assertFalse([a for a in arguments if a.startswith('--data_dir')])
    _, settings = commands.parse_flags(arguments)
    self.assertTrue(settings.use_synthetic_data)

  def test_flags_of_one_command_are_not_those_of_the_next(self):
    commands.parse_flags(['--client_epochs=3', '--evaluations=per_client'])
    with self.assertRaises(flags.Error):
      commands.parse_flags(['--total_rounds=7', '--client_epochs=none'])
    choices, settings = commands.parse_flags(['--client_optimizer=sgd'])
    self.assertIsNone(settings.client_epochs)
    self.assertIsNone(settings.total_rounds)
    self.assertEqual(settings.evaluations, ('central',))
    self.assertEmpty(choices[registry.CLIENT_OPTIMIZER].given)

  def test_every_value_has_an_origin(self):
    found = _origins(
        _found_cell(
            ['--task=mnist', '--client_optimizer=sgd', '--total_rounds=500'],
            lost=['--client_learning_rate=0.5'],
        )
    )
    self.assertEqual(found['task'], ('mnist', _SPECIFIED))
    self.assertEqual(found['total_rounds'], (500, _SPECIFIED))
    self.assertEqual(found['client_learning_rate'], (0.5, _LOST))
    self.assertEqual(found['sgd_momentum'], (0.0, _ASSUMED))
    self.assertEqual(found['client_batch_size'], (None, _ASSUMED))

  def test_runs_that_are_not_compared_are_left_out(self):
    found = _origins(
        _found_cell(['--task=mnist', '--rounds_per_evaluation=10'])
    )
    self.assertEqual(found['rounds_per_evaluation'], (10, _SPECIFIED))
    for name in ('runtime', 'data_dir', 'output_dir', 'rounds_per_checkpoint'):
      self.assertNotIn(name, found)

  def test_preset_gives_its_origins(self):
    found = _origins(_found_cell(['--task=digits', _METHOD]))
    self.assertEqual(found['delta_sgd_gamma'], (2.0, _SPECIFIED))
    self.assertEqual(found['delta_sgd_amplify_first'], (False, _LOST))

  def test_last_flag_has_the_last_word_on_the_origin(self):
    cell = _found_cell(['--task=digits', _METHOD], lost=['--delta_sgd_gamma=1'])
    self.assertEqual(_origins(cell)['delta_sgd_gamma'], (1.0, _LOST))

  @parameterized.parameters(False, True)
  def test_negated_flag_overrides_and_is_overridden(self, value):
    given = ['--delta_sgd_amplify_first', '--nodelta_sgd_amplify_first']
    if value:
      given.reverse()
    cell = _found_cell(['--task=digits', given[0]], lost=[given[1]])
    self.assertEqual(_origins(cell)['delta_sgd_amplify_first'], (value, _LOST))

  def test_parts_have_the_origin_of_their_algorithm(self):
    found = _origins(_found_cell(['--task=digits', '--algorithm=fedcada']))
    self.assertEqual(found['client_optimizer'], ('fedcada_adam', _SPECIFIED))
    self.assertEqual(found['server_optimizer'], ('fedavg', _ASSUMED))
