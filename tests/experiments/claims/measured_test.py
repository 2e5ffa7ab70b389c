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
"""Tests of verdicts from runs, which nobody has trained."""

import dataclasses
import math
import pathlib
import tempfile

from absl.testing import absltest
from absl.testing import parameterized

from experiments import claims
from experiments.claims import measured
from experiments.claims.claim import Status
from tests.experiments.reports import made_up_runs

_ROWS = ('SGD', 'Adam', 'Delta-SGD')


class CompareTest(parameterized.TestCase):

  def test_paired_interval(self):
    difference = measured.compare(
        {0: 1.0, 1: 2.0, 2: 4.0, 5: 0.0}, {0: 0.0, 1: 0.0, 2: 1.0, 7: 9.0}
    )
    # 2 +- 4.302653 / sqrt(3), the t quantile of two degrees of freedom.
    self.assertEqual(difference.num_seeds, 3)
    self.assertAlmostEqual(difference.mean, 2.0)
    self.assertAlmostEqual(difference.low, -0.484138, places=5)
    self.assertAlmostEqual(difference.high, 4.484138, places=5)
    self.assertFalse(difference.is_shown)
    self.assertIn('3 paired seeds', str(difference))

  def test_one_seed_needs_the_margin(self):
    for other, shown in ((9.6, False), (9.4, True)):
      difference = measured.compare({0: 10.0}, {0: other})
      self.assertEqual(difference.is_shown, shown)
      self.assertEqual(difference.to_numbers()['low'], None)
      self.assertIn('one seed', str(difference))

  def test_no_common_seed(self):
    self.assertIsNone(measured.compare({0: 1.0}, {1: 1.0}))

  @parameterized.parameters(
      (-math.inf, 1.0, -math.inf), (1.0, -math.inf, math.inf)
  )
  def test_divergence_is_the_worst(self, score, other, expected):
    difference = measured.compare({0: score, 1: score}, {0: other, 1: other})
    self.assertEqual(difference.mean, expected)
    self.assertEqual(difference.is_within_margin, expected > 0)
    self.assertEqual(difference.is_shown, expected > 0)


class AnswerTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = self.enter_context(tempfile.TemporaryDirectory())
    self.lab = claims.Workbench(pathlib.Path(folder))

  def _answer(self, accuracies, holds=measured.not_behind, **kwargs):
    """Answers for runs with accuracies by row, a list over seeds each."""
    table = made_up_runs.build_table(
        rows=_ROWS, higher_is_better=kwargs.pop('higher_is_better', True)
    )
    table = dataclasses.replace(table, seeds=kwargs.pop('seeds', 1))
    self.lab.find_table = lambda name: table
    num_rounds = kwargs.pop('num_rounds', 4)
    for cell in table.cells:
      for seed, accuracy in enumerate(accuracies.get(cell.row, ())):
        made_up_runs.write_run(
            self.lab.runs_dir / cell.experiment_name / f'seed_{seed}',
            [accuracy] * num_rounds,
            seed=seed,
        )
    question = measured.Question('paper/table_1', 'Delta-SGD', holds, **kwargs)
    return measured.answer(self.lab, question)

  @parameterized.named_parameters(
      ('best', [0.92], Status.HOLDS, Status.HOLDS),
      ('near', [0.896], Status.HOLDS, Status.FAILS),
      ('behind', [0.89], Status.FAILS, Status.FAILS),
      ('diverged', [math.nan], Status.FAILS, Status.FAILS),
      ('a little, always', [0.901, 0.9012, 0.9011], Status.HOLDS, Status.HOLDS),
      ('by chance', [0.93, 0.89, 0.9], Status.HOLDS, Status.FAILS),
  )
  def test_status(self, ours, as_good, ahead):
    accuracies = {'SGD': [0.9] * 3, 'Adam': [0.5] * 3, 'Delta-SGD': ours}
    self.assertEqual(self._answer(accuracies).status, as_good)
    verdict = self._answer(accuracies, measured.ahead)
    self.assertEqual(verdict.status, ahead)
    self.assertEqual(verdict.numbers['digits']['against'], 'SGD')
    self.assertEqual(verdict.numbers['digits']['seeds'], len(ours))

  def test_lower_may_be_better(self):
    accuracies = {'SGD': [0.2], 'Adam': [0.3], 'Delta-SGD': [0.1]}
    verdict = self._answer(accuracies, measured.ahead, higher_is_better=False)
    self.assertEqual(verdict.status, Status.HOLDS)
    self.assertEqual(verdict.numbers['digits']['against'], 'SGD')

  def test_named_rows_alone_are_compared(self):
    accuracies = {'Adam': [0.5], 'Delta-SGD': [0.6]}
    verdict = self._answer(accuracies, measured.ahead, others=('Adam',))
    self.assertEqual(verdict.status, Status.HOLDS)

  def test_missing_runs(self):
    accuracies = {'SGD': [0.9], 'Delta-SGD': [0.9]}
    verdict = self._answer(accuracies)
    self.assertEqual(verdict.status, Status.NOT_RUN)
    self.assertIn('cells without all finished runs: 1;', verdict.evidence)
    self.assertIn(f'--output_dir={self.lab.runs_dir}', verdict.evidence)

  def test_some_seeds_are_not_all(self):
    accuracies = {row: [0.9] for row in _ROWS}
    verdict = self._answer(accuracies, seeds=2)
    self.assertEqual(verdict.status, Status.NOT_RUN)

  def test_missing_runs_that_take_a_gpu(self):
    verdict = self._answer({}, needs_gpu=True)
    self.assertEqual(verdict.status, Status.NOT_TESTABLE)

  def test_unfinished_runs_do_not_count(self):
    accuracies = {row: [0.9] for row in _ROWS}
    verdict = self._answer(accuracies, num_rounds=3)
    self.assertEqual(verdict.status, Status.NOT_RUN)

  def test_missing_row(self):
    verdict = self._answer({}, others=('Yogi',))
    self.assertEqual(verdict.status, Status.NOT_RUN)
    self.assertIn("no row 'Delta-SGD'", verdict.evidence)

  def test_missing_table(self):
    question = measured.Question('paper/table_9', 'SGD', measured.ahead)
    verdict = measured.answer(self.lab, question)
    self.assertEqual(verdict.status, Status.NOT_RUN)
    self.assertIn('paper/table_9.yaml is not there', verdict.evidence)


if __name__ == '__main__':
  absltest.main()
