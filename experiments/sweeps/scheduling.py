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
"""Several processes at once, each on its own cores, none left behind."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import time
from typing import Protocol

from experiments import process_groups
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
        env=process_groups.ending_with_this(),
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
          process_groups.kill_group(item.process)
          running.remove(item)
          free.append(item.slot)
          observer.ended(item.job, item.process.returncode)
        observer.tick()
        time.sleep(poll_seconds)
    finally:
      for item in running:
        process_groups.kill_group(item.process)
