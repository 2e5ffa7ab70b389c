# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the answers at the top of a page."""

import itertools
import math

from absl.testing import parameterized

from experiments.report import answer
from experiments.report import cell_results
from tests.experiments.report import made_up_runs


def _build(measured, theirs=None, **kwargs):
  """Returns a table and results from numbers by row, one for each place."""
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
  return table, results


def _describe(*args, **kwargs):
  """Returns the paragraph for numbers, see `_build`."""
  return answer.describe(*_build(*args, **kwargs))


def _other_pairs(*args, **kwargs):
  """Returns the rows of the table of pairs in another order."""
  _, table = answer.describe_other_pairs(*_build(*args, **kwargs))
  return table.splitlines()[2:]


class AgreementTest(parameterized.TestCase):

  def test_pairs_in_another_order_are_listed_and_not_counted(self):
    measured = {'A': [90.0], 'B': [88.0], 'C': [88.5], 'D': [91.0]}
    theirs = {'A': [90.0], 'B': [87.0], 'C': [86.0], 'D': [85.0]}
    text = _describe(measured, theirs)
    self.assertStartsWith(
        text,
        '**Numbers differ from the published ones by 1.8 points in the median, '
        'and by 6.0 at most (D, digits).** The best published method',
    )
    self.assertNotIn('pairs', text)
    # Of six pairs, B and C are tied, and D is ahead of the other three.
    self.assertEqual(
        _other_pairs(measured, theirs),
        [
            '| digits | B | D | 2.0 | -3.0 |',
            '| digits | C | D | 1.0 | -2.5 |',
            '| digits | A | D | 5.0 | -1.0 |',
            '| digits | B | C | 1.0 | -0.5 |',
        ],
    )
    self.assertIn('tied with it, in 0 of 1 setting.', text)

  def test_half_a_point_sets_nothing_apart(self):
    self.assertIsNone(
        _describe({'A': [90.0], 'B': [50.0]}, {'A': [90.0], 'B': [90.5]})
    )
    built = _build({'A': [90.0], 'B': [90.6]}, {'A': [90.0], 'B': [90.6]})
    self.assertStartsWith(answer.describe(*built), '**Numbers differ')
    self.assertEqual(answer.describe_other_pairs(*built), [])

  @parameterized.parameters((1.1, 0.6), (0.6, 1.1), (16.1, 15.6))
  def test_half_a_point_is_a_tie_here(self, a, b):
    # In binary, 1.1 - 0.6 is a bit more.
    numbers = ({'A': [a], 'B': [b]}, {'A': [90.0], 'B': [80.0]})
    self.assertLen(_other_pairs(*numbers), 1)
    self.assertIn('in 1 of 1 setting.', _describe(*numbers))

  def test_rows_that_diverged_are_behind_and_have_no_distance(self):
    numbers = ({'A': [math.nan], 'B': [88.0]}, {'A': [90.0], 'B': [87.0]})
    text = _describe(*numbers)
    self.assertEqual(_other_pairs(*numbers), ['| digits | A | B | 3.0 | - |'])
    self.assertIn('by 1.0 at most (B, digits)', text)

  def test_columns_are_compared_within_themselves(self):
    built = _build(
        {'A': [90.0, 10.0], 'B': [80.0, 30.0], 'C': [None, 20.0]},
        {'A': [90.0, 20.0], 'B': [80.0, 10.0], 'C': [85.0, 0.0]},
        columns=('digits', 'mnist'),
    )
    # On mnist B is ahead of A, and C of A.
    _, table = answer.describe_other_pairs(*built)
    self.assertLen(table.splitlines()[2:], 2)
    self.assertIn('in 1 of 2 settings.', answer.describe(*built))

  def test_groups_are_named(self):
    (row,) = _other_pairs(
        {'A': [90.0, 80.0], 'B': [80.0, 90.0]},
        {'A': [90.0, 90.0], 'B': [80.0, 80.0]},
        groups=('alpha = 1', 'alpha = 0.1'),
    )
    self.assertEqual(row, '| alpha = 0.1, digits | A | B | 10.0 | -10.0 |')

  def test_a_column_without_a_name_is_that_of_its_metric(self):
    (row,) = _other_pairs(
        {'A': [80.0], 'B': [90.0]}, {'A': [90.0], 'B': [80.0]}, columns=('',)
    )
    self.assertStartsWith(row, '| accuracy | A | B |')

  def test_the_best_published_row_must_have_been_run(self):
    text = _describe(
        {'A': [None], 'B': [90.0], 'C': [80.0]},
        {'A': [95.0], 'B': [90.0], 'C': [80.0]},
    )
    self.assertStartsWith(text, '**Numbers differ')
    self.assertNotIn('The best published method', text)

  def test_rows_that_all_diverged_lead_nothing(self):
    text = _describe(
        {'A': [math.nan], 'B': [math.nan]}, {'A': [90.0], 'B': [80.0]}
    )
    self.assertEndsWith(text, 'in 0 of 1 setting.**')

  def test_any_difference_of_other_metrics_counts(self):
    numbers = ({'A': [1.2], 'B': [1.1]}, {'A': [1.0], 'B': [1.1]})
    options = {'scale': 1.0, 'higher_is_better': False}
    self.assertLen(_other_pairs(*numbers, **options), 1)
    self.assertNotIn('points in the median', _describe(*numbers, **options))

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
        'settings, A in 1 of 2 settings.',
    )

  def test_rows_that_are_all_tied_have_no_leader(self):
    self.assertEqual(
        _describe({'A': [90.0], 'B': [89.5]}),
        '**No method is ahead of another by more than half a point.**',
    )

  def test_other_metrics_have_no_percentage_points(self):
    text = _describe({'A': [1.0], 'B': [2.0]}, scale=1.0)
    self.assertEqual(text, '**Best**: B.')

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
    self.assertStartsWith(text, '**Numbers differ')
    self.assertIn('of the best**: C.', text)

  @parameterized.parameters(('curves', True), ('cka', False))
  def test_rows_of_other_figures_are_no_rivals(self, kind, has_answer):
    figure = {'kind': kind}
    text = _describe({'A': [90.0], 'B': [80.0]}, figure=figure)
    self.assertEqual(text is not None, has_answer)
