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
from collections.abc import Iterator
import functools
import gc
import os
import pathlib
import signal

import tensorflow_federated as tff

_SIGINT_BIT = 1 << (signal.SIGINT - 1)


def install(context: tff.framework.SyncContext) -> None:
  """Makes a context TFF's default.

  TFF's own context ends its worker by SIGINT and waits for it. Where a shell
  has SIGINT ignored, as for what a script runs in the background, the worker
  has inherited that, and would be waited for without end; so it is ended
  before.

  Args:
    context: The context.
  """
  for process_id in _deaf_workers():
    os.kill(process_id, signal.SIGKILL)
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


def _deaf_workers() -> Iterator[int]:
  """Yields TFF's workers of this process that ignore SIGINT.

  Those of `native` are children of a supervisor, not of this process.
  """
  for children in pathlib.Path('/proc/self/task').glob('*/children'):
    for process_id in map(int, children.read_text().split()):
      status = pathlib.Path('/proc', str(process_id), 'status')
      try:
        lines = status.read_text().splitlines()
      except FileNotFoundError:
        continue  # It has ended.
      fields = dict(line.split(':', 1) for line in lines)
      is_deaf = int(fields['SigIgn'], 16) & _SIGINT_BIT
      if is_deaf and fields['Name'].strip() == 'worker_binary':
        yield process_id
