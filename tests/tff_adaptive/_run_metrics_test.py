# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of one number for a run."""

import math

from absl.testing import parameterized
import numpy as np

from tests import folder_testing
from tff_adaptive import _run_metrics
from tff_adaptive.simulation import metrics_writers

_ROUNDS = list(range(5, 205, 5))
_VALUES = [0.001 * round_num for round_num in _ROUNDS]


class RunMetricsTest(parameterized.TestCase):

  def _read(self, text):
    folder = folder_testing.new(self)
    csv = folder / 'metrics.csv'
    csv.write_text(text)
    return _run_metrics.read_columns(csv)

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

  @parameterized.named_parameters(
      ('a_quote', '1,"1\n2,5\n3,6\n', 'line '),
      ('two_quotes', '1,"1\n2,5"\n3,6\n', 'line 3 .*line break'),
      ('a_repeated_round', '1,1\n1,5\n', 'line 3 .*round_num 1 comes after 1'),
      ('no_order', '2,1\n1,5\n', 'line 3 .*round_num 1 comes after 2'),
      ('zeros', '01,1\n', "line 2 .*round_num .* found '01'"),
      ('other_digits', '\u0661,1\n', 'line 2 .*round_num .* found'),
      ('underscore_round', '1_0,1\n', "line 2 .*round_num .* found '1_0'"),
      ('underscore', '1,1\n2,1_0\n', 'line 3 .*a is not a number'),
      ('blanks', '1,1\n2, 1 \n', 'line 3 .*a is not a number'),
      ('infinity', '1,1\n2,infinity\n', 'line 3 .*a is not a number'),
      ('other_number', '1,1\n2,\u0661\n', 'line 3 .*a is not a number'),
  )
  def test_rows_that_python_would_read_are_damaged(self, rows, sentence):
    with self.assertRaisesRegex(ValueError, f'metrics.csv, {sentence}'):
      self._read(f'round_num,a\n{rows}')

  @parameterized.parameters('round_num,a,a', 'round_num,round_num', 'a,a')
  def test_a_column_that_is_there_twice_is_damaged(self, header):
    with self.assertRaisesRegex(ValueError, 'line 1 .*is there twice'):
      self._read(f'{header}\n1,1,2\n')

  @parameterized.parameters(
      ('1', 1.0),
      ('-0.5', -0.5),
      ('1e-05', 1e-05),
      ('1.', 1.0),
      ('.5', 0.5),
      ('-inf', -math.inf),
      ('1_0', None),
      (' 1', None),
      ('1\n', None),
      ('0x1', None),
      ('infinity', None),
      ('', None),
  )
  def test_numbers_are_those_that_writers_write(self, text, expected):
    self.assertEqual(_run_metrics.parse_number(text), expected)

  @parameterized.parameters(1e-300, 1 / 3, 2.0**60, 123456789.0, -7.5e22)
  def test_every_number_that_is_written_is_read(self, value):
    for number in (value, np.float32(value)):
      text = metrics_writers._format(number)
      self.assertEqual(_run_metrics.parse_number(text), float(text))

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
