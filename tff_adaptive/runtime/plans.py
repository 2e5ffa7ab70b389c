# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Chooses how and where a compiled round runs its clients."""

import contextlib
import math
import os
from typing import Optional

import attrs
import tensorflow as tf

LOOP = 'loop'
PARALLEL = 'parallel'
PLANS = (LOOP, PARALLEL)
# Selects the plan and the device automatically.
AUTO = 'auto'

# The ways that a computation can take, see `CompiledContext.path_of`.
COMPILED = 'compiled'
CACHED = 'cached'
THREADS = 'threads'
STEPS = 'steps'
NATIVE = 'native'
PATHS = (COMPILED, CACHED, THREADS, STEPS, NATIVE)

# The minimum number of chunks of a cohort: enough for many cores.
_MIN_CHUNKS = 16
# Large cohorts have more chunks, for many workers; the driver gets all sums.
_CLIENTS_PER_CHUNK = 8
_MAX_CHUNKS = 128


@attrs.frozen
class Plan:
  """The plan of the clients' work in a compiled round.

  Attributes:
    name: `'loop'`, one client after the other; `'parallel'`, several at once.
    num_parallel_clients: The number of clients that run at once.
    device: The device of the clients' work, such as `'CPU:0'`.
    pipelines: The reason why each client runs its `tf.data` pipeline in each
      round; None (the default) if clients' data are read from tensors.
  """

  name: str
  num_parallel_clients: int
  device: str
  pipelines: Optional[str] = None

  def chunk_size_of(self, num_clients: int) -> int:
    """Returns the number of clients in a chunk of a cohort."""
    num_chunks = num_clients // _CLIENTS_PER_CHUNK
    num_chunks = min(max(num_chunks, _MIN_CHUNKS), _MAX_CHUNKS)
    return max(1, math.ceil(num_clients / num_chunks))


def num_cores() -> int:
  """Returns the number of cores that this process may use."""
  return len(os.sched_getaffinity(0))


def choose(name: str, device: str) -> Plan:
  """Chooses the plan for a device.

  A GPU runs one client after the other: one client already uses all of it. A
  CPU runs several clients at once, each on its own core.
  `experiments.benchmark --plan=...` compares the two.

  Args:
    name: One of `PLANS`, or `AUTO`.
    device: The device of the clients' work.

  Returns:
    The plan.

  Raises:
    ValueError: If the plan is unknown.
  """
  if name not in (AUTO, *PLANS):
    raise ValueError(f'`plan` must be one of {[AUTO, *PLANS]}, found {name!r}.')
  if name == AUTO:
    name = LOOP if 'GPU' in device else PARALLEL
  return Plan(name, 1 if name == LOOP else num_cores(), device)


def _choose_device(devices: str) -> str:
  """Chooses the device of the clients' work.

  The memory of all GPUs will grow on demand, also for work on the CPU, because
  TensorFlow places tensors on the first GPU by default.

  Args:
    devices: `'CPU'`, `'GPU'` or a name such as `'/device:GPU:1'`; `'auto'` for
      the first GPU that TensorFlow sees, else the CPU.

  Returns:
    The short name of the device, such as 'CPU:0'.

  Raises:
    ValueError: If the device is unknown.
  """
  gpus = tf.config.list_physical_devices('GPU')
  names = ['CPU:0', *(f'GPU:{number}' for number in range(len(gpus)))]
  if devices == AUTO:
    device = 'GPU:0' if gpus else 'CPU:0'
  else:
    device = _short_name(devices)
  if device not in names:
    raise ValueError(
        f'`devices` must name one of {names}, or be {AUTO!r}; found '
        f'{devices!r}.'
    )
  for gpu in gpus:
    # TensorFlow raises it if it has initialized the GPU already.
    with contextlib.suppress(RuntimeError):
      tf.config.experimental.set_memory_growth(gpu, True)
  return device


def _short_name(device: str) -> str:
  """Returns 'CPU:0' for 'cpu', 'CPU:0' and '/device:CPU:0'."""
  name = device.upper().split('/')[-1].removeprefix('DEVICE:')
  return name if ':' in name else f'{name}:0'


def choose_plan(devices: str = AUTO, plan: str = AUTO) -> Plan:
  """Chooses the plan of the clients' work.

  The arguments are those of `CompiledContext`.

  Returns:
    The plan of a context with the same arguments.

  Raises:
    ValueError: If a device or a plan is unknown.
  """
  return choose(plan, _choose_device(devices))


def set_threads(devices: str = AUTO, plan: str = AUTO) -> None:
  """Limits ops to one thread if several clients run at once on a CPU.

  Then each client has its own core, which is faster than several clients whose
  ops share the cores, and stays fast on a busy machine. If clients run one
  after the other, or on a GPU, TensorFlow's default is best.

  Call it before TensorFlow runs anything; threads cannot be changed later. The
  arguments are those of `CompiledContext`.

  Raises:
    RuntimeError: If TensorFlow has started.
    ValueError: If a device or a plan is unknown.

  Example:
    ```python
    from tff_adaptive import runtime

    runtime.set_threads()
    runtime.CompiledContext().install()
    ```
  """
  chosen = choose_plan(devices, plan)
  if chosen.name == LOOP or 'GPU' in chosen.device:
    return
  tf.config.threading.set_inter_op_parallelism_threads(num_cores())
  tf.config.threading.set_intra_op_parallelism_threads(1)
