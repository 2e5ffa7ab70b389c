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
import inspect
import io
import pathlib
import tempfile

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized

from experiments import conformance
from experiments import golden_processes
from tests import page_testing

_NAME = 'docs/conformance.md'
_PAGE = page_testing.read(_NAME)
# Words of the tables that no builder has: what chooses a variant, and values.
_NOT_ARGUMENTS = {'batch', 'different', 'reuse', 'variant', 'smooth'}
# The builder that has the keys of all variants of a name.
_WITH_ALL_KEYS = {'sps': 'sps_smooth'}


def _rows(title, builders):
  """Name, keys and the builder of a table's rows."""
  for names, keys in page_testing.table_rows(_PAGE, title):
    for name in page_testing.names_in([names]):
      row = builders[_WITH_ALL_KEYS.get(name, name)]
      yield name, page_testing.names_in([keys]), *row


class ConformancePageTest(parameterized.TestCase):

  def test_links_lead_somewhere(self):
    self.assertEmpty(page_testing.broken_links(_NAME))

  def test_file_of_the_page_gives_what_is_shown(self):
    blocks = page_testing.find_blocks(_PAGE)
    goldens = next(b.text for b in blocks if '"problems"' in b.text)
    shown = next(b.text for b in blocks if ' passed, ' in b.text)
    values = flags.FlagValues()
    conformance.define(values)
    out = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
      path = pathlib.Path(folder) / 'goldens.json'
      path.write_text(goldens, encoding='utf-8')
      values(['conformance', f'--goldens={path}'])
      with (
          contextlib.redirect_stdout(out),
          self.assertRaises(SystemExit) as exit_of_main,
      ):
        conformance.main(values)
    self.assertEqual(out.getvalue(), shown)
    self.assertEqual(exit_of_main.exception.code, 0)

  @parameterized.parameters(
      ('client', golden_processes._CLIENTS, {'sps_max', 'sps_smooth'}),
      ('server', golden_processes._SERVERS, set()),
  )
  def test_tables_have_the_names_and_keys(self, title, builders, variants):
    rows = list(_rows(title, builders))
    self.assertCountEqual([row[0] for row in rows], set(builders) - variants)
    for name, keys, build, arguments in rows:
      known = set(inspect.signature(build).parameters) & {*arguments.values()}
      given = {arguments[key] for key in keys if key not in _NOT_ARGUMENTS}
      self.assertEqual(given, known, name)


if __name__ == '__main__':
  absltest.main()
