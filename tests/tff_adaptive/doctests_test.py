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
"""Tests that the examples in docstrings run, and come to what they show.

What examples may take for granted is in `example_testing`. Code blocks, which
stand where an example would take a cluster, a download or a long time, are not
run: their names and arguments are checked.
"""

import ast
import doctest
import importlib
import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from tests.tff_adaptive import docstring_testing
from tests.tff_adaptive import example_testing
from tff_adaptive import runtime

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_MODULES = docstring_testing.Sources(_ROOT).modules

# The modules whose examples need another process than the shared one, and the
# tests that run them.
_RUN_ELSEWHERE = {
    'tff_adaptive.simulation.callbacks': (
        'tests/tff_adaptive/simulation/callbacks_test.py'
    ),
}

# How examples read the folder in which there are made-up data here. They show
# what comes of the original ones.
_READS_DATA = ("'data'", "'data/")


def _docstrings(module: docstring_testing.Module) -> list[str]:
  """The docstrings of a module and of all that is in it."""
  kinds = (ast.Module, ast.FunctionDef, ast.ClassDef)
  nodes = [node for node in ast.walk(module.tree) if isinstance(node, kinds)]
  return [text for text in map(ast.get_docstring, nodes) if text]


def _modules_with(text: str, package: str = '') -> list[tuple[str, str]]:
  """The modules that have a text in their docstrings, as named parameters."""
  return [
      (name.replace('.', '_'), name)
      for name, module in _MODULES.items()
      if name.startswith(package)
      and any(text in docstring for docstring in _docstrings(module))
      and name not in _RUN_ELSEWHERE
  ]


class _AnyResult(doctest.OutputChecker):
  """Asks only that an example runs."""

  def check_output(self, want, got, optionflags):
    del want, got, optionflags  # Unused.
    return True


class ExamplesTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    folder = cls.enterClassContext(tempfile.TemporaryDirectory())
    cls.folders = example_testing.Folders(pathlib.Path(folder))
    # What examples run does not need another process, and is compiled once.
    cls.enterClassContext(runtime.compiled_context(seed=1))

  def _find_failures(self, module_name):
    """What comes of the examples of a module, where it is not what they say."""
    module = importlib.import_module(module_name)
    tests = doctest.DocTestFinder().find(
        module, module_name, globs=example_testing.names_of(module_name)
    )
    tests = [test for test in tests if test.examples]
    self.assertNotEmpty(tests)
    messages = []
    for test in tests:
      code = ''.join(example.source for example in test.examples)
      reads_data = any(text in code for text in _READS_DATA)
      runner = doctest.DocTestRunner(
          checker=_AnyResult() if reads_data else None,
          optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
      )
      with self.folders.enter(needs_data=reads_data):
        runner.run(test, out=messages.append)
    return ''.join(messages)

  @parameterized.named_parameters(*_modules_with('>>> ', 'tff_adaptive'))
  def test_examples_of_the_library(self, name):
    self.assertEqual(self._find_failures(name), '')

  @parameterized.named_parameters(*_modules_with('>>> ', 'tasks'))
  @pytest.mark.slow
  def test_examples_of_the_tasks(self, name):
    self.assertEqual(self._find_failures(name), '')

  @parameterized.named_parameters(*_modules_with('```python'))
  def test_code_blocks(self, name):
    blocks = [
        block
        for docstring in _docstrings(_MODULES[name])
        for block in example_testing.find_code_blocks(docstring)
    ]
    self.assertNotEmpty(blocks)
    names = example_testing.names_of(name)
    for block in blocks:
      self.assertEmpty(example_testing.find_problems(block, names), block)


class FormTest(absltest.TestCase):

  def test_examples_are_code(self):
    for name, module in _MODULES.items():
      for text in _docstrings(module):
        example = docstring_testing.read(text).sections.get('Example')
        if example is not None and not example.startswith('see `'):
          self.assertRegex(example, '>>> |```python\n', name)

  def test_nothing_is_skipped(self):
    for name, module in _MODULES.items():
      for text in _docstrings(module):
        self.assertNotIn('+SKIP', text, name)

  def test_pages_have_code_blocks(self):
    # Which are run; examples with `>>>` would not be.
    pages = [*_ROOT.glob('*.md'), *(_ROOT / 'docs').rglob('*.md')]
    self.assertNotEmpty(pages)
    for page in pages:
      self.assertNotIn('>>> ', page.read_text(encoding='utf-8'), page)

  def test_modules_that_are_run_elsewhere_are(self):
    for name, test in _RUN_ELSEWHERE.items():
      self.assertIn(name, _MODULES)
      text = (_ROOT / test).read_text(encoding='utf-8')
      self.assertIn(name.rpartition('.')[2], text)
      self.assertIn('doctest.', text)


class FindProblemsTest(parameterized.TestCase):
  """The check of code that is not run."""

  @parameterized.named_parameters(
      (
          'nothing',
          'print(algorithms.build_fed_opt(model, weight_decay=0.1))',
          0,
      ),
      ('imported_name', 'from tff_adaptive import runtime as r\nr.AUTO', 0),
      ('own_name', 'rate = 1\nprint(rate)', 0),
      ('of_an_object', 'state.anything(some=1)', 0),
      ('options', 'algorithms.build_fedli_ls(model, weight_decay=0.1)', 0),
      ('unknown_name', 'print(rate)', 'rate is not known'),
      ('unknown_function', 'algorithms.build_it(model)', 'build_it does not'),
      (
          'unknown_argument',
          'algorithms.build_fed_opt(model, rate=1)',
          'no argument rate',
      ),
      (
          'unknown_option',
          'algorithms.build_fedli_ls(model, rate=1)',
          'no argument rate',
      ),
  )
  def test_problems(self, code, expected):
    names = example_testing.names_of('tff_adaptive')
    problems = example_testing.find_problems(code, names)
    self.assertLen(problems, bool(expected))
    for problem in problems:
      self.assertRegex(problem, expected)


if __name__ == '__main__':
  absltest.main()
