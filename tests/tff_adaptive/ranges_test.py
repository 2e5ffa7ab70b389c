# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the ranges of numbers."""

import math
import typing

from absl.testing import parameterized

from tff_adaptive import ranges

# From the smallest to the largest; 1e-50 is 0 in float32, 1e39 infinite, and
# 1 - 1e-9 is 1 in seven decimals.
_NUMBERS = [-math.inf, -1, 0, 1e-50, 0.5, 1 - 1e-9, 1, 1.5, 1e38, 1e39]
_NUMBERS += [math.inf, math.nan]


class RangesTest(parameterized.TestCase):

  @parameterized.parameters(
      (ranges.Finite, 'a finite number', '011111111000'),
      (ranges.NotNegative, 'at least 0', '001111111000'),
      (ranges.Positive, 'above 0', '000011111000'),
      (ranges.Limit, 'above 0, or infinite', '000011111110'),
      (ranges.Share, 'in [0, 1)', '001110000000'),
      (ranges.ClosedShare, 'in [0, 1]', '001111100000'),
      (ranges.PositiveShare, 'in (0, 1]', '000011100000'),
      (ranges.OpenShare, 'in (0, 1)', '000010000000'),
      (ranges.Count, 'at least 1', '000000111000'),
      (ranges.PositiveSteps, 'above 0', '000011111000'),
      (ranges.Steps, 'at least 0', '001111111000'),
  )
  def test_values_and_words(self, kind, words, expected):
    _, found = typing.get_args(kind)
    self.assertEqual(str(found), words)
    accepted = ''.join(str(int(number in found)) for number in _NUMBERS)
    self.assertEqual(accepted, expected)

  def test_what_is_too_large_must_be_finite(self):
    _, found = typing.get_args(ranges.NotNegative)
    self.assertEqual(found.describe(1e39), 'a finite number')
    self.assertEqual(found.describe(-1.0), 'at least 0')
    self.assertNotIn(10**400, found)
