# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chooses how and where a compiled round runs its clients."""

from collections.abc import Collection
import contextlib
import math
import os
from typing import Optional

from absl import logging
import attrs
import tensorflow as tf

from tff_adaptive.data import specs
from tff_adaptive.runtime.accelerators import devices as jax_devices

# Selects the device automatically.
AUTO = 'auto'
_CPU = 'CPU:0'
_UNUSED_GPU = (
    'TensorFlow sees a GPU, but rounds run on the CPU: on a GPU JAX runs them, '
    'so `pip install "jax[cuda13]"`; `devices=\'CPU\'` does without.'
)

# The ways that a computation can take, see `CompiledContext.path_of`.
XLA = 'xla'
COMPILED = 'compiled'
CACHED = 'cached'
THREADS = 'threads'
STEPS = 'steps'
NATIVE = 'native'
PATHS = (XLA, COMPILED, CACHED, THREADS, STEPS, NATIVE)

# The minimum number of chunks of a cohort: enough for many cores.
_MIN_CHUNKS = 16
# Large cohorts have more chunks, for many workers; the driver gets all sums.
_CLIENTS_PER_CHUNK = 8
_MAX_CHUNKS = 128

# The number of clients that train at once on a device of JAX if their steps are
# small.
_SIDE_BY_SIDE = 16
# Steps with one of these ops are not, nor those of a state with more numbers.
_LARGE_OPS = frozenset({'Conv2D', 'While', 'StatelessWhile', 'BatchMatMulV2'})
_MANY_NUMBERS = 2**20


@attrs.frozen
class Plan:
  """The plan of the clients' work in a compiled round.

  Attributes:
    device: The device of the clients' work, such as `'CPU:0'`; one or several
      of JAX, such as `'XLA:GPU:0'` or `'XLA:GPU:0-3'`, run whole rounds.
    num_parallel_clients: The number of clients that run at once, on each of
      several devices; 0 on one of JAX until a round has chosen it for its
      model.
    pipelines: The reason why each client runs its `tf.data` pipeline in each
      round; None (the default) if clients' data are read from tensors.
  """

  device: str
  num_parallel_clients: int
  pipelines: Optional[str] = None

  @property
  def runs_xla(self) -> bool:
    """Whether JAX runs whole rounds as programs of XLA."""
    return self.device.startswith(jax_devices.PREFIX)

  def chunk_size_of(self, num_clients: int) -> int:
    """Returns the number of clients in a chunk of a cohort."""
    num_chunks = num_clients // _CLIENTS_PER_CHUNK
    num_chunks = min(max(num_chunks, _MIN_CHUNKS), _MAX_CHUNKS)
    # A program of XLA trains as many at once, whether they are there or not.
    fewest = self.num_parallel_clients if self.runs_xla else 1
    return max(fewest, math.ceil(num_clients / num_chunks))

  def for_model(self, ops: Collection[str], num_numbers: int) -> 'Plan':
    """Returns the plan with the number of clients at once that suits a model.

    On a device of JAX, a step of few small products leaves it idle; one of
    convolutions, of a recurrent layer or of many weights does not, and would
    need the memory of several.

    Args:
      ops: The ops of the clients' work.
      num_numbers: The number of numbers in the state at the server.
    """
    is_large = num_numbers > _MANY_NUMBERS or not _LARGE_OPS.isdisjoint(ops)
    return attrs.evolve(
        self, num_parallel_clients=1 if is_large else _SIDE_BY_SIDE
    )


def num_cores() -> int:
  """Returns the number of cores that this process may use."""
  return len(os.sched_getaffinity(0))


def choose(device: str, num_parallel_clients: Optional[int] = None) -> Plan:
  """Chooses the plan for a device.

  A CPU runs as many clients at once as it has cores. On a device of JAX the
  number depends on the model.
  `experiments.benchmark --num_parallel_clients=...` measures other numbers.

  Args:
    device: The device of the clients' work.
    num_parallel_clients: The number of clients at once; None (the default) for
      that of the device.

  Returns:
    The plan.

  Raises:
    TypeError: If the number is not an integer.
    ValueError: If the number is not positive.
  """
  if num_parallel_clients is None:
    if device.startswith(jax_devices.PREFIX):
      return Plan(device, 0)
    num_parallel_clients = num_cores()
  specs.check_positive('num_parallel_clients', num_parallel_clients)
  return Plan(device, num_parallel_clients)


def _choose_device(devices: str) -> str:
  """Chooses the device of the clients' work.

  The memory of GPUs that TensorFlow sees will grow on demand: it places tensors
  on the first one by default, and JAX needs the rest.

  Args:
    devices: See `CompiledContext`.

  Returns:
    The full name of the device, such as 'CPU:0' or 'XLA:GPU:0'.

  Raises:
    ValueError: If the device is unknown.
  """
  gpus = tf.config.list_physical_devices('GPU')
  for gpu in gpus:
    # TensorFlow raises it if it has initialized the GPU already.
    with contextlib.suppress(RuntimeError):
      tf.config.experimental.set_memory_growth(gpu, True)
  if devices == AUTO:
    found = jax_devices.find_accelerator()
    if gpus and not found:
      logging.log_first_n(logging.WARNING, _UNUSED_GPU, 1)
    return found or _CPU
  if devices.upper().removeprefix('/DEVICE:') in ('CPU', _CPU):
    return _CPU
  return jax_devices.choose(devices)


def choose_plan(
    devices: str = AUTO, num_parallel_clients: Optional[int] = None
) -> Plan:
  """Chooses the plan of the clients' work.

  The arguments are those of `CompiledContext`.

  Returns:
    The plan of a context with the same arguments.

  Raises:
    TypeError: If the number of clients is not an integer.
    ValueError: If a device is unknown, or the number of clients not positive.
  """
  return choose(_choose_device(devices), num_parallel_clients)


def set_threads(
    devices: str = AUTO, num_parallel_clients: Optional[int] = None
) -> None:
  """Limits ops to one thread if several clients run at once on a CPU.

  Then each client has its own core, which is faster than several clients whose
  ops share the cores, and stays fast on a busy machine. If clients run one
  after the other, or on an accelerator, TensorFlow's default is best.

  Call it before TensorFlow runs anything; threads cannot be changed later. The
  arguments are those of `CompiledContext`.

  Raises:
    RuntimeError: If TensorFlow has started.
    TypeError: If the number of clients is not an integer.
    ValueError: If a device is unknown, or the number of clients not positive.

  Example:
    ```python
    from tff_adaptive import runtime

    runtime.set_threads()
    runtime.CompiledContext().install()
    ```
  """
  chosen = choose_plan(devices, num_parallel_clients)
  if chosen.num_parallel_clients == 1 or chosen.device != _CPU:
    return
  tf.config.threading.set_inter_op_parallelism_threads(num_cores())
  tf.config.threading.set_intra_op_parallelism_threads(1)
