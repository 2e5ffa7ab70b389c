# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tables of the documentation that follow from the code."""

import re

from absl.testing import absltest
from absl.testing import parameterized

from experiments import published
from experiments import registry
from tests import page_testing
from tools import recommended_hyperparameters as recommended
from tools import rule_tables
from tools import tables


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

  def test_areas_of_the_first_page_are_those_of_the_leaderboard(self):
    page = page_testing.read('docs/results/leaderboard.md')
    rows = page_testing.table_rows(page, 'method')
    areas = {method: float(area) for method, _, area, *_ in rows}
    readme = page_testing.read('README.md')
    told = readme.split('\n## Which method wins?\n')[1].split('\n## ')[0]
    shown = re.findall(r'(\d+\.\d) for ((?:Fed|Delta-)[\w-]+)', told)
    self.assertLen(shown, 7)
    for area, method in shown:
      self.assertEqual(f'{areas[method]:.1f}', area, method)


class FoldersTest(absltest.TestCase):

  def test_the_tree_of_folders_is_that_of_the_project(self):
    page = page_testing.read('CONTRIBUTING.md')
    tree = page.split('## Where things are')[1].split('```')[1]
    folders: list[str] = []
    named = set()
    for indent, names in re.findall(r'^( *)(\S+(?:, \S+)*)  ', tree, re.M):
      folders[len(indent) // 2 :] = [names]
      named |= {''.join([*folders[:-1], name]) for name in names.split(', ')}
    for name in named:
      self.assertTrue((page_testing.ROOT / name).exists(), name)
    for folder in ('tff_adaptive/', 'tff_adaptive/runtime/'):
      for path in (page_testing.ROOT / folder).glob('*/__init__.py'):
        self.assertIn(f'{folder}{path.parent.name}/', named)


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


class CommandsTest(absltest.TestCase):

  def test_commands_are_whole_after_wrapping(self):
    place = ('fedopt/table_1', '', 'FedAvg', 'SO NWP')
    block = recommended.commands_of(place)
    (command,) = page_testing.commands_of(block)
    cell = published.find_table(place[0]).cell(*place[1:])
    self.assertEqual(command.text, published.build_command(cell))
    self.assertLess(max(map(len, block.splitlines())), 101)
