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
"""How a table is seen: ranks, bold print, both numbers of a cell."""

import collections
from collections.abc import Callable, Collection, Mapping
import dataclasses
import decimal
import itertools
import math
from typing import Optional

from experiments import pages
from experiments import published

# By group, row and column; None where nothing was measured or printed, not a
# number where a run diverged.
Numbers = Mapping[tuple[str, str, str], Optional[float]]

# In points of percent, as the Delta-SGD paper marks its tables.
_CLOSE = 0.5
_FAR_BEHIND = 2.0
_DIGITS = 9  # What decimal fractions lose in binary is beyond them.


@dataclasses.dataclass(frozen=True)
class Standing:
  """How a number stands in its column.

  Attributes:
    gap: How far it is from the best, 0 or more.
    place: 1 for the best; one more than the numbers that are better.
    is_close: Whether it is the best or within 0.5 of it.
    is_far: Whether it is more than 2 behind.
  """

  gap: float
  place: int
  is_close: bool
  is_far: bool


def is_number(value: Optional[float]) -> bool:
  """Returns whether a value can be compared."""
  return value is not None and math.isfinite(value)


def rank(
    numbers: Numbers, *, lower_is_better: Collection[tuple[str, str]] = ()
) -> dict[tuple[str, str, str], Standing]:
  """Compares every number with those of its column within its group.

  Equal numbers share a place, the better one: of 3, 3 and 1 two are first and
  one is third.

  Args:
    numbers: The numbers.
    lower_is_better: The groups and columns whose smallest number is the best.
      Defaults to none.

  Returns:
    The standings of what are numbers, by the same keys.

  Example:

    >>> rank({('', 'SGD', 'MNIST'): 98.3, ('', 'SPS', 'MNIST'): 10.1})[
    ...     '', 'SPS', 'MNIST']
    Standing(gap=88.2, place=2, is_close=False, is_far=True)
  """
  # Of every column the numbers as losses: the smallest is the best.
  losses = {
      key: value if (key[0], key[2]) in lower_is_better else -value
      for key, value in numbers.items()
      if value is not None and math.isfinite(value)
  }
  columns: dict[tuple[str, str], list[float]] = {}
  for (group, _, column), loss in losses.items():
    columns.setdefault((group, column), []).append(loss)
  standings = {}
  for (group, row, column), loss in losses.items():
    behind = [round(loss - other, _DIGITS) for other in columns[group, column]]
    standings[group, row, column] = Standing(
        gap=max(behind),
        place=1 + sum(gap > 0 for gap in behind),
        is_close=max(behind) <= _CLOSE,
        is_far=max(behind) > _FAR_BEHIND,
    )
  return standings


def share_of_places(
    numbers: Numbers,
    row: str,
    max_place: int,
    *,
    lower_is_better: Collection[tuple[str, str]] = (),
) -> Optional[float]:
  """Returns in which part of the columns a row has one of the first places.

  A column counts once in every group, and only where the row was run and
  another row was, too; where the row diverged, it has none of the places. A tie
  counts for the row: in Delta-SGD's Table 1, 98.1 of Delta-SGD and of SGD are
  both first, and 98.4 of Delta-SGD is second behind 98.5, though SGDM(down) has
  it, too. Only so the numbers of that table give the 73 % and 100 % that its
  authors state.

  Args:
    numbers: The numbers.
    row: The name of the row.
    max_place: The last place that counts: 1 for 'first', 2 for 'first or
      second'.
    lower_is_better: The groups and columns whose smallest number is the best.
      Defaults to none.

  Returns:
    The share, from 0 to 1; None if there is nothing to compare.

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Table 1.
  """
  standings = rank(numbers, lower_is_better=lower_is_better)
  keys = [
      (group, name, column)
      for (group, name, column), number in numbers.items()
      if name == row
      and number is not None
      and _has_rival(numbers, group, row, column)
  ]
  if not keys:
    return None
  places = [standings[key].place for key in keys if key in standings]
  return sum(place <= max_place for place in places) / len(keys)


def _has_rival(numbers: Numbers, group: str, row: str, column: str) -> bool:
  """Returns whether another row was run in a column of a group."""
  return any(
      g == group and c == column and r != row and number is not None
      for (g, r, c), number in numbers.items()
  )


GAP_LEGEND = (
    'In parentheses stands the gap to the best of the column. Bold is the '
    'best, of numbers in percent also what is within 0.5 points of it; † marks '
    'what is more than 2 points behind.'
)
_NONE = '-'
_FAR_MARK = ' †'
_PERCENT = 100.0
_OTHER_DECIMALS = 3

_Key = tuple[str, str, str]


def count_decimals(table: published.Table, column: str, group: str) -> int:
  """Returns the decimals that most of a column's published numbers have.

  Args:
    table: The table.
    column: The name of the column.
    group: The name of the group.

  Returns:
    The decimals; without published numbers, 1 of percents and 3 of others.
  """
  counts = collections.Counter(
      _count_decimals_of(cell.published)
      for cell in table.cells
      if cell.published is not None
      and (cell.group, cell.column) == (group, column)
  )
  if not counts:
    return 1 if is_percent(table, column, group) else _OTHER_DECIMALS
  return counts.most_common(1)[0][0]


