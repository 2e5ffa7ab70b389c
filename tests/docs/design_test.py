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
"""Tests that the page on design is about this code."""

import ast
import re

from absl.testing import absltest
from absl.testing import parameterized

from tests import page_testing

_NAME = 'docs/design.md'
_PAGE = page_testing.read(_NAME)

# What the page says that the packages of the library import of each other, and
# the modules of `client_works` that know no algorithm.
_IMPORTS = {
    'data': (),
    'aggregators': (),
    'optimizers': (),
    'privacy': (),
    'client_works': ('aggregators', 'optimizers'),
    'finalizers': ('aggregators', 'optimizers'),
    'algorithms': (
        'aggregators',
        'client_works',
        'finalizers',
        'optimizers',
        'privacy',
    ),
    'runtime': ('data',),
    'simulation': ('client_works', 'data', 'privacy', 'runtime'),
    'analysis': ('data', 'runtime', 'simulation'),
    'layers': (),
}


def _imports(folder):
  """Yields the parts of the names that the modules of a folder import."""
  for path in (page_testing.ROOT / folder).rglob('*.py'):
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
      if isinstance(node, ast.ImportFrom) and node.module:
        for alias in node.names:
          yield f'{node.module}.{alias.name}'.split('.')


def _imported_packages(folder):
  """The packages of the library that the modules of a folder import."""
  found = set()
  for parts in _imports(folder):
    is_package = (page_testing.ROOT / '/'.join(parts[:2])).is_dir()
    if parts[0] == 'tff_adaptive' and is_package:
      found.add(parts[1])
    elif parts[0] in ('tasks', 'experiments'):
      found.add(parts[0])
  return found


def _imported_modules(folder, package):
  """The modules of a package that the modules of a folder import."""
  return {
      parts[2]
      for parts in _imports(folder)
      if parts[:2] == ['tff_adaptive', package]
  }


def _five_steps(gradient):
  """Five SGD steps of 0.1 from 0, as the page prints where they end."""
  x = 0.0
  for _ in range(5):
    x -= 0.1 * gradient(x)
  return f'{x:.3f}'.removeprefix('0')


class DesignPageTest(parameterized.TestCase):

  def test_links_lead_somewhere(self):
    self.assertEmpty(page_testing.broken_links(_NAME))

  def test_modules_and_files_exist(self):
    paths = [
        name
        for name in page_testing.names_in(_PAGE.splitlines())
        if re.fullmatch(r'[\w./]+(/|/\w+|\.py|\.in|\.txt|\.cfg)', name)
    ]
    self.assertGreater(len(paths), 20)
    for path in paths:
      self.assertTrue((page_testing.ROOT / path).exists(), path)

  @parameterized.parameters(*_IMPORTS.items())
  def test_package_imports_what_the_page_says(self, package, allowed):
    found = _imported_packages(f'tff_adaptive/{package}') - {package}
    self.assertContainsSubset(found, allowed)

  def test_simulation_knows_no_algorithm(self):
    self.assertContainsSubset(
        _imported_modules('tff_adaptive/simulation', 'client_works'),
        ('client_evaluation', 'local_training', 'model_adapter', 'totals'),
    )

  def test_library_imports_neither_tasks_nor_experiments(self):
    self.assertNoCommonElements(
        _imported_packages('tff_adaptive'), ('tasks', 'experiments')
    )
    self.assertNotIn('experiments', _imported_packages('tasks'))

  def test_steps_of_fedprox_end_where_the_page_says(self):
    ends = (
        _five_steps(lambda x: 2 * (x - 1)),
        _five_steps(lambda x: 2 * (x - 1) - x),
        _five_steps(lambda x: 2 * (x - 1) + x),
    )
    self.assertEqual(ends, ('.672', '.819', '.555'))
    for name in (_NAME, 'docs/migration/tff_learning.md'):
      page = ' '.join(page_testing.read(name).split())
      for end in ends:
        self.assertRegex(page, rf'\W\{end}\W')

  def test_times_are_those_of_the_readme(self):
    readme = page_testing.read('README.md')
    rows = {
        row[0].split(':')[0].strip('`'): row[1:3]
        for row in page_testing.table_rows(readme, 'workload')
    }
    page = ' '.join(_PAGE.split())
    native, compiled = rows['tiny_many']
    self.assertIn(f'takes {native} s on it and {compiled} s as one', page)
    native, compiled = rows['emnist_cnn']
    self.assertIn(f'dominates, {native} s and {compiled} s (two cores', page)
    native, compiled = rows['shakespeare_lstm']
    self.assertIn(f'takes {compiled} s with it compiled, and {native} s', page)
    dense, words = rows['so_logreg'][1], rows['so_logreg_words'][1]
    self.assertIn(
        f'`so_logreg` {dense} s, and as `so_logreg_words` {words} s', page
    )


if __name__ == '__main__':
  absltest.main()
