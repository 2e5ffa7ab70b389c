# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Verdicts from the numbers of published tables and of finished runs."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments import pages
from experiments import published
from experiments.report import results as results_lib
from experiments.report import views
from experiments.run_results import statistics
from tools.audit import claim

MARGIN = 0.5

# The page's explanation of the verdicts of this module.
RULE = (
    'Claims about runs compare a method with every rival by the 95 % t '
    'interval of the differences, paired by seed, over the seeds that the '
    'method and all rivals have. The method is as good if the whole interval '
    f'is at or above minus the margin, {MARGIN:g} points, and worse if all of '
    'it is below; it is ahead if the whole interval is above 0, and not ahead '
    'if none of it is. In all other cases the claim is **open**: the seeds are '
    'inconclusive. A single seed has no interval and is inconclusive, unless a '
    'run diverged; its numbers are shown all the same. The rival shown is the '
    'one against which the method does worst; unless the claim holds, others '
    'with the same outcome are named after it. A claim holds if it holds '
    'against every rival, which needs no correction for their number; choosing '
    'the rival with the best mean beforehand would mistake luck on these seeds '
    'for skill. A claim fails if it fails against one rival, without '
    'correction.'
)

Scores = Mapping[int, float]


class Difference(NamedTuple):
  """The lead of one method over another, paired by seed.

  Attributes:
    interval: The mean over the seeds that both have, and its t interval.
    num_seeds: The number of those seeds.
  """

  interval: statistics.Interval
  num_seeds: int

  def __str__(self) -> str:
    mean, low, high = self.interval
    if not math.isfinite(mean):
      return {math.inf: 'the other one', -math.inf: 'it'}.get(
          mean, 'each of them, on different seeds,'
      ) + ' diverged'
    if self.num_seeds == 1:
      return f'{mean:+.2f} (one seed, inconclusive)'
    return (
        f'{mean:+.2f} [{low:+.2f}, {high:+.2f}] ({self.num_seeds} paired seeds)'
    )

  def to_numbers(self) -> dict[str, Any]:
    """Returns the numbers for a file; they may be infinite or NaN."""
    names = ('difference', 'low', 'high')
    return {**dict(zip(names, self.interval)), 'seeds': self.num_seeds}


def compare(scores: Scores, others: Scores) -> Difference:
  """Returns the lead of `scores` over `others`; larger scores are better."""
  interval = statistics.compare(scores, others)
  return Difference(interval, len(scores.keys() & others.keys()))


def not_behind(difference: Difference) -> claim.Status:
  """Returns whether a method is as good as another: holds, fails or open."""
  return {
      statistics.Answer.AS_GOOD: claim.Status.HOLDS,
      statistics.Answer.OPEN: claim.Status.OPEN,
      statistics.Answer.WORSE: claim.Status.FAILS,
  }[statistics.judge(difference.interval, MARGIN)]


def ahead(difference: Difference) -> claim.Status:
  """Returns whether a method is better than another: holds, fails or open."""
  _, low, high = difference.interval
  if low > 0:
    return claim.Status.HOLDS
  return claim.Status.FAILS if high <= 0 else claim.Status.OPEN


# A single comparison against a claim refutes it.
_FROM_WORST = (claim.Status.FAILS, claim.Status.OPEN, claim.Status.HOLDS)


def unite(statuses: Sequence[claim.Status]) -> claim.Status:
  """Returns the worst outcome of several comparisons."""
  return min(statuses, key=_FROM_WORST.index)


def find_places(table: published.Table, rows: Sequence[str]) -> dict[str, int]:
  """Returns the best place of some rows in each group and column.

  Args:
    table: The table; its printed numbers are ranked.
    rows: The rows.

  Returns:
    The places where a row has a number, 1 for the best; ties share the better
    place.
  """
  ranked = _rank_published(table)
  found = ranked[ranked.index.isin(rows, level='row')]
  return found.groupby('setting', sort=False).place.min().to_dict()


