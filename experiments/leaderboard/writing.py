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
"""Writes the files of the leaderboard: page, numbers and pictures."""

from collections.abc import Iterator, Mapping
import pathlib
from typing import Any

from experiments import pages
from experiments.leaderboard import drawing
from experiments.leaderboard import page as page_lib
from experiments.leaderboard import plans
from experiments.leaderboard import results as results_lib
from experiments.run_results import formatting
from experiments.sweep import trials as trials_lib
from tff_adaptive import _files

_HEADER = (
    'task',
    'rates',
    'method',
    'assignment',
    'seeds',
    'mean',
    'std',
    'difference',
    'low',
    'high',
    'verdict',
    'rounds_to_target',
    'seconds_to_target',
    'gradient_evaluations_to_target',
    'megabytes_to_target',
    'seconds_per_round',
    'gradient_evaluations',
    'megabytes_up',
    'megabytes_down',
)


def format_csv(results: results_lib.Results) -> str:
  """Returns a row for every task, method and origin of its rates.

  Args:
    results: What was measured.

  Returns:
    The text of the file. Rates are 'tuned', 'defaults' or those tuned on
    another task; the difference is that to the best of the same task and
    origin. A target that was not reached, and a run that diverged, are
    infinite.
  """
  return formatting.format_table(_HEADER, _all_rows(results))


def _all_rows(results: results_lib.Results) -> Iterator[list[Any]]:
  """Yields the rows of all tasks and origins."""
  tasks = results.plan.board.tasks
  for task in tasks:
    origins = {'tuned': results.tuned(task), 'defaults': results.defaults(task)}
    for source in tasks:
      if source != task:
        origins[f'tuned on {source}'] = results.carried(task, source)
    for origin, outcomes in origins.items():
      for row in _rows(outcomes, tasks[task].margin):
        yield [task, origin, *row]


def _rows(
    outcomes: Mapping[str, results_lib.Outcome], margin: float
) -> Iterator[list[Any]]:
  """Yields the rows, the best method first."""
  for standing in results_lib.rank(outcomes, margin):
    outcome = outcomes[standing.method]
    yield [
        standing.method,
        trials_lib.to_slug(outcome.assignment) or 'defaults',
        len(outcome.runs),
        standing.mean,
        standing.std,
        *standing.difference,
        standing.verdict.value,
        outcome.rounds_to_target,
        outcome.seconds_to_target,
        outcome.gradients_to_target,
        outcome.megabytes_to_target,
        outcome.seconds_per_round,
        outcome.gradients,
        outcome.megabytes_up,
        outcome.megabytes_down,
    ]


def write(
    plan: plans.Plan,
    catalogue: plans.Plan,
    results_dir: pathlib.Path,
    command: str,
):
  """Writes `<results_dir>/leaderboard` as .md, .html, .csv and its pictures.

  Args:
    plan: What is compared.
    catalogue: All that there is, for the list of what was not run.
    results_dir: The folder that gets the page; it is made.
    command: What makes the page.

  Raises:
    OSError: If a file cannot be read or written.
    RunError: If a file of a run is damaged.
    UserError: If a record of finished runs is damaged.
  """
  results = results_lib.Results(plan)
  path = results_dir / 'leaderboard'
  pictures = drawing.draw(results, path)
  page = page_lib.build_page(
      results, results_lib.Results(catalogue), pictures, command
  )
  for suffix, text in (
      ('.csv', format_csv(results)),
      ('.md', pages.to_markdown(page)),
      ('.html', pages.to_html(page)),
  ):
    with _files.replacing(path.with_suffix(suffix)) as file:
      file.write(text.encode())
  print(f'{path}.html')
