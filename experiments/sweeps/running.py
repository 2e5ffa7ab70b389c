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
"""Runs the trials of a sweep and keeps its files."""

from collections.abc import Callable, Mapping, Sequence
import contextlib
import math
import pathlib
import sys
from typing import Optional, TextIO

from experiments import command_line
from experiments import folder_checks
from experiments.run_results import run_folder
from experiments.sweeps import progress as progress_lib
from experiments.sweeps import records
from experiments.sweeps import result_tables
from experiments.sweeps import scheduling
from experiments.sweeps import scores
from experiments.sweeps import trials as trials_lib

# The program that takes the flags of a trial.
TRAIN = (sys.executable, '-m', 'experiments.train')
_GPUS = pathlib.Path('/proc/driver/nvidia/gpus')


def measure(
    trial: trials_lib.Trial,
    *,
    metric: str,
    higher_is_better: bool,
    selection: Optional[scores.Selection] = None,
) -> result_tables.RunResult:
  """Returns the result of a finished trial.

  Args:
    trial: The trial.
    metric: What is said of it: an evaluation's, or a column of metrics.csv.
    higher_is_better: Whether the largest value of the metric is the best.
    selection: How is chosen; None if nothing is.

  Returns:
    The result.

  Raises:
    UserError: If a file of the run is damaged.
    EnvironmentalError: If a file of it cannot be read.
  """
  with (
      command_line.errors_as(command_line.EnvironmentalError, OSError),
      command_line.errors_as(command_line.UserError, run_folder.RunError),
  ):
    run = run_folder.read_run(trial.folder)
  return result_tables.RunResult(
      trial,
      result_tables.FINISHED,
      metric=metric,
      score=(
          scores.compute_score(selection, run, metric)
          if selection
          else math.nan
      ),
      measured=scores.measure(run, metric, higher_is_better=higher_is_better),
  )


_Write = Callable[[Sequence[result_tables.RunResult]], None]


class _Bookkeeper:
  """Keeps records, results and the picture of progress up to date."""

  def __init__(
      self,
      trials: Sequence[trials_lib.Trial],
      measure_fn: Callable[[trials_lib.Trial], result_tables.RunResult],
      write: _Write,
      stream: TextIO,
  ):
    self._measure_fn = measure_fn
    self._write = write
    self._records = {
        home: records.Record(home)
        for home in dict.fromkeys(trial.home for trial in trials)
    }
    self.results = {
        trial: (
            self._measure_fn(trial)
            if self._records[trial.home].is_finished(trial)
            else result_tables.RunResult(trial, result_tables.WAITING)
        )
        for trial in trials
    }
    for trial, result in self.results.items():
      if result.status == result_tables.FINISHED:
        self._records[trial.home].add(trial)
    self.waiting = {
        str(trial.folder): trial
        for trial, result in self.results.items()
        if result.status == result_tables.WAITING
    }
    self._progress = progress_lib.Progress(
        list(self.waiting.values()), len(trials) - len(self.waiting), stream
    )
    self._write(list(self.results.values()))

  def started(self, job: scheduling.Job):
    """Notes that a trial is at work."""
    trial = self.waiting[job.name]
    self.results[trial] = result_tables.RunResult(trial, result_tables.RUNNING)
    self._progress.started(trial)

  def ended(self, job: scheduling.Job, code: int):
    """Records how a trial ended, and writes the tables again."""
    trial = self.waiting[job.name]
    self._progress.ended(trial, code)
    if code:
      self.results[trial] = result_tables.RunResult(trial, result_tables.FAILED)
    else:
      self._records[trial.home].add(trial)
      self.results[trial] = self._measure_fn(trial)
    self._write(list(self.results.values()))

  def tick(self):
    """Shows the progress."""
    self._progress.tick()

  def interrupted(self):
    """Notes that the trials that were at work are to go on later."""
    for trial in self.with_status(result_tables.RUNNING):
      self.results[trial] = result_tables.RunResult(
          trial, result_tables.WAITING
      )
    self._write(list(self.results.values()))

  def close(self):
    """Leaves the terminal to others."""
    self._progress.close()

  def with_status(self, status: str) -> list[trials_lib.Trial]:
    """Returns the trials that are in a state."""
    return [
        trial
        for trial, result in self.results.items()
        if result.status == status
    ]


def default_jobs(trials: Sequence[trials_lib.Trial]) -> int:
  """Returns how many trials run at once if nothing is said.

  Args:
    trials: Those that are to run.

  Returns:
    One a core, and no more than there are trials; one at all on a machine with
    a GPU, unless the trials are to leave that alone.
  """
  devices = {str(trial.hparams.get('devices')) for trial in trials}
  if _GPUS.is_dir() and not all(name.startswith('CPU') for name in devices):
    return 1
  return max(1, min(len(scheduling.available_cores()), len(trials)))


def run_trials(
    trials: Sequence[trials_lib.Trial],
    *,
    measure_fn: Callable[[trials_lib.Trial], result_tables.RunResult],
    write: _Write,
    stream: TextIO,
    command: Sequence[str],
    num_at_once: Optional[int] = None,
    may_start: Callable[[], bool] = lambda: True,
) -> list[result_tables.RunResult]:
  """Runs the trials that are not finished.

  Args:
    trials: The trials, checked.
    measure_fn: Makes numbers of a finished trial.
    write: Takes the results of all trials, in their order, whenever one of them
      has changed.
    stream: Where progress is shown.
    command: The program that takes the flags of a trial.
    num_at_once: How many run at once. Default: `default_jobs` of those that are
      not finished.
    may_start: Whether another trial may begin. By default all begin.

  Returns:
    The results: all of them finished, unless some were not to begin any more.

  Raises:
    EnvironmentalError: If trials failed, after the others have ended; or if
      another sweep is at work in the same folder.
    UserError: If a record, or a run that is finished, is damaged.
    KeyboardInterrupt: After a signal that ends; its text says how to go on.
  """
  with contextlib.ExitStack() as stack:
    homes = dict.fromkeys(trial.home for trial in trials)
    locks = {
        home: stack.enter_context(folder_checks.locked(home)) for home in homes
    }
    keeper = _Bookkeeper(trials, measure_fn, write, stream)
    stack.callback(keeper.close)
    waiting = list(keeper.waiting.values())
    try:
      scheduling.run_jobs(
          [_build_job(trial, command, locks) for trial in waiting],
          num_at_once=num_at_once or default_jobs(waiting),
          observer=keeper,
          may_start=may_start,
      )
    except scheduling.Interrupted:
      keeper.interrupted()
      num_finished = len(keeper.with_status(result_tables.FINISHED))
      raise KeyboardInterrupt(
          f'Interrupted: {num_finished} of {len(trials)} trials are finished; '
          'run the same command again to go on.'
      ) from None
  _check_none_failed(keeper)
  return list(keeper.results.values())


def _build_job(
    trial: trials_lib.Trial,
    command: Sequence[str],
    locks: Mapping[pathlib.Path, int],
) -> scheduling.Job:
  return scheduling.Job(
      str(trial.folder),
      (*command, *trial.arguments),
      trial.log,
      (locks[trial.home],),
  )


def _check_none_failed(keeper: _Bookkeeper):
  failed = keeper.with_status(result_tables.FAILED)
  if failed:
    names = ', '.join(f'{trial.name} ({trial.log})' for trial in failed)
    raise command_line.EnvironmentalError(
        f'{len(failed)} of {len(keeper.results)} trials failed, see their '
        f'logs: {names}'
    )