def _rank_published(table: published.Table) -> pd.DataFrame:
  """Returns the cells with a published number, and their places and gaps."""
  cells = results_lib.without_runs(table).cells
  return cells.join(views.rank(cells, views.PUBLISHED), how='inner')


def _find_narrow(table: published.Table, rows: Sequence[str]) -> list[str]:
  """Returns the columns of percentages where another row is nearly the best."""
  ranked = _rank_published(table)
  is_narrow = (ranked.gap <= results_lib.CLOSE) & ranked.in_percent
  found = ranked[is_narrow & ~ranked.index.isin(rows, level='row')]
  return list(found.setting.unique())


def lead(
    lab: claim.Laboratory, table_name: str, rows: Sequence[str]
) -> claim.Verdict:
  """Returns whether one of some rows is first in every column of a table.

  Args:
    lab: The laboratory.
    table_name: The table.
    rows: The rows.

  Returns:
    'holds' or 'fails', with the columns in which another row is first; 'not
    run' if the table prints no number of these rows.
  """
  table = lab.find_table(table_name)
  places = find_places(table, rows)
  if not places:
    return claim.Verdict(
        claim.Status.NOT_RUN,
        f'{table_name} prints no number of {" or ".join(rows)}.',
    )
  behind = [name for name, place in places.items() if place > 1]
  told = f', behind in {"; ".join(behind)}' if behind else ''
  narrow = [name for name in _find_narrow(table, rows) if name not in behind]
  if narrow:
    told += f'; ahead by half a point or less in {"; ".join(narrow)}'
  return claim.decide(
      not behind,
      f'First in {len(places) - len(behind)} of {len(places)} columns{told}.',
      places,
  )


@dataclasses.dataclass(frozen=True)
class _Comparison:
  """A method and the rival against which it does worst, in one column.

  Attributes:
    rival: The name of the rival's row.
    difference: To the rival.
    status: The outcome for the claim.
    means: The measured means of all compared rows, over their common seeds.
    alike: The other rivals with this status, unless the claim holds.
  """

  rival: str
  difference: Difference
  status: claim.Status
  means: Mapping[str, Any]
  alike: Sequence[str] = ()

  def describe(self, row: str) -> str:
    """Returns the comparison as text."""
    ours, theirs = (
        f'{name} {mean:.2f}' if math.isfinite(mean) else f'{name} diverged'
        for name, mean in ((r, self.means[r]) for r in (row, self.rival))
    )
    also = f' (also against {", ".join(self.alike)})' if self.alike else ''
    return f'{ours}, {theirs}, {self.difference}: {self.status.value}{also}'

  def to_numbers(self) -> dict[str, Any]:
    """Returns the numbers for a file."""
    return {
        'status': self.status.value,
        'against': self.rival,
        **self.difference.to_numbers(),
        'means': self.means,
    }


def _find_settings(
    table: published.Table, row: str, others: Sequence[str], column: str
) -> dict[str, list[published.Cell]]:
  """Returns the cells to compare, by the names of group and column."""
  settings: dict[str, list[published.Cell]] = {}
  for cell in table.cells:
    if column in ('', cell.column):
      if cell.row == row or not others or cell.row in others:
        name = ', '.join(filter(None, (cell.group, cell.column)))
        settings.setdefault(name, []).append(cell)
  return {
      name: cells
      for name, cells in settings.items()
      if len(cells) > 1 and row in [cell.row for cell in cells]
  }


