# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the audit binary."""

import csv
import dataclasses
import functools
import json
import math
import pathlib

from absl.testing import parameterized

from experiments import command_line
from experiments import published
from tests import folder_testing
from tests.experiments import binary_testing
from tests.experiments.report import made_up_runs
from tff_adaptive import optimizers
from tools import audit
from tools.audit import __main__ as binary
from tools.audit import laboratory
from tools.audit.claim import Status

# One that needs nothing, and one that needs two runs of two methods.
_CLAIM = 'delta_sgd.published_places'
_RUNS_CLAIM = 'fedli.linearization_helps'
_call = functools.partial(binary_testing.call, binary)


def _check(action):
  """Returns the verdict of a claim whose check does no more than this."""
  claim = dataclasses.replace(audit.CLAIMS[_CLAIM], check=lambda lab: action())
  return binary.check(claim, laboratory.Laboratory(pathlib.Path('no runs')))


class AuditTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    self.output_dir = folder / 'results'
    self.runs_dir = pathlib.Path(folder) / 'runs'

  def test_prints_a_line_and_writes_the_files(self):
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
    self.assertIn('Of 1 claims, 1 by printed numbers: 1 holds.', page)
    self.assertIn(audit.CLAIMS[_CLAIM].statement, page)
    self.assertIn('**holds**: First in 73%', page)
    self.assertIn('95 % t interval', page)
    self.assertIn('tensorflow-federated 0.', page)

  def _write_runs(self, accuracies):
    """Writes runs with an accuracy for each seed, by row."""
    for cell in published.find_table('fedli/comparison_mnist').cells:
      if cell.row in accuracies:
        made_up_runs.write_cell(
            self.runs_dir,
            cell,
            [[accuracy] * 100 for accuracy in accuracies[cell.row]],
            **{h.name: h.value for h in published.hyperparameters(cell)},
        )

  def _audit_runs(self, *names):
    printed = _call(
        f'--claims={",".join(names)}',
        f'--runs_dir={self.runs_dir}',
        f'--output_dir={self.output_dir}',
    )
    found = json.loads(
        (self.output_dir / 'claims.json').read_text(),
        parse_constant=self.fail,
    )
    return printed, found

  def test_page_says_what_the_runs_were_made_with(self):
    self._write_runs({'LU': (0.9, 0.9, 0.9), 'FedAvg': (0.8, 0.8, 0.81)})
    _, found = self._audit_runs(_RUNS_CLAIM)
    self.assertEqual(found[_RUNS_CLAIM]['verdict'], 'holds')
    page = (self.output_dir / 'claims.md').read_text()
    self.assertIn('| seeds | 0, 1, 2 |', page)
    self.assertIn('| runs | 12, from 20', page)

  def test_numbers_that_json_lacks_are_words(self):
    self._write_runs({'LU': (math.nan, 0.9, 0.9), 'FedAvg': (0.8, 0.8, 0.8)})
    _, found = self._audit_runs(_RUNS_CLAIM)
    self.assertEqual(found[_RUNS_CLAIM]['verdict'], 'fails')
    numbers = found[_RUNS_CLAIM]['numbers']['alpha = 0.1']
    self.assertEqual(numbers['difference'], '-inf')
    self.assertEqual(numbers['means']['LU'], 'nan')

  def test_a_damaged_run_is_the_verdict_of_its_claim_alone(self):
    self._write_runs({'LU': (0.9, 0.9, 0.9), 'FedAvg': (0.8, 0.8, 0.81)})
    damaged = self.runs_dir / 'fedli/comparison_mnist/alpha_0.1.lu/seed_0'
    (damaged / 'hparams.json').write_text('{')
    printed, found = self._audit_runs(_RUNS_CLAIM, _CLAIM)
    self.assertEqual(found[_RUNS_CLAIM]['verdict'], 'not run')
    self.assertIn(str(damaged), found[_RUNS_CLAIM]['evidence'])
    self.assertEqual(found[_CLAIM]['verdict'], 'holds')
    self.assertLen(printed.splitlines(), 2)

  @parameterized.named_parameters(
      ('of_python', lambda: 1 / 0, ZeroDivisionError),
      ('of_the_library', lambda: optimizers.build_sgd(-1.0), ValueError),
  )
  def test_a_bug_in_a_check_is_no_verdict(self, action, error):
    with self.assertRaises(error):
      _check(action)

  @parameterized.named_parameters(
      ('file', lambda: open('/no/file', encoding='utf-8')),
      ('table', lambda: published.find_table('fedli/table_9')),
      ('flags', lambda: published.parse_flags(['--no_such_flag=1'])),
  )
  def test_unreadable_runs_are_a_verdict(self, action):
    verdict = _check(action)
    self.assertEqual(verdict.status, Status.NOT_RUN)
    self.assertStartsWith(verdict.evidence, 'Cannot read its data: ')
    self.assertNotEndsWith(verdict.evidence, '..')

  def test_name_of_a_paper_selects_its_claims(self):
    names = [claim.name for claim in binary.select(['scaffold', _CLAIM])]
    self.assertEqual(names, [_CLAIM, 'scaffold.corrects_drift'])
    self.assertLen(binary.select([]), len(audit.CLAIMS))

  def test_unknown_claim(self):
    with self.assertRaisesRegex(command_line.UserError, "'fedsgd'.*scaffold"):
      _call('--claims=fedsgd', f'--output_dir={self.output_dir}')
    self.assertFalse(self.output_dir.exists())

  def test_a_folder_of_runs_that_does_not_exist(self):
    with self.assertRaisesRegex(
        command_line.UserError, '^--runs_dir=.*runs is not a folder; give the'
    ):
      _call(f'--runs_dir={self.runs_dir}', f'--output_dir={self.output_dir}')
    self.assertFalse(self.output_dir.exists())

  def test_folder_that_cannot_be_made(self):
    self.output_dir.write_text('a file')
    with self.assertRaisesRegex(command_line.UserError, 'results is a file'):
      _call(f'--claims={_CLAIM}', f'--output_dir={self.output_dir}')
