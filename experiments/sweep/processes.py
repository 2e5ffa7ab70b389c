# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the processes of a sweep: programs, and forks of a warm Python.

A module of Python is run in a fork of a process that has the libraries of a run
imported, once for all runs: a Python of its own would import for ten seconds.
A fork shares nothing with earlier runs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
import contextlib
import functools
import multiprocessing
from multiprocessing import connection
from multiprocessing import context as contexts
from multiprocessing import forkserver
from multiprocessing import resource_tracker
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any, NamedTuple, Optional, Union

from experiments import command_line
from tff_adaptive import _files

# A command that begins so is run in a fork.
PYTHON = (sys.executable, '-m')
_PRELOAD = 'experiments.sweep.preload'
_POLL_SECONDS = 0.1
# The time for a process to save its state before it is killed.
_GRACE_SECONDS = 60.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
  """A signal such as Ctrl-C ended the processes."""


class Job(NamedTuple):
  """A process to run.

  Attributes:
    command: The program and its arguments.
    log: Its output is appended to this file.
    inherited: Descriptors that it shares.
  """

  command: Sequence[str]
  log: pathlib.Path
  inherited: Sequence[int] = ()


def start(job: Job, cores: Sequence[int]) -> Union[subprocess.Popen, 'Fork']:
  """Starts a job in a session of its own, which a terminal does not reach.

  Args:
    job: The job.
    cores: The cores that it may use, where the platform can do that.

  Returns:
    The process.

  Raises:
    WriteError: If its log cannot be written.
  """
  with _files.write_errors_of(job.log):
    job.log.parent.mkdir(parents=True, exist_ok=True)
    log = open(job.log, 'ab', opener=_files.open_no_link)
  with log:
    if tuple(job.command[:2]) == PYTHON:
      return Fork(job, cores)
    process = subprocess.Popen(
        job.command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        pass_fds=job.inherited,
    )
  # From here and not in the child before it begins: code between fork and exec
  # can hang where this process has threads. Its own threads come later, and
  # inherit the cores.
  _pin(process.pid, cores)
  return process


def _pin(pid: int, cores: Sequence[int]):
  """Limits a process to some cores."""
  if hasattr(os, 'sched_setaffinity'):
    # It may have ended, or may not be pinned in this container.
    with contextlib.suppress(OSError):
      os.sched_setaffinity(pid, cores)


@functools.cache
def _forks() -> contexts.ForkServerContext:
  """Starts the process that is forked, once; returns the context of forks."""
  context = multiprocessing.get_context('forkserver')
  context.set_forkserver_preload([_PRELOAD])
  # Ctrl-C must not end it while it imports. Forks hear of it again. Its start
  # would start the tracker, too, which ends by letting Ctrl-C through.
  resource_tracker.ensure_running()
  before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
  try:
    forkserver.ensure_running()
  finally:
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
  return context


class Fork:
  """A module that runs in a fork, with the interface of `subprocess.Popen`.

  Attributes:
    pid: The id of the process, which is also that of its group.
  """

  def __init__(self, job: Job, cores: Sequence[int]):
    """Starts the fork.

    Args:
      job: The job: `python -m`, the module and its arguments.
      cores: The cores that it may use.
    """
    # As connections, so that multiprocessing passes them on.
    inherited = [connection.Connection(os.dup(n)) for n in job.inherited]
    self._process = _forks().Process(
        target=_run_module,
        args=(*job.command[2:3], job.command[3:], job.log, cores, inherited),
    )
    self._process.start()
    self._command = job.command
    self._lock = threading.Lock()
    assert self._process.pid is not None
    self.pid: int = self._process.pid

  @property
  def returncode(self) -> Optional[int]:
    """The exit code; None until `wait` has returned."""
    return self._process.exitcode

  def wait(self, timeout: Optional[float] = None) -> int:
    """Returns the exit code once the process has ended.

    Args:
      timeout: The seconds after which a `subprocess.TimeoutExpired` is raised;
        None (the default) for never.
    """
    with self._lock:  # Its end is told once.
      self._process.join(timeout)
    if self.returncode is None:
      raise subprocess.TimeoutExpired(self._command, timeout or 0.0)
    return self.returncode

  def kill(self):
    """Ends it, unless it has ended."""
    self._process.kill()

  def send_signal(self, number: int):
    """Sends a signal, unless the process has ended."""
    with contextlib.suppress(ProcessLookupError):
      os.kill(self.pid, number)


