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
"""Tests of the page on conformance: its file of reference numbers, its keys."""

import contextlib
import io
import pathlib
import tempfile

from absl import flags
from absl.testing import absltest

from experiments.conformance import __main__ as binary
from experiments.conformance import processes
from tests import page_testing

_NAME = 'docs/conformance.md'
_PAGE = page_testing.read(_NAME)


class ConformancePageTest(absltest.TestCase):

  def test_links_lead_somewhere(self):
    self.assertEmpty(page_testing.broken_links(_NAME))

  def test_file_of_the_page_gives_what_is_shown(self):
    blocks = page_testing.find_blocks(_PAGE)
    goldens = next(b.text for b in blocks if '"problems"' in b.text)
    shown = next(b.text for b in blocks if ' passed, ' in b.text)
    values = flags.FlagValues()
    binary.define(values)
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder) / 'goldens.json'
      path.write_text(goldens, encoding='utf-8')
      values(['conformance', f'--goldens={path}'])
      with (
          contextlib.redirect_stdout(out),
          self.assertRaises(SystemExit) as exit_of_main,
      ):
        binary.main(values)
    self.assertEqual(out.getvalue(), shown)
    self.assertEqual(exit_of_main.exception.code, 0)

  def test_tables_have_the_names_and_keys(self):
    for title, known in (
        ('name in a file', processes._NAMES),
        ('key in a file', {'': processes._KEYS}),
    ):
      cells = page_testing.table_rows(_PAGE, title)
      named = set(page_testing.names_in(cell for row in cells for cell in row))
      for aliases in known.values():
        self.assertContainsSubset([*aliases, *aliases.values()], named)
    self.assertLen(
        {name for row in cells for name in page_testing.names_in(row[:1])},
        len(processes._KEYS),
    )


if __name__ == '__main__':
  absltest.main()
