# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""TFF's native runtime, with a worker that ends when its owner does.

TFF executes computations in a C++ process that it starts on first use and never
ends reliably: it outlives the Python process as an orphan that keeps standard
output open. Here the worker is started by us, away from our terminal and
streams, and ended with the context, or, if this process dies in any other way,
by a small shell that waits for it. TFF's own default context, which starts such
a worker, too, gives way to others here.
"""

import atexit
from collections.abc import Callable, Iterator
import contextlib
import functools
import gc
import inspect
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import types
from typing import Any, IO, Optional
import weakref

from google.protobuf import message as message_lib
import grpc
import portpicker
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _function_library
from tff_adaptive import _random_ops
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.data import specs
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import elements
from tff_adaptive.runtime import values

_SIGINT_BIT = 1 << (signal.SIGINT - 1)
_SCOPE = 'seed_of_client'
_COMPUTATION = 'tensorflow_federated.v0.Computation'
# Odd, so that products keep all bits.
_FACTORS = (0x2545F491, 0x1B873593)
_NEXT_ELEMENT = 0x01000193


def _messages(message: Any, full_name: str) -> Iterator[Any]:
  """All messages of a kind within a message."""
  if message.DESCRIPTOR.full_name == full_name:
    yield message
  for field, value in message.ListFields():
    if field.message_type is None:
      continue
    for part in [value] if isinstance(value, message_lib.Message) else value:
      yield from _messages(part, full_name)


def _as_integers(tensor: tf.Tensor) -> tf.Tensor:
  """The bits of a tensor as one row of int32."""
  if tensor.dtype == tf.string:
    tensor = tf.strings.to_hash_bucket_fast(tensor, tf.int32.max)
  if tensor.dtype.size >= 4:
    tensor = tf.bitcast(tensor, tf.int32)
  elif tensor.dtype.is_floating:
    tensor = tf.bitcast(tensor, tf.int16)
  return tf.reshape(tf.cast(tensor, tf.int32), [-1])


def _digest(tensors: list[tf.Tensor]) -> tf.Tensor:
  """Two integers, int32 [2], that depend on every bit and its place."""
  digest = tf.zeros([2], tf.int32)
  for tensor in tensors:
    numbers = _as_integers(tensor)
    places = 2 * tf.range(tf.size(numbers)) + 1
    # Sums of integers do not depend on their order, unlike those of floats.
    sums = [tf.reduce_sum(numbers * places * factor) for factor in _FACTORS]
    digest = digest * _NEXT_ELEMENT + tf.stack(sums)
  return digest


def _digest_of_leaf(leaf_type: tff.Type, name: str) -> tf.Tensor:
  """The digest of a part of the argument, whose placeholder is added."""
  node_name = _function_library.node_of(name)
  if not isinstance(leaf_type, tff.SequenceType):
    spec = values.tensor_spec(leaf_type)
    tensor = tf.compat.v1.placeholder(spec.dtype, spec.shape, name=node_name)
    with tf.name_scope(_SCOPE):
      return _digest([tensor])
  variant = tf.compat.v1.placeholder(tf.variant, [], name=node_name)
  spec = elements.element_spec(leaf_type)
  with tf.name_scope(_SCOPE):
    return tf.data.experimental.from_variant(variant, spec).reduce(
        tf.zeros([2], tf.int32),
        lambda digest, element: digest * _NEXT_ELEMENT
        + _digest(tf.nest.flatten(element)),
    )


def _build_seed(
    leaf_types: list[tff.Type], names: list[str]
) -> tuple[Any, str]:
  """The graph of the seed, without placeholders, and the seed's name."""
  graph = tf.Graph()
  with graph.as_default():
    digests = [
        _digest_of_leaf(leaf_type, name)
        for leaf_type, name in zip(leaf_types, names)
    ]
    with tf.name_scope(_SCOPE):
      seed = _digest(digests)
  graph_def = graph.as_graph_def()
  nodes = [node for node in graph_def.node if node.op != 'Placeholder']
  del graph_def.node[:]
  graph_def.node.extend(nodes)
  return graph_def, seed.name


