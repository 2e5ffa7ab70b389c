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
from typing import NamedTuple

from experiments import command_line
from experiments.leaderboards import failures
from experiments.leaderboards import plans
from experiments.leaderboards import results as results_lib
from experiments.leaderboards import stages
from experiments.sweeps import result_tables
from experiments.sweeps import running
from experiments.sweeps import trials as trials_lib


class Ending(NamedTuple):
  """How a call has ended.

  Attributes:
    in_time: Whether every run has begun that could.
    failed: The runs that failed, in their order.
  """

  in_time: bool
  failed: list[trials_lib.Trial]


def run(
    plan: plans.Plan,
    *,
    num_at_once: int,
    max_seconds: float,
    command: Sequence[str],
    now: Callable[[], float] = time.monotonic,
) -> Ending:
  """Runs what is not finished.

  A run that fails leaves the others alone; those that build on it, as the final
  runs of a method that has not all of its trials, are left out.

  Args:
    plan: The plan.
    num_at_once: How many runs work at once.
    max_seconds: After this time no other run begins; those at work end.
    command: The program that takes the flags of a run.
    now: Returns the seconds of a clock.

  Returns:
    How it has ended.

  Raises:
    EnvironmentalError: If another process is at work in the same folder.
    UserError: If a record is damaged.
    KeyboardInterrupt: After a signal that ends; its text says how to go on.
  """
  deadline = now() + max_seconds
  failed: list[trials_lib.Trial] = []
  for name, stage in stages.STAGES.items():
    results = results_lib.Results(plan)
    unfinished = results.unfinished(stage(results))
    trials = [trial for trial in unfinished if trial not in failed]
    if not trials:
      continue
    print(f'{name}: {len(trials)} to run', flush=True)
    ended = _run_trials(
        trials,
        num_at_once=num_at_once,
        command=command,
        may_start=lambda: now() < deadline,
    )
    failed += _with_status(ended, result_tables.FAILED)
    if _with_status(ended, result_tables.WAITING):
      return Ending(False, failed)
  return Ending(True, failed)


def _run_trials(
    trials: Sequence[trials_lib.Trial],
    *,
    num_at_once: int,
    command: Sequence[str],
    may_start: Callable[[], bool],
) -> list[result_tables.RunResult]:
  """Runs trials; the results of those that failed are among the others."""
  ended: list[result_tables.RunResult] = []

  def keep(results: Sequence[result_tables.RunResult]):
    ended[:] = results
    failures.update(results)

  try:
    running.run_trials(
        trials,
        num_at_once=num_at_once,
        measure_fn=lambda trial: result_tables.RunResult(
            trial, result_tables.FINISHED
        ),
        write=keep,
        stream=sys.stdout,
        command=command,
        may_start=may_start,
    )
  except command_line.EnvironmentalError:
    # Where a trial failed this is about it, and all the others have ended.
    if not _with_status(ended, result_tables.FAILED):
      raise
  return ended


def _with_status(
    results: Sequence[result_tables.RunResult], status: str
) -> list[trials_lib.Trial]:
  return [result.trial for result in results if result.status == status]
