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
"""Tests of numbers and times as text."""

import math

from absl.testing import absltest
from absl.testing import parameterized

from experiments.run_results import formatting


class CsvTextTest(parameterized.TestCase):

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
    self.assertEqual(formatting.format_value(value), text)

  def test_a_table_has_a_line_a_row(self):
    self.assertEqual(
        formatting.format_table(('x', 'y'), [('a, b', 0.5), (1, None)]),
        'x,y\n"a, b",0.5\n1,\n',
    )


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


if __name__ == '__main__':
  absltest.main()
