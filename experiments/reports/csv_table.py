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
"""The numbers of a table's cells, as a file for other programs."""

from collections.abc import Sequence
import pathlib
from typing import Any

from experiments import published
from experiments.reports import cell_results
from experiments.run_results import csv_text
from experiments.run_results import seed_statistics

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
  return csv_text.format_table(
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