def _run_module(
    module: str,
    arguments: Sequence[str],
    log: pathlib.Path,
    cores: Sequence[int],
    inherited: Sequence[connection.Connection],
):
  """Runs a module in this process, a fork, as `python -m` does."""
  del inherited  # The process holds them until it ends.
  os.setsid()
  signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
  # A sweep in the background of a shell ignores it, which a fork inherits.
  signal.signal(signal.SIGINT, signal.default_int_handler)
  for number, path, flags in (
      (0, os.devnull, os.O_RDONLY),
      (1, log, os.O_WRONLY | os.O_APPEND),
      (2, log, os.O_WRONLY | os.O_APPEND),
  ):
    os.dup2(os.open(path, flags), number)
  _pin(0, cores)
  threading.Thread(target=_end_with_parent, daemon=True).start()
  sys.argv = [module, *arguments]
  # A fork ends without the handlers by which TensorFlow removes its files.
  with tempfile.TemporaryDirectory() as folder:
    tempfile.tempdir = folder
    runpy.run_module(module, run_name='__main__', alter_sys=True)


def _end_with_parent():
  """Asks this process to save and end when the one that started it ends."""
  parent = multiprocessing.parent_process()
  assert parent is not None
  parent.join()
  os.kill(os.getpid(), signal.SIGTERM)


def available_cores() -> list[int]:
  """Returns the numbers of the cores that this process may use."""
  try:
    return sorted(os.sched_getaffinity(0))
  except AttributeError:  # No such call on this platform.
    return list(range(os.cpu_count() or 1))


def split_cores(cores: Sequence[int], num_slots: int) -> list[list[int]]:
  """Splits cores among parallel processes.

  Args:
    cores: The available cores.
    num_slots: The number of parallel processes.

  Returns:
    Parts of about equal size. If there are more processes than cores, each
    process gets one core, and processes share cores.

  Example:

    >>> split_cores([0, 1, 2], 2)
    [[0], [1, 2]]
  """
  if num_slots > len(cores):
    return [[cores[slot % len(cores)]] for slot in range(num_slots)]
  ends = [slot * len(cores) // num_slots for slot in range(num_slots + 1)]
  return [list(cores[a:b]) for a, b in zip(ends, ends[1:])]


@contextlib.contextmanager
def _signals_noted() -> Iterator[list[int]]:
  """Records signals instead of ending at any point; yields the record."""
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


class _Running(NamedTuple):
  trial: Any
  cores: list[int]
  process: Any


def _interrupt(
    running: Mapping[futures.Future, _Running], noted: Sequence[int]
):
  """Interrupts processes and waits for them, until a second signal."""
  num_noted = len(noted)
  for item in running.values():
    item.process.send_signal(signal.SIGINT)
  deadline = time.monotonic() + _GRACE_SECONDS
  pending = set(running)
  while pending and time.monotonic() < deadline and len(noted) == num_noted:
    pending = futures.wait(pending, _POLL_SECONDS).not_done


def run_jobs(
    jobs: Mapping[Any, Job],
    *,
    num_at_once: int,
    observer: Any,
    may_start: Callable[[], bool] = lambda: True,
):
  """Runs processes in order, several in parallel.

  Each process is pinned to its share of the cores, if the platform supports it.
  A failed process does not stop the others. Must be called in the main thread,
  which receives the signals. The threads of the executor only wait.

  Args:
    jobs: The processes by trial.
    num_at_once: The number of parallel processes.
    observer: A `Keeper`, notified of starts, ends and, many times a second,
      ticks; if it raises, the processes are killed.
    may_start: Returns whether another process may start. Once it returns False,
      running processes finish and no others start.

  Raises:
    Interrupted: After SIGINT, SIGTERM or SIGHUP. The processes got SIGINT and
      ended, or were killed after a minute or at the second signal.
    WriteError: If a log cannot be written.
  """
  free = split_cores(available_cores(), num_at_once)
  waiting = list(jobs)
  running: dict[futures.Future, _Running] = {}
  with (
      _signals_noted() as noted,
      futures.ThreadPoolExecutor(num_at_once) as executor,
  ):
    try:
      while waiting or running:
        if not may_start():
          waiting.clear()
        while waiting and free and not noted:
          trial, cores = waiting.pop(0), free.pop(0)
          process = start(jobs[trial], cores)
          item = _Running(trial, cores, process)
          running[executor.submit(process.wait)] = item
          observer.started(trial)
        if noted:
          _interrupt(running, noted)
          raise Interrupted
        done, _ = futures.wait(running, _POLL_SECONDS, futures.FIRST_COMPLETED)
        for future in done:
          item = running.pop(future)
          command_line.kill_group(item.process)
          free.append(item.cores)
          observer.ended(item.trial, item.process.returncode)
        observer.tick()
    finally:
      for item in running.values():
        command_line.kill_group(item.process)


def read_last_line(log: pathlib.Path) -> str:
  """Returns the last non-empty line of a log; '' if it cannot be read."""
  try:
    text = log.read_text(encoding='utf-8', errors='replace')
  except OSError:
    return ''
  return next((x for x in reversed(text.splitlines()) if x.strip()), '').strip()
