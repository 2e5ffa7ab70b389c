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
"""Tests that BUILD has a target for every module, and for its generator."""

import contextlib
import io
import pathlib
import re
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

from tools import generate_build

_ROOT = pathlib.Path(__file__).resolve().parents[2]


class BuildFileTest(absltest.TestCase):

  def test_build_file_is_up_to_date(self):
    self.assertEmpty(generate_build.find_problem(_ROOT))

  def test_every_module_has_a_target(self):
    # Does not use the generator, which might overlook a module itself.
    build = (_ROOT / 'BUILD').read_text()
    sources = set(re.findall(r'srcs = \["(.*)"\]', build))
    for folder in ('tff_adaptive', 'tasks', 'experiments', 'tests', 'tools'):
      for path in (_ROOT / folder).rglob('*.py'):
        self.assertIn(path.relative_to(_ROOT).as_posix(), sources)

  def test_names_are_unique(self):
    names = [target.name for target in generate_build.find_targets(_ROOT)]
    self.assertLen(set(names), len(names))


class GenerateBuildTest(parameterized.TestCase):
  """Generates the BUILD file of a small tree."""

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.root = pathlib.Path(folder)
    self._write('tff_adaptive/__init__.py', '__version__ = "1"\n')
    self._write('tff_adaptive/a.py', 'import os\nimport numpy as np\n')
    self._write('tff_adaptive/b.py', 'from tff_adaptive import a\n')
    self._write('experiments/run.py', 'if __name__ == "__main__":\n  pass\n')
    self._write('tests/a_test.py', 'from tff_adaptive.a import np\n')
    self._write('tests/helpers.py', 'from tff_adaptive import __version__\n')
    self.assertEqual(self._run()[0], 0)

  def _write(self, path, text):
    path = self.root / path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

  def _run(self, *arguments):
    """Returns the exit status and what was written to the standard error."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
      status = generate_build.main([f'--root={self.root}', *arguments])
    return status, err.getvalue()

  def _targets(self):
    found = generate_build.find_targets(self.root)
    return {target.name: target for target in found}

  def test_same_tree_gives_same_text(self):
    first = (self.root / 'BUILD').read_text()
    self._run()
    self.assertEqual((self.root / 'BUILD').read_text(), first)
    self.assertEqual(self._run('--check'), (0, ''))

  @parameterized.named_parameters(
      ('module', 'tff_adaptive/b', 'py_library'),
      ('package', 'tff_adaptive/__init__', 'py_library'),
      ('test', 'tests/a_test', 'py_test'),
      ('runnable_module', 'experiments/run', 'py_library'),
      ('binary', 'experiments/run_main', 'py_binary'),
      ('test_helper', 'tests/helpers', 'py_library'),
  )
  def test_rule_is_that_of_the_kind(self, name, rule):
    target = self._targets()[name]
    self.assertEqual(target.rule, rule)
    self.assertEqual(target.testonly, name == 'tests/helpers')

  @parameterized.named_parameters(
      ('module', 'tff_adaptive/b', 'tff_adaptive/a'),
      ('name_in_module', 'tests/a_test', 'tff_adaptive/a'),
      ('name_in_package', 'tests/helpers', 'tff_adaptive/__init__'),
      ('own_library', 'experiments/run_main', 'experiments/run'),
  )
  def test_deps_are_what_is_imported(self, name, dep):
    self.assertEqual(self._targets()[name].deps, (dep,))

  def test_relative_imports_are_resolved(self):
    self._write('tff_adaptive/sub/c.py', 'from .. import a\nfrom . import d\n')
    self._write('tff_adaptive/sub/d.py', 'from ..b import a\n')
    targets = self._targets()
    self.assertEqual(
        targets['tff_adaptive/sub/c'].deps,
        ('tff_adaptive/a', 'tff_adaptive/sub/d'),
    )
    self.assertEqual(targets['tff_adaptive/sub/d'].deps, ('tff_adaptive/b',))

  def test_third_party_packages_are_comments(self):
    build = (self.root / 'BUILD').read_text()
    self.assertIn('        # numpy dependency,\n', build)
    self.assertNotIn('os dependency', build)

  def test_missing_target_is_an_error(self):
    self._write('tff_adaptive/new.py', '')
    status, err = self._run('--check')
    self.assertEqual(status, 1)
    self.assertIn('no target "tff_adaptive/new"', err)
    self.assertIn('make build', err)

  def test_target_without_module_is_an_error(self):
    (self.root / 'tests/a_test.py').unlink()
    status, err = self._run('--check')
    self.assertEqual(status, 1)
    self.assertIn('no module for "tests/a_test"', err)

  def test_changed_imports_are_an_error(self):
    self._write('tff_adaptive/b.py', '')
    status, err = self._run('--check')
    self.assertEqual(status, 1)
    self.assertIn('its text differs', err)

  def test_missing_file_is_an_error(self):
    (self.root / 'BUILD').unlink()
    self.assertEqual(self._run('--check')[0], 1)


if __name__ == '__main__':
  absltest.main()
