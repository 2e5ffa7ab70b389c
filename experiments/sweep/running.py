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

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import math
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Optional, Protocol, TextIO

from experiments import command_line
from experiments import folders
from experiments.run_results import run_folder
from experiments.sweep import progress as progress_lib
from experiments.sweep import result_tables
from experiments.sweep import scores
from experiments.sweep import trials as trials_lib
from tff_adaptive import _files

_POLL_SECONDS = 0.1
# How long a process may take to save what it has before it is killed.
_GRACE_SECONDS = 60.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
  """Ctrl-C or another signal has ended the processes."""


@dataclasses.dataclass(frozen=True)
class Job:
  """A process to run.

  Attributes:
    name: What it is called.
    command: The program and its arguments.
    log: What it prints is appended to this file.
    inherited: Descriptors that it shares.
  """

  name: str
  command: tuple[str, ...]
  log: pathlib.Path
  inherited: tuple[int, ...] = ()


class Observer(Protocol):
  """What is told how the jobs come along; if it raises, they are killed."""

  def started(self, job: Job) -> None:
    """Takes a job that has been started."""

  def ended(self, job: Job, code: int) -> None:
    """Takes a job that has ended, and its exit status."""

  def tick(self) -> None:
    """Is called many times a second."""


@dataclasses.dataclass(frozen=True)
class _Running:
  job: Job
  slot: int
  process: subprocess.Popen


def available_cores() -> list[int]:
  """Returns the cores that this process may use, by their numbers."""
  try:
    return sorted(os.sched_getaffinity(0))
  except AttributeError:  # No such call on this platform.
    return list(range(os.cpu_count() or 1))


def split_cores(cores: Sequence[int], num_slots: int) -> list[list[int]]:
  """Returns the share of each of several processes.

  Args:
    cores: The cores there are.
    num_slots: How many processes work at once.

  Returns:
    Parts of about the same size; processes that are more than the cores share
    them, one each.

  Example:

    >>> split_cores([0, 1, 2], 2)
    [[0], [1, 2]]
  """
  if num_slots > len(cores):
    return [[cores[slot % len(cores)]] for slot in range(num_slots)]
  ends = [slot * len(cores) // num_slots for slot in range(num_slots + 1)]
  return [list(cores[a:b]) for a, b in zip(ends, ends[1:])]


def _start(job: Job, cores: Sequence[int]) -> subprocess.Popen:
  """Starts a job in a session of its own, which a terminal does not reach."""
  with _files.write_errors_of(job.log):
    job.log.parent.mkdir(parents=True, exist_ok=True)
    log = open(job.log, 'ab')
  with log:
    process = subprocess.Popen(
        job.command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=job.inherited,
        env=command_line.ending_with_this(),
    )
  # From here and not in the child before it begins: code between fork and exec
  # can hang where this process has threads. Its own threads come later, and
  # inherit the cores.
  if hasattr(os, 'sched_setaffinity'):
    # It may have ended, or may not be pinned in this container.
    with contextlib.suppress(OSError):
      os.sched_setaffinity(process.pid, cores)
  return process


@contextlib.contextmanager
def _signals_noted() -> Iterator[list[int]]:
  """Notes signals in place of ending at any point; yields the notes."""
  noted: list[int] = []
  numbers = list(_SIGNALS)
  if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    numbers.remove(signal.SIGHUP)  # Started by nohup.
  before = {
      number: signal.signal(number, lambda number, _: noted.append(number))
      for number in numbers
  }
  try:
    yield noted
  finally:
    for number, handler in before.items():
      signal.signal(number, handler)


def _interrupt(running: Sequence[_Running], noted: Sequence[int]):
  """Lets processes save what they have; a second signal kills them."""
  num_noted = len(noted)
  for item in running:
    item.process.send_signal(signal.SIGINT)
  deadline = time.monotonic() + _GRACE_SECONDS
  while time.monotonic() < deadline and len(noted) == num_noted:
    if all(item.process.poll() is not None for item in running):
      break
    time.sleep(_POLL_SECONDS)


def run_jobs(
    jobs: Sequence[Job],
    *,
    num_at_once: int,
    observer: Observer,
    may_start: Callable[[], bool] = lambda: True,
    poll_seconds: float = _POLL_SECONDS,
):
  """Runs processes, several at once, in their order.

  Each is pinned to its share of the cores, where the platform can do that. One
  that fails does not stop the others. To be called in the main thread, where
  signals arrive.

  Args:
    jobs: The processes.
    num_at_once: How many run at once.
    observer: What is told of starts and ends.
    may_start: Whether another process may begin; once it says no, those that
      work end and no other one begins. By default all begin.
    poll_seconds: How often the processes are looked at.

  Raises:
    Interrupted: After SIGINT, SIGTERM or SIGHUP: the processes have got SIGINT
      and ended, or were killed after a minute or at the second signal.
    WriteError: If a log cannot be written.
  """
  cores = split_cores(available_cores(), num_at_once)
  free = list(range(num_at_once))
  waiting = list(reversed(jobs))
  running: list[_Running] = []
  with _signals_noted() as noted:
    try:
      while waiting or running:
        if not may_start():
          waiting.clear()
        while waiting and free and not noted:
          job, slot = waiting.pop(), free.pop(0)
          running.append(_Running(job, slot, _start(job, cores[slot])))
          observer.started(job)
        if noted:
          _interrupt(running, noted)
          raise Interrupted
        for item in [r for r in running if r.process.poll() is not None]:
          command_line.kill_group(item.process)
          running.remove(item)
          free.append(item.slot)
          observer.ended(item.job, item.process.returncode)
        observer.tick()
        time.sleep(poll_seconds)
    finally:
      for item in running:
        command_line.kill_group(item.process)


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
        home: trials_lib.Record(home)
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

  def started(self, job: Job):
    """Notes that a trial is at work."""
    trial = self.waiting[job.name]
    self.results[trial] = result_tables.RunResult(trial, result_tables.RUNNING)
    self._progress.started(trial)

  def ended(self, job: Job, code: int):
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
  return max(1, min(len(available_cores()), len(trials)))


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
    locks = {home: stack.enter_context(folders.locked(home)) for home in homes}
    keeper = _Bookkeeper(trials, measure_fn, write, stream)
    stack.callback(keeper.close)
    waiting = list(keeper.waiting.values())
    try:
      run_jobs(
          [_build_job(trial, command, locks) for trial in waiting],
          num_at_once=num_at_once or default_jobs(waiting),
          observer=keeper,
          may_start=may_start,
      )
    except Interrupted:
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
) -> Job:
  return Job(
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
