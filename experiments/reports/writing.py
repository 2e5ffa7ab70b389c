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
"""Writes the files of a report: pages, numbers and pictures."""

from collections.abc import Callable, Sequence
import pathlib

from experiments import pages
from experiments import published
from experiments.reports import cell_results
from experiments.reports import comparison
from experiments.reports import csv_table
from experiments.reports import drawing
from experiments.reports import expected_times
from experiments.reports import figures
from experiments.reports import table_page
from experiments.run_results import run_folder
from tff_adaptive import _files

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
  times = expected_times.ExpectedTimes(runs_dir)
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
    _write(csv_table.format_csv(table, results, runs_dir), _with(path, '.csv'))
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
