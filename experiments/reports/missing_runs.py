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
"""What a page lists of runs: those that do not count, and those to be made."""

from collections.abc import Callable, Sequence
import pathlib
import shlex

from experiments import pages
from experiments import published
from experiments.reports import cell_results
from experiments.reports import figures

_Results = Sequence[cell_results.CellResult]

_TRACE = ('python', '-m', 'experiments.trace')
_ANY_RUN = f'{" ".join(_TRACE)} --run=RUN --round=ROUND --cka --data_dir=data'


def missing_seeds(
    table: published.Table, result: cell_results.CellResult
) -> list[int]:
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
