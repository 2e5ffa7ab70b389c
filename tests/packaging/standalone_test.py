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
"""Tests that the repository needs nothing but itself."""

import pathlib
import re

from absl.testing import absltest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# Folders of a machine, folders beside the checkout, and code that leads there.
_OUTSIDE = re.compile(
    r'/(?:work|farm|home|root|mnt)/|\.\./shared|ROOT\.parent|ROOT / .\.\.'
)
# What is not stored, or is not text.
_LEFT_OUT = re.compile(
    r'\.git|\.venv.*|runs|__pycache__|\..*_cache|build|dist|site|.*\.egg-info'
)
_TEXT = frozenset(
    '.py .md .txt .in .cfg .toml .yaml .yml .sh .json .flags .pth .ipynb .cff'
    ' .csv .html .bib'.split()
)
_NAMES = ('BUILD', 'Makefile', '.gitignore', 'run')
# Looks for data beside the checkout, for the step that needs published ones.
_EXCEPTIONS = ('.ci/run', 'tests/packaging/standalone_test.py')


def _text_files(folder):
  for path in sorted(folder.iterdir()):
    if _LEFT_OUT.fullmatch(path.name):
      continue
    if path.is_dir():
      yield from _text_files(path)
    elif path.suffix in _TEXT or path.name in _NAMES:
      yield path


class StandaloneTest(absltest.TestCase):

  def test_nothing_names_a_path_outside(self):
    names = []
    for path in _text_files(_ROOT):
      name = path.relative_to(_ROOT).as_posix()
      names.append(name)
      if name not in _EXCEPTIONS:
        found = _OUTSIDE.search(path.read_text(encoding='utf-8'))
        self.assertIsNone(found, f'{name}: {found}')
    self.assertContainsSubset(
        ['README.md', 'BUILD', 'experiments/train/__main__.py', '.ci/run'],
        names,
    )
    self.assertGreater(len(names), 500)

  def test_pattern_finds_what_it_is_for(self):
    for text in (
        "_ROOT.parent / 'shared/spec'",
        'by default `../shared/data`',
        '--data_dir=/home/ann/data',
    ):
      self.assertRegex(text, _OUTSIDE)


if __name__ == '__main__':
  absltest.main()
