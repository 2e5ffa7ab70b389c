# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs programs in forks of one process that has TensorFlow and TFF imported.

A fork begins at once, where a Python of its own would import for ten seconds.
It ends without touching the process of the tests.
"""

from collections.abc import Callable, Mapping
import contextlib
import functools
import multiprocessing
from multiprocessing import context as contexts
from multiprocessing import forkserver
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import time
from typing import Any, Optional
from unittest import mock

import psutil

ROOT = pathlib.Path(__file__).resolve().parents[1]
_TIMEOUT_SECONDS = 1800


def run_command(
    *command: str, cwd: pathlib.Path = ROOT, **environment: str
) -> subprocess.CompletedProcess:
  """Runs a command to its end, in this environment and these variables."""
  return subprocess.run(
      command,
      cwd=cwd,
      env={**os.environ, **environment},
      capture_output=True,
      text=True,
      check=False,
  )


def ends(pid: int, seconds: float = 10.0) -> bool:
  """Waits for a process, of any parent; returns whether it ended."""
  deadline = time.monotonic() + seconds
  with contextlib.suppress(psutil.NoSuchProcess):
    while psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
      if time.monotonic() > deadline:
        return False
      time.sleep(0.01)
  return True


@functools.cache
def _forks() -> contexts.ForkServerContext:
  """Starts the process that is forked, once."""
  context = multiprocessing.get_context('forkserver')
  context.set_forkserver_preload(['experiments.sweep.preload'])
  path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
  with mock.patch.dict(os.environ, PYTHONPATH=path):
    forkserver.ensure_running()
  return context


def _enter_child(
    folder: str,
    environment: Mapping[str, str],
    output: str,
    function: Callable[..., Any],
    *arguments: Any,
):
  """Calls a function in this process, which is a fork."""
  os.setsid()
  for number, path, flags in (
      (0, os.devnull, os.O_RDONLY),
      (1, f'{output}/out', os.O_WRONLY | os.O_CREAT | os.O_APPEND),
      (2, f'{output}/err', os.O_WRONLY | os.O_CREAT | os.O_APPEND),
  ):
    os.dup2(os.open(path, flags, 0o644), number)
  os.environ.clear()
  os.environ.update(environment)
  os.chdir(folder)
  # A fork ends without the handlers by which TensorFlow removes its files.
  tempfile.tempdir = output
  function(*arguments)


class Program:
  """A program that was started.

  Attributes:
    pid: The id of its process, which is also that of its group.
  """

  def __init__(
      self,
      function: Callable[..., Any],
      *arguments: Any,
      cwd: pathlib.Path = ROOT,
      merged: bool = False,
      **environment: str,
  ):
    """Starts a function of a module in a fork.

    With `merged` the standard error is part of the output.
    """
    self._folder = tempfile.TemporaryDirectory()
    output = pathlib.Path(self._folder.name)
    (output / 'out').touch()
    if merged:
      (output / 'err').symlink_to(output / 'out')
    else:
      (output / 'err').touch()
    self._process = _forks().Process(
        target=_enter_child,
        args=(
            str(cwd),
            {**os.environ, **environment},
            str(output),
            function,
            *arguments,
        ),
    )
    self._process.start()
    self._deadline = time.monotonic() + _TIMEOUT_SECONDS
    self.pid: int = self._process.pid or 0

  def poll(self) -> Optional[int]:
    """Returns its exit code, None while it runs; kills it if it hangs."""
    if time.monotonic() > self._deadline:
      self.kill()
    return self._process.exitcode

  def kill(self):
    """Ends it with SIGKILL."""
    self._process.kill()

  def wait(self) -> subprocess.CompletedProcess:
    """Waits for its end; returns how it ended and what it wrote."""
    self._process.join(_TIMEOUT_SECONDS)
    if self._process.exitcode is None:
      self._process.kill()
      self._process.join()
    texts = [
        '' if path.is_symlink() else path.read_text(encoding='utf-8')
        for path in (pathlib.Path(self._folder.name, n) for n in ('out', 'err'))
    ]
    code = self._process.exitcode
    assert code is not None
    self._folder.cleanup()
    return subprocess.CompletedProcess([], code, *texts)


def run_module(name: str, *arguments: str):
  """Runs a module in this process, as `python -m` does."""
  sys.argv = [name, *arguments]
  runpy.run_module(name, run_name='__main__', alter_sys=True)


def start(module: str, *arguments: str, **options: Any) -> Program:
  """Starts `python -m` of a module, with the options of `Program`."""
  return Program(run_module, module, *arguments, **options)


def run(
    module: str, *arguments: str, **options: Any
) -> subprocess.CompletedProcess:
  """Runs `python -m` of a module to its end; see `start`."""
  return start(module, *arguments, **options).wait()
