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
"""Tests of the pages of the documentation: links, navigation, API reference."""

import ast
import itertools
import pathlib
import re
from typing import Any

from absl.testing import absltest
from absl.testing import parameterized
import yaml

from tests import page_testing
from tools.docs import api_pages
from tools.docs import page_tree
from tools.docs import public_api

_ROOT = page_testing.ROOT
_PATTERNS = (
    '*.md',
    'docs/**/*.md',
    'experiments/presets/**/README.md',
)
_PAGES = sorted(
    path.relative_to(_ROOT).as_posix()
    for pattern in _PATTERNS
    for path in _ROOT.glob(pattern)
)
_LIST_ITEM = re.compile(r'([*-]|1\.) ')


class _ConfigLoader(yaml.SafeLoader):
  """Reads mkdocs.yml without making the Python objects in it."""


_ConfigLoader.add_multi_constructor(
    'tag:yaml.org,2002:python/', lambda loader, suffix, node: None
)


def _navigation() -> Any:
  with open(_ROOT / 'mkdocs.yml', encoding='utf-8') as file:
    return yaml.load(file, _ConfigLoader)['nav']  # A safe loader.


def _leaves(navigation: Any) -> list[str]:
  if isinstance(navigation, str):
    return [navigation]
  values = navigation.values() if isinstance(navigation, dict) else navigation
  return list(itertools.chain.from_iterable(map(_leaves, values)))


def _exports(package: pathlib.Path) -> list[str]:
  """What of the project a package imports in its `__init__.py`, but modules."""
  tree = ast.parse((package / '__init__.py').read_text(encoding='utf-8'))
  return [
      alias.asname or alias.name
      for node in ast.walk(tree)
      if isinstance(node, ast.ImportFrom)
      and str(node.module).startswith(public_api.PACKAGES)
      for alias in node.names
      if not alias.name.startswith('_')
      and not _is_module(f'{node.module}.{alias.name}')
  ]


def _is_module(name: str) -> bool:
  path = _ROOT / name.replace('.', '/')
  return path.is_dir() or path.with_suffix('.py').exists()


def _find_packages() -> list[str]:
  """The packages that import something for their users."""
  packages = []
  for top in public_api.PACKAGES:
    for path in sorted((_ROOT / top).rglob('__init__.py')):
      if _exports(path.parent):
        name = path.parent.relative_to(_ROOT).as_posix().replace('/', '.')
        packages.append(name)
  return packages


class PagesTest(parameterized.TestCase):

  @parameterized.parameters(*_PAGES)
  def test_links_lead_somewhere(self, name):
    self.assertEmpty(page_testing.broken_links(name))

  @parameterized.parameters(*_PAGES)
  def test_lists_begin_after_an_empty_line(self, name):
    """Elsewhere a code host shows a list, and the site does not."""
    previous = ''
    text = re.sub(
        r'^```.*?^```$', '', page_testing.read(name), flags=re.M | re.S
    )
    for line in text.splitlines():
      if _LIST_ITEM.match(line) and previous and previous[0] != ' ':
        self.assertRegex(previous, r'^([*-]|\d+\.) ', line)
      # The site takes four spaces for a list within a list.
      self.assertNotRegex(line, r'^ {1,3}([*-]|1\.) ')
      previous = line

  def test_every_page_is_in_the_navigation_once(self):
    pages = [*_PAGES, *api_pages.build_pages()]
    found = _leaves(page_tree.expand(_navigation(), pages))
    self.assertCountEqual(found, pages)

  def test_pages_outside_of_docs_are_found(self):
    found = page_tree.find_outside(_navigation(), _ROOT)
    outside = [page for page in _PAGES if not page.startswith('docs/')]
    self.assertCountEqual(found, outside)

  @parameterized.parameters(*_PAGES)
  def test_what_code_imports_is_in_the_reference(self, name):
    modules = {m.name: m.names for m in public_api.find_modules()}
    for block in page_testing.blocks_of(page_testing.read(name), 'python'):
      imports = re.findall(
          r'^\s*from (tff_adaptive[\w.]*) import (\w+)', block, re.M
      )
      for module, imported in imports:
        is_public = f'{module}.{imported}' in modules
        is_public = is_public or imported in modules.get(module, {})
        self.assertTrue(is_public, f'{module}.{imported}')


class ApiPagesTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.pages = api_pages.build_pages()

  @parameterized.parameters(*_find_packages())
  def test_page_has_the_names_of_its_package(self, package):
    page = self.pages[api_pages.page_of(package)]
    rows = re.findall(r'^\| \[`(\w+)`\]\[([\w.]+)\] \| (.*) \|$', page, re.M)
    exports = _exports(_ROOT / package.replace('.', '/'))
    self.assertCountEqual([name for name, _, _ in rows], exports)
    for name, target, summary in rows:
      self.assertNotEmpty(summary, name)
      home, _, described = target.rpartition('.')
      self.assertIn(
          f'\n::: {home}.{described}\n', self.pages[api_pages.page_of(home)]
      )

  def test_each_definition_is_described_once(self):
    described = re.findall(
        r'^::: ([\w.]+)\n(?!    )', ''.join(self.pages.values()), re.M
    )
    self.assertLen(set(described), len(described))
    definitions = {
        definition.path
        for module in public_api.find_modules()
        for definition in module.names.values()
    }
    self.assertLen(described, len(definitions))

  def test_no_name_is_private(self):
    for module in public_api.find_modules():
      for name in [*module.name.split('.'), *module.names]:
        self.assertNotStartsWith(name, '_')

  def test_overview_has_all_pages(self):
    overview = self.pages[api_pages.INDEX]
    for page in self.pages:
      if page != api_pages.INDEX:
        self.assertIn(f']({page.removeprefix("api/")})', overview)


if __name__ == '__main__':
  absltest.main()
