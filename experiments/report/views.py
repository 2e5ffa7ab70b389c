# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of a page: numbers, gaps to the best, places, distances and pairs.

Each is a view of `results.Results.cells`.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pandas as pd

from experiments import formatting
from experiments import pages
from experiments import published
from experiments.report import results as results_lib

PUBLISHED = 'published'
MEASURED = 'measured'
_KEYS = results_lib.KEYS
_SETTING = results_lib.SETTING
_GAP_LEGEND = (
    'Parentheses show the gap to the best of the column. Bold marks the best'
)
_PERCENT_LEGEND = (
    ', and for percentages all numbers within 0.5 points of it; † marks '
    'numbers more than 2 points behind.'
)
_FAR_BEHIND = 2.0  # In percentage points.
_NONE = '-'


def rank(cells: pd.DataFrame, column: str) -> pd.DataFrame:
  """Ranks the numbers of a column within their settings.

  Equal numbers share the better place: among 3, 3 and 1, two are first and one
  is third.

  Args:
    cells: The cells, with the column and `sign`.
    column: The name of the column.

  Returns:
    For each finite number `gap`, the distance to the best, and `place`, one
    plus the number of better numbers.
  """
  scores = (cells.sign * cells[column])[np.isfinite(cells[column])]
  of_setting = scores.round(results_lib.DIGITS).groupby(_SETTING, sort=False)
  return pd.DataFrame(
      {
          'gap': (
              (of_setting.transform('max') - scores).round(results_lib.DIGITS)
          ),
          'place': of_setting.rank(method='min', ascending=False).astype(int),
      }
  )


def share_of_places(
    cells: pd.DataFrame, column: str, max_place: int
) -> pd.Series:
  """Returns the share of settings in which a row has one of the first places.

  A setting counts if the row and another one were run; a diverged row has no
  place. Tied rows share the better place: in Delta-SGD's Table 1, Delta-SGD
  and SGD are both first with 98.1, and Delta-SGD's 98.4 is second behind 98.5,
  although SGDM(down) also has 98.4. Only this rule yields the 73 % and 100 %
  that the authors state.

  Args:
    cells: Those of `results.Results`.
    column: `PUBLISHED` or `MEASURED`.
    max_place: 1 for 'first', 2 for 'first or second'.

  Returns:
    The share by row, from 0 to 1; without rows that have nothing to compare.

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, Table 1.
  """
  counts = cells[column].notna() | (cells.was_run & (column == MEASURED))
  ran = cells[counts]
  rivals = ran.groupby(_SETTING, sort=False)[column].transform('size')
  ran = ran[rivals > 1]
  places = rank(ran, column).place.reindex(ran.index)
  return (places <= max_place).groupby('row', sort=False).mean()


def build_tables(
    table: published.Table,
    text_of: Callable[[tuple[str, str, str]], str],
    groups: Collection[str],
) -> list[str]:
  """Returns one table per group.

  Args:
    table: The published table.
    text_of: Maps group, row and column to the text of the cell.
    groups: The names of the groups to show.

  Returns:
    The tables; the header of the row names is the name of the group.
  """
  tables = []
  for group in (entry.name for entry in table.groups if entry.name in groups):
    # A single column may have no name and is then named by its metric.
    columns = [entry.name for entry in table.columns]
    titles = [name or table.measure(name, group).metric for name in columns]
    rows = [
        [row.name, *(text_of((group, row.name, name)) for name in columns)]
        for row in table.rows
    ]
    tables.append(pages.table([group or 'row', *titles], rows))
  return tables


def build_numbers(results: results_lib.Results) -> list[str]:
  """Returns every cell as 'measured (published)'."""
  cells = results.cells
  shows_count = cells.seeds[cells.was_run].map(frozenset).nunique() > 1
  texts = {
      cell.Index: _format_cell(
          cell, results.numbers(cell.cell).values(), shows_count
      )
      for cell in cells.itertuples()
  }
  # Joined tables have gaps.
  return build_tables(
      results.table,
      lambda key: texts.get(key, ''),
      {group.name for group in results.table.groups},
  )


def _format_cell(cell, numbers: Collection[float], shows_count: bool) -> str:
  """Returns the text of a cell: mean, spread, seeds and what is published."""
  diverged = sum(not np.isfinite(number) for number in numbers)
  if cell.status == 'does not count':
    text = cell.status
  elif diverged and len(numbers) > 1:
    text = f'{diverged} of {len(numbers)} diverged'
  elif diverged:
    text = 'diverged'
  else:
    text = formatting.format_mean(cell.mean, cell.std, cell.decimals)
  if numbers and not (diverged and len(numbers) > 1) and shows_count:
    text += f', n = {len(numbers)}'
  theirs = format_published(cell.cell, cell.decimals)
  return f'{text} ({theirs})' if theirs else text


