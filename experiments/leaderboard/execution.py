# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists and makes the missing runs of a leaderboard."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import itertools
import json
import pathlib
import time
from typing import NamedTuple, Optional

from experiments import command_line
from experiments import formatting
from experiments import registry
from experiments.leaderboard import board
from experiments.leaderboard import results as results_lib
from experiments.sweep import running
from experiments.sweep import scores
from experiments.sweep import trials as trials_lib
from tff_adaptive import _files

HEADER = ('task', 'method', 'runs', 'expected time', 'command')
# The stages of a leaderboard, in order.
_STAGES = (
    'final runs of the defaults',
    'tuning trials',
    'final runs of the best',
    'final runs of rates of other tasks',
)
_FAILED = 'failed.json'


def list_missing(
    results: results_lib.Results, *, per_method: bool
) -> Iterator[list[str]]:
  """Yields the missing runs, in the columns of `HEADER`.

  Args:
    results: The finished runs.
    per_method: Whether to yield one row per method instead of one per task.

  Yields:
    Task, method or 'all', the number of missing runs, those of rates of other
    tasks only if they are known, their expected time, one after the other, and
    the command that makes them. The last one of several is about all of them.
  """
  plan = results.plan
  pairs = set(plan.pairs)
  methods = list(plan.board.methods)
  groups = {n: [n] for n in methods} if per_method else {board.ALL: methods}
  missing: dict[str, list[int]] = {}
  for task in plan.board.tasks:
    for name, group in groups.items():
      num_runs = sum(
          _count_missing(results, task, method)
          for method in group
          if (task, method) in pairs
      )
      if num_runs:
        missing.setdefault(task, []).append(num_runs)
        yield [task, name, *_describe_missing(plan, {task: num_runs}, [name])]
  if sum(map(len, missing.values())) > 1:
    counts = {task: sum(numbers) for task, numbers in missing.items()}
    about = _describe_missing(plan, counts, list(groups))
    yield [board.ALL, board.ALL, *about]


def describe_missing(results: results_lib.Results) -> str:
  """Returns how many runs are missing and how long they take; empty if none."""
  rows = list(list_missing(results, per_method=False))
  if not rows:
    return ''
  *_, num_runs, time_text, _ = rows[-1]
  return f'{num_runs} runs to go, one after the other: {time_text}'


def _describe_missing(
    plan: results_lib.Plan, counts: Mapping[str, int], methods: Sequence[str]
) -> list[str]:
  """Returns the end of a row of `list_missing`, of the runs by task."""
  times = [_expect_seconds(plan.board, *item) for item in counts.items()]
  known = [seconds for seconds in times if seconds is not None]
  text = formatting.format_seconds(sum(known) if known else None)
  if 0 < len(known) < len(times):
    text = f'over {text}'
  command = _build_command(plan, list(counts), methods)
  return [str(sum(counts.values())), text, command]


def _count_missing(results: results_lib.Results, task: str, method: str) -> int:
  """Returns the number of unfinished runs of a method on a task."""
  num_runs = len(results.unfinished(_find_runs(results, [(task, method)])))
  if results.chosen(task, method) is None:
    num_runs += results.plan.board.tasks[task].num_seeds
  return num_runs


def _expect_seconds(
    rules: board.Leaderboard, task: str, num_runs: int
) -> Optional[float]:
  """Returns the time of sequential runs; None if unknown."""
  per_round = rules.tasks[task].seconds_per_round
  if per_round is None:
    return None
  protocol = rules.protocol
  per_run = protocol.seconds_per_start + protocol.total_rounds * per_round
  return num_runs * per_run


def _build_command(
    plan: results_lib.Plan, tasks: Sequence[str], methods: Sequence[str]
) -> str:
  """Returns the command that runs methods on tasks."""
  places = {name: method.place for name, method in plan.board.methods.items()}
  given = [places.get(name) or name for name in methods]
  needs_data = any(
      registry.ROWS[registry.TASK][task].reads_files for task in tasks
  )
  return command_line.build_command(
      'leaderboard',
      [
          f'--tasks={",".join(tasks)}',
          f'--methods={",".join(given)}',
          *([f'--data_dir={plan.data_dir}'] if needs_data else []),
          f'--output_dir={plan.output_dir}',
          *plan.given,
      ],
  )


