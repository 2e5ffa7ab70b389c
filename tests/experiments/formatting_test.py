# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tables and times as text."""

import math

from absl.testing import parameterized

from experiments import formatting


class DurationsTest(parameterized.TestCase):

  @parameterized.parameters(
      (0.2, '1 s'),
      (200, '3 min 20 s'),
      (7500, '2 h 5 min'),
      (59.5, '1 min 0 s'),
      (None, 'unknown'),
      (math.nan, 'unknown'),
      (math.inf, 'unknown'),
  )
  def test_times_in_words(self, seconds, text):
    self.assertEqual(formatting.format_seconds(seconds), text)
