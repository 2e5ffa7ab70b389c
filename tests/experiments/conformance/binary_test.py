# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the binary's adapters, as it is called."""

import io
import json

from absl import flags
from absl.testing import parameterized
import pytest

from experiments import command_line
from experiments.conformance import __main__ as binary
from tests import folder_testing
from tests import program_testing
from tests.experiments import binary_testing
from tests.experiments.conformance import golden_testing


def _write_goldens(folder, *configs):
  """Returns a file with a run for each configuration; returns the flag."""
  runs = []
  for config in configs:
    run, problems = golden_testing.create_tiny_run(**config)
    runs.append(run)
  path = folder / 'goldens.json'
  path.write_text(
      json.dumps({'runs': runs, 'problems': list(problems.values())}),
      encoding='utf-8',
  )
  return f'--goldens={path}'


class ConformanceTest(folder_testing.FolderTestCase):

  @pytest.mark.slow
  def test_prints_a_line_a_run_and_counts(self):
    goldens = _write_goldens(
        self.folder, {}, {'name': 'lion', 'server': {'name': 'lion'}}
    )
    result = program_testing.run('experiments.conformance', goldens)
    self.assertEqual(result.returncode, 1, result.stderr)
    self.assertEqual(
        result.stdout.splitlines(),
        [
            'tiny quadratic 0 2e-05 ok',
            "lion quadratic - 2e-05 FAIL (unknown server 'lion')",
            '1 passed, 1 failed',
        ],
    )

  @parameterized.parameters(
      (None, 'No such file'),
      ('{', 'is not a JSON file'),
      ('{"runs": []}', "no 'problems'"),
      ('{"runs": [], "problems": []}', 'has no runs; list'),
      ('3', "no 'problems'"),
      ('{"runs": 3, "problems": []}', 'has no runs; list'),
      ('{"runs": [{}], "problems": [{}]}', "objects with a 'name'"),
  )
  def test_missing_and_broken_files_are_one_sentence(self, text, found):
    path = self.folder / 'goldens.json'
    if text is not None:
      path.write_text(text, encoding='utf-8')
    with self.assertRaisesRegex(command_line.UserError, found) as caught:
      binary_testing.call(binary, f'--goldens={path}')
    self.assertNotIn('\n', str(caught.exception))

  def test_command_needs_no_tensorflow(self):
    goldens = _write_goldens(
        self.folder,
        {},
        {'name': 'momentum', 'server': {'name': 'fedexp'}},
        {'name': 'smaller', 'client': {'name': 'sgd', 'lr': 0.25}},
    )
    adapter = f'--adapter=command:{golden_testing.NUMPY_COMMAND}'
    (result,) = binary_testing.run_quickly(
        ('experiments.conformance', goldens, adapter)
    )
    self.assertEqual(
        result.stdout.splitlines(),
        [
            'tiny quadratic 0 2e-05 ok',
            'momentum quadratic - 2e-05 skipped '
            "(no server optimizer 'fedexp')",
            'smaller quadratic 0.312 2e-05 FAIL',
            '1 passed, 1 failed, 1 skipped',
        ],
    )
    self.assertEqual(result.code, 1, result.stderr)
    self.assertNotIn('tensorflow', result.slow_imports)

  def test_skipping_everything_is_no_success(self):
    goldens = _write_goldens(self.folder, {'server': {'name': 'fedexp'}})
    out = io.StringIO()
    with self.assertRaisesRegex(
        command_line.UserError, 'nothing was compared: .*skipped all 1 runs'
    ):
      binary_testing.call(
          binary,
          goldens,
          f'--adapter=command:{golden_testing.NUMPY_COMMAND}',
          out=out,
      )
    self.assertIn('0 passed, 0 failed, 1 skipped', out.getvalue())

  @parameterized.named_parameters(
      ('nothing', []),
      ('adapter', ['--adapter=stock_tff']),
      (
          'runtime_of_a_command',
          ['--goldens=x', '--adapter=command:true', '--runtime=native'],
      ),
      ('no_command', ['--goldens=x', '--adapter_timeout=3']),
  )
  def test_flags_that_do_not_fit_raise(self, arguments):
    with self.assertRaisesRegex(flags.Error, 'give --goldens=FILE'):
      binary_testing.call(binary, *arguments)

  def test_unknown_adapter_raises(self):
    goldens = _write_goldens(self.folder, {})
    with self.assertRaisesRegex(command_line.UserError, "'stock_flower'"):
      binary_testing.call(binary, goldens, '--adapter=stock_flower')

  @pytest.mark.slow
  def test_stock_tff_is_replayed(self):
    goldens = _write_goldens(self.folder, {})
    result = program_testing.run(
        'experiments.conformance', goldens, '--adapter=stock_tff'
    )
    self.assertEqual(
        result.stdout.splitlines(),
        ['tiny quadratic 0 2e-05 ok', '1 passed, 0 failed, 0 skipped'],
    )
    self.assertEqual(result.returncode, 0, result.stderr)
