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
"""What there is of the runs of a table, and what is missing."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
import pathlib
import shlex
import statistics
from typing import Any, Optional

from experiments import pages
from experiments import published
from experiments.report import figures
from experiments.report import views
from experiments.run_results import agreement
from experiments.run_results import formatting
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
      return 'measured' if views.is_number(self.mean) else 'diverged'
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


def measured_numbers(results: Sequence[CellResult]) -> views.Numbers:
  """Returns the measured means by group, row and column."""
  return {result.key: result.mean for result in results}


def published_numbers(cells: Sequence[published.Cell]) -> views.Numbers:
  """Returns the published numbers by group, row and column."""
  return {(cell.group, cell.row, cell.column): cell.published for cell in cells}


_Results = Sequence[CellResult]

_TRACE = ('python', '-m', 'experiments.trace')
_ANY_RUN = f'{" ".join(_TRACE)} --run=RUN --round=ROUND --cka --data_dir=data'


def missing_seeds(table: published.Table, result: CellResult) -> list[int]:
  """Returns the seeds of a table of which a cell has no run that counts."""
  return [seed for seed in range(table.seeds) if seed not in result.runs]


def build_blocks(
    table: published.Table,
    results: _Results,
    runs_dir: pathlib.Path,
    expect_time: Callable[[published.Cell, int], str],
) -> list[pages.Block]:
  """Returns the runs that do not count and those that are missing.

  Args:
    table: The table.
    results: What was measured of its cells.
    runs_dir: The folder of all runs.
    expect_time: From a cell and the number of its runs to the time that these
      may take, in words.

  Returns:
    The blocks; none if all is there.
  """
  return [
      *_not_counted(results),
      *_missing(table, results, runs_dir, expect_time),
  ]


def _name(cell: published.Cell) -> str:
  return ' / '.join(
      name for name in (cell.group, cell.row, cell.column) if name
  )


def _not_counted(results: _Results) -> list[pages.Block]:
  """Returns the runs that do not count, and why."""
  rows = [
      [_name(result.cell), problem]
      for result in results
      for problem in result.problems
  ]
  if not rows:
    return []
  return [
      pages.Heading('Runs that do not count'),
      pages.Table(['cell', 'why'], rows, num_labels=2),
      pages.Paragraph(
          'An unfinished run goes on with its command below. One with other '
          'hyperparameters is in the place of a run of the cell: move it away.'
      ),
  ]


def _missing(
    table: published.Table,
    results: _Results,
    runs_dir: pathlib.Path,
    expect_time: Callable[[published.Cell, int], str],
) -> list[pages.Block]:
  """Returns the missing runs, with the commands that make them."""
  rows = []
  for result in results:
    seeds = missing_seeds(table, result)
    if seeds:
      rows.append(
          [
              _name(result.cell),
              ', '.join(map(str, seeds)),
              expect_time(result.cell, len(seeds)),
              f'`{_command(result.cell, seeds, runs_dir)}`',
          ]
      )
  if not rows:
    return []
  return [
      pages.Heading('Not run'),
      pages.Paragraph(
          'The time is what runs with the same task, model, cohort and local '
          'work took a round, here or on another machine, times the rounds and '
          'seeds.'
      ),
      pages.Table(
          ['cell', 'seeds', 'expected time', 'command'], rows, num_labels=4
      ),
  ]


def _command(
    cell: published.Cell, seeds: Sequence[int], runs_dir: pathlib.Path
) -> str:
  """Returns the command of some seeds of a cell."""
  output_dir = str(runs_dir)
  if len(seeds) == 1:
    return published.build_command(cell, seed=seeds[0], output_dir=output_dir)
  return published.build_sweep_command(cell, seeds, output_dir=output_dir)


def build_cka_blocks(results: _Results) -> list[pages.Block]:
  """Returns the commands that draw what clients keep, where none has.

  Args:
    results: What was measured of the cells of a figure of that kind.

  Returns:
    A command for every run that counts and has no such picture; how to draw one
    if there is no run. Nothing if all runs have their pictures.
  """
  runs = [run for result in results for run in result.runs.values()]
  commands = [
      shlex.join(
          [
              *_TRACE,
              f'--run={run.path}',
              f'--round={run.total_rounds}',
              '--cka',
              '--data_dir=data',
          ]
      )
      for run in runs
      if not (run.path / 'plots' / f'{figures.CKA}.png').is_file()
  ]
  if runs and not commands:
    return []
  return [
      pages.Paragraph(
          'Of a run that is finished the picture is drawn by a command of its '
          'own, from the checkpoint of the round; then make this page again.'
      ),
      pages.Code('\n'.join(commands or [_ANY_RUN])),
  ]


# What the work of a round depends on, besides the model.
_WORK = (
    'task',
    'use_synthetic_data',
    'clients_per_round',
    'client_batch_size',
    'client_epochs',
    'max_examples',
    'num_clients',
    'heldout_clients',
    'heldout_fraction',
)
_METHOD = ('algorithm', 'client_optimizer', 'loss_term')


@dataclasses.dataclass(frozen=True)
class _Pace:
  """How fast a run was.

  Attributes:
    hparams: The hyperparameters of the run.
    seconds: Of a round.
  """

  hparams: Mapping[str, Any]
  seconds: float


class ExpectedTimes:
  """Expects of a run what other runs of the same work a round took.

  Example:

    >>> cell = published.find_table('delta_sgd/table_7').cells[0]
    >>> ExpectedTimes(pathlib.Path('nothing_there')).describe(cell, seeds=3)
    'unknown'
  """

  def __init__(self, runs_dir: pathlib.Path):
    """Reads all runs of a folder.

    Args:
      runs_dir: The folder; runs may lie at any depth, and damaged ones are
        left out.

    Raises:
      OSError: If a file cannot be read.
    """
    paces = [
        _Pace(run.hparams, run.seconds_per_round)
        for run in run_folder.find_runs(runs_dir)
    ]
    self._paces = [pace for pace in paces if math.isfinite(pace.seconds)]

  def describe(self, cell: published.Cell, seeds: int) -> str:
    """Returns the time of a cell.

    Args:
      cell: The cell.
      seeds: How many runs it has.

    Returns:
      The product of the seconds of a round, the rounds of the cell and the
      seeds. The seconds are the median over the runs with the same task, model,
      cohort and local work; of those with the same method, if there are any.
      'unknown' without such runs.
    """
    wanted = agreement.of_cell(cell, seed=0)
    task = wanted.values['task']
    same_work = _with_same(self._paces, wanted, [*_WORK, f'{task}_model'])
    same_method = _with_same(same_work, wanted, _METHOD)
    found = [pace.seconds for pace in same_method or same_work]
    if not found:
      return formatting.UNKNOWN
    rounds = wanted.values['total_rounds']
    return formatting.format_seconds(statistics.median(found) * rounds * seeds)


def _with_same(
    paces: Sequence[_Pace],
    wanted: agreement.WantedHparams,
    names: Sequence[str],
) -> list[_Pace]:
  """Returns those of runs that have some of the values that are wanted."""
  return [
      pace for pace in paces if not wanted.find_differences(pace.hparams, names)
  ]
