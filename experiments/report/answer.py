# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The first paragraph of a page: who leads, and is it as published?"""

import collections
from collections.abc import Iterator, Sequence
import itertools
import math
import statistics
from typing import NamedTuple, Optional

from experiments import published
from experiments.report import cell_results
from experiments.report import figures
from experiments.report import views

_MAX_NAMED = 4  # Tied or reversed pairs that are named.
_DIGITS = 9  # Rounds off the binary error of decimal fractions.


class _Cell(NamedTuple):
  """The numbers of a row in a column, as scores: higher is better.

  Attributes:
    row: The name of the row.
    theirs: The published number; NaN if there is none.
    ours: The measured mean, as shown; NaN without a run, minus infinity if a
      run diverged.
  """

  row: str
  theirs: float
  ours: float

  @property
  def is_published(self) -> bool:
    return not math.isnan(self.theirs)


class _Column(NamedTuple):
  """The cells of a group and column.

  Attributes:
    place: Its name: group and column.
    margin: The largest difference that counts as a tie; 0 unless in percent.
    cells: The cells, one for each row.
  """

  place: str
  margin: float
  cells: list[_Cell]

  @property
  def measured(self) -> list[_Cell]:
    return [cell for cell in self.cells if not math.isnan(cell.ours)]

  @property
  def compared(self) -> list[_Cell]:
    return [cell for cell in self.measured if cell.is_published]

  @property
  def leaders(self) -> set[str]:
    """The best measured rows, and those tied with them."""
    best = max(cell.ours for cell in self.measured)
    return {
        cell.row
        for cell in self.measured
        if _gap(best, cell.ours) <= self.margin
    }


# A column, and its better and its worse cell in the paper.
_Pair = tuple[_Column, _Cell, _Cell]


def _gap(better: float, worse: float) -> float:
  return round(better - worse, _DIGITS)


def describe(
    table: published.Table, results: Sequence[cell_results.CellResult]
) -> Optional[str]:
  """Returns the paragraph on what was measured.

  It says how the order of the rows agrees with the published order, and which
  rows lead in columns that have rows without a published number. Percentages
  that differ by half a point or less are tied, as in the tables of the
  Delta-SGD paper.

  Args:
    table: The table.
    results: The measurements of its cells.

  Returns:
    The paragraph, in Markdown; None if there is nothing to compare.
  """
  columns = _read_columns(table, results)
  sentences = _describe_agreement(columns)
  # The rows of other figures need not be rivals.
  if table.figure is None or figures.read_options(table).kind == figures.CURVES:
    sentences += _describe_leads(columns)
  return ' '.join(sentences) or None


def _read_columns(
    table: published.Table, results: Sequence[cell_results.CellResult]
) -> list[_Column]:
  """Returns the numbers by column."""
  columns: dict[tuple[str, str], _Column] = {}
  for result in results:
    cell, mean = result.cell, result.mean
    measure = table.measure(cell.column, cell.group)
    sign = 1 if measure.higher_is_better else -1
    place = ', '.join(filter(None, (cell.group, cell.column or measure.metric)))
    in_percent = views.is_percent(table, cell.column, cell.group)
    column = columns.setdefault(
        (cell.group, cell.column),
        _Column(place, views.CLOSE if in_percent else 0.0, []),
    )
    ours = math.nan
    if mean is not None:
      decimals = views.count_decimals(table, cell.column, cell.group)
      is_finite = math.isfinite(mean)
      ours = sign * round(mean, decimals) if is_finite else -math.inf
    theirs = math.nan if cell.published is None else sign * cell.published
    column.cells.append(_Cell(cell.row, theirs, ours))
  return list(columns.values())


