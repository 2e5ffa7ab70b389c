# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of CSV files of results."""

import math

from absl.testing import parameterized

from experiments import csv_files
from tests import folder_testing


class CsvFilesTest(parameterized.TestCase):

  @parameterized.parameters(
      (None, ''),
      (math.nan, ''),
      (-math.inf, '-inf'),
      (0.1 + 0.2, '0.3'),
      (2.0, '2'),
      (123456789012345.0, '123456789012345'),
      (1e300, '1e+300'),
      (7, '7'),
      ('a, b', 'a, b'),
  )
  def test_values(self, value, text):
    self.assertEqual(csv_files.format_value(value), text)

  def test_a_table_has_a_line_a_row(self):
    folder = folder_testing.new(self)
    csv_files.write(folder / 'x', ('x', 'y'), [('a, b', 0.5), (1, None)])
    self.assertEqual((folder / 'x').read_text(), 'x,y\n"a, b",0.5\n1,\n')