def answer(
    lab: claim.Laboratory,
    table_name: str,
    row: str,
    judge: Callable[[Difference], claim.Status],
    *,
    others: Sequence[str] = (),
    column: str = '',
    needs_gpu: bool = False,
) -> claim.Verdict:
  """Returns the verdict on a row of a published table from finished runs.

  Args:
    lab: The laboratory.
    table_name: The table, as 'delta_sgd/table_1'.
    row: The row that the claim is about.
    judge: Maps the difference to another row to the status of the claim.
    others: The rows to compare with; all others if empty.
    column: The column; all columns if empty.
    needs_gpu: Whether the runs need a GPU.

  Returns:
    'fails' if the claim fails in any group and column with complete runs,
    otherwise 'not run' or 'not testable' if runs are missing, 'open' if one is
    inconclusive, and 'holds' if it holds in all.

  Raises:
    RunError: If a file of a run is damaged.
    OSError: If a file cannot be read.
  """
  table = lab.find_table(table_name)
  settings = _find_settings(table, row, others, column)
  if not settings:
    return claim.Verdict(
        claim.Status.NOT_RUN,
        f'{table_name} has no row {row!r} with other rows to compare with in '
        f'column {column!r}.',
    )
  asked = tuple(cell for cells in settings.values() for cell in cells)
  results = lab.collect(dataclasses.replace(table, cells=asked))
  found, missing = {}, []
  for place, cells in settings.items():
    unfinished = [cell for cell in cells if results.missing_seeds(cell)]
    missing += unfinished
    if not unfinished:
      found[place] = _find_worst(results, row, judge, cells)
  told = [
      ': '.join(filter(None, (place, comparison.describe(row))))
      for place, comparison in found.items()
  ]
  if found and table.stamp:
    told.append(table.stamp)
  status = unite([c.status for c in found.values()] or [claim.Status.OPEN])
  if missing:
    told.append(_describe_lacking(lab, results, missing))
    if status is not claim.Status.FAILS:
      status = claim.Status.NOT_TESTABLE if needs_gpu else claim.Status.NOT_RUN
  numbers = {place: c.to_numbers() for place, c in found.items()}
  return claim.Verdict(status, '; '.join(told) + '.', numbers)


def answer_tuned(
    lab: claim.Laboratory,
    method: str,
    rival: str,
    judge: Callable[[Difference], claim.Status],
) -> claim.Verdict:
  """Returns the verdict on a method of the leaderboard, both of them tuned.

  Args:
    lab: The laboratory.
    method: The method that the claim is about.
    rival: The method to compare it with.
    judge: Maps the difference to the status of the claim.

  Returns:
    The worst status over the tasks on which both are tuned; 'not run' without
    one.
  """
  found = {}
  for task, scores in lab.tuned((method, rival)).items():
    if len(scores) == 2:
      difference = compare(scores[method], scores[rival])
      means = {m: float(np.mean([*s.values()])) for m, s in scores.items()}
      found[task] = _Comparison(rival, difference, judge(difference), means)
  if not found:
    return claim.Verdict(
        claim.Status.NOT_RUN,
        f'The leaderboard has no tuned runs of {method} and {rival}.',
    )
  told = '; '.join(f'{task}: {c.describe(method)}' for task, c in found.items())
  return claim.Verdict(
      unite([c.status for c in found.values()]),
      f'{told}.',
      {task: c.to_numbers() for task, c in found.items()},
  )


def agree(
    lab: claim.Laboratory,
    table_name: str,
    axis: str,
    *,
    rows: Sequence[str] = (),
    needs_gpu: bool = False,
) -> claim.Verdict:
  """Returns whether a setting has little influence on a table's numbers.

  Args:
    lab: The laboratory.
    table_name: The table, as 'delta_sgd/figure_4'.
    axis: 'row' or 'column', along which the setting varies.
    rows: The rows to compare. Default: all.
    needs_gpu: Whether the runs need a GPU.

  Returns:
    'holds' if the numbers of every two values are within the margin, 'fails' if
    two are not, 'open' if the seeds are inconclusive; 'not run', or 'not
    testable' if it needs a GPU, if runs are missing.
  """
  table = lab.find_table(table_name).restrict(rows=rows)
  results = lab.collect(table)
  missing = [cell for cell in table.cells if results.missing_seeds(cell)]
  if missing:
    return lacking(lab, results, missing, needs_gpu=needs_gpu)
  statuses, spreads = [], {}
  ordered = sorted(table.cells, key=lambda cell: _without(cell, axis))
  for place, cells in itertools.groupby(
      ordered, key=lambda cell: _without(cell, axis)
  ):
    scores = [_read_scores(results, cell) for cell in cells]
    statuses += [
        not_behind(compare(ours, theirs))
        for ours, theirs in itertools.permutations(scores, 2)
    ]
    means = [float(np.mean([*found.values()])) for found in scores]
    spreads[place] = max(means) - min(means)
  told = ', '.join(f'{place} {spread:.1f}' for place, spread in spreads.items())
  stamp = f'; {table.stamp}' if table.stamp else ''
  return claim.Verdict(
      unite(statuses), f'Largest minus smallest: {told}{stamp}.', spreads
  )