def _find_stages(
    results: results_lib.Results, pairs: Iterable[tuple[str, str]]
) -> dict[str, list[trials_lib.Trial]]:
  """Returns the runs of every stage that are known so far."""
  plan = results.plan
  stages: list[list[trials_lib.Trial]] = [[], [], [], []]
  defaults, tuning, tuned, carried = stages
  for task, method in pairs:
    tuning += plan.tuning(task, method)
    for source in plan.board.tasks:
      assignment = results.chosen(source, method)
      if assignment is not None:
        finals = plan.finals(task, method, assignment)
        (tuned if source == task else carried).extend(finals)
    defaults += plan.finals(task, method, results_lib.DEFAULTS)
  # A run may be needed for several reasons.
  return {
      name: list(dict.fromkeys(stage)) for name, stage in zip(_STAGES, stages)
  }


def _find_runs(
    results: results_lib.Results, pairs: Iterable[tuple[str, str]]
) -> list[trials_lib.Trial]:
  """Returns the runs of all stages that are known so far."""
  stages = _find_stages(results, pairs).values()
  return list(dict.fromkeys(itertools.chain(*stages)))


def find_failed(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the runs of a plan that failed when they were last tried.

  Args:
    results: The finished runs.

  Returns:
    The runs, in the order of their execution.

  Raises:
    UserError: If the record of a task is damaged.
  """
  failed = {
      task: _read_failed(pathlib.Path(results.plan.output_dir) / task)
      for task in results.plan.board.tasks
  }
  return [
      trial
      for trial in results.unfinished(_find_runs(results, results.plan.pairs))
      if trial.name in failed[trial.home.name]
  ]


def _note_failed(results: Sequence[scores.RunResult]):
  """Records the failed runs, and removes those that succeeded.

  The next call retries a failed run, which stays on record until it starts.
  """
  for home in dict.fromkeys(result.trial.home for result in results):
    tried = [
        result
        for result in results
        if result.trial.home == home and result.status != scores.WAITING
    ]
    failed = {r.trial.name for r in tried if r.status == scores.FAILED}
    before = _read_failed(home)
    names = sorted((before - {r.trial.name for r in tried}) | failed)
    if set(names) != before:
      _files.write(home / _FAILED, json.dumps(names, indent=2) + '\n')


def _read_failed(home: pathlib.Path) -> set[str]:
  """Returns the names of the runs of a task that failed when last tried."""
  advice = 'run the leaderboard again to find the failing runs'
  return trials_lib.read_json(home / _FAILED, set, advice)


class Ending(NamedTuple):
  """The outcome of a call of `run`.

  Attributes:
    in_time: Whether all runs that could be started were started.
    failed: The failed runs, in order.
  """

  in_time: bool
  failed: list[trials_lib.Trial]


def run(
    plan: results_lib.Plan,
    *,
    num_at_once: int,
    max_seconds: float,
    now: Callable[[], float] = time.monotonic,
) -> Ending:
  """Makes the missing runs, stage by stage.

  A failed run does not stop the others, except those that depend on it, such as
  the final runs of a method that lacks trials.

  Args:
    plan: The plan.
    num_at_once: The number of parallel runs.
    max_seconds: The time after which no further run starts; running ones
      finish.
    now: Returns the seconds of a clock.

  Returns:
    Whether the time sufficed, and the failed runs.

  Raises:
    EnvironmentalError: If another process runs in the same folder.
    UserError: If a record is damaged.
    KeyboardInterrupt: After a signal; its text says how to continue.
  """
  deadline = now() + max_seconds
  failed: list[trials_lib.Trial] = []
  for name in _STAGES:
    results = results_lib.Results(plan)
    unfinished = results.unfinished(_find_stages(results, plan.pairs)[name])
    trials = [trial for trial in unfinished if trial not in failed]
    if not trials:
      continue
    print(f'{name}: {len(trials)} to run', flush=True)
    try:
      ended: Sequence[scores.RunResult] = running.run_trials(
          trials,
          num_at_once=num_at_once,
          write=_note_failed,
          may_start=lambda: now() < deadline,
      )
    except running.TrialsFailed as error:
      ended = error.results
    failed += scores.with_status(ended, scores.FAILED)
    if scores.with_status(ended, scores.WAITING):
      return Ending(False, failed)
  return Ending(True, failed)
