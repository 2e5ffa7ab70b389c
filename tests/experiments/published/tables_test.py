# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tables and their cells."""

import dataclasses

from absl.testing import parameterized

from experiments.published import tables


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
