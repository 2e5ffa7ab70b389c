# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The answer that a page begins with: which rows lead, and as published?"""

import collections
from collections.abc import Iterator, Mapping, Sequence
import itertools
import math
import statistics
from typing import NamedTuple, Optional

from experiments import published
from experiments.report import cell_results
from experiments.report import views

_MAX_NAMED = 4  # Reversed pairs that are named.


class _Compared(NamedTuple):
  """A cell with both numbers, as scores: higher is better.

  Attributes:
    row: The name of its row.
    place: Its group and column, as on the page.
    theirs: The published number.
    ours: The measured mean; minus infinity if a run diverged.
    margin: The largest difference that counts as a tie.
    decimals: The decimals of the column.
  """

  row: str
  place: str
  theirs: float
  ours: float
  margin: float
  decimals: int


def describe(
    table: published.Table, results: Sequence[cell_results.CellResult]
) -> Optional[str]:
  """Returns a paragraph that says what the measured numbers say.

  Args:
    table: The table.
    results: The measurements of its cells.

  Returns:
    The paragraph, in Markdown: how the order of the rows agrees with the
    published one, or which rows lead if no number is published. None if there
    is nothing to compare.
  """
  if any(cell.published is not None for cell in table.cells):
    return _describe_agreement(table, results)
  return _describe_leads(table, results)


def _describe_leads(
    table: published.Table, results: Sequence[cell_results.CellResult]
) -> Optional[str]:
  """Returns the rows that lead in most columns; None without rivals."""
  numbers = {result.cell.key: result.mean for result in results}
  standings = views.rank(table, views.round_numbers(table, numbers))
  num_columns = len({(group, column) for group, _, column in standings})
  num_led = collections.Counter(
      key[1]
      for key, standing in standings.items()
      if views.leads(table, key, standing)
  )
  if len({row for _, row, _ in standings}) < 2:
    return None
  names = [
      f'{row} in {count} of {_columns(num_columns)}'
      for row, count in num_led.most_common()
  ]
  return (
      '**The best, or within half a point of it in percent**: '
      f'{", ".join(names)}.'
  )


def _columns(number: int) -> str:
  return f'{number} column{"" if number == 1 else "s"}'


def _describe_agreement(
    table: published.Table, results: Sequence[cell_results.CellResult]
) -> Optional[str]:
  """Returns a paragraph on how the measured numbers agree with the published.

  Pairs of rows are compared within a column. For percentages, differences up to
  half a point count as ties, as in the tables of the Delta-SGD paper. None if
  the paper sets no two measured rows of a column apart.
  """
  columns = [
      column
      for column in _read_columns(table, results).values()
      if len(column) > 1
  ]
  pairs = [pair for column in columns for pair in _pairs_apart(column)]
  if not pairs:
    return None
  num_same = sum(b.ours - w.ours > b.margin for b, w in pairs)
  reversed_pairs = [(b, w) for b, w in pairs if w.ours - b.ours > b.margin]
  num_tied = len(pairs) - num_same - len(reversed_pairs)
  leads = [_keeps_best(column) for column in columns]
  sentences = [
      f'**The published order holds for {num_same} of {len(pairs)} pairs** of '
      'methods that the paper sets apart (percentages by more than half a '
      f'point). Tied here: {num_tied}; reversed: {len(reversed_pairs)}'
      f'{_name_pairs(reversed_pairs)}.',
      'The best published method is the best here, or tied with it, in '
      f'{sum(leads)} of {_columns(len(leads))}.',
      *_describe_distance([cell for column in columns for cell in column]),
  ]
  return ' '.join(sentences)


def _read_columns(
    table: published.Table, results: Sequence[cell_results.CellResult]
) -> Mapping[str, list[_Compared]]:
  """Returns the cells that have both numbers, by place."""
  columns: dict[str, list[_Compared]] = {}
  for result in results:
    cell, mean = result.cell, result.mean
    if cell.published is None or mean is None:
      continue
    is_better = table.measure(cell.column, cell.group).higher_is_better
    sign = 1 if is_better else -1
    in_percent = views.is_percent(table, cell.column, cell.group)
    decimals = views.count_decimals(table, cell.column, cell.group)
    place = ', '.join(filter(None, (cell.group, cell.column)))
    compared = _Compared(
        row=cell.row,
        place=place,
        theirs=sign * cell.published,
        ours=sign * round(mean, decimals) if math.isfinite(mean) else -math.inf,
        margin=views.CLOSE if in_percent else 0.0,
        decimals=decimals,
    )
    columns.setdefault(place, []).append(compared)
  return columns


def _pairs_apart(
    column: Sequence[_Compared],
) -> Iterator[tuple[_Compared, _Compared]]:
  """Yields the pairs that the paper sets apart, the better one first."""
  ordered = sorted(column, key=lambda cell: cell.theirs, reverse=True)
  for better, worse in itertools.combinations(ordered, 2):
    if round(better.theirs - worse.theirs, better.decimals) > better.margin:
      yield better, worse


def _keeps_best(column: Sequence[_Compared]) -> bool:
  """Returns whether a best published row is the best here, or tied with it."""
  best_theirs = max(cell.theirs for cell in column)
  best_ours = max(cell.ours for cell in column)
  return any(
      best_ours - cell.ours <= cell.margin
      for cell in column
      if cell.theirs == best_theirs
  )


def _name_pairs(pairs: Sequence[tuple[_Compared, _Compared]]) -> str:
  """Returns how some pairs are reversed, the clearest first."""
  if not pairs:
    return ''
  pairs = sorted(pairs, key=lambda pair: pair[0].ours - pair[1].ours)
  names = [
      f'{worse.row} is ahead of {better.row} in {better.place}'
      for better, worse in pairs[:_MAX_NAMED]
  ]
  some = '' if len(pairs) <= _MAX_NAMED else 'among them '
  return f' ({some}{"; ".join(names)})'


def _describe_distance(cells: Sequence[_Compared]) -> list[str]:
  """Returns a sentence on the distance to the published percentages, if any."""
  found = {
      cell: abs(cell.ours - cell.theirs)
      for cell in cells
      if cell.margin and math.isfinite(cell.ours)
  }
  if not found:
    return []
  farthest = max(found, key=found.__getitem__)
  return [
      'Numbers differ from the published ones by '
      f'{statistics.median(found.values()):.1f} points in the median, and by '
      f'{found[farthest]:.1f} at most ({farthest.row}, {farthest.place}).'
  ]
