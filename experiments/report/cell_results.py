# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The runs of a table's cells, and time estimates for missing runs."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import math
import pathlib
import statistics
from typing import Any, Optional

from experiments import formatting
from experiments import published
from experiments.run_results import agreement
from experiments.run_results import run_folder
from experiments.run_results import seed_statistics

# The hyperparameters, besides the model, that determine the work of a round.
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
    'validation_fraction',
)
_METHOD = ('algorithm', 'client_optimizer', 'loss_term')


@dataclasses.dataclass(frozen=True)
class CellResult:
  """The measurements of a cell.

  Attributes:
    cell: The cell.
    runs: The valid runs by seed: finished, with the cell's hyperparameters.
    numbers: Their results by seed, in the table's unit; NaN if a run diverged.
    problems: The reasons why other runs do not count, one sentence each.
  """

  cell: published.Cell
  runs: Mapping[int, run_folder.Run]
  numbers: Mapping[int, float]
  problems: Sequence[str] = ()

  @property
  def mean(self) -> Optional[float]:
    """The mean over the seeds; None without a run, NaN if one diverged."""
    return seed_statistics.mean(self.numbers.values())

  @property
  def std(self) -> Optional[float]:
    """The standard deviation over two seeds or more."""
    return seed_statistics.std(self.numbers.values())

  @property
  def status(self) -> str:
    """'measured', 'diverged', 'does not count' or 'not run'."""
    if self.mean is not None:
      return 'measured' if math.isfinite(self.mean) else 'diverged'
    return 'does not count' if self.problems else 'not run'


def collect(table: published.Table, runs_dir: pathlib.Path) -> list[CellResult]:
  """Returns the measurements of the cells of a table.

  A run counts if it is finished and has the hyperparameters of its cell, so
  that neither an interrupted run nor a trial of two rounds becomes a result.

  Args:
    table: The table.
    runs_dir: The folder of all runs.

  Returns:
    One result per cell, in the order of the cells.

  Raises:
    RunError: If a file of a run is damaged.
    OSError: If a file cannot be read.
  """
  return [_collect_cell(table, cell, runs_dir) for cell in table.cells]


def _collect_cell(
    table: published.Table, cell: published.Cell, runs_dir: pathlib.Path
) -> CellResult:
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
  """Returns the reason why a run does not count for a cell, or nothing."""
  if not run.is_finished:
    return f'unfinished, {run.rounds_done} of {run.total_rounds} rounds'
  differences = agreement.of_cell(cell, seed).find_differences(run.hparams)
  texts = [
      f'{name}={found} (the cell has {wanted})'
      for name, found, wanted in differences
  ]
  return f'other hyperparameters, {", ".join(texts)}' if texts else ''


def missing_seeds(table: published.Table, result: CellResult) -> list[int]:
  """Returns the seeds of a table for which a cell has no valid run."""
  return [seed for seed in range(table.seeds) if seed not in result.runs]


class ExpectedTimes:
  """Estimates run times from finished runs with the same work per round.

  Example:

    >>> cell = published.find_table('delta_sgd/table_7').cells[0]
    >>> ExpectedTimes(pathlib.Path('nothing_there')).describe(cell, seeds=3)
    'unknown'
  """

  def __init__(self, runs_dir: pathlib.Path):
    """Initializes the estimates; the first one reads the runs.

    Args:
      runs_dir: The folder, searched at any depth; damaged runs are skipped.
    """
    self._runs_dir = runs_dir

  @functools.cached_property
  def _paces(self) -> list[tuple[Mapping[str, Any], float]]:
    """The hyperparameters, and mean seconds of the rounds after the first.

    The first round compiles.
    """
    return [
        (run.hparams, statistics.fmean(seconds[1:]))
        for run in run_folder.find_runs(self._runs_dir)
        if len(seconds := run.series(run_folder.SECONDS)[1]) > 1
    ]

  def describe(self, cell: published.Cell, seeds: int) -> str:
    """Returns the expected time of a cell's runs, or 'unknown'.

    The seconds per round are the median over the runs with the same task,
    model, cohort and local work, and with the same method if there are any.

    Args:
      cell: The cell.
      seeds: The number of runs.

    Raises:
      OSError: If a file of a run cannot be read.
    """
    wanted = agreement.of_cell(cell, seed=0)

    def same(paces: Sequence[Any], names: Sequence[str]) -> list[Any]:
      return [
          pace for pace in paces if not wanted.find_differences(pace[0], names)
      ]

    task = wanted.values['task']
    same_work = same(self._paces, [*_WORK, f'{task}_model'])
    found = same(same_work, _METHOD) or same_work
    if not found:
      return formatting.UNKNOWN
    seconds = statistics.median(seconds for _, seconds in found)
    return formatting.format_seconds(
        seconds * wanted.values['total_rounds'] * seeds
    )
