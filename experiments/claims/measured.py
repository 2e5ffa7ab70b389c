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
"""Verdicts from finished runs of published cells.

What counts is fixed here, before any run: a method is as good as another one if
it is not behind by more than `MARGIN`. With several seeds the differences are
paired by seed, since runs of one seed share weights, cohorts and batches.
"""

from collections.abc import Callable, Sequence
import dataclasses
import math
from typing import Any, Optional

import numpy as np

from experiments import paired_differences
from experiments import published
from experiments.claims import claim
from experiments.claims import workbench
from experiments.reports import ranking
from experiments.reports import table_views

# In the unit of the tables, percentage points. Delta-SGD's tables print in bold
# what is within 0.5 of the best.
MARGIN = 0.5

# The scores of a cell's finished runs, by seed.
Scores = dict[int, float]


@dataclasses.dataclass(frozen=True)
class Difference:
  """By how much one method is above another one.

  Attributes:
    mean: Over the seeds that both have.
    low: The lower end of the paired t interval; -infinity with one seed.
    high: Its upper end; infinity with one seed.
    num_seeds: How many seeds there are.
  """

  mean: float
  low: float
  high: float
  num_seeds: int

  def __str__(self) -> str:
    if self.num_seeds == 1:
      return f'{self.mean:+.2f} (one seed)'
    return (
        f'{self.mean:+.2f} [{self.low:+.2f}, {self.high:+.2f}] '
        f'({self.num_seeds} paired seeds)'
    )

  @property
  def is_shown(self) -> bool:
    """Whether the method is better, and not by chance or by next to nothing."""
    return self.mean > MARGIN if self.num_seeds == 1 else self.low > 0.0

  @property
  def is_within_margin(self) -> bool:
    """Whether the method is better, or not behind by more than the margin."""
    return self.mean >= -MARGIN

  def to_numbers(self) -> dict[str, Any]:
    """Returns the numbers for a file; None where there is no interval."""
    found = {'difference': self.mean, 'low': self.low, 'high': self.high}
    return {
        **{name: n if math.isfinite(n) else None for name, n in found.items()},
        'seeds': self.num_seeds,
    }


def compare(scores: Scores, others: Scores) -> Optional[Difference]:
  """Compares two methods on the seeds that both have; None without any."""
  differences = paired_differences.subtract(scores, others)
  if not differences:
    return None
  return Difference(
      *paired_differences.t_interval(differences), len(differences)
  )


@dataclasses.dataclass(frozen=True)
class Question:
  """What is asked of the columns of a published table.

  Attributes:
    table: The table's name, as 'delta_sgd/table_1'.
    row: The row that the claim is about.
    others: The rows that it is compared with; the best of them, where there are
      several; all others, if empty.
    column: The column; where it is empty, every one.
    holds: Whether a difference agrees with the claim.
    needs_gpu: Whether the runs take a GPU.
  """

  table: str
  row: str
  holds: Callable[[Difference], bool]
  others: tuple[str, ...] = ()
  column: str = ''
  needs_gpu: bool = False


def answer(lab: workbench.Workbench, question: Question) -> claim.Verdict:
  """Returns what the finished runs say.

  Args:
    lab: The workbench.
    question: The question.

  Returns:
    'fails' if any group and column of the table speaks against it, 'holds' if
    all do for it; until all runs of a group and column are there it has no say.
  """
  table = lab.find_table(question.table)
  if table is None:
    return missing_table(question.table)
  places = _places(table, question)
  if not places:
    return claim.Verdict(
        claim.Status.NOT_RUN,
        f'{question.table} has no row {question.row!r} with column '
        f'{question.column!r} and others to compare with.',
    )
  scores = _read_scores(lab, table)
  found, lacking = {}, []
  for place, cells in places.items():
    unfinished = [
        cell
        for cell in cells
        if len(scores[cell.experiment_name]) < table.seeds
    ]
    lacking.extend(unfinished)
    if not unfinished:
      by_row = {cell.row: scores[cell.experiment_name] for cell in cells}
      best = _to_best(by_row, question.row)
      if best is not None:
        found[place] = best
  return _conclude(lab, question, found, lacking)


def _read_scores(
    lab: workbench.Workbench, table: published.Table
) -> dict[str, Scores]:
  """The scores of all cells, the larger the better; divergence is worst."""
  scores = {}
  for result in lab.collect(table):
    cell = result.cell
    measure = table.measure(cell.column, cell.group)
    sign = 1.0 if measure.higher_is_better else -1.0
    scores[cell.experiment_name] = {
        seed: sign * number if math.isfinite(number) else -math.inf
        for seed, number in result.numbers.items()
    }
  return scores


