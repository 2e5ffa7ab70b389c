# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of one number for a run."""

import math

from absl.testing import parameterized

from tests import folder_testing
from tff_adaptive import _run_metrics

_ROUNDS = list(range(5, 205, 5))
_VALUES = [0.001 * round_num for round_num in _ROUNDS]


class RunMetricsTest(parameterized.TestCase):

  def _read(self, text):
    folder = folder_testing.new(self)
    csv = folder / 'metrics.csv'
    csv.write_text(text)
    return _run_metrics.read_columns(csv)

  @parameterized.parameters(
      ('accuracy', True),
      ('clients/step_size_mean', True),
      ('evaluation/clients/accuracy_worst_decile', True),
      ('gmae', True),
      ('loss', False),
      ('mae', False),
      ('perplexity', False),
      ('log_cosh', False),
      ('categorical_hinge', False),
      ('kl_divergence', False),
      ('cross_entropy', False),
      ('wmse', False),
      ('nll', False),
      ('word_error_rate', False),
      ('loss_per_token', False),
      ('evaluation/mean_squared_error_1_worst_decile', False),
      ('sparse_categorical_crossentropy', False),
      ('evaluation/clients/val_rmse_median', False),
      ('evaluation/mean_squared_error', False),
      ('evaluation/personalized/after/error_median', False),
  )
  def test_losses_and_errors_are_better_when_lower(self, metric, expected):
    self.assertEqual(_run_metrics.is_higher_better(metric), expected)

  def test_columns_hold_finite_numbers_with_their_rounds(self):
    self.assertEqual(
        self._read('round_num,a,b,c\n1,,0.5,CPU:0\n2,3,nan,CPU:0\n3,4,inf,\n'),
        {
            'round_num': ([1, 2, 3], [1.0, 2.0, 3.0]),
            'a': ([2, 3], [3.0, 4.0]),
            'b': ([1], [0.5]),
        },
    )

  @parameterized.parameters('', 'round_n', 'round_num,a\n')
  def test_a_file_without_a_whole_row_has_no_columns(self, text):
    self.assertEqual(self._read(text), {})

  def test_a_row_that_is_being_written_is_not_there_yet(self):
    columns = self._read('round_num,a\n1,0.5\n2,0.7')
    self.assertEqual(columns['a'], ([1], [0.5]))

  @parameterized.named_parameters(
      ('too_many_fields', '1,2\n2,3,4\n', 'line 3 .*3 fields for 2 columns'),
      ('too_few_fields', '1,2\n2\n3,4\n', 'line 3 .*1 fields for 2 columns'),
      ('no_round', '1,2\n,3\n', "line 3 .*round_num .* found ''"),
      ('no_number', '1,2\n2,0.7x\n', r'line 3 is damaged \(a is not a num'),
      ('binary', '1,2\n2,\x00\x01\n', r'line 3 is damaged \(a is not a num'),
  )
  def test_damaged_rows_are_named(self, rows, sentence):
    with self.assertRaisesRegex(ValueError, f'metrics.csv, {sentence}'):
      self._read(f'round_num,a\n{rows}')

  def test_a_file_without_rounds_is_damaged(self):
    with self.assertRaisesRegex(ValueError, 'metrics.csv, line 2 .*round_num'):
      self._read('a,b\n1,2\n')

  @parameterized.parameters(
      # The rounds 155, 160, ... 200.
      ('last_10_evaluations', 0.1775),
      # The rounds 105, 110, ... 200.
      ('last_100_rounds', 0.1525),
      ('best', 0.2),
      ('final', 0.2),
  )
  def test_estimates(self, estimate, expected):
    found = _run_metrics.summarize((_ROUNDS, _VALUES), estimate)
    self.assertAlmostEqual(found, expected, places=12)

  def test_the_best_loss_is_the_smallest(self):
    series = ([1, 2, 3], [3.0, 1.0, 2.0])
    self.assertEqual(
        _run_metrics.summarize(series, 'best', higher_is_better=False), 1.0
    )

  @parameterized.parameters(*_run_metrics.ESTIMATES)
  def test_one_value_is_enough(self, estimate):
    self.assertEqual(_run_metrics.summarize(([7], [0.5]), estimate), 0.5)

  def test_bad_arguments(self):
    with self.assertRaisesRegex(ValueError, "best, final, found 'mean'$"):
      _run_metrics.summarize(([1], [0.5]), 'mean')
    with self.assertRaisesRegex(ValueError, '^nothing was measured'):
      _run_metrics.summarize(([], []), 'final')

  @parameterized.parameters(
      (0.05, True, 50),
      (0.2, True, 200),
      (0.21, True, math.inf),
      (0.1, False, 5),
      (0.001, False, math.inf),
  )
  def test_the_first_round_that_reaches_a_target(self, target, higher, found):
    self.assertEqual(
        _run_metrics.find_round(
            (_ROUNDS, _VALUES), target, higher_is_better=higher
        ),
        found,
    )

  @parameterized.parameters(
      # The second values are 0.95 and 0.1 as float32.
      (0.95, True, [0.9499999, 0.949999988079071]),
      (0.1, False, [0.10000002, 0.10000000149011612]),
  )
  def test_a_target_is_reached_by_its_float32(self, target, higher, values):
    found = _run_metrics.find_round(
        ([1, 2], values), target, higher_is_better=higher
    )
    self.assertEqual(found, 2)
