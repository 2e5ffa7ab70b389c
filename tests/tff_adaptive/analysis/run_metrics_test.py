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
"""Tests of one number for a run."""

import math
import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

from tff_adaptive.analysis import run_metrics

_ROUNDS = list(range(5, 205, 5))
_VALUES = [0.001 * round_num for round_num in _ROUNDS]


class RunMetricsTest(parameterized.TestCase):

  def test_columns_hold_finite_numbers_with_their_rounds(self):
    folder = self.enter_context(tempfile.TemporaryDirectory())
    csv = pathlib.Path(folder) / 'metrics.csv'
    csv.write_text('round_num,a,b,c\n1,,0.5,CPU:0\n2,3,nan,CPU:0\n3,4,inf,\n')
    self.assertEqual(
        run_metrics.read_columns(csv),
        {
            'round_num': ([1, 2, 3], [1.0, 2.0, 3.0]),
            'a': ([2, 3], [3.0, 4.0]),
            'b': ([1], [0.5]),
        },
    )

  @parameterized.parameters(
      # The rounds 155, 160, ... 200.
      ('last_10_evaluations', 0.1775),
      # The rounds 105, 110, ... 200.
      ('last_100_rounds', 0.1525),
      ('best', 0.2),
      ('final', 0.2),
  )
  def test_estimates(self, estimate, expected):
    found = run_metrics.summarize((_ROUNDS, _VALUES), estimate)
    self.assertAlmostEqual(found, expected, places=12)

  def test_the_best_loss_is_the_smallest(self):
    series = ([1, 2, 3], [3.0, 1.0, 2.0])
    self.assertEqual(
        run_metrics.summarize(series, 'best', higher_is_better=False), 1.0
    )

  @parameterized.parameters(*run_metrics.ESTIMATES)
  def test_one_value_is_enough(self, estimate):
    self.assertEqual(run_metrics.summarize(([7], [0.5]), estimate), 0.5)

  def test_bad_arguments(self):
    with self.assertRaisesRegex(ValueError, "best, final, found 'mean'$"):
      run_metrics.summarize(([1], [0.5]), 'mean')
    with self.assertRaisesRegex(ValueError, '^nothing was measured'):
      run_metrics.summarize(([], []), 'final')

  @parameterized.parameters(
      (0.05, True, 50),
      (0.2, True, 200),
      (0.21, True, math.inf),
      (0.1, False, 5),
      (0.001, False, math.inf),
  )
  def test_the_first_round_that_reaches_a_target(self, target, higher, found):
    self.assertEqual(
        run_metrics.find_round(
            (_ROUNDS, _VALUES), target, higher_is_better=higher
        ),
        found,
    )


if __name__ == '__main__':
  absltest.main()
