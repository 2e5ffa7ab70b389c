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
"""Tests of `tff-adaptive`, and of a Python without the packages."""

import os
import pathlib
import subprocess
import sys
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

_ROOT = pathlib.Path(__file__).parents[2]


def _run(*command, folder, **environment):
  return subprocess.run(
      command,
      cwd=folder,
      env={**os.environ, **environment},
      capture_output=True,
      text=True,
      check=False,
  )


class ProgramsTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.enter_context(tempfile.TemporaryDirectory())

  def _start(self, *arguments):
    path = pathlib.Path(sys.prefix) / 'bin' / 'tff-adaptive'
    return _run(path, *arguments, folder=self.folder)

  def test_runs_in_any_folder(self):
    ended = self._start('train', '--task=digit')
    self.assertEqual(ended.returncode, 2)
    self.assertEqual(
        ended.stderr,
        'error: --task=digit names no task; did you mean digits?\n',
    )
    self.assertIn('emnist', self._start('fetch', '--list').stdout)

  @parameterized.parameters(
      ((), 'error: name a program; there are train, '),
      (('trian',), "error: no program is named 'trian'; there are train, "),
  )
  def test_names_the_programs(self, arguments, begin):
    ended = self._start(*arguments)
    self.assertEqual(ended.returncode, 1)
    self.assertStartsWith(ended.stderr, begin)
    self.assertIn('there are train, sweep, ', self._start('--help').stdout)

  @parameterized.parameters('experiments.train', 'tasks.fetch')
  def test_a_python_without_packages_says_so(self, module):
    # Without site-packages: as a Python that has nothing installed.
    ended = _run(sys.executable, '-S', '-m', module, folder=_ROOT)
    self.assertEqual(ended.returncode, 1)
    self.assertStartsWith(ended.stderr, f'error: {sys.executable} has not the ')
    self.assertLen(ended.stderr.splitlines(), 1)


if __name__ == '__main__':
  absltest.main()
