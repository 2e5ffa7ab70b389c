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
"""Runs a leaderboard: trials first, then the chosen, within a time."""

from collections.abc import Callable, Sequence
import sys
import time

from experiments.leaderboards import plans
from experiments.leaderboards import results as results_lib
from experiments.sweeps import result_tables
from experiments.sweeps import running
from experiments.sweeps import trials as trials_lib

# Returns the runs of a stage, as far as they are known.
_Stage = Callable[[results_lib.Results], list[trials_lib.Trial]]


def tuning(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the tuning trials of all tasks and methods."""
  plan = results.plan
  return plans.unite(t for pair in plan.pairs for t in plan.tuning(*pair))


def tuned(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the final runs of what was chosen on the same task."""
  return _finals(results, lambda task: [task])


def carried(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the final runs of what was chosen on the other tasks."""
  return _finals(
      results, lambda task: [t for t in results.plan.board.tasks if t != task]
  )


def defaults(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the final runs of the library's defaults."""
  plan = results.plan
  return plans.unite(
      trial
      for pair in plan.pairs
      for trial in plan.finals(*pair, plans.DEFAULTS)
  )


def _finals(
    results: results_lib.Results, sources_of: Callable[[str], Sequence[str]]
) -> list[trials_lib.Trial]:
  """Returns the final runs of assignments that are known by now."""
  found = []
  for task, method in results.plan.pairs:
    for source in sources_of(task):
      assignment = results.chosen(source, method)
      if assignment is not None:
        found += results.plan.finals(task, method, assignment)
  return plans.unite(found)


# In the order in which they answer questions, should the time not suffice.
STAGES: dict[str, _Stage] = {
    'tuning trials': tuning,
    'final runs of the best': tuned,
    'final runs of rates of other tasks': carried,
    'final runs of the defaults': defaults,
}


def run(
    plan: plans.Plan,
    *,
    num_at_once: int,
    max_seconds: float,
    command: Sequence[str],
    now: Callable[[], float] = time.monotonic,
) -> bool:
  """Runs what is not finished.

  Args:
    plan: The plan.
    num_at_once: How many runs work at once.
    max_seconds: After this time no other run begins; those at work end.
    command: The program that takes the flags of a run.
    now: Returns the seconds of a clock.

  Returns:
    Whether all is finished.

  Raises:
    EnvironmentalError: If runs failed, or another process is at work in the
      same folder.
    UserError: If a record is damaged.
    KeyboardInterrupt: After a signal that ends; its text says how to go on.
  """
  deadline = now() + max_seconds
  for name, stage in STAGES.items():
    results = results_lib.Results(plan)
    trials = results.unfinished(stage(results))
    if not trials:
      continue
    print(f'{name}: {len(trials)} to run', flush=True)
    ended = running.run_trials(
        trials,
        num_at_once=num_at_once,
        measure_fn=lambda trial: result_tables.RunResult(
            trial, result_tables.FINISHED
        ),
        write=lambda _: None,
        stream=sys.stdout,
        command=command,
        may_start=lambda: now() < deadline,
    )
    if any(result.status != result_tables.FINISHED for result in ended):
      return False
  return True
