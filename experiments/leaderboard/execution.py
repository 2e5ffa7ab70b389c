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
import json
import pathlib
import sys
import time
from typing import NamedTuple

from experiments import command_line
from experiments.leaderboard import plans
from experiments.leaderboard import results as results_lib
from experiments.sweep import result_tables
from experiments.sweep import running
from experiments.sweep import trials as trials_lib
from tff_adaptive import _files

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


STAGES: dict[str, _Stage] = {
    'tuning trials': tuning,
    'final runs of the best': tuned,
    'final runs of rates of other tasks': carried,
    'final runs of the defaults': defaults,
}


def known_trials(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the runs of all stages, as far as they are known by now."""
  return plans.unite(
      trial for stage in STAGES.values() for trial in stage(results)
  )


_FILE_NAME = 'failed.json'


def update(results: Sequence[result_tables.RunResult]):
  """Notes which runs have failed, and which of those noted have not any more.

  A run that fails is tried again by the next call, and stays noted until it has
  begun.

  Args:
    results: Of runs that were to begin.

  Raises:
    UserError: If the note of a task is damaged.
    WriteError: If it cannot be written.
  """
  for home in dict.fromkeys(result.trial.home for result in results):
    tried = [
        result
        for result in results
        if result.trial.home == home and result.status != result_tables.WAITING
    ]
    failed = {r.trial.name for r in tried if r.status == result_tables.FAILED}
    before = _read(home)
    names = sorted((before - {r.trial.name for r in tried}) | failed)
    if set(names) != before:
      with _files.replacing(home / _FILE_NAME) as file:
        file.write((json.dumps(names, indent=2) + '\n').encode())


def _read(home: pathlib.Path) -> set[str]:
  """Returns the names of the runs of a task that failed when last tried."""
  path = home / _FILE_NAME
  try:
    return set(json.loads(path.read_text(encoding='utf-8')))
  except FileNotFoundError:
    return set()
  except (TypeError, ValueError) as error:
    raise command_line.UserError(
        f'{path} is damaged ({error}); remove it, and run the leaderboard '
        'again to know which runs fail'
    ) from error


def find(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the runs of a plan that failed when they were last tried.

  Args:
    results: What was measured.

  Returns:
    The runs, in the order in which they are made.

  Raises:
    UserError: If the note of a task is damaged.
  """
  failed = {
      task: _read(pathlib.Path(results.plan.output_dir) / task)
      for task in results.plan.board.tasks
  }
  return [
      trial
      for trial in results.unfinished(known_trials(results))
      if trial.name in failed[trial.home.name]
  ]


def method_of(trial: trials_lib.Trial) -> str:
  """Returns the name of the method of a run."""
  return trial.name.partition('/')[0]


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
  for name, stage in STAGES.items():
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
    update(results)

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
