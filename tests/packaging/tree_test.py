# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what holds for the whole tree: checks, documentation, imports."""

import ast
import pathlib
import re

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from tests import folder_testing
from tests import page_testing
from tests import program_testing
from tools.docs import public_api

_ROOT = page_testing.ROOT
# The packages that each package of the library may import.
_LIBRARY = {
    'data': (),
    'aggregators': (),
    'optimizers': (),
    'models': (),
    'privacy': ('aggregators', 'optimizers'),
    'runtime': ('aggregators', 'data'),
    'client_works': ('aggregators', 'data', 'models', 'optimizers'),
    'algorithms': (
        'aggregators',
        'client_works',
        'data',
        'models',
        'optimizers',
        'privacy',
    ),
    'tuning': ('client_works', 'data', 'optimizers', 'privacy', 'runtime'),
    'evaluation': (
        'aggregators',
        'client_works',
        'data',
        'models',
        'optimizers',
        'runtime',
    ),
    'simulation': ('client_works', 'data', 'models', 'privacy'),
    'analysis': ('data', 'evaluation', 'runtime', 'simulation'),
}
# The files of the runtime that need no folder, and what each folder may import
# besides them.
_RUNTIME_GROUND = ('computations', 'plans', 'round_keys', 'values')
_RUNTIME = {
    'sequences': (),
    'graphs': ('sequences',),
    'datasets': ('graphs', 'sequences'),
    'steps': ('datasets', 'graphs', 'rounds', 'running', 'sequences'),
}
# Folders of a machine, folders beside the checkout, and code that leads there.
_OUTSIDE = r'/(work|farm|home|root|mnt)/|\.\./shared|ROOT\.parent'
_PATH = re.compile(
    r'`((?:tff_adaptive|tasks|experiments|tests|tools)/[\w./]+)`'
)

_EXAMPLE = re.compile('/x/y_test|sign_descent|PAPER')


def _imports(folder: pathlib.Path) -> set[tuple[str, ...]]:
  """Returns the parts of the names that the modules of a folder import."""
  names = set()
  for path in folder.rglob('*.py'):
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
      if isinstance(node, ast.ImportFrom) and node.module:
        names |= {f'{node.module}.{alias.name}' for alias in node.names}
      elif isinstance(node, ast.Import):
        names |= {alias.name for alias in node.names}
  return {tuple(name.split('.')) for name in names}


class ImportsTest(parameterized.TestCase):

  @parameterized.parameters(*_LIBRARY.items())
  def test_package_of_the_library(self, package, allowed):
    found = {
        parts[1]
        for parts in _imports(_ROOT / 'tff_adaptive' / package)
        if parts[0] == 'tff_adaptive' and parts[1] in _LIBRARY
    }
    self.assertContainsSubset(found, {package, *allowed})

  @parameterized.parameters(*_RUNTIME.items())
  def test_folder_of_the_runtime(self, folder, allowed):
    found = {
        parts[2]
        for parts in _imports(_ROOT / 'tff_adaptive/runtime' / folder)
        if parts[:2] == ('tff_adaptive', 'runtime')
    }
    self.assertContainsSubset(found, {folder, *allowed, *_RUNTIME_GROUND})

  def test_simulation_knows_no_algorithm(self):
    found = {
        parts[2]
        for parts in _imports(_ROOT / 'tff_adaptive/simulation')
        if parts[:2] == ('tff_adaptive', 'client_works')
    }
    self.assertContainsSubset(
        found, ('local_models', 'model_adapter', 'totals')
    )

  def test_library_tasks_experiments(self):
    tops = lambda name: {parts[0] for parts in _imports(_ROOT / name)}
    self.assertNoCommonElements(tops('tff_adaptive'), ('tasks', 'experiments'))
    self.assertNotIn('experiments', tops('tasks'))


class PathsTest(absltest.TestCase):

  def test_nothing_names_a_path_outside(self):
    if not (_ROOT / '.git').exists():
      self.skipTest('Not a checkout.')
    found = program_testing.run_command(
        'git', 'grep', '-nE', _OUTSIDE, '--', ':!.ci/run', ':!*tree_test.py'
    )
    self.assertEqual((found.returncode, found.stdout), (1, ''))

  def test_reference_has_modules_of_every_package(self):
    found = {m.name.partition('.')[0] for m in public_api.find_modules()}
    self.assertEqual(found, set(public_api.PACKAGES))

  def test_reference_has_no_internals(self):
    names = {
        m.name.removeprefix('tff_adaptive.') for m in public_api.find_modules()
    }
    for package, modules in (
        ('runtime', {'scale_out'}),
        ('data', {'partition', 'random_streams', 'transforms'}),
        ('optimizers', {'schedules'}),
    ):
      found = {n for n in names if n.startswith(f'{package}.')}
      self.assertEqual(found, {f'{package}.{name}' for name in modules})

  def test_paths_in_pages_exist(self):
    paths = [
        (page, path)
        for page in page_testing.PAGES
        for path in _PATH.findall(page_testing.read(page))
        if not _EXAMPLE.search(path)
    ]
    self.assertNotEmpty(paths)
    for page, path in paths:
      self.assertTrue((_ROOT / path).exists(), f'{page}: {path}')


@pytest.mark.slow
class CommandsTest(absltest.TestCase):

  def test_check_finds_nothing(self):
    result = page_testing.run('make check')
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

  def test_site_builds_without_the_network(self):
    made = page_testing.run('make .venv-docs')
    if made.returncode:
      self.skipTest(f'.venv-docs cannot be made: {made.stderr}')
    site = folder_testing.new(self)
    command = '.venv-docs/bin/python -m mkdocs build --strict --site-dir'
    result = program_testing.run_command(
        *command.split(),
        str(site),
        NO_MKDOCS_2_WARNING='1',
        http_proxy='http://127.0.0.1:9',
        https_proxy='http://127.0.0.1:9',
    )
    self.assertEqual(result.returncode, 0, result.stderr)
    # A browser loads nothing from elsewhere, and the reference has the names.
    pages = {p: p.read_text(encoding='utf-8') for p in site.rglob('*.html')}
    for path, text in pages.items():
      self.assertNotRegex(
          text, r'<(script|img|iframe)[^>]* src="(https?:)?//', path
      )
    reference = pages[site / 'api/tff_adaptive/optimizers.html']
    self.assertIn('id="tff_adaptive.optimizers.build_delta_sgd"', reference)
    # A notebook is a page with its pictures, and links lead to pages.
    tutorial = pages[site / 'examples/first_steps.html']
    self.assertIn('src="first_steps_1.png"', tutorial)
    self.assertTrue((site / 'examples/first_steps_1.png').exists())
    for page in ('index.html', 'examples/index.html'):
      self.assertNotRegex(pages[site / page], r'href="[^"]*\.(ipynb|py)"')
