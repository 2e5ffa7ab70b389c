# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The runs of a published table and the numbers of its cells, as frames."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import pathlib
from typing import Any

import numpy as np
import pandas as pd

from experiments import formatting
from experiments import published
from experiments.run_results import agreement
from experiments.run_results import run_folder
from experiments.run_results import statistics

KEYS = ['group', 'row', 'column']
# Where numbers are comparable.
SETTING = ['group', 'column']
_LABELS = [*KEYS, 'seed', 'number']
# In percentage points, as in the tables of the Delta-SGD paper.
CLOSE = 0.5
DIGITS = 9  # Rounds off the binary error of decimal fractions.
_PERCENT = 100.0

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
class Results:
  """What was measured for a table.

  Attributes:
    table: The table.
    runs: The valid runs, as `statistics.build_frame` returns them: finished,
      with the hyperparameters of their cells. They are labelled by `KEYS`;
      `number` is the result in the unit of the table, NaN if the run diverged.
    problems: The reasons why other runs do not count, one sentence each, by
      group, row and column.
  """

  table: published.Table
  runs: pd.DataFrame
  problems: Mapping[tuple[str, str, str], Sequence[str]]

  @functools.cached_property
  def cells(self) -> pd.DataFrame:
    """One row a cell, in the order of the table, by group, row and column.

    Numbers are in the unit of the table, NaN where there is none:

    - `published`, `published_std`, and `mean` and `std` of the runs with the
      seeds `seeds`; `measured` is the mean as it is shown, so that equal digits
      mean a tie.
    - `status`: 'measured', 'diverged', 'does not count' or 'not run'; `was_run`
      is True for the first two.
    - `setting`, the name of group and column; `decimals`,
      those of its numbers; `margin`, by which tied ones differ at most, in
      points if they are `in_percent`; and `sign`, by which more is better.
    - `theirs` and `ours`: `published` and `measured` times `sign`, minus
      infinity if a run diverged.
    """
    cells = pd.DataFrame(
        [
            {
                **dict(zip(KEYS, cell.key)),
                'cell': cell,
                'published': cell.published,
                'published_std': cell.published_std,
                **_describe_setting(self.table, cell.group, cell.column),
            }
            for cell in self.table.cells
        ]
    ).set_index(KEYS)
    numbers = ['published', 'published_std']
    cells[numbers] = cells[numbers].astype(float)
    cells = cells.join(statistics.over_seeds(self.runs, KEYS, 'number'))
    cells['was_run'] = cells.seeds.notna()
    cells['seeds'] = [
        s if w else () for s, w in zip(cells.seeds, cells.was_run)
    ]
    has_problem = [bool(self.problems.get(key)) for key in cells.index]
    cells['status'] = np.select(
        [cells['mean'].notna(), cells.was_run, has_problem],
        ['measured', 'diverged', 'does not count'],
        'not run',
    )
    cells['measured'] = list(map(round, cells['mean'], cells.decimals))
    cells['theirs'] = cells.sign * cells.published
    cells['ours'] = (cells.sign * cells.measured).mask(
        cells.status == 'diverged', -np.inf
    )
    return cells

  def numbers(self, cell: published.Cell) -> dict[int, float]:
    """Returns the results of a cell by seed."""
    found = self.of(cell)
    return dict(zip(found.seed, found.number))

  def of(self, cell: published.Cell) -> pd.DataFrame:
    """Returns the valid runs of a cell."""
    return self.runs[(self.runs[KEYS] == list(cell.key)).all(axis=1)]

  def missing_seeds(self, cell: published.Cell) -> list[int]:
    """Returns the seeds of the table for which a cell has no valid run."""
    found = set(self.of(cell).seed)
    return [seed for seed in range(self.table.seeds) if seed not in found]


def without_runs(table: published.Table) -> Results:
  """Returns the results of a table of which nothing was measured."""
  return Results(table, statistics.build_frame([], labels=_LABELS), {})


def _describe_setting(
    table: published.Table, group: str, column: str
) -> dict[str, Any]:
  """Returns how numbers are compared; see `Results.cells`."""
  measure = table.measure(column, group)
  in_percent = measure.scale == _PERCENT
  return {
      # A single column may have no name and is then named by its metric.
      'setting': ', '.join(filter(None, (group, column or measure.metric))),
      'sign': 1 if measure.higher_is_better else -1,
      'in_percent': in_percent,
      'margin': CLOSE if in_percent else 0.0,
      'decimals': formatting.count_decimals(
          [
              cell.published
              for cell in table.cells
              if (cell.group, cell.column) == (group, column)
              and cell.published is not None
          ],
          default=1 if in_percent else 3,
      ),
  }


def collect(table: published.Table, runs_dir: pathlib.Path) -> Results:
  """Returns the measurements of the cells of a table.

  A run counts if it is finished and has the hyperparameters of its cell, so
  that neither an interrupted run nor a trial of two rounds becomes a result.

  Args:
    table: The table.
    runs_dir: The folder of all runs.

  Raises:
    RunError: If a file of a run is damaged.
    OSError: If a file cannot be read.
  """
  valid = []
  problems: dict[tuple[str, str, str], list[str]] = {}
  for cell in table.cells:
    measure = table.measure(cell.column, cell.group)
    found = run_folder.read_seeds(runs_dir / cell.experiment_name)
    for seed, run in found.items():
      problem = _find_problem(cell, seed, run)
      if problem:
        problems.setdefault(cell.key, []).append(f'seed {seed}: {problem}')
        continue
      number = measure.scale * run.summarize(
          measure.metric,
          table.estimate,
          higher_is_better=measure.higher_is_better,
      )
      labels = {**dict(zip(KEYS, cell.key)), 'seed': seed, 'number': number}
      valid.append((labels, run))
  return Results(table, statistics.build_frame(valid, labels=_LABELS), problems)


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


@dataclasses.dataclass(frozen=True)
class ExpectedTimes:
  """Estimates run times from finished runs with the same work per round.

  Attributes:
    runs_dir: The folder of the runs, searched at any depth by the first
      estimate; damaged runs are skipped.

  Example:

    >>> cell = published.find_table('delta_sgd/table_7').cells[0]
    >>> ExpectedTimes(pathlib.Path('nothing_there')).describe(cell, seeds=3)
    'unknown'
  """

  runs_dir: pathlib.Path

  @functools.cached_property
  def _paces(self) -> list[tuple[Mapping[str, Any], float]]:
    """The hyperparameters, and mean seconds of the rounds after the first.

    The first round compiles.
    """
    return [
        (run.hparams, np.mean(seconds[1:]))
        for run in run_folder.find_runs(self.runs_dir)
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
    seconds = float(np.median([seconds for _, seconds in found]))
    return formatting.format_seconds(
        seconds * wanted.values['total_rounds'] * seeds
    )