def _places(
    table: published.Table, question: Question
) -> dict[str, list[published.Cell]]:
  """The cells to compare, by the names of their group and column."""
  wanted = question.others or tuple(entry.name for entry in table.rows)
  places: dict[str, list[published.Cell]] = {}
  for cell in table.cells:
    if question.column in ('', cell.column):
      if cell.row == question.row or cell.row in wanted:
        name = _place_name(cell.group, cell.column)
        places.setdefault(name, []).append(cell)
  return {
      name: cells
      for name, cells in places.items()
      if len(cells) > 1 and question.row in [cell.row for cell in cells]
  }


def _to_best(
    scores: dict[str, Scores], row: str
) -> Optional[tuple[str, Difference]]:
  """The best other row and the difference to it."""
  others = {name: by_seed for name, by_seed in scores.items() if name != row}
  best = max(others, key=lambda name: np.mean(list(others[name].values())))
  difference = compare(scores[row], others[best])
  return None if difference is None else (best, difference)


def _conclude(
    lab: workbench.Workbench,
    question: Question,
    found: dict[str, tuple[str, Difference]],
    lacking: Sequence[published.Cell],
) -> claim.Verdict:
  """The verdict from what was compared and what could not be."""
  against = [place for place, (_, d) in found.items() if not question.holds(d)]
  told = [
      f'{place}: {question.row} {difference} against {best}'
      for place, (best, difference) in found.items()
  ]
  if lacking:
    told.append(
        f'cells without all finished runs: {len(lacking)}; the first is '
        f'`{published.build_command(lacking[0], output_dir=str(lab.runs_dir))}`'
    )
  if against:
    status = claim.Status.FAILS
  elif not lacking and found:
    status = claim.Status.HOLDS
  elif question.needs_gpu:
    status = claim.Status.NOT_TESTABLE
  else:
    status = claim.Status.NOT_RUN
  numbers = {
      place: {'against': best, **difference.to_numbers()}
      for place, (best, difference) in found.items()
  }
  return claim.Verdict(status, '; '.join(told) + '.', numbers)


def missing_table(name: str) -> claim.Verdict:
  """Returns the verdict where a published table is not among the presets."""
  return claim.Verdict(
      claim.Status.NOT_RUN,
      f'experiments/presets/{name}.yaml is not there, so that there are no '
      'cells to run.',
  )


def not_behind(difference: Difference) -> bool:
  """Returns whether a method is as good as another one."""
  return difference.is_within_margin


def ahead(difference: Difference) -> bool:
  """Returns whether a method is shown to be better than another one."""
  return difference.is_shown


def published_lead(
    lab: workbench.Workbench, table_name: str, rows: Sequence[str]
) -> claim.Verdict:
  """Returns whether the best of some rows is first wherever a table prints it.

  Args:
    lab: The workbench.
    table_name: The table.
    rows: The rows.

  Returns:
    'holds' or 'fails', with the columns in which another row is first.
  """
  table = lab.find_table(table_name)
  if table is None:
    return missing_table(table_name)
  places = printed_places(table, rows)
  behind = [name for name, place in places.items() if place > 1]
  return claim.Verdict(
      claim.Status.HOLDS if places and not behind else claim.Status.FAILS,
      f'First in {len(places) - len(behind)} of {len(places)} columns'
      + (f', behind in {"; ".join(behind)}.' if behind else '.'),
      places,
  )


def printed_places(
    table: published.Table, rows: Sequence[str]
) -> dict[str, int]:
  """Returns the place of the best of some rows, by group and column.

  Args:
    table: The table, whose printed numbers count.
    rows: The rows; where none of them has a number there is no place.

  Returns:
    The places, 1 for the best; ties share the better one.
  """
  standings = ranking.rank(
      {(c.group, c.row, c.column): c.published for c in table.cells},
      lower_is_better=table_views.lower_is_better(table),
  )
  places: dict[str, int] = {}
  for (group, row, column), standing in standings.items():
    if row in rows:
      name = _place_name(group, column)
      places[name] = min(standing.place, places.get(name, standing.place))
  return places


def _place_name(*names: str) -> str:
  return ', '.join(name for name in names if name)
