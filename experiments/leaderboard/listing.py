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
"""What is still to run, with its command and its expected time."""

from collections.abc import Iterator
import shlex
from typing import NamedTuple, Optional

from experiments import registry
from experiments.leaderboard import definitions
from experiments.leaderboard import plans
from experiments.leaderboard import results as results_lib
from experiments.run_results import formatting

HEADER = ('task', 'method', 'runs', 'expected time', 'command')
_BINARY = ('python', '-m', 'experiments.leaderboard')


class Entry(NamedTuple):
  """What is to run of a task.

  Attributes:
    task: The name of the task.
    methods: The method, or 'all'.
    num_runs: How many runs are missing, those of carried rates not counted.
    time: The expected time, one run after the other.
    command: What runs them.
  """

  task: str
  methods: str
  num_runs: int
  time: str
  command: str


def list_entries(
    results: results_lib.Results, *, per_method: bool
) -> Iterator[Entry]:
  """Yields what is to run.

  Args:
    results: What has been measured.
    per_method: Whether every method has an entry of its own, not every task.

  Yields:
    The entries, but for those that are finished.
  """
  board = results.plan.board
  groups = {name: [name] for name in board.methods}
  if not per_method:
    groups = {definitions.ALL: list(board.methods)}
  for task in board.tasks:
    for name, methods in groups.items():
      num_runs = sum(
          count_missing(results, task, method)
          for method in methods
          if (task, method) in results.plan.pairs
      )
      if num_runs:
        yield Entry(
            task,
            name,
            num_runs,
            expect_time(board, task, num_runs),
            build_command(results.plan, task, name),
        )


def count_missing(results: results_lib.Results, task: str, method: str) -> int:
  """Returns how many runs of a method on a task are not finished."""
  plan = results.plan
  known = plan.tuning(task, method)
  known += plan.finals(task, method, plans.DEFAULTS)
  chosen = results.chosen(task, method)
  if chosen is None:
    return len(results.unfinished(known)) + plan.board.tasks[task].num_seeds
  known += plan.finals(task, method, chosen)
  return len(results.unfinished(plans.unite(known)))


def expect_time(
    board: definitions.Leaderboard, task: str, num_runs: int
) -> str:
  """Returns the time of runs one after the other, in words."""
  per_round: Optional[float] = board.tasks[task].seconds_per_round
  if per_round is None:
    return 'unknown'
  rules = board.protocol
  per_run = rules.seconds_per_start + rules.total_rounds * per_round
  return formatting.format_seconds(num_runs * per_run)


def build_command(plan: plans.Plan, task: str, methods: str) -> str:
  """Returns the command that runs methods on a task."""
  row = registry.ROWS[registry.TASK][task]
  needs_data = 'data_dir' in row.supplied
  return shlex.join(
      [
          *_BINARY,
          f'--tasks={task}',
          f'--methods={methods}',
          *([f'--data_dir={plan.data_dir}'] if needs_data else []),
          f'--output_dir={plan.output_dir}',
          *plan.given,
      ]
  )
