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
"""Tests of what makes and checks a release."""

import contextlib
import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import tempfile
import zipfile

from absl.testing import absltest
from absl.testing import parameterized
import pytest

from tests import page_testing
from tests.packaging import wheel_testing
import tff_adaptive
from tools import check_release

_VERSION = tff_adaptive.__version__
_INFO = f'tff_adaptive-{_VERSION}.dist-info'


class ChangelogTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('unreleased', '## Unreleased\n\n* New.\n', 'Unreleased'),
      (
          'released',
          '# Changelog\n\n## Unreleased\n\n## 0.1.0 - 2026-11-30\n\n* New.\n',
          '0.1.0 - 2026-11-30',
      ),
      ('no_entry', '# Changelog\n\nNothing.\n', ''),
      ('empty_entries', '## Unreleased\n\n## 0.1.0 - 2026-11-30\n', ''),
      (
          'parts_of_an_entry',
          '## 0.2.0 - 2026-12-01\n\n### Added\n\n* New.\n\n## 0.1.0\n\n* Old.',
          '0.2.0 - 2026-12-01',
      ),
  )
  def test_newest_entry(self, changelog, expected):
    self.assertEqual(check_release.find_newest_entry(changelog), expected)

  @parameterized.parameters('Unreleased', '0.2.0 - 2026-12-01')
  def test_heading_is_right(self, heading):
    problem = check_release.find_changelog_problem(
        f'## {heading}\n\n* New.\n', '0.2.0'
    )
    self.assertEmpty(problem)

  @parameterized.parameters(
      '0.2.0', '0.1.0 - 2026-12-01', '0.2.0 - soon', '0x2.0 - 2026-12-01', ''
  )
  def test_heading_is_wrong(self, heading):
    problem = check_release.find_changelog_problem(
        f'## {heading}\n\n* New.\n', '0.2.0'
    )
    self.assertIn(f'is {heading!r}, but must be', problem)
    self.assertIn("'0.2.0 - YYYY-MM-DD'", problem)


class CheckReleaseTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = pathlib.Path(
        cls.enterClassContext(tempfile.TemporaryDirectory())
    )
    cls.wheel = wheel_testing.build_wheel(cls.folder)

  def _change(self, name, change):
    """Returns a copy of the wheel with another text in a file, or without."""
    changed = self.folder / f'{self.id()}.whl'
    with zipfile.ZipFile(self.wheel) as old:
      with zipfile.ZipFile(changed, 'w') as new:
        for other in old.namelist():
          text = old.read(other).decode('utf-8')
          if other == name:
            text = change(text)
          if text is not None:
            new.writestr(other, text)
        if name not in old.namelist():
          new.writestr(name, change(''))
    return changed

  def _main(self, wheel):
    """Returns the exit status, the output and the errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
      status = check_release.main([str(wheel)])
    return status, out.getvalue(), err.getvalue()

  def test_wheel_of_the_tree_is_right(self):
    status, out, err = self._main(self.wheel)
    self.assertEqual((status, err), (0, ''))
    self.assertStartsWith(out, f'version: {_VERSION}\nCHANGELOG.md: ')

  @parameterized.named_parameters(
      (
          'name',
          f'{_INFO}/METADATA',
          lambda text: text.replace('Name: tff_adaptive', 'Name: other', 1),
          "its Name is 'other', but must be 'tff_adaptive'",
      ),
      (
          'version',
          f'{_INFO}/METADATA',
          lambda text: text.replace(f'Version: {_VERSION}', 'Version: 9', 1),
          f"its Version is '9', but must be '{_VERSION}'",
      ),
      (
          'description',
          f'{_INFO}/METADATA',
          lambda text: text + '\nMore.\n',
          'its description is not README.md',
      ),
      (
          'description_type',
          f'{_INFO}/METADATA',
          lambda text: text.replace('text/markdown', 'text/x-rst', 1),
          "its Description-Content-Type is 'text/x-rst'",
      ),
      (
          'licence',
          f'{_INFO}/licenses/LICENSE',
          lambda text: None,
          'it does not hold LICENSE',
      ),
      (
          'missing_module',
          'tff_adaptive/doctor.py',
          lambda text: None,
          'it lacks tff_adaptive/doctor.py',
      ),
      (
          'other_module',
          'tests/some_test.py',
          lambda text: '',
          'tests/some_test.py is too many',
      ),
  )
  def test_wrong_wheel_is_one_sentence(self, name, change, expected):
    status, out, err = self._main(self._change(name, change))
    self.assertEqual((status, out), (1, ''))
    self.assertIn(f'cannot be released: {expected}', err)
    self.assertEqual(err.count('\n'), 1)
    self.assertEndsWith(err, '.\n')


class ReleaseTest(absltest.TestCase):
  """Runs the script in a copy of the project."""

  def setUp(self):
    super().setUp()
    self.project = self.enter_context(page_testing.copied_project())
    shutil.rmtree(self.project / 'dist', ignore_errors=True)
    # Has what the lock names, so that nothing is installed but the wheel.
    self.environment = self.project / 'prepared'
    wheel_testing.make_environment(self.environment)
    lock = self.project / 'requirements.txt'
    shutil.copy(lock, self.environment / 'installed.lock')

  def _run(self):
    return subprocess.run(
        [str(self.project / 'tools/release.sh')],
        # From anywhere.
        cwd=self.environment,
        env={**os.environ, 'RELEASE_VENV': 'prepared'},
        capture_output=True,
        text=True,
        check=False,
    )

  @pytest.mark.slow
  def test_files_are_made_and_tried_out(self):
    result = self._run()
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertEmpty(result.stderr)
    *said, sdist, wheel = result.stdout.splitlines()
    self.assertEqual(
        [line.partition(':')[0] for line in said],
        [
            'commit',
            'version',
            'CHANGELOG.md',
            'wheel',
            'environment',
            'imported',
            'trained',
        ],
    )
    (site,) = self.environment.glob('lib/python*/site-packages')
    self.assertEndsWith(said[5], f'from {site}/tff_adaptive')
    for line, suffix in ((sdist, '.tar.gz'), (wheel, '-py3-none-any.whl')):
      digest, name = line.split()
      self.assertEqual(name, f'dist/tff_adaptive-{_VERSION}{suffix}')
      content = (self.project / name).read_bytes()
      self.assertEqual(hashlib.sha256(content).hexdigest(), digest)

  @pytest.mark.slow
  def test_wrong_changelog_ends_it_before_anything_is_there(self):
    (self.project / 'CHANGELOG.md').write_text('## 9.9.9\n\n* New.\n')
    result = self._run()
    self.assertEqual(result.returncode, 1)
    self.assertIn("CHANGELOG.md is '9.9.9', but must be", result.stderr)
    self.assertFalse((self.project / 'dist').exists())


if __name__ == '__main__':
  absltest.main()
