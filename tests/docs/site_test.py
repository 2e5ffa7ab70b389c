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
"""Tests that the commands of all pages run, in order and in one folder."""

import pathlib
import re

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from tests import page_testing

# As a reader of the site meets them. Those of CONTRIBUTING.md, which are for
# another checkout, are run by tests/packaging/contributing_test.py.
_NAV = page_testing.read('mkdocs.yml').partition('\nnav:')[2]
_PAGES = tuple(
    page
    for page in dict.fromkeys(
        re.findall(r'- (?:.*: )?([\w/]+\.md)$', _NAV, re.M)
    )
    if page not in ('CONTRIBUTING.md', 'CHANGELOG.md')
    and (page_testing.ROOT / page).is_file()
)
_PYTHON = '.venv/bin/python -m '
# How commands begin that are run elsewhere, or that take hours, and where they
# are tested.
_RUN_ELSEWHERE = {
    'make demo': 'tests/readme_test.py',
    'make check': 'tests/readme_test.py',
    # The suite does not run itself; whoever reads this result has run it.
    'make test': 'Makefile',
    'make results': 'tests/packaging/results_tool_test.py',
    'python3 -m venv': 'tests/packaging/make_venv_test.py',
    'my-environment/bin/pip install --no-deps --ignore-requires-python': (
        'tests/packaging/make_venv_test.py'
    ),
    'my-environment/bin/pip install --no-deps .': (
        'tests/packaging/wheel_test.py'
    ),
    f'{_PYTHON}pip install': 'tests/packaging/lock_test.py',
    f'{_PYTHON}tff_adaptive.doctor': 'tests/tff_adaptive/doctor_test.py',
    f'{_PYTHON}tasks.fetch': 'tests/tasks/fetch_test.py',
    f'{_PYTHON}experiments.benchmark': (
        'tests/experiments/benchmark/binary_test.py'
    ),
    f'{_PYTHON}experiments.conformance': 'tests/docs/conformance_test.py',
    f'{_PYTHON}experiments.leaderboard': (
        'tests/experiments/leaderboard/binary_test.py'
    ),
    f'{_PYTHON}experiments.scaling': 'tests/experiments/scaling/binary_test.py',
    f'{_PYTHON}experiments.soak': 'tests/experiments/soak/binary_test.py',
    f'{_PYTHON}experiments.sweep': 'tests/experiments/sweep/binary_test.py',
    f'{_PYTHON}experiments.report --table': 'tests/readme_test.py',
    f'{_PYTHON}experiments.report --list': 'tests/readme_test.py',
    'PYTHONPATH=. .venv/bin/python docs/examples/': (
        'tests/docs/examples_test.py'
    ),
}
# Cells of published tables; those of all tables are run briefly there.
_CELLS_RUN_ELSEWHERE = 'tests/experiments/published/presets_test.py'
_CELL = re.compile(r'experiments/presets/\w+/|--run=runs/\w+/')


def _test_of(command: str) -> str:
  """Returns where a command is tested; empty if it is to be run here."""
  if _CELL.search(command):
    return _CELLS_RUN_ELSEWHERE
  found = [
      file
      for start, file in _RUN_ELSEWHERE.items()
      if command.startswith(start)
  ]
  return found[0] if found else ''


def _shortened(command: str) -> str:
  """A command on published data, as a brief one on made-up data."""
  if '--data_dir=data' not in command:
    return command
  command = command.replace('--data_dir=data', '--use_synthetic_data')
  return f'{command} --max_examples=8 --total_rounds=2'


class SiteTest(parameterized.TestCase):

  def test_pages_are_those_of_the_site(self):
    self.assertEqual(_PAGES[0], 'README.md')
    self.assertContainsSubset(
        ['docs/guide/resume.md', 'experiments/presets/fedli/README.md'], _PAGES
    )

  @parameterized.parameters(*_PAGES)
  def test_commands_that_are_not_run_here_are_run_elsewhere(self, page):
    for command in page_testing.commands_of(page_testing.read(page)):
      test = _test_of(command.text)
      self.assertTrue(
          not test or (page_testing.ROOT / test).is_file(), command.text
      )

  @pytest.mark.slow
  def test_commands_run_in_one_folder(self):
    copy = self.enter_context(page_testing.copied_project())
    for page in _PAGES:
      for command in page_testing.commands_of(page_testing.read(page)):
        if not _test_of(command.text):
          with self.subTest(page=page, command=command.text):
            self._check(command, copy)
    self._assert_named_files_exist('docs/guide/run_an_experiment.md', copy)
    for name in ('sgd/plots/trace_0020.csv', 'sgd/plots/trace_0020.png'):
      self.assertTrue((copy / 'runs' / name).is_file(), name)

  def _check(self, command: page_testing.Block, project: pathlib.Path):
    """Asserts that a command ends as its page shows."""
    result = page_testing.run(f'({_shortened(command.text)}) 2>&1', project)
    expected = 2 if 'error:' in command.shown else 0
    self.assertEqual(result.returncode, expected, result.stdout)
    self.assertTrue(
        not command.shown
        or page_testing.is_shown(command.shown, result.stdout),
        f'It prints\n{result.stdout}\nand the page shows\n{command.shown}',
    )

  def _assert_named_files_exist(self, page, project: pathlib.Path):
    """Asserts that some run has each file of the table of its folder."""
    rows = page_testing.table_rows(page_testing.read(page), 'file')
    for name in page_testing.names_in(row[0] for row in rows):
      if name not in ('rejected_clients.csv', 'client_states/'):
        self.assertNotEmpty(list(project.glob(f'runs/*/{name}')), name)


if __name__ == '__main__':
  absltest.main()
