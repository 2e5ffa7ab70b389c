# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""TFF's native runtime, with a worker that ends with its owner.

TFF runs computations in a C++ process that it starts on first use and may never
end: the worker outlives the Python process as an orphan that keeps standard
output open. Here the worker is detached from the terminal and its streams. It
ends with the context or, if this process dies in any other way, is killed by a
small shell that waits for that.
"""

import collections
import os
import subprocess
import tempfile
import time
from typing import Any, IO, Optional
import weakref

import grpc
import portpicker
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _graph_defs
from tff_adaptive import _tff_internals
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import specs
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import contexts
from tff_adaptive.runtime.datasets import dataset_graphs

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
    _started.add(self)
    self._wait_until_ready()

  def forget_in_fork(self) -> None:
    """Leaves the worker to the process that this one was forked from.

    As long as a fork holds the worker's standard input open, the worker cannot
    tell that its owner ends it, or has died.
    """
    self.close.detach()
    assert self._process.stdin is not None
    self._process.stdin.close()

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


_started: weakref.WeakSet[_Worker] = weakref.WeakSet()


def _forget_all_in_fork() -> None:
  """Leaves all workers to the process that this one was forked from."""
  for worker in list(_started):
    worker.forget_in_fork()


os.register_at_fork(after_in_child=_forget_all_in_fork)

# The default buffer of `tf.data.TFRecordDataset` before TensorFlow 2.21, which
# asks for none by -1. The TensorFlow within TFF's worker rejects that.
_BUFFER_BYTES = 256 * 1024
_BUFFER_PLACE = 2
# A dataset that the worker reads in place of another one; None for the same.
_readable: weakref.WeakKeyDictionary[
    tf.data.Dataset, Optional[tf.data.Dataset]
] = weakref.WeakKeyDictionary()


def _set_buffers(graph_def: Any) -> bool:
  """Gives readers of records a buffer, in place; returns whether it did."""
  has_changed = False
  for nodes in _graph_defs.scopes(graph_def):
    by_name = {node.name: node for node in nodes}
    for node in nodes:
      if node.op.startswith('TFRecordDataset'):
        name = _graph_defs.node_of(node.input[_BUFFER_PLACE])
        size = by_name.get(name)
        if size is not None and dataset_graphs.scalar(size) == -1:
          size.attr['value'].tensor.CopyFrom(
              tf.make_tensor_proto(_BUFFER_BYTES, tf.int64)
          )
          has_changed = True
  return has_changed


def _readable_dataset(dataset: tf.data.Dataset) -> tf.data.Dataset:
  """Returns a dataset with the same elements that the worker reads."""
  if dataset not in _readable:
    graph = dataset_graphs.DatasetGraph.of(dataset)
    changed = None
    if graph is not None and _set_buffers(graph.graph_def):
      changed = graph.build(dataset.element_spec)
    _readable[dataset] = changed
  return _readable[dataset] or dataset


def _readable_computation(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Returns a computation of the same that the worker runs."""
  proto = tff.framework.serialize_computation(computation)
  if b'TFRecordDataset' not in proto.SerializeToString():
    return computation
  for part in computations.parts(proto, 'tensorflow'):
    graph_def = tf.compat.v1.GraphDef()
    part.tensorflow.graph_def.Unpack(graph_def)
    if _set_buffers(graph_def):
      part.tensorflow.graph_def.Pack(graph_def)
      # The cache key belongs to the original graph.
      part.tensorflow.ClearField('cache_key')
  # The original type also names Python's containers.
  return tff.framework.ConcreteComputation.with_type(
      tff.framework.deserialize_computation(proto), computation.type_signature
  )


def _for_worker(value: Any) -> Any:
  """Replaces what TFF or its worker does not take, in nested containers."""
  if isinstance(value, cohort_lib.Cohort):
    return list(value)
  if isinstance(value, tf.data.Dataset):
    return _readable_dataset(value)
  if type(value) in (list, tuple):
    return type(value)(map(_for_worker, value))
  if type(value) in (dict, collections.OrderedDict):
    return type(value)((k, _for_worker(field)) for k, field in value.items())
  return value


class NativeContext(contexts.OwnContext):
  """Runs computations on TFF's native runtime.

  Like `tff.backends.native.create_sync_local_cpp_execution_context`, but this
  process owns the worker, which ends with a `with` block, also after an
  exception or Ctrl-C, with `close`, and with this process. Clients' data may
  also be a `tff_adaptive.data.Cohort`.

  Example:
    ```python
    from tff_adaptive import runtime

    with runtime.NativeContext():
      state = process.initialize()
      output = process.next(state, client_datasets)
    ```
  """

  def __init__(
      self,
      *,
      max_concurrent_computation_calls: int = -1,
      secure_sums_in_clear: bool = False,
      default_num_clients: int = 0,
  ):
    """Initializes the context, and starts its worker.

    Args:
      max_concurrent_computation_calls: The number of clients that run at once;
        no limit if not positive, the default, as in TFF.
      secure_sums_in_clear: Whether to compute secure sums in the clear, as
        TFF's test context does; otherwise the native runtime rejects them.
        Defaults to False.
      default_num_clients: The number of clients if the argument does not tell,
        for example if it is equal at all clients. Defaults to 0, as in TFF.

    Raises:
      RuntimeError: If the worker binary is missing or the worker does not
        start.
      TypeError: If the number of clients is not an integer.
      ValueError: If it is negative.
    """
    specs.check_not_negative('default_num_clients', default_num_clients)
    super().__init__()
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
      return _readable_computation(
          tff.backends.native.desugar_and_transform_to_native(computation)
      )

    self._worker = worker
    self._is_closed = False
    self._inner = tff.framework.SyncExecutionContext(
        tff.framework.ResourceManagingExecutorFactory(build_executor),
        compiler_fn=compile_fn,
        transform_args=lambda argument: tff.tensorflow.transform_args(
            _for_worker(argument)
        ),
        transform_result=tff.tensorflow.transform_result,
    )

  def invoke(self, comp: tff.framework.ConcreteComputation, arg: Any) -> Any:
    """Runs a computation, see `tff.framework.SyncContext`.

    Raises:
      RuntimeError: If the context is closed.
    """
    if self._is_closed:
      raise RuntimeError(
          'This context is closed and its worker has ended; create a new '
          '`NativeContext`.'
      )
    return self._inner.invoke(comp, arg)

  def close(self) -> None:
    """Ends the worker; computations raise a `RuntimeError` from then on."""
    self._is_closed = True
    self._worker.close()
    _tff_internals.close_event_loop(self._inner)
