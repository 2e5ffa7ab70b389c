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
"""Writes the page, the pictures and the CSV file of a table."""

from collections.abc import Callable, Sequence
import pathlib
from typing import Any

from experiments import pages
from experiments import published
from experiments.report import cell_results
from experiments.report import comparison
from experiments.report import drawing
from experiments.report import figures
from experiments.report import table_page
from experiments.run_results import formatting
from experiments.run_results import run_folder
from experiments.run_results import seed_statistics
from tff_adaptive import _files

_HEADER = (
    'paper',
    'table',
    'group',
    'row',
    'column',
    'published',
    'published_std',
    'measured_mean',
    'measured_std',
    'seeds',
    'rounds_done',
    'seconds',
    'gradient_evaluations',
    'bytes',
    'status',
    'problems',
    'command',
)


def format_csv(
    table: published.Table,
    results: Sequence[cell_results.CellResult],
    runs_dir: pathlib.Path,
) -> str:
  """Returns a row for every cell, measured or not.

  Args:
    table: The table.
    results: What was measured of its cells.
    runs_dir: The folder of all runs.

  Returns:
    The text of the file. Rounds, seconds, gradient evaluations and bytes are
    the means over the seeds that count; what is not known is empty.
  """
  return formatting.format_table(
      _HEADER, (_row(table, result, runs_dir) for result in results)
  )


def _row(
    table: published.Table,
    result: cell_results.CellResult,
    runs_dir: pathlib.Path,
) -> list[Any]:
  cell, runs = result.cell, result.runs.values()
  return [
      table.paper,
      table.name,
      *result.key,
      cell.published,
      cell.published_std,
      result.mean,
      result.std,
      ' '.join(map(str, result.runs)),
      seed_statistics.mean([run.rounds_done for run in runs]),
      seed_statistics.mean([run.seconds for run in runs]),
      seed_statistics.mean([run.gradient_evaluations for run in runs]),
      seed_statistics.mean([run.num_bytes for run in runs]),
      result.status,
      '; '.join(result.problems),
      published.build_command(cell, output_dir=str(runs_dir)),
  ]


RunError = run_folder.RunError


def write_tables(
    tables: Sequence[published.Table],
    runs_dir: pathlib.Path,
    output_dir: pathlib.Path,
    command_of: Callable[[published.Table], str],
):
  """Writes `<output_dir>/<paper>/<table>` as .md, .html, .csv and .png.

  Args:
    tables: The tables.
    runs_dir: The folder of all runs.
    output_dir: The folder that gets the pages; it is made.
    command_of: From a table to the command that makes its page.

  Raises:
    RunError: If a file of a run is damaged.
    OSError: If a file cannot be read or written.
  """
  times = cell_results.ExpectedTimes(runs_dir)
  for table in tables:
    path = output_dir / table.paper / table.name
    results = cell_results.collect(table, runs_dir)
    pictures = drawing.draw(
        table, figures.read_options(table), results, _with(path, '.png')
    )
    page = table_page.build_page(
        table,
        results,
        pictures,
        command=command_of(table),
        runs_dir=runs_dir,
        expect_time=times.describe,
    )
    _write_page(page, path)
    _write(format_csv(table, results, runs_dir), _with(path, '.csv'))
    num_measured = sum(bool(result.numbers) for result in results)
    print(
        f'{path}.html: {num_measured} of {len(results)} cells measured',
        flush=True,
    )


def write_comparison(
    paths: Sequence[str], output_dir: pathlib.Path, command: str
):
  """Writes `<output_dir>/comparison` as .md, .html and .png.

  Args:
    paths: Folders of runs, or of the seeds of a run.
    output_dir: The folder that gets the page; it is made.
    command: What makes the page.

  Raises:
    RunError: If a folder is not that of a run, or they cannot be compared.
    OSError: If a file cannot be read or written.
  """
  runs = comparison.read_runs(paths)
  metric = comparison.choose_metric(runs)
  path = output_dir / 'comparison'
  picture = _with(path, '.png')
  comparison.draw(runs, metric, picture)
  _write_page(comparison.build_page(runs, metric, picture, command), path)
  print(f'{path}.html: {len(runs)} runs compared', flush=True)


def _with(path: pathlib.Path, suffix: str) -> pathlib.Path:
  """Returns a path with a suffix; a dot in its name stays."""
  return path.with_name(path.name + suffix)


def _write_page(page: pages.Page, path: pathlib.Path):
  _write(pages.to_markdown(page), _with(path, '.md'))
  _write(pages.to_html(page), _with(path, '.html'))


def _write(text: str, path: pathlib.Path):
  with _files.replacing(path) as file:
    file.write(text.encode())
