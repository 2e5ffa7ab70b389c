# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Installing contexts, for a block or as TFF's default, and closing them.

TFF's own default context starts a worker and may never end it.
"""

import atexit
import contextlib
import functools
import gc
import pathlib
import signal
import sys
from typing import Any

import tensorflow_federated as tff

from tff_adaptive import _tff_internals


class OwnContext(tff.framework.SyncContext):
  """A context that is installed for a `with` block, or as TFF's default."""

  def __init__(self):
    """Initializes the context; it is installed nowhere yet."""
    self._blocks: list[contextlib.ExitStack] = []
    free_default_at_exit()

  def install(self) -> Any:
    """Makes this context TFF's default in the calling thread; returns it."""
    set_default(self)
    return self

  def close(self) -> None:
    """Frees what the context holds; see the class."""

  def __enter__(self) -> Any:
    block = contextlib.ExitStack()
    block.callback(self.close)
    block.enter_context(tff.framework.get_context_stack().install(self))
    self._blocks.append(block)
    return self

  def __exit__(self, *error: Any) -> None:
    self._blocks.pop().__exit__(*error)


_SIGINT_BIT = 1 << (signal.SIGINT - 1)


def set_default(context: tff.framework.SyncContext) -> None:
  """Makes a context TFF's default.

  TFF's own context ends its worker by SIGINT and waits for it. If SIGINT is
  ignored, as in background jobs of shell scripts, the worker has inherited that
  and the wait would never end; such a worker is killed first. Workers of
  contexts that are referenced elsewhere are left alone.

  Args:
    context: The context to set.
  """
  if not _is_held_elsewhere(_stack()):
    process = _tff_internals.worker_of(_stack()[0])
    if process is not None and process.poll() is None and _is_deaf(process.pid):
      process.kill()
  tff.framework.set_default_context(context)


class _NoContext(tff.framework.SyncContext):
  """The default context while the interpreter shuts down."""

  def invoke(self, comp, arg):
    raise RuntimeError(f'cannot run {comp}: the interpreter is shutting down')


def free_default() -> None:
  """Frees TFF's default context; no TFF computation can run afterwards.

  At interpreter shutdown the destructor of TFF's own context fails: it prints a
  traceback after the program's last line, and its worker is left running.
  """
  set_default(_NoContext())
  gc.collect()


@functools.cache
def free_default_at_exit() -> None:
  """Registers `free_default` to run at exit."""
  atexit.register(free_default)


def _is_held_elsewhere(holder: list[Any]) -> bool:
  """Returns whether the first entry of a list has other references."""
  # `gc.get_referrers` would tell, but crashes in a process with datasets.
  alone = [object()]
  return sys.getrefcount(holder[0]) > sys.getrefcount(alone[0])


def _stack() -> list[tff.framework.SyncContext]:
  """Returns TFF's context stack; the first entry is the default."""
  return _tff_internals.contexts_in(tff.framework.get_context_stack())


def _is_deaf(process_id: int) -> bool:
  """Returns whether a process ignores SIGINT."""
  status = pathlib.Path('/proc', str(process_id), 'status')
  try:
    lines = status.read_text().splitlines()
  except FileNotFoundError:
    return False  # It has ended, or this is not Linux.
  fields = dict(line.split(':', 1) for line in lines)
  return bool(int(fields['SigIgn'], 16) & _SIGINT_BIT)
