# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of verdicts from printed tables and from runs."""

import dataclasses
import math
import pathlib
from unittest import mock

from absl.testing import parameterized

from tests import folder_testing
from tests.experiments.report import made_up_runs
from tools.audit import delta_sgd
from tools.audit import laboratory
from tools.audit import runs
from tools.audit.claim import Status

_INF = math.inf


class DifferencesTest(parameterized.TestCase):

  def test_paired_interval(self):
    difference = runs.compare(
        {0: 1.0, 1: 2.0, 2: 4.0, 5: 0.0}, {0: 0.0, 1: 0.0, 2: 1.0, 7: 9.0}
    )
    # 2 +- 4.302653 / sqrt(3), the t quantile of two degrees of freedom.
    self.assertEqual(difference.num_seeds, 3)
    self.assertSequenceAlmostEqual(
        difference.interval, (2.0, -0.484138, 4.484138), places=5
    )
    self.assertEqual(str(difference), '+2.00 [-0.48, +4.48] (3 paired seeds)')
    self.assertEqual(difference.to_numbers()['seeds'], 3)

  @parameterized.named_parameters(
      ('above', [1.0, 1.1, 1.2], Status.HOLDS, Status.HOLDS),
      ('within_the_margin', [-0.1, -0.11, -0.12], Status.HOLDS, Status.FAILS),
      ('equal', [0.0, 0.0, 0.0], Status.HOLDS, Status.FAILS),
      ('by_chance', [3.0, -2.0, 1.0], Status.OPEN, Status.OPEN),
      ('around_the_margin', [-0.4, -0.5, -0.6], Status.OPEN, Status.FAILS),
      ('below', [-2.0, -2.1, -2.2], Status.FAILS, Status.FAILS),
      ('one_seed_above', [9.0], Status.OPEN, Status.OPEN),
      ('one_seed_below', [-9.0], Status.OPEN, Status.OPEN),
      ('diverged', [-_INF, 1.0], Status.FAILS, Status.FAILS),
      ('one_seed_diverged', [-_INF], Status.FAILS, Status.FAILS),
      ('the_other_one_diverged', [_INF, 1.0], Status.HOLDS, Status.HOLDS),
      ('both_diverged_apart', [_INF, -_INF], Status.OPEN, Status.OPEN),
  )
  def test_three_answers(self, found, not_behind, ahead):
    difference = runs.compare(
        dict(enumerate(found)), dict.fromkeys(range(len(found)), 0.0)
    )
    self.assertEqual(runs.not_behind(difference), not_behind)
    self.assertEqual(runs.ahead(difference), ahead)

  @parameterized.parameters(
      ([-0.3], '-0.30 (one seed, inconclusive)'),
      ([-_INF, 0.0], 'it diverged'),
      ([_INF], 'the other one diverged'),
      ([_INF, -_INF], 'each of them, on different seeds, diverged'),
  )
  def test_text(self, found, expected):
    difference = runs.compare(
        dict(enumerate(found)), dict.fromkeys(range(len(found)), 0.0)
    )
    self.assertEqual(str(difference), expected)

  def test_the_worst_answer_is_that_of_all(self):
    self.assertEqual(runs.unite([Status.HOLDS, Status.OPEN]), Status.OPEN)
    self.assertEqual(
        runs.unite([Status.OPEN, Status.FAILS, Status.HOLDS]),
        Status.FAILS,
    )


class LeadTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.lab = laboratory.Laboratory(pathlib.Path('no runs'))

  def _print(self, numbers):
    """Makes a table that prints numbers by row and column."""
    table = made_up_runs.build_table(
        columns=('digits', 'mnist'),
        numbers={('', *key): number for key, number in numbers.items()},
    )
    self.lab.find_table = lambda name: table

  @parameterized.parameters((80.0, Status.HOLDS), (91.0, Status.FAILS))
  def test_first_in_every_column_that_is_printed(self, other, status):
    self._print({('SGD', 'digits'): other, ('Delta-SGD', 'digits'): 90.0})
    verdict = runs.lead(self.lab, 'paper/table_1', ('Delta-SGD',))
    self.assertEqual(verdict.status, status)
    self.assertEqual(verdict.numbers, {'digits': 1 + (other > 90.0)})
    verdict = delta_sgd.published_places(self.lab)
    self.assertEqual(verdict.status, status)

  @parameterized.parameters((89.4, False), (89.5, True))
  def test_a_narrow_lead_is_told(self, other, is_narrow):
    self._print({('SGD', 'digits'): other, ('Delta-SGD', 'digits'): 90.0})
    verdict = runs.lead(self.lab, 'paper/table_1', ('Delta-SGD',))
    told = '; ahead by half a point or less in digits.'
    self.assertEqual(verdict.evidence.endswith(told), is_narrow)

  def test_no_printed_number_says_nothing(self):
    self._print({('SGD', 'digits'): 90.0})
    verdict = runs.lead(self.lab, 'paper/table_1', ('Delta-SGD',))
    self.assertEqual(verdict.status, Status.NOT_RUN)
    self.assertIn('prints no number of Delta-SGD', verdict.evidence)


