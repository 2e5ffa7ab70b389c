# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts the processes of a sweep: programs, and forks of a warm Python.

A module of Python is run in a fork of a process that has the libraries of a run
imported, once for all runs: a Python of its own would import for ten seconds.
A fork shares nothing with earlier runs.
"""

from collections.abc import Mapping, Sequence
import contextlib
import functools
import multiprocessing
from multiprocessing import connection
from multiprocessing import context as contexts
from multiprocessing import forkserver
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from typing import NamedTuple, Optional, Union

from experiments import command_line
from tff_adaptive import _files

# A command that begins so is run in a fork.
PYTHON = (sys.executable, '-m')
_PRELOAD = 'experiments.sweep.preload'


class Job(NamedTuple):
  """A process to run.

  Attributes:
    command: The program and its arguments.
    log: Its output is appended to this file.
    inherited: Descriptors that it shares.
    environment: Environment variables to set; those of TensorFlow's import may
      come too late.
  """

  command: Sequence[str]
  log: pathlib.Path
  inherited: Sequence[int] = ()
  environment: Mapping[str, str] = {}


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
    log = open(job.log, 'ab')
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
        env={**command_line.ending_with_this(), **job.environment},
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
  # Ctrl-C must not end it while it imports. Forks hear of it again.
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
        args=(
            *job.command[2:3],
            job.command[3:],
            job.log,
            dict(job.environment),
            cores,
            inherited,
        ),
    )
    self._process.start()
    self._lock = threading.Lock()
    assert self._process.pid is not None
    self.pid: int = self._process.pid

  @property
  def returncode(self) -> Optional[int]:
    """The exit code; None until `wait` has returned."""
    return self._process.exitcode

  def wait(self) -> int:
    """Returns the exit code once the process has ended."""
    with self._lock:  # Its end is told once.
      self._process.join()
    code = self._process.exitcode
    assert code is not None
    return code

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
    environment: Mapping[str, str],
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
  os.environ.update(environment)
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