def _count_decimals_of(number: float) -> int:
  """Returns the decimals that a number has as it was typed."""
  # Not of str(): that of a small number is 1e-05.
  return len(f'{decimal.Decimal(str(number)):f}'.partition('.')[2])


def round_numbers(table: published.Table, numbers: Numbers) -> Numbers:
  """Returns measured numbers with the decimals with which they are shown.

  What looks the same is the same then, as it is of published numbers.

  Args:
    table: The published table.
    numbers: What was measured.

  Returns:
    The rounded numbers, by the same keys.
  """
  return {
      (group, row, column): (
          None
          if number is None
          else round(number, count_decimals(table, column, group))
      )
      for (group, row, column), number in numbers.items()
  }


def is_percent(table: published.Table, column: str, group: str) -> bool:
  """Returns whether the thresholds of points of percent mean something."""
  return table.measure(column, group).scale == _PERCENT


def lower_is_better(table: published.Table) -> list[tuple[str, str]]:
  """Returns the groups and columns whose smallest number is the best."""
  return [
      (group.name, column.name)
      for group, column in itertools.product(table.groups, table.columns)
      if not table.measure(column.name, group.name).higher_is_better
  ]


def build_tables(
    table: published.Table,
    format_cell: Callable[[_Key], str],
    groups: Optional[Collection[str]] = None,
) -> list[pages.Table]:
  """Returns a table for every group.

  Args:
    table: The published table.
    format_cell: From group, row and column to the text of the cell.
    groups: The names of the groups to show; None, the default, for all.

  Returns:
    The tables; the name of the group stands above the rows' names.
  """
  return [
      pages.Table(
          [
              group.name or 'row',
              *(_heading(table, column, group) for column in table.columns),
          ],
          [
              [
                  row.name,
                  *(
                      format_cell((group.name, row.name, column.name))
                      for column in table.columns
                  ),
              ]
              for row in table.rows
          ],
      )
      for group in table.groups
      if groups is None or group.name in groups
  ]


def _heading(
    table: published.Table, column: published.Entry, group: published.Entry
) -> str:
  """Returns what stands above a column; its metric, if it is the only one."""
  return column.name or table.measure(column.name, group.name).metric


def build_gap_tables(
    table: published.Table, numbers: Numbers
) -> list[pages.Table]:
  """Returns the numbers with their gaps to the best of their columns.

  Args:
    table: The published table.
    numbers: Its published numbers, or what was measured, rounded.

  Returns:
    A table for every group that has a number, as `GAP_LEGEND` says.
  """
  standings = rank(numbers, lower_is_better=lower_is_better(table))

  def format_cell(key: _Key) -> str:
    number, standing = numbers.get(key), standings.get(key)
    if number is None or standing is None:
      return _NONE
    decimals = count_decimals(table, key[2], key[0])
    in_percent = is_percent(table, key[2], key[0])
    text = _format_number(number, decimals)
    is_bold = standing.is_close if in_percent else standing.place == 1
    if is_bold:
      text = f'**{text}**'
    mark = _FAR_MARK if standing.is_far and in_percent else ''
    return f'{text} ({_format_number(standing.gap, decimals)}){mark}'

  groups = {group for group, _, _ in standings}
  return build_tables(table, format_cell, groups)


def build_places_table(
    table: published.Table, numbers_by_source: Mapping[str, Numbers]
) -> pages.Table:
  """Returns how often every row is first, and first or second.

  Args:
    table: The published table.
    numbers_by_source: Numbers, by what to call them: 'published', 'measured'.

  Returns:
    The table.
  """
  rows = []
  for row in table.rows:
    cells = [row.name]
    for numbers in numbers_by_source.values():
      for place in (1, 2):
        cells.append(
            _format_share(
                share_of_places(
                    numbers,
                    row.name,
                    place,
                    lower_is_better=lower_is_better(table),
                )
            )
        )
    rows.append(cells)
  header = ['row']
  for source in numbers_by_source:
    header += [f'first, {source}', f'first or second, {source}']
  return pages.Table(header, rows)


def _format_share(share: Optional[float]) -> str:
  return _NONE if share is None else f'{100 * share:.0f} %'


def _format_number(number: float, decimals: int) -> str:
  """Returns a number with all of its decimals, and no fewer than others."""
  return f'{number:.{max(decimals, _count_decimals_of(number))}f}'


def format_published(cell: published.Cell, decimals: int) -> str:
  """Returns the published number of a cell and its spread, as printed.

  Args:
    cell: The cell.
    decimals: Of the other numbers of its column; it may have more of its own.

  Returns:
    As '98.4 ± 0.1' or '98.41'; empty if there is none.
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
    mean: The mean; None for none, not a number for a run that diverged.
    std: The standard deviation, if there is one.
    decimals: Of both.

  Returns:
    As '98.4 ± 0.1', '98.4', 'diverged' or '-'.
  """
  if mean is None:
    return _NONE
  if not is_number(mean):
    return 'diverged'
  spread = '' if std is None else f' ± {std:.{decimals}f}'
  return f'{mean:.{decimals}f}{spread}'
