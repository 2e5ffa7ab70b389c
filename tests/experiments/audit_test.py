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
"""Tests of the audit binary."""

import contextlib
import csv
import io
import json
import pathlib
import tempfile

from absl import flags
from absl.testing import absltest

from experiments import audit
from experiments import claims
from experiments import command_line
from tests.experiments import binary_testing

# Needs no TensorFlow.
_CLAIM = 'delta_sgd.published_places'


def _call(*arguments):
  """Runs the binary in this process; returns what it prints."""
  values = flags.FlagValues()
  audit.define(values)
  values(['audit', *map(str, arguments)])
  out = io.StringIO()
  with contextlib.redirect_stdout(out):
    audit.main(values)
  return out.getvalue()


class AuditTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.output_dir = pathlib.Path(folder) / 'results'

  def test_prints_a_line_and_writes_three_files(self):
    printed = _call(f'--claims={_CLAIM}', f'--output_dir={self.output_dir}')
    self.assertEqual(
        printed,
        f'{_CLAIM}: holds: First in 73%, first or second in 100% of 15 '
        'settings.\n',
    )
    table = (self.output_dir / 'claims.csv').read_text()
    (row,) = csv.DictReader(table.splitlines())
    found = json.loads((self.output_dir / 'claims.json').read_text())
    self.assertEqual(row['claim'], _CLAIM)
    self.assertEqual(row['verdict'], 'holds')
    self.assertEqual(found[_CLAIM]['evidence'], row['evidence'])
    self.assertAlmostEqual(found[_CLAIM]['numbers']['first'], 11 / 15)
    page = (self.output_dir / 'claims.md').read_text()
    self.assertIn('1 claims: holds 1.', page)
    self.assertIn(claims.CLAIMS[_CLAIM].statement, page)
    self.assertIn('**holds**: First in 73%', page)

  def test_name_of_a_paper_selects_its_claims(self):
    names = [claim.name for claim in audit.select(['scaffold', _CLAIM])]
    self.assertEqual(names, [_CLAIM, 'scaffold.corrects_drift'])
    self.assertLen(audit.select([]), len(claims.CLAIMS))

  def test_unknown_claim(self):
    with self.assertRaisesRegex(command_line.UserError, "'fedsgd'.*scaffold"):
      _call('--claims=fedsgd', f'--output_dir={self.output_dir}')
    self.assertFalse(self.output_dir.exists())

  def test_folder_that_cannot_be_made(self):
    self.output_dir.write_text('a file')
    with self.assertRaisesRegex(command_line.EnvironmentalError, 'results'):
      _call(f'--claims={_CLAIM}', f'--output_dir={self.output_dir}')

  def test_help_lists_the_claims_without_tensorflow(self):
    result = binary_testing.run_quickly('audit', '--help')
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn(_CLAIM, ''.join(result.stdout.split()))


if __name__ == '__main__':
  absltest.main()
