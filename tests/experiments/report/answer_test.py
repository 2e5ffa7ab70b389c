# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the first paragraph of a page."""

import itertools
import math

from absl.testing import parameterized

from experiments.report import answer
from experiments.report import cell_results
from tests.experiments.report import made_up_runs


def _describe(measured, theirs=None, **kwargs):
  """Returns the paragraph for lists of numbers by row, one for each place."""
  groups = kwargs.get('groups', ('',))
  columns = kwargs.get('columns', ('digits',))
  places = list(itertools.product(groups, columns))
  table = made_up_runs.build_table(
      rows=list(measured),
      numbers={
          (group, row, column): number
          for row, numbers in (theirs or {}).items()
          for (group, column), number in zip(places, numbers)
      },
      **kwargs,
  )
  results = []
  for cell in table.cells:
    number = measured[cell.row][places.index((cell.group, cell.column))]
    numbers = {} if number is None else {0: number}
    results.append(cell_results.CellResult(cell, {}, numbers))
  return answer.describe(table, results)


class AgreementTest(parameterized.TestCase):

  def test_counts_pairs_that_agree_are_tied_or_reversed(self):
    text = _describe(
        {'A': [90.0], 'B': [88.0], 'C': [88.5], 'D': [91.0]},
        {'A': [90.0], 'B': [87.0], 'C': [86.0], 'D': [85.0]},
    )
    # Of six pairs, B and C are tied, and D is ahead of the other three.
    self.assertIn('order holds for 2 of 6 pairs**', text)
    self.assertIn(
        'Tied here: 1 (B and C in digits, 1.0 apart in the paper and -0.5 '
        'here); reversed: 3 (D is ahead of B in digits; D is ahead of C in '
        'digits; D is ahead of A in digits).',
        text,
    )
    self.assertIn('tied with it, in 0 of 1 column.', text)
    self.assertIn('by 1.8 points in the median, and by 6.0 at most (D,', text)

  def test_half_a_point_sets_nothing_apart(self):
    self.assertIsNone(
        _describe({'A': [90.0], 'B': [50.0]}, {'A': [90.0], 'B': [90.5]})
    )
    text = _describe({'A': [90.0], 'B': [90.6]}, {'A': [90.0], 'B': [90.6]})
    self.assertIn('holds for 1 of 1 pairs', text)
    self.assertIn('Tied here: 0; reversed: 0.', text)

  @parameterized.parameters((1.1, 0.6), (0.6, 1.1), (16.1, 15.6))
  def test_half_a_point_is_a_tie_here(self, a, b):
    # In binary, 1.1 - 0.6 is a bit more.
    text = _describe({'A': [a], 'B': [b]}, {'A': [90.0], 'B': [80.0]})
    self.assertIn('Tied here: 1 (A and B in digits, 10.0 apart in the', text)
    self.assertIn('in 1 of 1 column.', text)

  def test_names_the_clearest_of_many(self):
    rows = 'ABCD'
    text = _describe(
        {row: [10.0 * i] for i, row in enumerate(rows)},
        {row: [-10.0 * i] for i, row in enumerate(rows)},
    )
    self.assertIn('reversed: 6 (among them D is ahead of A in digits;', text)
    self.assertEqual(text.count('is ahead of'), 4)

  def test_rows_that_diverged_are_behind_and_have_no_distance(self):
    text = _describe({'A': [math.nan], 'B': [88.0]}, {'A': [90.0], 'B': [87.0]})
    self.assertIn('reversed: 1 (B is ahead of A', text)
    self.assertIn('by 1.0 at most (B, digits)', text)

  def test_columns_are_compared_within_themselves(self):
    text = _describe(
        {'A': [90.0, 10.0], 'B': [80.0, 30.0], 'C': [None, 20.0]},
        {'A': [90.0, 20.0], 'B': [80.0, 10.0], 'C': [85.0, 0.0]},
        columns=('digits', 'mnist'),
    )
    self.assertIn('holds for 2 of 4 pairs', text)
    self.assertIn('in 1 of 2 columns.', text)

  def test_groups_are_named(self):
    text = _describe(
        {'A': [90.0, 80.0], 'B': [80.0, 90.0]},
        {'A': [90.0, 90.0], 'B': [80.0, 80.0]},
        groups=('alpha = 1', 'alpha = 0.1'),
    )
    self.assertIn('(B is ahead of A in alpha = 0.1, digits)', text)

  def test_a_column_without_a_name_is_that_of_its_metric(self):
    text = _describe(
        {'A': [80.0], 'B': [90.0]}, {'A': [90.0], 'B': [80.0]}, columns=('',)
    )
    self.assertIn('(B is ahead of A in accuracy)', text)

  def test_the_best_published_row_must_have_been_run(self):
    text = _describe(
        {'A': [None], 'B': [90.0], 'C': [80.0]},
        {'A': [95.0], 'B': [90.0], 'C': [80.0]},
    )
    self.assertIn('holds for 1 of 1 pairs', text)
    self.assertNotIn('The best published method', text)

  def test_rows_that_all_diverged_lead_nothing(self):
    text = _describe(
        {'A': [math.nan], 'B': [math.nan]}, {'A': [90.0], 'B': [80.0]}
    )
    self.assertIn('holds for 0 of 1 pairs', text)
    self.assertIn('Tied here: 1 (A and B in digits); reversed: 0.', text)
    self.assertIn('in 0 of 1 column.', text)

  def test_any_difference_of_other_metrics_counts(self):
    text = _describe(
        {'A': [1.2], 'B': [1.1]},
        {'A': [1.0], 'B': [1.1]},
        scale=1.0,
        higher_is_better=False,
    )
    self.assertIn('reversed: 1 (B is ahead of A', text)
    self.assertNotIn('points in the median', text)

  def test_nothing_to_compare(self):
    self.assertIsNone(_describe({'A': [1.0], 'B': [None]}, {'A': [2.0]}))


class LeadsTest(parameterized.TestCase):

  def test_names_the_rows_that_lead_most_often(self):
    text = _describe(
        {'A': [90.0, 10.0], 'B': [89.6, 30.0], 'C': [50.0, math.nan]},
        columns=('digits', 'mnist'),
    )
    self.assertEqual(
        text,
        '**Best, or within half a percentage point of the best**: B in 2 of 2 '
        'columns, A in 1 of 2 columns.',
    )

  @parameterized.parameters(None, math.nan)
  def test_one_row_has_no_rival(self, other):
    text = _describe({'A': [90.0], 'B': [other]})
    if other is None:
      self.assertIsNone(text)
    else:
      self.assertIn('of the best**: A.', text)

  def test_columns_with_one_row_do_not_count(self):
    text = _describe(
        {'A': [80.0, 70.0], 'B': [90.0, None]}, columns=('digits', 'mnist')
    )
    self.assertIn('of the best**: B.', text)

  def test_rows_without_published_numbers_are_rivals_of_the_others(self):
    text = _describe(
        {'A': [90.0], 'B': [80.0], 'C': [95.0]}, {'A': [90.0], 'B': [80.0]}
    )
    self.assertIn('holds for 1 of 1 pairs', text)
    self.assertIn('of the best**: C.', text)

  @parameterized.parameters(('curves', True), ('cka', False))
  def test_rows_of_other_figures_are_no_rivals(self, kind, has_answer):
    figure = {'kind': kind}
    text = _describe({'A': [90.0], 'B': [80.0]}, figure=figure)
    self.assertEqual(text is not None, has_answer)
