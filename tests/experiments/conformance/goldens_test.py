# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading files of reference numbers, and of comparing a replay."""

import json

from absl.testing import parameterized

from experiments import conformance
from tests import folder_testing
from tests.experiments.conformance import golden_testing

_RIGHT = [[0.5, 0.0, 0.0, 0.0], [0.75, 0.0, 0.0, 0.0]]


class _Fake:
  """An adapter that has one answer, or raises it."""

  name = 'fake'

  def __init__(self, answer, reason=None):
    self._answer = answer
    self._reason = reason
    self.runs = []

  def supports(self, configuration):
    self.configuration = configuration
    return self._reason

  def replay(self, run):
    self.runs.append(run)
    if isinstance(self._answer, Exception):
      raise self._answer
    return self._answer


class CheckTest(parameterized.TestCase):

  def _check(self, *arguments):
    adapter = _Fake(*arguments)
    run, problems = golden_testing.create_tiny_run()
    return conformance.check(adapter, run, problems), adapter

  def test_right_iterates_pass(self):
    result, adapter = self._check(_RIGHT)
    self.assertTrue(result.passed)
    self.assertEqual(str(result), 'tiny quadratic 0 2e-05 ok')
    self.assertEqual(adapter.configuration['name'], 'tiny')

  def test_adapter_does_not_receive_the_result(self):
    _, adapter = self._check(_RIGHT)
    run, problems = golden_testing.create_tiny_run()
    self.assertEqual(
        adapter.runs, [(run['config'], problems['quadratic'], [[0], [0]])]
    )

  def test_any_round_counts(self):
    result, _ = self._check([[0.6, 0.0, 0.0, 0.0], _RIGHT[1]])
    self.assertEqual(str(result), 'tiny quadratic 0.1 2e-05 FAIL')

  def test_nan_fails(self):
    result, _ = self._check([[float('nan')] * 4, _RIGHT[1]])
    self.assertEqual(str(result), 'tiny quadratic nan 2e-05 FAIL')

  @parameterized.named_parameters(
      ('none', [], 'found 0 iterates, expected 2, one per round'),
      ('too_few', _RIGHT[:1], 'found 1 iterates, expected 2, one per round'),
      ('too_short', [[0.5], [0.75]], r'found iterates of shape \(2, 1\)'),
      ('ragged', [[0.5], [0.75, 0.0]], 'flat lists of numbers of equal length'),
      ('no_numbers', [['a'] * 4] * 2, 'must be flat lists of numbers'),
      ('crash', KeyError('lr'), "KeyError: 'lr'"),
      ('own', conformance.AdapterError('it rains'), r'^it rains$'),
  )
  def test_no_result_is_a_failure_with_a_reason(self, answer, reason):
    result, _ = self._check(answer)
    self.assertFalse(result.passed)
    self.assertFalse(result.skipped)
    self.assertRegex(result.reason, reason)
    self.assertIn(' - 2e-05 FAIL (', str(result))

  @parameterized.named_parameters(
      ('before', _RIGHT, 'no server'),
      ('while_replaying', conformance.UnsupportedError('no server'), None),
  )
  def test_unsupported_runs_are_skipped(self, answer, reason):
    result, _ = self._check(answer, reason)
    self.assertTrue(result.skipped)
    self.assertEqual(str(result), 'tiny quadratic - 2e-05 skipped (no server)')

  def test_unknown_problem_fails(self):
    run, _ = golden_testing.create_tiny_run()
    result = conformance.check(_Fake(_RIGHT), run, {})
    self.assertEqual(result.reason, "unknown problem 'quadratic'")
    self.assertFalse(result.skipped)

  @parameterized.parameters((1,), ({},), ({'config': None},))
  def test_a_run_without_a_configuration_fails_alone(self, run):
    _, problems = golden_testing.create_tiny_run()
    result = conformance.check(_Fake(_RIGHT), run, problems)
    self.assertStartsWith(str(result), '? ? - 2e-05 FAIL (')

  def test_an_empty_reference_never_passes(self):
    run, problems = golden_testing.create_tiny_run()
    run['trajectory'] = []
    result = conformance.check(_Fake([]), run, problems)
    self.assertFalse(result.passed)
    self.assertFalse(result.skipped)
    self.assertIn('the trajectory in the file is empty', result.reason)

  def test_a_reference_without_weights_never_passes(self):
    run, problems = golden_testing.create_tiny_run()
    for entry in run['trajectory']:
      entry['server']['x'] = []
    result = conformance.check(_Fake([[], []]), run, problems)
    self.assertFalse(result.passed)
    self.assertIn('the reference has no weights', result.reason)

  def test_tolerance_grows_with_the_rounding_of_the_reference(self):
    run, problems = golden_testing.create_tiny_run()
    run['float32_error'] = 1e-3
    result = conformance.check(_Fake(_RIGHT), run, problems)
    self.assertAlmostEqual(result.tolerance, 0.05)

  def test_reads_files(self):
    run, by_name = golden_testing.create_tiny_run()
    problem = by_name['quadratic']
    folder = folder_testing.new(self)
    path = folder / 'goldens.json'
    path.write_text(json.dumps({'problems': [problem], 'runs': [run]}))
    runs, problems = conformance.read_goldens(path)
    self.assertEqual(runs, [run])
    self.assertEqual(problems, {'quadratic': problem})
