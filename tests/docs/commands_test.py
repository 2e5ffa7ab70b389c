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
"""Tests of the commands of all pages: their Python, their flags."""

import os
import re

from absl.testing import absltest
from absl.testing import parameterized

from experiments import published
from tests import page_testing
from tests.docs import flags_testing

_PAGES = tuple(
    path.relative_to(page_testing.ROOT).as_posix()
    for pattern in ('*.md', 'docs/**/*.md', 'experiments/presets/*/README.md')
    for path in sorted(page_testing.ROOT.glob(pattern))
    if path.name != 'CHANGELOG.md'  # It is about what was, too.
)
# Programs write these, and name themselves as their docstrings do.
_GENERATED = re.compile(r'docs/results/(?!README)')
_COMMAND = re.compile(
    r'\S*python -m (?:experiments|tasks|tff_adaptive|tools)\b'
)


class CommandsTest(parameterized.TestCase):

  @parameterized.parameters(
      *(page for page in _PAGES if not _GENERATED.match(page))
  )
  def test_python_is_that_of_the_environment(self, page):
    for command in _COMMAND.findall(page_testing.read(page)):
      python, _ = command.split(' ', 1)
      self.assertEqual(python.lstrip('`('), '.venv/bin/python', command)

  @parameterized.parameters(*_PAGES)
  def test_flags_are_accepted(self, page):
    # Flagfiles are given from the project's folder.
    self.addCleanup(os.chdir, os.getcwd())
    os.chdir(page_testing.ROOT)
    for command in page_testing.commands_of(page_testing.read(page)):
      module, arguments = page_testing.module_and_flags(command.text)
      package, _, binary = module.rpartition('.')
      if package != 'experiments' or 'error:' in command.shown:
        continue
      if '--help' in arguments:
        continue
      if binary == 'train':
        published.parse_flags(arguments)
      else:
        flags_testing.define_flags(binary)([binary, *arguments])

  def test_runs_of_one_name_have_the_same_flags(self):
    # A reader who copies one page after the other has them in one folder.
    flags_of_runs: dict[str, tuple[str, list[str]]] = {}
    for page in _PAGES:
      for command in page_testing.commands_of(page_testing.read(page)):
        module, arguments = page_testing.module_and_flags(command.text)
        if module != 'experiments.train' or 'error:' in command.shown:
          continue
        given = dict(
            argument.split('=', 1) for argument in _with_values(arguments)
        )
        name = given.pop('--experiment_name', None)
        folder = given.pop('--output_dir', 'runs')
        given.pop('--total_rounds', None)  # More of them go on.
        if name is None:
          continue
        flags = sorted(f'{flag}={value}' for flag, value in given.items())
        first = flags_of_runs.setdefault(f'{folder}/{name}', (page, flags))
        self.assertEqual(first[1], flags, f'{name} of {first[0]} and {page}')


def _with_values(arguments: list[str]) -> list[str]:
  """The flags, each with a value behind `=`."""
  return [
      argument if '=' in argument else f'{argument}=true'
      for argument in arguments
      if argument.startswith('--')
  ]


if __name__ == '__main__':
  absltest.main()