_ROWS = ('SGD', 'Adam', 'Delta-SGD')


class AnswerTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    folder = folder_testing.new(self)
    self.lab = laboratory.Laboratory(folder)

  def _answer(self, accuracies, judge=runs.not_behind, **kwargs):
    """Answers for runs with accuracies by row, a list over seeds or by seed."""
    table = made_up_runs.build_table(
        rows=_ROWS, higher_is_better=kwargs.pop('higher_is_better', True)
    )
    table = dataclasses.replace(
        table,
        seeds=kwargs.pop('seeds', 1),
        estimate=kwargs.pop('estimate', 'final'),
    )
    self.lab.find_table = lambda name: table
    num_rounds = kwargs.pop('num_rounds', 4)
    for cell in table.cells:
      of_row = accuracies.get(cell.row, {})
      by_seed = of_row if isinstance(of_row, dict) else dict(enumerate(of_row))
      for seed, accuracy in by_seed.items():
        made_up_runs.write_run(
            self.lab.runs_dir / cell.experiment_name / f'seed_{seed}',
            [accuracy] * num_rounds,
            seed=seed,
        )
    return runs.answer(self.lab, 'paper/table_1', 'Delta-SGD', judge, **kwargs)

  @parameterized.named_parameters(
      ('best', [0.92, 0.921, 0.922], Status.HOLDS, Status.HOLDS),
      ('near', [0.8979, 0.898, 0.8981], Status.HOLDS, Status.FAILS),
      ('by_chance', [0.93, 0.89, 0.9], Status.OPEN, Status.OPEN),
      ('behind', [0.88, 0.881, 0.882], Status.FAILS, Status.FAILS),
      ('one_seed', [0.5], Status.OPEN, Status.OPEN),
      ('diverged', [math.nan], Status.FAILS, Status.FAILS),
  )
  def test_status(self, ours, as_good, ahead):
    accuracies = {'SGD': [0.9] * 3, 'Adam': [0.5] * 3, 'Delta-SGD': ours}
    self.assertEqual(self._answer(accuracies).status, as_good)
    verdict = self._answer(accuracies, runs.ahead)
    self.assertEqual(verdict.status, ahead)
    self.assertEqual(verdict.numbers['digits']['against'], 'SGD')
    self.assertEqual(verdict.numbers['digits']['seeds'], len(ours))

  def test_the_rival_that_counts_is_the_worst_one_and_not_the_best_mean(self):
    # Adam has the better mean, by chance; SGD is ahead in every seed.
    accuracies = {
        'SGD': [0.902, 0.902, 0.902],
        'Adam': [0.95, 0.80, 0.97],
        'Delta-SGD': [0.89, 0.891, 0.89],
    }
    verdict = self._answer(accuracies)
    self.assertEqual(verdict.status, Status.FAILS)
    self.assertEqual(verdict.numbers['digits']['against'], 'SGD')
    # Against Adam it is open.
    self.assertEndsWith(verdict.evidence, ' (3 paired seeds): fails.')

  def test_means_are_told_where_one_seed_decides_nothing(self):
    accuracies = {'SGD': [0.9], 'Adam': [0.5], 'Delta-SGD': [0.92]}
    verdict = self._answer(accuracies)
    self.assertEqual(
        verdict.evidence,
        'digits: Delta-SGD 92.00, SGD 90.00, +2.00 (one seed, inconclusive): '
        'open (also against Adam).',
    )
    means = verdict.numbers['digits']['means']
    self.assertEqual(list(means), ['SGD', 'Adam', 'Delta-SGD'])
    self.assertAlmostEqual(means['Adam'], 50.0)

  def test_means_are_those_of_the_seeds_that_all_rows_have(self):
    accuracies = {
        'SGD': [0.89, 0.90, 0.99],
        'Adam': [0.50, 0.50, 0.50, 0.90],
        'Delta-SGD': [0.90, 0.91],
    }
    verdict = self._answer(accuracies, seeds=2)
    self.assertEqual(verdict.status, Status.HOLDS)
    self.assertEqual(
        verdict.evidence,
        'digits: Delta-SGD 90.50, SGD 89.50, +1.00 [+1.00, +1.00] (2 paired '
        'seeds): holds.',
    )
    self.assertAlmostEqual(verdict.numbers['digits']['means']['Adam'], 50.0)

  def test_numbers_of_a_stamped_table_bear_its_stamp(self):
    accuracies = {row: [0.9] for row in _ROWS}
    verdict = self._answer(accuracies, estimate='best')
    self.assertEndsWith(
        verdict.evidence,
        ' (also against Adam); replication only: chosen on the test data.',
    )

  def test_a_command_bears_no_stamp(self):
    verdict = self._answer({}, estimate='best')
    self.assertNotIn('replication only', verdict.evidence)

  def test_lower_may_be_better(self):
    accuracies = {
        'SGD': [0.2, 0.2],
        'Adam': [0.3, 0.3],
        'Delta-SGD': [0.1, 0.1],
    }
    verdict = self._answer(accuracies, runs.ahead, higher_is_better=False)
    self.assertEqual(verdict.status, Status.HOLDS)
    self.assertEqual(verdict.numbers['digits']['against'], 'SGD')
    self.assertAlmostEqual(verdict.numbers['digits']['means']['SGD'], 20.0)

  def test_named_rows_alone_are_compared(self):
    accuracies = {'Adam': [0.5, 0.5], 'Delta-SGD': [0.6, 0.6]}
    verdict = self._answer(accuracies, runs.ahead, others=('Adam',))
    self.assertEqual(verdict.status, Status.HOLDS)

  @parameterized.parameters(
      (
          {'SGD': [0.9], 'Delta-SGD': [0.9]},
          {},
          'cells that lack finished runs: 1;',
          '--output_dir=',
      ),
      (dict.fromkeys(_ROWS, [0.9]), {'seeds': 2}, '--seed=1 ', '/seed_1`'),
      # Other seeds do not take the place of those of the table.
      (
          {
              'SGD': [0.8, 0.8],
              'Adam': {2: 0.9, 3: 0.9},
              'Delta-SGD': [0.9, 0.9],
          },
          {'seeds': 2},
          'cells that lack finished runs: 1;',
          '/adam.digits/seed_0`',
      ),
      (
          dict.fromkeys(_ROWS, [0.9]),
          {'num_rounds': 3},
          'unfinished, 3 of 4 rounds',
      ),
      ({}, {'others': ('Yogi',)}, "no row 'Delta-SGD'"),
  )
  def test_what_is_missing_is_named(self, accuracies, options, *named):
    verdict = self._answer(accuracies, **options)
    self.assertEqual(verdict.status, Status.NOT_RUN)
    for name in named:
      self.assertIn(name, verdict.evidence)

  def test_missing_runs_that_take_a_gpu(self):
    verdict = self._answer({}, needs_gpu=True)
    self.assertEqual(verdict.status, Status.NOT_TESTABLE)

  def test_runs_that_were_read_are_known(self):
    self._answer({row: [0.9, 0.8] for row in _ROWS}, others=('SGD',), seeds=2)
    self.assertEqual(
        {run.path.parent.name for run in self.lab.runs},
        {'sgd.digits', 'delta-sgd.digits'},
    )
    self.assertLen(self.lab.runs, 4)

  def test_runs_of_other_rows_are_not_read(self):
    damaged = self.lab.runs_dir / 'paper' / 'table_1' / 'adam.digits' / 'seed_0'
    damaged.mkdir(parents=True)
    (damaged / 'hparams.json').write_text('{')
    accuracies = {'SGD': [0.8, 0.8], 'Delta-SGD': [0.9, 0.9]}
    verdict = self._answer(accuracies, others=('SGD',), seeds=2)
    self.assertEqual(verdict.status, Status.HOLDS)


class TunedTest(parameterized.TestCase):

  def _answer(self, by_task):
    lab = mock.Mock()
    lab.tuned.return_value = by_task
    return runs.answer_tuned(lab, 'A', 'B', runs.ahead)

  def test_methods_are_compared_on_the_tasks_where_both_are_tuned(self):
    ahead = {'A': {0: 90.0, 1: 91.0}, 'B': {0: 89.0, 1: 90.0}}
    verdict = self._answer({'digits': ahead, 'mnist': {'A': {0: 1.0}}})
    self.assertEqual(verdict.status, Status.HOLDS)
    self.assertEqual(
        verdict.evidence,
        'digits: A 90.50, B 89.50, +1.00 [+1.00, +1.00] (2 paired seeds): '
        'holds.',
    )
    behind = {'A': {0: 1.0, 1: 2.0}, 'B': {0: 2.0, 1: 3.0}}
    verdict = self._answer({'digits': ahead, 'mnist': behind})
    self.assertEqual(verdict.status, Status.FAILS)
    self.assertEqual(list(verdict.numbers), ['digits', 'mnist'])

  def test_without_tuned_runs_nothing_was_run(self):
    self.assertEqual(self._answer({'digits': {}}).status, Status.NOT_RUN)