def _describe_agreement(columns: Sequence[_Column]) -> list[str]:
  """Returns sentences on how the measured order is the published one."""
  pairs = [pair for column in columns for pair in _pairs_apart(column)]
  if not pairs:
    return []
  num_same = sum(_gap(b.ours, w.ours) > c.margin for c, b, w in pairs)
  turned = [p for p in pairs if _gap(p[2].ours, p[1].ours) > p[0].margin]
  # NaN is the gap of two rows that diverged.
  tied = [p for p in pairs if not abs(_gap(p[1].ours, p[2].ours)) > p[0].margin]
  return [
      f'**The published order holds for {num_same} of {len(pairs)} pairs** of '
      'methods that the paper sets apart (percentages by more than half a '
      f'point). Tied here: {len(tied)}{_name(_describe_tied(tied))}; reversed: '
      f'{len(turned)}{_name(_describe_reversed(turned))}.',
      *_describe_best(columns),
      *_describe_distance(columns),
  ]


def _pairs_apart(column: _Column) -> Iterator[_Pair]:
  """Yields the pairs that the paper sets apart, the better one first."""
  ordered = sorted(column.compared, key=lambda cell: cell.theirs, reverse=True)
  for better, worse in itertools.combinations(ordered, 2):
    if _gap(better.theirs, worse.theirs) > column.margin:
      yield column, better, worse


def _describe_tied(pairs: Sequence[_Pair]) -> Iterator[str]:
  """Yields the pairs that are tied, those farthest apart in the paper first."""
  for column, better, worse in sorted(
      pairs, key=lambda pair: pair[2].theirs - pair[1].theirs
  ):
    text = f'{better.row} and {worse.row} in {column.place}'
    ours = better.ours - worse.ours
    if column.margin and math.isfinite(ours):
      theirs = better.theirs - worse.theirs
      text += f', {theirs:.1f} apart in the paper and {ours:+.1f} here'
    yield text


def _describe_reversed(pairs: Sequence[_Pair]) -> Iterator[str]:
  """Yields how pairs are reversed, the largest differences first."""
  for column, better, worse in sorted(
      pairs, key=lambda pair: pair[1].ours - pair[2].ours
  ):
    yield f'{worse.row} is ahead of {better.row} in {column.place}'


def _name(pairs: Iterator[str]) -> str:
  """Returns the first pairs in parentheses; empty if there are none."""
  named = '; '.join(itertools.islice(pairs, _MAX_NAMED))
  some = 'among them ' if next(pairs, '') else ''
  return f' ({some}{named})' if named else ''


def _describe_best(columns: Sequence[_Column]) -> list[str]:
  """Returns a sentence on the best published rows, where they were run."""
  keeps_best = []
  for column in columns:
    theirs = [cell.theirs for cell in column.cells if cell.is_published]
    best = [cell.row for cell in column.compared if cell.theirs == max(theirs)]
    if best and len(column.compared) > 1:
      keeps_best.append(any(row in column.leaders for row in best))
  if not keeps_best:
    return []
  return [
      'The best published method is the best here, or tied with it, in '
      f'{sum(keeps_best)} of {_count_columns(len(keeps_best))}.'
  ]


def _describe_distance(columns: Sequence[_Column]) -> list[str]:
  """Returns a sentence on the distance to the published percentages, if any."""
  found = {
      (cell.row, column.place): abs(cell.ours - cell.theirs)
      for column in columns
      for cell in column.compared
      if column.margin and math.isfinite(cell.ours)
  }
  if not found:
    return []
  farthest = max(found, key=found.__getitem__)
  return [
      'Numbers differ from the published ones by '
      f'{statistics.median(found.values()):.1f} points in the median, and by '
      f'{found[farthest]:.1f} at most ({", ".join(farthest)}).'
  ]


def _describe_leads(columns: Sequence[_Column]) -> list[str]:
  """Returns a sentence on who leads where rows lack a published number."""
  rivals = [
      column
      for column in columns
      if len(column.measured) > max(1, len(column.compared))
  ]
  if not rivals:
    return []
  num_led = collections.Counter(
      cell.row
      for column in rivals
      for cell in column.cells
      if cell.row in column.leaders
  )
  names = [
      f'{row} in {count} of {_count_columns(len(rivals))}'
      for row, count in num_led.most_common()
  ]
  if len(rivals) == 1:
    names = list(num_led)
  return [
      '**Best, or within half a percentage point of the best**: '
      f'{", ".join(names) or "none"}.'
  ]


def _count_columns(number: int) -> str:
  return f'{number} column{"" if number == 1 else "s"}'
