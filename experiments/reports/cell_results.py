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
"""What was measured of the cells of a published table."""

from collections.abc import Mapping, Sequence
import dataclasses
import pathlib
from typing import Optional

from experiments import published
from experiments.reports import ranking
from experiments.run_results import agreement
from experiments.run_results import run_folder
from experiments.run_results import seed_statistics


@dataclasses.dataclass(frozen=True)
class CellResult:
  """What was measured of a cell.

  Attributes:
    cell: The cell.
    runs: Those that count, by seed: finished, with the cell's
      hyperparameters.
    numbers: The number of each, in the unit of the table; not a number for one
      that diverged.
    problems: Why other runs do not count, a sentence each.
  """

  cell: published.Cell
  runs: Mapping[int, run_folder.Run]
  numbers: Mapping[int, float]
  problems: Sequence[str] = ()

  @property
  def key(self) -> tuple[str, str, str]:
    """The group, row and column of the cell."""
    return self.cell.group, self.cell.row, self.cell.column

  @property
  def mean(self) -> Optional[float]:
    """The mean over the seeds; None without a run, else maybe no number."""
    return seed_statistics.mean(self.numbers.values())

  @property
  def std(self) -> Optional[float]:
    """The standard deviation over two seeds or more."""
    return seed_statistics.std(self.numbers.values())

  @property
  def status(self) -> str:
    """'measured', 'diverged', 'does not count' or 'not run'."""
    if self.numbers:
      return 'measured' if ranking.is_number(self.mean) else 'diverged'
    return 'does not count' if self.problems else 'not run'


def collect(table: published.Table, runs_dir: pathlib.Path) -> list[CellResult]:
  """Returns what was measured of the cells of a table.

  A run counts if it is finished and has the hyperparameters of its cell, so
  that neither half a training nor a trial of two rounds becomes a result.

  Args:
    table: The table.
    runs_dir: The folder of all runs.

  Returns:
    A result for every cell, in their order.

  Raises:
    RunError: If a file of a run is damaged.
    OSError: If a file cannot be read.
  """
  return [_collect_cell(table, cell, runs_dir) for cell in table.cells]


def _collect_cell(
    table: published.Table, cell: published.Cell, runs_dir: pathlib.Path
) -> CellResult:
  """Returns what was measured of a cell."""
  runs, problems = {}, []
  found = run_folder.read_seeds(runs_dir / cell.experiment_name)
  for seed, run in found.items():
    problem = _find_problem(cell, seed, run)
    if problem:
      problems.append(f'seed {seed}: {problem}')
    else:
      runs[seed] = run
  measure = table.measure(cell.column, cell.group)
  numbers = {
      seed: (
          measure.scale
          * run.summarize(
              measure.metric,
              table.estimate,
              higher_is_better=measure.higher_is_better,
          )
      )
      for seed, run in runs.items()
  }
  return CellResult(cell, runs, numbers, tuple(problems))


def _find_problem(cell: published.Cell, seed: int, run: run_folder.Run) -> str:
  """Returns why a run does not count for a cell; nothing if it does."""
  if not run.is_finished:
    return f'unfinished, {run.rounds_done} of {run.total_rounds} rounds'
  differences = [
      f'{name}={found} (the cell has {wanted})'
      for name, found, wanted in agreement.of_cell(cell, seed).find_differences(
          run.hparams
      )
  ]
  return f'other hyperparameters, {", ".join(differences)}' * bool(differences)


def measured_numbers(results: Sequence[CellResult]) -> ranking.Numbers:
  """Returns the measured means by group, row and column."""
  return {result.key: result.mean for result in results}


def published_numbers(cells: Sequence[published.Cell]) -> ranking.Numbers:
  """Returns the published numbers by group, row and column."""
  return {(cell.group, cell.row, cell.column): cell.published for cell in cells}
