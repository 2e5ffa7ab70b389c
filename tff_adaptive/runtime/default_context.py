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
"""Taking the place of TFF's own default context."""

import atexit
import functools
import gc
import inspect
import pathlib
import signal
import subprocess
import types
from typing import Optional

import tensorflow_federated as tff

_SIGINT_BIT = 1 << (signal.SIGINT - 1)


def install(context: tff.framework.SyncContext) -> None:
  """Makes a context TFF's default.

  TFF's own context ends its worker by SIGINT and waits for it. Where a shell
  has SIGINT ignored, as for what a script runs in the background, the worker
  has inherited that, and would be waited for without end; so it is ended
  before. Workers of contexts that somebody else holds are left alone.

  Args:
    context: The context.
  """
  _end_deaf_worker(_stack()[0])
  tff.framework.set_default_context(context)


class _NoContext(tff.framework.SyncContext):
  """What is left at the end of a program."""

  def invoke(self, comp, arg):
    raise RuntimeError(f'the program is at its end, nothing can run {comp}')


def free() -> None:
  """Frees TFF's default context; no TFF computation can run afterwards.

  At the end of the interpreter the destructor of TFF's own context fails: it
  prints a traceback behind the program's last line, and its worker stays.
  """
  install(_NoContext())
  gc.collect()


@functools.cache
def free_at_exit() -> None:
  """Has the default context freed before the interpreter ends."""
  atexit.register(free)


def _end_deaf_worker(context: tff.framework.SyncContext) -> None:
  """Ends the worker of a context that nobody else has, if it ignores SIGINT."""
  if not _is_default_alone(context):
    return
  process = _worker_of(context)
  if process is not None and process.poll() is None and _is_deaf(process.pid):
    process.kill()


def _is_default_alone(context: tff.framework.SyncContext) -> bool:
  """Whether a context is held by TFF's stack of contexts and nothing else."""
  holders = gc.get_referrers(context)
  return all(
      isinstance(holder, types.FrameType) or holder is _stack()
      for holder in holders
  )


def _stack() -> list[tff.framework.SyncContext]:
  """TFF's stack of contexts; the default is the first."""
  return tff.framework.get_context_stack()._stack  # pylint: disable=protected-access


def _worker_of(
    context: tff.framework.SyncContext,
) -> Optional[subprocess.Popen]:
  """The process of the worker that a context of TFF's own has started."""
  factory = getattr(context, 'executor_factory', None)
  stack_fn = getattr(factory, '_executor_stack_fn', None)
  if stack_fn is None:
    return None
  manager = inspect.getclosurevars(stack_fn).nonlocals.get('service_manager')
  return getattr(manager, '_process', None)


def _is_deaf(process_id: int) -> bool:
  """Whether a process ignores SIGINT."""
  status = pathlib.Path('/proc', str(process_id), 'status')
  try:
    lines = status.read_text().splitlines()
  except FileNotFoundError:
    return False  # It has ended, or this is no Linux.
  fields = dict(line.split(':', 1) for line in lines)
  return bool(int(fields['SigIgn'], 16) & _SIGINT_BIT)