def _without(cell: published.Cell, axis: str) -> str:
  """Returns the name of a cell without the part of an axis."""
  names = {'group': cell.group, 'row': cell.row, 'column': cell.column}
  return ', '.join(n for key, n in names.items() if n and key != axis)


def lacking(
    lab: claim.Laboratory,
    results: results_lib.Results,
    missing: Sequence[published.Cell],
    *,
    needs_gpu: bool = False,
) -> claim.Verdict:
  """Returns the verdict on a claim about cells without runs."""
  status = claim.Status.NOT_TESTABLE if needs_gpu else claim.Status.NOT_RUN
  return claim.Verdict(status, f'{_describe_lacking(lab, results, missing)}.')


def _find_worst(
    results: results_lib.Results,
    row: str,
    judge: Callable[[Difference], claim.Status],
    cells: Sequence[published.Cell],
) -> _Comparison:
  """Returns the comparison in which the claim does worst."""
  scores = {cell.row: _read_scores(results, cell) for cell in cells}
  seeds = set.intersection(*map(set, scores.values()))
  scores = {
      name: {seed: found[seed] for seed in sorted(seeds)}
      for name, found in scores.items()
  }
  numbers = {cell.row: results.numbers(cell) for cell in cells}
  means = {
      name: float(np.mean([found[seed] for seed in seeds]))
      for name, found in numbers.items()
  }
  ours = scores.pop(row)
  found = []
  for rival, theirs in scores.items():
    difference = compare(ours, theirs)
    found.append(_Comparison(rival, difference, judge(difference), means))

  def from_worst(comparison: _Comparison) -> tuple[int, float]:
    mean = comparison.difference.interval.mean
    rank = _FROM_WORST.index(comparison.status)
    return rank, -math.inf if math.isnan(mean) else mean

  worst = min(found, key=from_worst)
  if worst.status is claim.Status.HOLDS:
    return worst
  alike = [
      comparison.rival
      for comparison in found
      if comparison is not worst and comparison.status is worst.status
  ]
  return dataclasses.replace(worst, alike=alike)


def _read_scores(results: results_lib.Results, cell: published.Cell) -> Scores:
  """Returns the scores of a cell; larger is better, divergence is worst."""
  sign = float(results.cells.sign[cell.key])
  return {
      seed: sign * number if math.isfinite(number) else -math.inf
      for seed, number in results.numbers(cell).items()
  }


def _describe_lacking(
    lab: claim.Laboratory,
    results: results_lib.Results,
    cells: Sequence[published.Cell],
) -> str:
  """Returns the number of cells without runs, a command, and the problem."""
  command = published.build_command(
      cells[0],
      seed=results.missing_seeds(cells[0])[0],
      output_dir=str(lab.runs_dir),
  )
  problems = [p for cell in cells for p in results.problems.get(cell.key, ())]
  wrong = f'; an invalid run: {pages.text(problems[0])}' if problems else ''
  return (
      f'cells that lack finished runs: {len(cells)}; the first command is '
      f'`{command}`{wrong}'
  )
