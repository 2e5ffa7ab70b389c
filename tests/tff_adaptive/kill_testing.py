# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Kills a process at a chosen instant between what it does with its files."""

from collections.abc import Callable, Iterator
import contextlib
import functools
import os
import pathlib
import re
import signal
import sys
import traceback
from typing import Any
from unittest import mock
import warnings

import numpy as np

from tff_adaptive.simulation import metrics_writers

_FILE_OPERATIONS = ('fsync', 'mkdir', 'replace', 'unlink')


class Instants:
  """Numbers the instants of a process between what it does with its files.

  They are before and after every call of `os` that changes something, within
  every row of a metrics file, and between the arrays of a checkpoint.

  Attributes:
    names: Those that were reached, such as 'before replace hparams.json.tmp'.
  """

  def __init__(self, folder: pathlib.Path, kill_at: int = 0):
    """Watches files in a folder.

    The process kills itself at the instant `kill_at`, counted from 1.
    """
    self.names: list[str] = []
    self._folder = f'{folder}'
    self._kill_at = kill_at

  def _reach(self, name: str):
    self.names.append(name)
    if len(self.names) == self._kill_at:
      os.kill(os.getpid(), signal.SIGKILL)

  def _around(self, name: str, function: Callable[..., Any]):
    """Returns a function of `os` with an instant before and after it."""

    @functools.wraps(function)
    def wrapped(file, *args, **kwargs):
      path = os.readlink(f'/proc/self/fd/{file}') if name == 'fsync' else file
      if not os.fspath(path).startswith(self._folder):
        return function(file, *args, **kwargs)
      # Names of temporary files are random.
      base = re.sub(r'\.[0-9a-f]+\.tmp$', '.tmp', os.path.basename(path))
      self._reach(f'before {name} {base}')
      result = function(file, *args, **kwargs)
      self._reach(f'after {name} {base}')
      return result

    return wrapped

  def _within_write(self, function: Callable[..., Any]):
    """Returns `append` with an instant in the middle of a row."""

    def wrapped(path, data):
      half = len(data) // 2
      function(path, data[:half])
      self._reach('within a row')
      function(path, data[half:])

    return wrapped

  def _after_array(self, function: Callable[..., Any]):
    """Returns `np.lib.format.write_array` with an instant after it."""

    def wrapped(*args, **kwargs):
      function(*args, **kwargs)
      self._reach('within a checkpoint')

    return wrapped

  @contextlib.contextmanager
  def watched(self) -> Iterator[None]:
    """Counts and kills while the block runs."""
    wrappers: list[tuple[Any, str, Callable[..., Any]]] = [
        (os, name, functools.partial(self._around, name))
        for name in _FILE_OPERATIONS
    ]
    wrappers += [
        (metrics_writers, 'append', self._within_write),
        (np.lib.format, 'write_array', self._after_array),
    ]
    with contextlib.ExitStack() as stack:
      for owner, name, wrap in wrappers:
        function = wrap(getattr(owner, name))
        stack.enter_context(mock.patch.object(owner, name, function))
      yield


def fork(function: Callable[[], Any]) -> int:
  """Calls a function in a child of this process; returns its id.

  The child ends with code 0, or 70 after an exception.
  """
  with warnings.catch_warnings():
    # Python 3.12 advises against it where there are threads; importing TFF anew
    # in every child would take minutes.
    warnings.simplefilter('ignore', DeprecationWarning)
    child = os.fork()
  if child:
    return child
  code = 70
  try:
    function()
    code = 0
  except SystemExit as end:
    code = end.code if isinstance(end.code, int) else 70
  except BaseException:  # pylint: disable=broad-exception-caught
    traceback.print_exc()
  finally:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # pylint: disable=protected-access
  raise AssertionError('Nothing is left of the child.')


def wait(child: int) -> int:
  """Returns the exit code of a child, or minus the signal that killed it."""
  return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
