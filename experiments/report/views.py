# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The presentation of a table's numbers: ranks, gaps and bold print."""

import collections
from collections.abc import Callable, Collection, Mapping
import dataclasses
import decimal
import itertools
import math
from typing import Optional

from experiments import markup
from experiments import pages
from experiments import published

_Key = tuple[str, str, str]
# By group, row and column; None where there is no number, NaN where a run
# diverged.
Numbers = Mapping[_Key, Optional[float]]

_GAP_LEGEND = (
    'Parentheses show the gap to the best of the column. Bold marks the best'
)
_PERCENT_LEGEND = (
    ', and for percentages all numbers within 0.5 points of it; † marks '
    'numbers more than 2 points behind.'
)
# In percentage points, as in the tables of the Delta-SGD paper.
CLOSE = 0.5
_FAR_BEHIND = 2.0
DIGITS = 9  # Rounds off the binary error of decimal fractions.
_PERCENT = 100.0
_NONE = '-'
_FAR_MARK = ' †'


@dataclasses.dataclass(frozen=True)
class Standing:
  """The rank of a number in its column.

  Attributes:
    gap: The distance to the best, 0 or more.
    place: One plus the number of better numbers.
  """

  gap: float
  place: int


def is_number(value: Optional[float]) -> bool:
  """Returns whether a value can be compared."""
  return value is not None and math.isfinite(value)


def rank(table: published.Table, numbers: Numbers) -> dict[_Key, Standing]:
  """Ranks every number within its group and column.

  Equal numbers share the better place: among 3, 3 and 1, two are first and one
  is third.

  Args:
    table: The table, which defines whether higher or lower is better.
    numbers: The numbers.

  Returns:
    The standings of the finite numbers, by the same keys.

  Example:

    >>> table = published.find_table('delta_sgd/table_6')
    >>> numbers = {('', 'SGD', 'MNIST'): 98.3, ('', 'SPS', 'MNIST'): 10.1}
    >>> rank(table, numbers)['', 'SPS', 'MNIST']
    Standing(gap=88.2, place=2)
  """
  # As losses, the smallest of every column is the best.
  losses = {}
  columns: dict[tuple[str, str], list[float]] = {}
  for (group, row, column), value in numbers.items():
    if value is not None and math.isfinite(value):
      is_loss = not table.measure(column, group).higher_is_better
      losses[group, row, column] = loss = value if is_loss else -value
      columns.setdefault((group, column), []).append(loss)
  standings = {}
  for (group, row, column), loss in losses.items():
    behind = [round(loss - other, DIGITS) for other in columns[group, column]]
    place = 1 + sum(gap > 0 for gap in behind)
    standings[group, row, column] = Standing(max(behind), place)
  return standings


def share_of_places(
    table: published.Table, numbers: Numbers, row: str, max_place: int
) -> Optional[float]:
  """Returns the share of columns in which a row has one of the first places.

  A column counts once per group, if the row and another row were run; a
  diverged row has no place. Tied rows share the better place: in Delta-SGD's
  Table 1, Delta-SGD and SGD are both first with 98.1, and Delta-SGD's 98.4 is
  second behind 98.5, although SGDM(down) also has 98.4. Only this rule yields
  the 73 % and 100 % that the authors state.

  Args:
    table: The table.
    numbers: The numbers.
    row: The name of the row.
    max_place: 1 for 'first', 2 for 'first or second'.

  Returns:
    The share, from 0 to 1; None if there is nothing to compare.

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Table 1.
  """
  standings = rank(table, numbers)
  was_run = [key for key, number in numbers.items() if number is not None]
  num_rows = collections.Counter(
      (group, column) for group, _, column in was_run
  )
  keys = [
      (group, name, column)
      for group, name, column in was_run
      if name == row and num_rows[group, column] > 1
  ]
  if not keys:
    return None
  places = [standings[key].place for key in keys if key in standings]
  return sum(place <= max_place for place in places) / len(keys)


def count_decimals(table: published.Table, column: str, group: str) -> int:
  """Returns the most common number of decimals among a column's numbers.

  Args:
    table: The table.
    column: The name of the column.
    group: The name of the group.

  Returns:
    The decimals of the published numbers; without any, 1 for percentages and 3
    otherwise.
  """
  counts = collections.Counter(
      _count_decimals_of(cell.published)
      for cell in table.cells
      if cell.published is not None
      and (cell.group, cell.column) == (group, column)
  )
  if not counts:
    return 1 if is_percent(table, column, group) else 3
  return counts.most_common(1)[0][0]


def _count_decimals_of(number: float) -> int:
  """Returns the number of decimals of a number as it was typed."""
  # Not from str(), which gives 1e-05 for a small number.
  return len(f'{decimal.Decimal(str(number)):f}'.partition('.')[2])


