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
"""Tests that the examples in docstrings run, and come to what they show."""

import doctest
import importlib
import pathlib

from absl.testing import absltest
from absl.testing import parameterized

from experiments import published

_PACKAGE = pathlib.Path(__file__).resolve().parents[2] / 'experiments'
# What examples may use beside the names of their module.
_NAMES = {'published': published}


def _modules_with_examples() -> list[tuple[str, str]]:
  """The modules that have examples, as named parameters."""
  names = [
      '.'.join(path.relative_to(_PACKAGE.parent).with_suffix('').parts)
      for path in sorted(_PACKAGE.rglob('*.py'))
      if '>>> ' in path.read_text(encoding='utf-8')
  ]
  return [(name.replace('.', '_'), name) for name in names]


class ExamplesTest(parameterized.TestCase):

  @parameterized.named_parameters(*_modules_with_examples())
  def test_examples(self, name):
    messages = []
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    tests = doctest.DocTestFinder().find(
        importlib.import_module(name), name, extraglobs=_NAMES
    )
    for test in tests:
      runner.run(test, out=messages.append)
    self.assertGreater(runner.tries, 0)
    self.assertEqual(''.join(messages), '')


if __name__ == '__main__':
  absltest.main()
