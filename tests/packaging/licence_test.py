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
"""Tests that the licence is there and that every source file names it."""

import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_HEADER = ''.join(
    pathlib.Path(__file__).read_text().splitlines(keepends=True)[:13]
)
_FILES = ('.ci/run', 'BUILD', 'Makefile', 'pyproject.toml', 'setup.cfg')
_FOLDERS = (
    'tff_adaptive',
    'tasks',
    'experiments',
    'tests',
    'tools',
    'docs/examples',
)
_SUFFIXES = ('.py', '.sh')


def _find_sources(root: pathlib.Path) -> list[pathlib.Path]:
  """Returns the files that need the header."""
  sources = [root / name for name in _FILES if (root / name).exists()]
  for folder in _FOLDERS:
    for path in sorted((root / folder).rglob('*')):
      if path.suffix in _SUFFIXES:
        sources.append(path)
  return sources


def _has_header(path: pathlib.Path) -> bool:
  text = path.read_text(encoding='utf-8')
  if text.startswith('#!'):
    text = text.split('\n', 1)[1]
  return text.startswith(_HEADER)


class LicenceTest(parameterized.TestCase):

  def test_licence_is_apache_2(self):
    licence = (_ROOT / 'LICENSE').read_text()
    self.assertIn('Version 2.0, January 2004', licence)
    self.assertIn('END OF TERMS AND CONDITIONS', licence)

  def test_every_source_file_has_the_header(self):
    sources = _find_sources(_ROOT)
    self.assertGreater(len(sources), 10)
    missing = [str(p.relative_to(_ROOT)) for p in sources if not _has_header(p)]
    self.assertEmpty(missing)

  @parameterized.named_parameters(
      ('none', '"""A module."""\n', False),
      ('other_holder', _HEADER.replace('tff_adaptive', 'Other'), False),
      ('plain', _HEADER + '"""A module."""\n', True),
      ('after_shebang', '#!/bin/sh\n' + _HEADER, True),
  )
  def test_header_is_recognized(self, text, expected):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    path = pathlib.Path(folder, 'module.py')
    path.write_text(text)
    self.assertEqual(_has_header(path), expected)


if __name__ == '__main__':
  absltest.main()
