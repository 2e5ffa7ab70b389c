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
"""What the tables print, and what our runs measured, for the claims."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
from typing import Any

from experiments import published
from experiments.audit import claim
from experiments.audit import workbench
from experiments.report import cell_results
from experiments.report import views


def lead(
    lab: workbench.Workbench, table_name: str, rows: Sequence[str]
) -> claim.Verdict:
  """Returns whether the best of some rows is first wherever a table prints it.

  Args:
    lab: The workbench.
    table_name: The table.
    rows: The rows.

  Returns:
    'holds' or 'fails', with the columns in which another row is first; 'not
    run' if the table prints no number of these rows.
  """
  table = lab.find_table(table_name)
  if table is None:
    return claim.missing_table(table_name)
  places = find_places(table, rows)
  if not places:
    return claim.Verdict(
        claim.Status.NOT_RUN,
        f'{table_name} prints no number of {" or ".join(rows)}.',
    )
  behind = [name for name, place in places.items() if place > 1]
  return claim.Verdict(
      claim.Status.FAILS if behind else claim.Status.HOLDS,
      f'First in {len(places) - len(behind)} of {len(places)} columns'
      + (f', behind in {"; ".join(behind)}.' if behind else '.'),
      places,
  )


def find_places(table: published.Table, rows: Sequence[str]) -> dict[str, int]:
  """Returns the place of the best of some rows, by group and column.

  Args:
    table: The table, whose printed numbers count.
    rows: The rows; where none of them has a number there is no place.

  Returns:
    The places, 1 for the best; ties share the better one.
  """
  standings = views.rank(table, {c.key: c.published for c in table.cells})
  places: dict[str, int] = {}
  for (group, row, column), standing in standings.items():
    if row in rows:
      name = place_name(group, column)
      places[name] = min(standing.place, places.get(name, standing.place))
  return places


def place_name(group: str, column: str) -> str:
  """Returns what a group and a column of a table are called together."""
  return ', '.join(name for name in (group, column) if name)


@dataclasses.dataclass(frozen=True)
class Question:
  """What is asked of the columns of a published table.

  Attributes:
    table: The table's name, as 'delta_sgd/table_1'.
    row: The row that the claim is about.
    judge: What a difference to another row says of the claim.
    others: The rows that it is compared with; all others, if empty.
    column: The column; where it is empty, every one.
    needs_gpu: Whether the runs take a GPU.
  """

  table: str
  row: str
  judge: Callable[[claim.Difference], claim.Status]
  others: tuple[str, ...] = ()
  column: str = ''
  needs_gpu: bool = False


@dataclasses.dataclass(frozen=True)
class _Comparison:
  """A method and the rival against which it does worst, in one column.

  Attributes:
    rival: The name of the rival's row.
    difference: To the rival.
    status: What that says of the claim.
    means: The means of all rows that are compared, as they are measured, over
      the seeds that all of them have.
  """

  rival: str
  difference: claim.Difference
  status: claim.Status
  means: Mapping[str, float]

  def describe(self, row: str) -> str:
    """Returns the numbers in words."""
    ours, theirs = map(_format_mean, (self.means[row], self.means[self.rival]))
    return (
        f'{row} {ours}, {self.rival} {theirs}, {self.difference}: '
        f'{self.status.value}'
    )

  def to_numbers(self) -> dict[str, Any]:
    """Returns the numbers for a file."""
    return {
        'status': self.status.value,
        'against': self.rival,
        **self.difference.to_numbers(),
        'means': self.means,
    }


def _format_mean(mean: float) -> str:
  return f'{mean:.2f}' if math.isfinite(mean) else 'diverged'


def answer(lab: workbench.Workbench, question: Question) -> claim.Verdict:
  """Returns what the finished runs say.

  Args:
    lab: The workbench.
    question: The question.

  Returns:
    'fails' if any group and column of the table speaks against it, 'open' if
    the seeds of one decide nothing, 'holds' if all speak for it; until all runs
    of a group and column are there it has no say.

  Raises:
    RunError: If a file of a run is damaged.
    OSError: If a file cannot be read.
  """
  table = lab.find_table(question.table)
  if table is None:
    return claim.missing_table(question.table)
  places = _places(table, question)
  if not places:
    return claim.Verdict(
        claim.Status.NOT_RUN,
        f'{question.table} has no row {question.row!r} with column '
        f'{question.column!r} and others to compare with.',
    )
  asked = tuple(cell for cells in places.values() for cell in cells)
  collected = lab.collect(dataclasses.replace(table, cells=asked))
  results = {result.cell.experiment_name: result for result in collected}
  found, lacking = {}, []
  for place, cells in places.items():
    of_place = [results[cell.experiment_name] for cell in cells]
    unfinished = [r for r in of_place if cell_results.missing_seeds(table, r)]
    lacking.extend(unfinished)
    if not unfinished:
      found[place] = _find_worst(table, question, _align(of_place))
  return _conclude(lab, table, question, found, lacking)


def _places(
    table: published.Table, question: Question
) -> dict[str, list[published.Cell]]:
  """The cells to compare, by the names of their group and column."""
  wanted = question.others or tuple(entry.name for entry in table.rows)
  places: dict[str, list[published.Cell]] = {}
  for cell in table.cells:
    if question.column in ('', cell.column):
      if cell.row == question.row or cell.row in wanted:
        name = place_name(cell.group, cell.column)
        places.setdefault(name, []).append(cell)
  return {
      name: cells
      for name, cells in places.items()
      if len(cells) > 1 and question.row in [cell.row for cell in cells]
  }


def _align(results: Sequence[Any]) -> list[Any]:
  """The results with the numbers of the seeds that all of them have."""
  seeds = set.intersection(*(set(r.numbers) for r in results))
  return [
      dataclasses.replace(r, numbers={s: r.numbers[s] for s in sorted(seeds)})
      for r in results
  ]


def _find_worst(
    table: published.Table, question: Question, results: Sequence[Any]
) -> _Comparison:
  """The comparison with the rival against which the claim does worst."""
  scores = {r.cell.row: _read_scores(table, r) for r in results}
  means = {r.cell.row: r.mean for r in results}
  ours = scores.pop(question.row)
  found = []
  for rival, theirs in scores.items():
    difference = claim.compare(ours, theirs)
    status = question.judge(difference)
    found.append(_Comparison(rival, difference, status, means))

  def from_worst(comparison: _Comparison) -> tuple[int, float]:
    mean = comparison.difference.interval.mean
    rank = claim.FROM_WORST.index(comparison.status)
    return rank, -math.inf if math.isnan(mean) else mean

  return min(found, key=from_worst)


def _read_scores(table: published.Table, result: Any) -> claim.Scores:
  """The scores of a cell, the larger the better; divergence is the worst."""
  measure = table.measure(result.cell.column, result.cell.group)
  sign = 1.0 if measure.higher_is_better else -1.0
  return {
      seed: sign * number if math.isfinite(number) else -math.inf
      for seed, number in result.numbers.items()
  }


def _conclude(
    lab: workbench.Workbench,
    table: published.Table,
    question: Question,
    found: Mapping[str, _Comparison],
    lacking: Sequence[Any],
) -> claim.Verdict:
  """The verdict from what was compared and what could not be."""
  told = [
      ': '.join(filter(None, (place, comparison.describe(question.row))))
      for place, comparison in found.items()
  ]
  if found and table.stamp:
    told.append(table.stamp)
  if lacking:
    told.append(_describe_lacking(lab, table, lacking))
  status = claim.unite(
      [c.status for c in found.values()] or [claim.Status.OPEN]
  )
  if lacking and status is not claim.Status.FAILS:
    status = (
        claim.Status.NOT_TESTABLE
        if question.needs_gpu
        else claim.Status.NOT_RUN
    )
  numbers = {place: c.to_numbers() for place, c in found.items()}
  return claim.Verdict(status, '; '.join(told) + '.', numbers)


def _describe_lacking(
    lab: workbench.Workbench, table: published.Table, lacking: Sequence[Any]
) -> str:
  """How many cells lack runs, the command of the first, and what is wrong."""
  first = lacking[0]
  command = published.build_command(
      first.cell,
      seed=cell_results.missing_seeds(table, first)[0],
      output_dir=str(lab.runs_dir),
  )
  problems = [problem for result in lacking for problem in result.problems]
  wrong = f'; a run that does not count: {problems[0]}' if problems else ''
  return (
      f'cells without all finished runs: {len(lacking)}; the first is '
      f'`{command}`{wrong}'
  )
