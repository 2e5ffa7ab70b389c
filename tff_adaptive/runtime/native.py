# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""TFF's native runtime, with a worker that ends with its owner.

TFF runs computations in a C++ process that it starts on first use and may never
end: the worker outlives the Python process as an orphan that keeps standard
output open. Here the worker is detached from the terminal and its streams. It
ends with the context or, if this process dies in any other way, is killed by a
small shell that waits for that. TFF's own default context, which starts such a
worker too, is replaced here.
"""

import atexit
import collections
from collections.abc import Callable, Iterator
import contextlib
import functools
import gc
import inspect
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, IO, Optional
import weakref

import grpc
import portpicker
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import specs
from tff_adaptive.runtime import record_buffers

_SIGINT_BIT = 1 << (signal.SIGINT - 1)
# A message holds a whole model or client; gRPC's default limit is 4 MB.
_MAX_MESSAGE_BYTES = 2 * 1000**3
_CHANNEL_OPTIONS = [
    (f'grpc.max_{name}message_length', _MAX_MESSAGE_BYTES)
    for name in ('', 'receive_', 'send_')
]
_START_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.05

# Runs the worker and ends with it. A second shell kills the worker when the
# standard input closes: when the owner ends it or dies, even by SIGKILL.
_SUPERVISOR = """
exec 3<&0
"$@" 3<&- &
worker=$!
(read -r _ <&3; kill -9 "$worker") &
wait "$worker"
kill -9 "$!"
wait
"""


def _worker_binary() -> str:
  package = os.path.dirname(tff.__file__)
  path = os.path.join(package, 'data', 'worker_binary')
  if not os.path.isfile(path):
    raise RuntimeError(
        f"TFF's worker binary is missing: expected {path}. Reinstall "
        'tensorflow-federated==0.87.0 (Linux on x86-64).'
    )
  return path


class _Worker:
  """A worker process and the connection to it."""

  def __init__(self, max_concurrent_computation_calls: int):
    port = portpicker.pick_unused_port()
    self._log = tempfile.TemporaryFile()
    self._process = subprocess.Popen(
        [
            '/bin/sh',
            '-c',
            _SUPERVISOR,
            'tff-worker',
            _worker_binary(),
            f'--port={port}',
            '--max_concurrent_computation_calls='
            f'{max_concurrent_computation_calls}',
        ],
        stdin=subprocess.PIPE,
        stdout=self._log,
        stderr=self._log,
        # Ctrl-C in the terminal is handled here, not by the worker.
        start_new_session=True,
    )
    channel = grpc.insecure_channel(f'localhost:{port}', _CHANNEL_OPTIONS)
    self.stub = tff.framework.RemoteExecutorGrpcStub(channel)
    # Runs at the end of the program too, so that no process of ours remains
    # when the caller's shell returns. Harmless if the worker has ended.
    self.close = weakref.finalize(
        self, _end_worker, self._process, channel, self._log
    )
    self._wait_until_ready()

  def _wait_until_ready(self) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_SECONDS
    while not self.stub.is_ready:
      has_ended = self._process.poll() is not None
      if has_ended or time.monotonic() > deadline:
        what = (
            'exited at startup'
            if has_ended
            else f'did not start within {_START_TIMEOUT_SECONDS:.0f} s'
        )
        self._log.seek(0)
        last_words = self._log.read()[-2000:].decode(errors='replace')
        self.close()
        raise RuntimeError(
            f"TFF's worker {what}; its last output:\n{last_words}"
        )
      time.sleep(_POLL_SECONDS)


def _end_worker(
    process: subprocess.Popen, channel: grpc.Channel, log: IO[bytes]
) -> None:
  channel.close()
  assert process.stdin is not None
  process.stdin.close()
  process.wait()
  log.close()


def _for_worker(value: Any) -> Any:
  """Replaces what TFF or its worker does not take, in nested containers."""
  if isinstance(value, cohort_lib.Cohort):
    return list(value)
  if isinstance(value, tf.data.Dataset):
    return record_buffers.of_dataset(value)
  if type(value) in (list, tuple):
    return type(value)(map(_for_worker, value))
  if type(value) in (dict, collections.OrderedDict):
    return type(value)((k, _for_worker(field)) for k, field in value.items())
  return value


def _close_event_loop(context: tff.framework.SyncContext) -> None:
  """Closes a context's event loop, which leaks three descriptors otherwise."""
  runner = context._async_runner  # pylint: disable=protected-access
  loop = runner._event_loop  # pylint: disable=protected-access
  if not loop.is_closed():
    loop.call_soon_threadsafe(loop.stop)
    runner._thread.join()  # pylint: disable=protected-access
    loop.close()
    # Its finalizer would stop the loop again.
    runner._finalizer = lambda loop, thread: None  # pylint: disable=protected-access


def set_default_context(context: tff.framework.SyncContext) -> None:
  """Makes a context TFF's default.

  TFF's own context ends its worker by SIGINT and waits for it. If SIGINT is
  ignored, as in background jobs of shell scripts, the worker has inherited that
  and the wait would never end; such a worker is killed first. Workers of
  contexts that are referenced elsewhere are left alone.

  Args:
    context: The context to set.
  """
  if not _is_held_elsewhere(_stack()):
    process = _worker_of(_stack()[0])
    if process is not None and process.poll() is None and _is_deaf(process.pid):
      process.kill()
  tff.framework.set_default_context(context)