def build_gaps(results: results_lib.Results, column: str) -> list[str]:
  """Returns the numbers of a column with their gaps to the best.

  Args:
    results: The results of a table.
    column: `PUBLISHED` or `MEASURED`.

  Returns:
    A legend, and one table per group that has a number.
  """
  cells = results.cells
  cells = cells.join(rank(cells, column)).dropna(subset='gap')
  is_good = (cells.place == 1).mask(
      cells.in_percent, cells.gap <= results_lib.CLOSE
  )
  is_far = cells.in_percent & (cells.gap > _FAR_BEHIND)
  texts = {}
  for cell, good, far in zip(cells.itertuples(), is_good, is_far):
    text = formatting.format_number(getattr(cell, column), cell.decimals)
    gap = formatting.format_number(cell.gap, cell.decimals)
    text = f'**{text}**' if good else text
    texts[cell.Index] = pages.Markup(f'{text} ({gap}){" †" if far else ""}')
  legend = _GAP_LEGEND
  legend += _PERCENT_LEGEND if results.cells.in_percent.any() else '.'
  tables = build_tables(
      results.table,
      lambda key: texts.get(key, _NONE),
      {group for group, _, _ in texts},
  )
  return [pages.paragraph(legend), *tables]


def build_places(results: results_lib.Results, columns: Sequence[str]) -> str:
  """Returns a table of how often each row is first, and first or second."""
  cells = results.cells
  shares = {
      f'{name}, {column}': share_of_places(cells, column, place)
      for column in columns
      for place, name in ((1, 'first'), (2, 'first or second'))
  }
  rows = [
      [
          row.name,
          *(
              f'{100 * found[row.name]:.0f} %' if row.name in found else _NONE
              for found in shares.values()
          ),
      ]
      for row in results.table.rows
  ]
  return pages.table(['row', *shares], rows)


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
      formatting.format_number(number, decimals)
      for number in found
      if number is not None
  )


def pairs_apart(cells: pd.DataFrame) -> pd.DataFrame:
  """Returns the pairs of rows that the paper sets apart, by more than a tie.

  Args:
    cells: Those of `results.Results`.

  Returns:
    `row` and `worse`, with `by` and `ours_by`, how far the first one is ahead
    in the paper and here, where both were run.
  """
  found = cells[cells.was_run & cells.theirs.notna()].reset_index()
  columns = ['row', 'theirs', 'ours', 'setting', 'margin', 'decimals']
  # Settings in the order of the table, and the best row first.
  found['place'] = found.groupby(_SETTING, sort=False).ngroup()
  ordered = found.sort_values(['place', 'theirs'], ascending=[True, False])
  pairs = ordered[[*_SETTING, *columns]].merge(
      ordered[[*_SETTING, 'row', 'theirs', 'ours']],
      on=_SETTING,
      suffixes=('', '_of_worse'),
  )
  pairs = pairs.rename(columns={'row_of_worse': 'worse'})
  pairs['by'] = pairs.theirs - pairs.theirs_of_worse
  with np.errstate(invalid='ignore'):  # Both diverged.
    pairs['ours_by'] = pairs.ours - pairs.ours_of_worse
  return pairs[pairs.by.round(results_lib.DIGITS) > pairs.margin]


def build_other_pairs(results: results_lib.Results) -> list[str]:
  """Returns the pairs that are tied or reversed here.

  Args:
    results: The results of a table.

  Returns:
    A heading and a table, the most reversed pairs first; empty if all pairs are
    in the published order.
  """
  pairs = pairs_apart(results.cells)
  pairs = pairs[~(pairs.ours_by.round(results_lib.DIGITS) > pairs.margin)]
  # Pairs that diverged come last: NaN has no order.
  pairs = pairs.sort_values('ours_by', kind='stable')
  rows = [
      [
          pair.setting,
          pair.row,
          pair.worse,
          f'{pair.by:.{pair.decimals}f}',
          f'{pair.ours_by:+.{pair.decimals}f}'
          if np.isfinite(pair.ours_by)
          else _NONE,
      ]
      for pair in pairs.itertuples()
  ]
  header = ['setting', 'better in the paper', 'worse', 'by', 'here by']
  return pages.section(
      'Pairs that are tied or reversed here',
      pages.table(header, rows, num_labels=3) if rows else '',
  )