def _fix_random_ops(proto: Any) -> None:
  """Keys what a client's training draws, in place; others stay as they are."""
  graph_def = tf.compat.v1.GraphDef()
  proto.tensorflow.graph_def.Unpack(graph_def)
  rewriter = _random_ops.RandomOpRewriter(graph_def, '_of_client')
  # Outside of loops, variables draw initial values that nothing ever reads.
  if not rewriter.draws_in_loops(graph_def.node):
    return
  signature = tff.framework.deserialize_computation(proto).type_signature
  leaf_types = values.leaf_types(signature.parameter)
  if not any(isinstance(leaf, tff.SequenceType) for leaf in leaf_types):
    return
  names = computations.binding_names(proto.tensorflow.parameter)
  seed_graph, seed = _build_seed(leaf_types, names)
  nodes = rewriter.rewrite(graph_def.node, seed, ':0')
  del graph_def.node[:]
  graph_def.node.extend([*seed_graph.node, *nodes])
  graph_def.library.function.extend(
      [*seed_graph.library.function, *rewriter.changed_functions]
  )
  proto.tensorflow.graph_def.Pack(graph_def)
  # It would stand for the graph as it was.
  proto.tensorflow.ClearField('cache_key')


def with_seeds(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Fixes what clients draw in their training by what they train on and with.

  Args:
    computation: A computation.

  Returns:
    A computation with the same type and results, but for random numbers in
    loops of TensorFlow that takes a sequence, which are the same whenever the
    argument is.

  Raises:
    UnsupportedRandomOpError: If a random op stands where it cannot be replaced.
  """
  proto = tff.framework.serialize_computation(computation)
  for part in _messages(proto, _COMPUTATION):
    if part.WhichOneof('computation') == 'tensorflow':
      _fix_random_ops(part)
  # The type that it had names Python's containers, too.
  return tff.framework.ConcreteComputation.with_type(
      tff.framework.deserialize_computation(proto), computation.type_signature
  )


# A message holds a whole model or client; gRPC's own limit is 4 MB.
_MAX_MESSAGE_BYTES = 2 * 1000**3
_CHANNEL_OPTIONS = [
    (f'grpc.max_{name}message_length', _MAX_MESSAGE_BYTES)
    for name in ('', 'receive_', 'send_')
]
_START_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.05

# Runs the worker and ends with it. Beside it waits a shell that kills it when
# the standard input closes: when the owner ends it or dies, even by SIGKILL.
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
        f"TFF's worker was expected at {path} and is not there: "
        'reinstall tensorflow-federated==0.87.0 (Linux on x86-64).'
    )
  return path


class _Worker:
  """One worker process and the connection to it."""

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
        # Ctrl-C in the terminal is for us to handle, not for the worker.
        start_new_session=True,
    )
    channel = grpc.insecure_channel(f'localhost:{port}', _CHANNEL_OPTIONS)
    self.stub = tff.framework.RemoteExecutorGrpcStub(channel)
    # Also at the end of the program, so that nothing of ours runs when the
    # caller's shell returns. Harmless when it has ended.
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
            'ended at its start'
            if has_ended
            else f'did not come up within {_START_TIMEOUT_SECONDS:.0f} s'
        )
        self._log.seek(0)
        last_words = self._log.read()[-2000:].decode(errors='replace')
        self.close()
        raise RuntimeError(
            f"TFF's worker {what}; its last words:\n{last_words}"
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


def _as_lists(arguments: Any) -> Any:
  """The argument or arguments with cohorts as the lists that TFF takes."""

  def as_list(value):
    return list(value) if isinstance(value, cohort_lib.Cohort) else value

  # TFF hands over all positional arguments at once, then all named ones.
  if isinstance(arguments, list):
    return list(map(as_list, arguments))
  if isinstance(arguments, dict):
    return {name: as_list(value) for name, value in arguments.items()}
  return as_list(arguments)


def _close_event_loop(context: tff.framework.SyncContext) -> None:
  """Closes the loop of a context, of which TFF leaves three descriptors."""
  runner = context._async_runner  # pylint: disable=protected-access
  loop = runner._event_loop  # pylint: disable=protected-access
  if not loop.is_closed():
    loop.call_soon_threadsafe(loop.stop)
    runner._thread.join()  # pylint: disable=protected-access
    loop.close()
    # Its destructor would stop the loop again.
    runner._finalizer = lambda loop, thread: None  # pylint: disable=protected-access


def set_default_context(context: tff.framework.SyncContext) -> None:
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


def free_default_context() -> None:
  """Frees TFF's default context; no TFF computation can run afterwards.

  At the end of the interpreter the destructor of TFF's own context fails: it
  prints a traceback behind the program's last line, and its worker stays.
  """
  set_default_context(_NoContext())
  gc.collect()


@functools.cache
def free_default_context_at_exit() -> None:
  """Has the default context freed before the interpreter ends."""
  atexit.register(free_default_context)


def _end_deaf_worker(context: tff.framework.SyncContext) -> None:
  """Ends the worker of a context that nobody else has, if it ignores SIGINT."""
  for holder in gc.get_referrers(context):
    if not isinstance(holder, types.FrameType) and holder is not _stack():
      return
  process = _worker_of(context)
  if process is not None and process.poll() is None and _is_deaf(process.pid):
    process.kill()


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


def create_native_context(
    *,
    max_concurrent_computation_calls: int = -1,
    secure_sums_in_clear: bool = False,
    seeded_clients: bool = False,
    default_num_clients: int = 0,
) -> tuple[tff.framework.SyncContext, Callable[[], None]]:
  """Creates a context that runs computations on TFF's native runtime.

  The same as `tff.backends.native.create_sync_local_cpp_execution_context`, but
  for the ownership of the worker process, and that clients' data may also be a
  `tff_adaptive.simulation.Cohort`.

  Args:
    max_concurrent_computation_calls: How many clients run at once; no limit if
      not positive, which is the default and TFF's.
    secure_sums_in_clear: Whether secure sums are computed in the clear, as
      TFF's test context does; the native runtime refuses them otherwise.
      Defaults to False.
    seeded_clients: Whether what clients draw in their training (dropout)
      depends on their data and on what they received, so that a round that is
      run again gives the same; drawn anew by default, as TFF does. It costs
      another pass over the data where there is dropout.
    default_num_clients: How many clients there are where the argument does not
      tell, as of a value that is equal at all of them. Defaults to 0, as TFF's.

  Returns:
    The context, for `tff.framework.set_default_context`, and a function without
    arguments that ends its worker.

  Raises:
    RuntimeError: If the worker is missing or does not come up.
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
    computation = tff.backends.native.desugar_and_transform_to_native(
        computation
    )
    return with_seeds(computation) if seeded_clients else computation

  context = tff.framework.SyncExecutionContext(
      tff.framework.ResourceManagingExecutorFactory(build_executor),
      compiler_fn=compile_fn,
      transform_args=lambda arg: tff.tensorflow.transform_args(_as_lists(arg)),
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
    seeded_clients: bool = False,
    default_num_clients: int = 0,
) -> Iterator[tff.framework.SyncContext]:
  """Runs TFF computations natively within a `with` block.

  The worker process is ended with the block, also by an exception or Ctrl-C,
  and with this process if that dies first.

  Args:
    max_concurrent_computation_calls: See `create_native_context`.
    secure_sums_in_clear: See `create_native_context`.
    seeded_clients: See `create_native_context`.
    default_num_clients: See `create_native_context`.

  Yields:
    The context, which is installed for the calling thread.

  Raises:
    RuntimeError: If the worker is missing or does not come up.
    TypeError: See `create_native_context`.
    ValueError: See `create_native_context`.

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
      seeded_clients=seeded_clients,
      default_num_clients=default_num_clients,
  )
  try:
    with tff.framework.get_context_stack().install(context):
      yield context
  finally:
    close()
