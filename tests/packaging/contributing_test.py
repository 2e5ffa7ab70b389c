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
"""Tests that CONTRIBUTING.md and the hooks name what there is."""

from collections.abc import Iterator
import re
import shlex

from absl.testing import absltest
from absl.testing import parameterized
import pytest
import yaml

from tests import page_testing

_ROOT = page_testing.ROOT
_NAME = 'CONTRIBUTING.md'
_PAGE = page_testing.read(_NAME)
_MAKEFILE = page_testing.read('Makefile')
_HOOKS = yaml.safe_load(page_testing.read('.pre-commit-config.yaml'))
# What is named and made by a command, or stands for any other name.
_NOT_STORED = ('.venv', '.venv-check', '.venv-release', 'dist/')
# Files and folders: `docs/tasks.md`, `tests/`, `tasks/mnist`, `BUILD`.
_PATH = re.compile(
    r'`((?:[\w.-]+/)+[\w.-]*|[\w.-]+\.(?:md|txt|toml|cfg|yaml))`'
)
# The commands that are run elsewhere, and where.
_RUN_ELSEWHERE = {
    'make venv': 'tests/packaging/make_venv_test.py',
    'make check': 'tests/readme_test.py',
    'make format': 'Makefile',
    'make docs': 'Makefile',
    # The suite does not run itself.
    'make test': 'Makefile',
    'make test-all': 'Makefile',
    'make release': 'tests/packaging/release_test.py',
}
_RUN_HERE = '.venv/bin/python -m pytest -q tests/packaging/licence_test.py'


def _paths_of_tree() -> Iterator[str]:
  """Yields the paths of the tree under "Where things are"."""
  (tree,) = page_testing.blocks_of(_PAGE, '')
  folders: list[str] = []
  for line in tree.splitlines():
    name = line.split()[0]
    depth = (len(line) - len(line.lstrip())) // 2
    folders[depth:] = [name]
    yield ''.join(folders)


def _targets() -> set[str]:
  return set(re.findall(r'^([\w.-]+):(?!=)', _MAKEFILE, re.M))


def _hooks() -> list[dict]:
  (local,) = _HOOKS['repos']
  return local['hooks']


class ContributingTest(absltest.TestCase):

  def test_tree_is_there_with_all_folders(self):
    paths = list(_paths_of_tree())
    for path in paths:
      self.assertTrue((_ROOT / path).exists(), path)
    for folder in ('tff_adaptive', '.'):
      found = {
          path.relative_to(_ROOT).as_posix() + '/'
          for path in (_ROOT / folder).glob('[!.]*/')
          if any(path.glob('*.py')) or any(path.glob('*.md'))
      }
      self.assertContainsSubset(found, paths)

  def test_named_files_are_there(self):
    named = set(_PATH.findall(_PAGE)).difference(_NOT_STORED)
    self.assertGreater(len(named), 40)
    for path in named:
      if path != 'x/y.py':
        self.assertTrue((_ROOT / path).exists(), path)

  def test_named_targets_are_there(self):
    named = re.findall(r'`make ([\w-]+)`', _PAGE)
    self.assertContainsSubset(named, _targets())

  def test_every_command_is_run_by_a_test(self):
    commands = [block.text.strip() for block in page_testing.commands_of(_PAGE)]
    self.assertCountEqual(set(commands), [_RUN_HERE, *_RUN_ELSEWHERE])
    for command, where in _RUN_ELSEWHERE.items():
      self.assertIn(command.removeprefix('make '), _targets())
      self.assertTrue((_ROOT / where).is_file(), where)

  def test_command_for_one_file(self):
    result = page_testing.run(f'{_RUN_HERE} -p no:cacheprovider', _ROOT)
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)

  def test_named_names_are_there(self):
    for name, where in (
        ('_SPECIAL', 'tests/tff_adaptive/optimizers/rules_testing.py'),
        ('ALGORITHMS', 'experiments/registry/algorithms.py'),
        ('DEFAULT_PROTOCOL', 'tasks/mnist/mnist_tasks.py'),
        ('create_mnist_task', 'tasks/mnist/mnist_tasks.py'),
        ('create_mnist_task_from_data', 'tasks/mnist/mnist_tasks.py'),
        ('native_runtime', 'tests/conftest.py'),
        (
            'test_none_gradient_leaves_its_weight',
            'tests/tff_adaptive/optimizers/conformance_test.py',
        ),
    ):
      self.assertIn(f'`{name}`', _PAGE)
      self.assertIn(name, page_testing.read(where))

  def test_links_lead_somewhere(self):
    self.assertEmpty(page_testing.broken_links(_NAME))


class HooksTest(parameterized.TestCase):

  def test_nothing_is_fetched(self):
    self.assertEqual([r['repo'] for r in _HOOKS['repos']], ['local'])
    for hook in _hooks():
      self.assertEqual(hook['language'], 'system')
      program = shlex.split(hook['entry'])[0]
      self.assertIn(program.partition('/')[0], ('.venv', '.venv-check'))

  def test_files_are_those_of_make_check(self):
    (sources,) = re.findall('^SOURCES := (.*)$', _MAKEFILE, re.M)
    for hook in _hooks():
      if 'files' in hook:
        for folder in sources.split():
          self.assertRegex(f'{folder}/a/b.py', hook['files'])
    (types,) = [hook for hook in _hooks() if hook['id'] == 'types']
    self.assertEqual(shlex.split(types['entry'])[1:], sources.split())

  @parameterized.parameters('imports', 'format', 'style', 'licence')
  @pytest.mark.slow
  def test_hook_runs(self, name):
    (hook,) = [hook for hook in _hooks() if hook['id'] == name]
    made = page_testing.run('make .venv-check', _ROOT)
    self.assertEqual(made.returncode, 0, made.stderr)
    with page_testing.copied_project() as project:
      path = project / 'tools/check_release.py'
      before = path.read_bytes()
      files = '' if 'pass_filenames' in hook else f' {path}'
      result = page_testing.run(hook['entry'] + files, project)
      after = path.read_bytes()
    self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
    self.assertEqual(after, before)


if __name__ == '__main__':
  absltest.main()