def round_numbers(table: published.Table, numbers: Numbers) -> Numbers:
  """Rounds measured numbers as displayed, so that equal digits mean a tie."""
  return {
      (group, row, column): (
          None
          if number is None
          else round(number, count_decimals(table, column, group))
      )
      for (group, row, column), number in numbers.items()
  }


def is_percent(table: published.Table, column: str, group: str) -> bool:
  """Returns whether the thresholds in percentage points apply."""
  return table.measure(column, group).scale == _PERCENT


def build_tables(
    table: published.Table,
    format_cell: Callable[[_Key], str],
    groups: Optional[Collection[str]] = None,
) -> list[str]:
  """Returns one table per group.

  Args:
    table: The published table.
    format_cell: Maps group, row and column to the text of the cell.
    groups: The names of the groups to show; None for all.

  Returns:
    The tables; the header of the row names is the name of the group.
  """
  tables = []
  for group in (entry.name for entry in table.groups):
    if groups is None or group in groups:
      # A single column may have no name and is then named by its metric.
      columns = [entry.name for entry in table.columns]
      titles = [name or table.measure(name, group).metric for name in columns]
      rows = [
          [
              row.name,
              *(format_cell((group, row.name, name)) for name in columns),
          ]
          for row in table.rows
      ]
      tables.append(pages.table([group or 'row', *titles], rows))
  return tables


def build_gap_tables(table: published.Table, numbers: Numbers) -> list[str]:
  """Returns the numbers with their gaps to the best of their columns.

  Args:
    table: The published table.
    numbers: Its published numbers, or the measured ones, rounded.

  Returns:
    A legend, and one table per group that has a number.
  """
  in_percent = any(
      is_percent(table, column.name, group.name)
      for group, column in itertools.product(table.groups, table.columns)
  )
  standings = rank(table, numbers)

  def format_cell(key: _Key) -> str:
    number, standing = numbers.get(key), standings.get(key)
    if number is None or standing is None:
      return _NONE
    decimals = count_decimals(table, key[2], key[0])
    has_points = is_percent(table, key[2], key[0])
    text = _format_number(number, decimals)
    if standing.gap <= CLOSE if has_points else standing.place == 1:
      text = f'**{text}**'
    mark = _FAR_MARK if standing.gap > _FAR_BEHIND and has_points else ''
    gap = _format_number(standing.gap, decimals)
    return markup.Markup(f'{text} ({gap}){mark}')

  legend = _GAP_LEGEND + (_PERCENT_LEGEND if in_percent else '.')
  groups = {group for group, _, _ in standings}
  return [pages.paragraph(legend), *build_tables(table, format_cell, groups)]


def build_places_table(
    table: published.Table, numbers_by_source: Mapping[str, Numbers]
) -> str:
  """Returns a table of how often each row is first, and first or second.

  Args:
    table: The published table.
    numbers_by_source: The numbers by source: 'published', 'measured'.

  Returns:
    The table.
  """

  def format_share(row: str, numbers: Numbers, place: int) -> str:
    share = share_of_places(table, numbers, row, place)
    return _NONE if share is None else f'{100 * share:.0f} %'

  counted = [
      (source, place, name)
      for source in numbers_by_source
      for place, name in ((1, 'first'), (2, 'first or second'))
  ]
  rows = [
      [
          row.name,
          *(
              format_share(row.name, numbers_by_source[source], place)
              for source, place, _ in counted
          ),
      ]
      for row in table.rows
  ]
  titles = [f'{name}, {source}' for source, _, name in counted]
  return pages.table(['row', *titles], rows)


def _format_number(number: float, decimals: int) -> str:
  """Returns a number with all its decimals, and at least `decimals`."""
  return f'{number:.{max(decimals, _count_decimals_of(number))}f}'


def format_published(cell: published.Cell, decimals: int) -> str:
  """Returns the published number of a cell and its spread, as printed.

  Args:
    cell: The cell.
    decimals: The decimals of its column; its own number may have more.

  Returns:
    A text such as '98.4 ± 0.1' or '98.41'; empty if there is no number.
  """
  found = (cell.published, cell.published_std)
  return ' ± '.join(
      _format_number(number, decimals) for number in found if number is not None
  )


def format_value(
    mean: Optional[float], std: Optional[float], decimals: int
) -> str:
  """Returns a mean and its spread.

  Args:
    mean: The mean; None without runs, NaN if a run diverged.
    std: The standard deviation, if any.
    decimals: The number of decimals.

  Returns:
    A text such as '98.4 ± 0.1', '98.4', 'diverged' or '-'.
  """
  if mean is None:
    return _NONE
  if not is_number(mean):
    return 'diverged'
  spread = '' if std is None else f' ± {std:.{decimals}f}'
  return f'{mean:.{decimals}f}{spread}'
