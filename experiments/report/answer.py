# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Answers at the top of a page: how far from the paper, and who leads?"""

import collections
from collections.abc import Iterator, Sequence
import itertools
import math
import statistics
from typing import Any, NamedTuple, Optional

from experiments import pages
from experiments import published
from experiments.report import cell_results
from experiments.report import figures
from experiments.report import views


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
    decimals: The decimals of its numbers.
    cells: The cells, one for each row.
  """

  place: str
  margin: float
  decimals: int
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
  return round(better - worse, views.DIGITS)


def describe(
    table: published.Table, results: Sequence[cell_results.CellResult]
) -> Optional[str]:
  """Returns the paragraph on what was measured.

  It says how far the numbers are from the published ones, and which rows lead
  in columns that have rows without a published number. Percentages that differ
  by half a point or less are tied, as in the tables of the Delta-SGD paper.

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
    decimals = views.count_decimals(table, cell.column, cell.group)
    column = columns.setdefault(
        (cell.group, cell.column),
        _Column(place, views.CLOSE if in_percent else 0.0, decimals, []),
    )
    ours = math.nan
    if mean is not None:
      is_finite = math.isfinite(mean)
      ours = sign * round(mean, decimals) if is_finite else -math.inf
    theirs = math.nan if cell.published is None else sign * cell.published
    column.cells.append(_Cell(cell.row, theirs, ours))
  return list(columns.values())


def _describe_agreement(columns: Sequence[_Column]) -> list[str]:
  """Returns sentences on how close the numbers are to the published ones."""
  if not any(True for column in columns for _ in _pairs_apart(column)):
    return []
  sentences = [*_describe_distance(columns), *_describe_best(columns)]
  return [f'**{s}**' for s in sentences[:1]] + sentences[1:]


def _pairs_apart(column: _Column) -> Iterator[_Pair]:
  """Yields the pairs that the paper sets apart, the better one first."""
  ordered = sorted(column.compared, key=lambda cell: cell.theirs, reverse=True)
  for better, worse in itertools.combinations(ordered, 2):
    if _gap(better.theirs, worse.theirs) > column.margin:
      yield column, better, worse


def _keeps_order(pair: _Pair) -> bool:
  column, better, worse = pair
  return _gap(better.ours, worse.ours) > column.margin


def describe_other_pairs(
    table: published.Table, results: Sequence[cell_results.CellResult]
) -> list[str]:
  """Returns the blocks on pairs that are tied or reversed here.

  Args:
    table: The table.
    results: The measurements of its cells.

  Returns:
    A heading and a table, the most reversed pairs first; empty if all pairs are
    in the published order.
  """
  rows = []
  for column in _read_columns(table, results):
    for pair in _pairs_apart(column):
      if not _keeps_order(pair):
        _, better, worse = pair
        ours = better.ours - worse.ours
        theirs = f'{better.theirs - worse.theirs:.{column.decimals}f}'
        shown = f'{ours:+.{column.decimals}f}' if math.isfinite(ours) else '-'
        names = [column.place, better.row, worse.row]
        rows.append((ours, [*names, theirs, shown]))
  if not rows:
    return []
  header = ['setting', 'better in the paper', 'worse', 'by', 'here by']
  # Pairs that diverged come last: NaN has no order.
  rows.sort(key=lambda row: math.inf if math.isnan(row[0]) else row[0])
  return [
      pages.heading('Pairs that are tied or reversed here'),
      pages.table(header, [texts for _, texts in rows], num_labels=3),
  ]


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
      f'{sum(keeps_best)} of {_count(keeps_best, "setting")}.'
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
  tied = rivals[0].margin and len(num_led) == len(rivals[0].measured) > 1
  if len(rivals) == 1 and tied:
    return ['**No method is ahead of another by more than half a point.**']
  names = list(num_led)
  if len(rivals) > 1:
    settings = _count(rivals, 'setting')
    names = [f'{row} in {n} of {settings}' for row, n in num_led.most_common()]
  within = ''
  if any(column.margin for column in rivals):
    within = ', or within half a percentage point of the best'
  return [f'**Best{within}**: {", ".join(names) or "none"}.']


def _count(things: Sequence[Any], name: str) -> str:
  """Returns a number with its noun, such as '2 settings'."""
  return f'{len(things)} {name}{"" if len(things) == 1 else "s"}'