class _NoContext(tff.framework.SyncContext):
  """The default context while the interpreter shuts down."""

  def invoke(self, comp, arg):
    raise RuntimeError(f'cannot run {comp}: the interpreter is shutting down')


def free_default_context() -> None:
  """Frees TFF's default context; no TFF computation can run afterwards.

  At interpreter shutdown the destructor of TFF's own context fails: it prints a
  traceback after the program's last line, and its worker is left running.
  """
  set_default_context(_NoContext())
  gc.collect()


@functools.cache
def free_default_context_at_exit() -> None:
  """Registers `free_default_context` to run at exit."""
  atexit.register(free_default_context)


def _is_held_elsewhere(holder: list[Any]) -> bool:
  """Returns whether the first entry of a list has other references."""
  # `gc.get_referrers` would tell, but crashes in a process with datasets.
  alone = [object()]
  return sys.getrefcount(holder[0]) > sys.getrefcount(alone[0])


def _stack() -> list[tff.framework.SyncContext]:
  """Returns TFF's context stack; the first entry is the default."""
  return tff.framework.get_context_stack()._stack  # pylint: disable=protected-access


def _worker_of(
    context: tff.framework.SyncContext,
) -> Optional[subprocess.Popen]:
  """Returns the worker process that one of TFF's own contexts started."""
  factory = getattr(context, 'executor_factory', None)
  stack_fn = getattr(factory, '_executor_stack_fn', None)
  if stack_fn is None:
    return None
  manager = inspect.getclosurevars(stack_fn).nonlocals.get('service_manager')
  return getattr(manager, '_process', None)


def _is_deaf(process_id: int) -> bool:
  """Returns whether a process ignores SIGINT."""
  status = pathlib.Path('/proc', str(process_id), 'status')
  try:
    lines = status.read_text().splitlines()
  except FileNotFoundError:
    return False  # It has ended, or this is not Linux.
  fields = dict(line.split(':', 1) for line in lines)
  return bool(int(fields['SigIgn'], 16) & _SIGINT_BIT)


def create_native_context(
    *,
    max_concurrent_computation_calls: int = -1,
    secure_sums_in_clear: bool = False,
    default_num_clients: int = 0,
) -> tuple[tff.framework.SyncContext, Callable[[], None]]:
  """Creates a context that runs computations on TFF's native runtime.

  Like `tff.backends.native.create_sync_local_cpp_execution_context`, but this
  process owns the worker, and clients' data may also be a
  `tff_adaptive.data.Cohort`.

  Args:
    max_concurrent_computation_calls: The number of clients that run at once; no
      limit if not positive, the default, as in TFF.
    secure_sums_in_clear: Whether to compute secure sums in the clear, as TFF's
      test context does; otherwise the native runtime rejects them. Defaults to
      False.
    default_num_clients: The number of clients if the argument does not tell,
      for example if it is equal at all clients. Defaults to 0, as in TFF.

  Returns:
    The context, for `tff.framework.set_default_context`, and a function without
    arguments that ends its worker.

  Raises:
    RuntimeError: If the worker binary is missing or the worker does not start.
    TypeError: If the number of clients is not an integer.
    ValueError: If it is negative.

  Example:
    ```python
    import tensorflow_federated as tff
    from tff_adaptive import runtime

    context, close = runtime.create_native_context()
    tff.framework.set_default_context(context)
    ...
    close()
    ```
  """
  specs.check_not_negative('default_num_clients', default_num_clients)
  free_default_context_at_exit()
  worker = _Worker(max_concurrent_computation_calls)

  def build_executor(cardinalities):
    cardinalities.setdefault(tff.CLIENTS, default_num_clients)
    executor = tff.framework.RemoteExecutor(worker.stub)
    executor.set_cardinalities(cardinalities)
    return executor

  def compile_fn(computation):
    if secure_sums_in_clear:
      computation = tff.backends.test.replace_secure_intrinsics_with_bodies(
          computation
      )
    return record_buffers.of_computation(
        tff.backends.native.desugar_and_transform_to_native(computation)
    )

  context = tff.framework.SyncExecutionContext(
      tff.framework.ResourceManagingExecutorFactory(build_executor),
      compiler_fn=compile_fn,
      transform_args=lambda argument: tff.tensorflow.transform_args(
          _for_worker(argument)
      ),
      transform_result=tff.tensorflow.transform_result,
  )

  def close():
    worker.close()
    _close_event_loop(context)

  return context, close


@contextlib.contextmanager
def native_context(
    *,
    max_concurrent_computation_calls: int = -1,
    secure_sums_in_clear: bool = False,
    default_num_clients: int = 0,
) -> Iterator[tff.framework.SyncContext]:
  """Runs TFF computations on TFF's native runtime within a `with` block.

  The worker ends with the block, also after an exception or Ctrl-C, and with
  this process if that dies first. The arguments and errors are those of
  `create_native_context`.

  Yields:
    The context, installed for the calling thread.

  Example:
    ```python
    from tff_adaptive import runtime

    with runtime.native_context():
      state = process.initialize()
      output = process.next(state, client_datasets)
    ```
  """
  context, close = create_native_context(
      max_concurrent_computation_calls=max_concurrent_computation_calls,
      secure_sums_in_clear=secure_sums_in_clear,
      default_num_clients=default_num_clients,
  )
  try:
    with tff.framework.get_context_stack().install(context):
      yield context
  finally:
    close()
