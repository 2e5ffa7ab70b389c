# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of gaps, places and shares."""

import math

from absl.testing import parameterized

from experiments import published
from experiments.report import views
from tests.experiments.report import made_up_runs

_TABLE = made_up_runs.build_table()


def _column(**values):
  return {('', row, 'c'): value for row, value in values.items()}


class RankingTest(parameterized.TestCase):

  @parameterized.named_parameters(
      # 98.4 - 97.9 is 0.5000000000000000 and a bit in binary.
      ('within', 97.9, 0.5, '**97.9** (0.5)'),
      ('between', 97.8, 0.6, '97.8 (0.6)'),
      ('at_two', 96.4, 2.0, '96.4 (2.0)'),
      ('beyond_two', 96.3, 2.1, '96.3 (2.1) †'),
  )
  def test_gaps_and_thresholds(self, value, gap, cell):
    table = made_up_runs.build_table(rows=['best', 'other'], columns=['c'])
    numbers = _column(best=98.4, other=value)
    standings = views.rank(table, numbers)
    best, other = standings['', 'best', 'c'], standings['', 'other', 'c']
    self.assertEqual(best, views.Standing(gap=0.0, place=1))
    self.assertEqual(other, views.Standing(gap=gap, place=2))
    legend, shown = views.build_gap_tables(table, numbers)
    self.assertIn('† marks numbers more than 2 points behind.', legend)
    self.assertIn('| best | **98.4** (0.0) |\n', shown)
    self.assertEndsWith(shown, f'\n| other | {cell} |')

  def test_ties_share_the_better_place(self):
    standings = views.rank(_TABLE, _column(a=3.0, b=3.0, c=1.0, d=2.0))
    places = [standings['', row, 'c'].place for row in 'abcd']
    self.assertEqual(places, [1, 1, 4, 3])

  def test_the_smallest_loss_is_the_best(self):
    standings = views.rank(
        made_up_runs.build_table(higher_is_better=False),
        _column(a=0.1, b=0.3),
    )
    self.assertEqual(standings['', 'a', 'c'].place, 1)
    self.assertEqual(standings['', 'b', 'c'].gap, 0.2)

  def test_groups_and_columns_are_compared_within_themselves(self):
    numbers = {
        ('g', 'a', 'c'): 1.0,
        ('g', 'b', 'c'): 2.0,
        ('h', 'a', 'c'): 1.0,
        ('g', 'a', 'd'): 1.0,
    }
    places = {key: s.place for key, s in views.rank(_TABLE, numbers).items()}
    self.assertEqual(list(places.values()), [2, 1, 1, 1])

  def test_what_was_not_measured_or_diverged_has_no_standing(self):
    standings = views.rank(_TABLE, _column(a=1.0, b=None, c=math.nan))
    self.assertEqual(list(standings), [('', 'a', 'c')])

  def test_a_row_without_a_rival_wins_nothing(self):
    self.assertIsNone(
        views.share_of_places(_TABLE, _column(a=1.0, b=None), 'a', 1)
    )
    self.assertIsNone(
        views.share_of_places(_TABLE, _column(a=1.0, b=2.0), 'z', 1)
    )

  def test_a_row_that_diverged_is_behind_all(self):
    numbers = {
        ('', 'SPS', 'c'): 2.0,
        ('', 'SGD', 'c'): 1.0,
        ('', 'SPS', 'd'): math.nan,
        ('', 'SGD', 'd'): 1.0,
        ('', 'SPS', 'e'): math.nan,
        ('', 'SGD', 'e'): math.nan,
    }
    for row, place, share in (
        ('SPS', 1, 1 / 3),
        ('SPS', 2, 1 / 3),
        ('SGD', 1, 1 / 3),
        ('SGD', 2, 2 / 3),
    ):
      self.assertEqual(
          views.share_of_places(_TABLE, numbers, row, place), share
      )

  @parameterized.parameters((1, 11, '73 %'), (2, 15, '100 %'))
  def test_delta_sgd_leads_its_published_table(self, place, count, percent):
    table = published.find_table('delta_sgd/table_1')
    numbers = {cell.key: cell.published for cell in table.cells}
    share = views.share_of_places(table, numbers, 'Delta-SGD', place)
    self.assertEqual(share, count / 15)
    self.assertEqual(f'{100 * share:.0f} %', percent)
