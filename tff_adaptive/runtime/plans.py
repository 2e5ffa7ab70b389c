# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""How and where a compiled round runs its clients."""

from collections.abc import Sequence
import math
import os
from typing import Optional, Union

import attrs
import tensorflow as tf

LOOP = 'loop'
PARALLEL = 'parallel'
PLANS = (LOOP, PARALLEL)
# The plan, and the device, that suit.
AUTO = 'auto'

# A cohort is folded in about this many chunks: enough for many cores.
_MIN_CHUNKS = 16
# A large cohort in more, for many workers, whose sums all go to the driver.
_CLIENTS_PER_CHUNK = 8
_MAX_CHUNKS = 128


@attrs.frozen
class Plan:
  """How a compiled round runs its clients.

  Attributes:
    name: `'loop'`, one client after the other; `'parallel'`, several at once.
    num_parallel_clients: How many clients are worked on at once.
    device: Where the clients' work runs, such as `'CPU:0'`.
    pipelines: Why each client runs its `tf.data` pipeline in each round; None
      (the default) where clients' data are read from tensors.
  """

  name: str
  num_parallel_clients: int
  device: str
  pipelines: Optional[str] = None

  def chunk_size_of(self, num_clients: int) -> int:
    """The number of clients in a chunk, of a cohort of `num_clients`."""
    num_chunks = num_clients // _CLIENTS_PER_CHUNK
    num_chunks = min(max(num_chunks, _MIN_CHUNKS), _MAX_CHUNKS)
    return max(1, math.ceil(num_clients / num_chunks))


def num_cores() -> int:
  """The cores that this process may use."""
  return len(os.sched_getaffinity(0))


def choose(name: str, device: str) -> Plan:
  """Chooses the plan.

  On a GPU a client after the other: its cores are busy with one already. On a
  CPU several clients at once, each on a core of its own.
  `experiments.benchmark --plan=...` compares the two.

  Args:
    name: A name of `PLANS`, or `AUTO` for the plan that suits.
    device: Where the clients' work runs.

  Returns:
    The plan.

  Raises:
    ValueError: If there is no such plan.
  """
  if name not in (AUTO, *PLANS):
    raise ValueError(f'`plan` must be one of {[AUTO, *PLANS]}, found {name!r}.')
  if name == AUTO:
    name = LOOP if 'GPU' in device else PARALLEL
  return Plan(name, 1 if name == LOOP else num_cores(), device)


Devices = Union[str, Sequence[str]]


def choose_device(devices: Devices) -> str:
  """Chooses where the clients' work runs, and lets GPUs' memory grow.

  Args:
    devices: `'CPU'`, `'GPU'`, a name such as `'/device:GPU:1'`, or a list of
      one of them; `'auto'` for the first GPU that TensorFlow sees, else the
      CPU.

  Returns:
    The short name of the device, such as 'CPU:0'.

  Raises:
    ValueError: If there is no such device, or there are several.
  """
  gpus = tf.config.list_physical_devices('GPU')
  for gpu in gpus:
    try:
      tf.config.experimental.set_memory_growth(gpu, True)
    except RuntimeError:  # It is in use already, as its owner wanted it.
      pass
  if devices == AUTO:
    return 'GPU:0' if gpus else 'CPU:0'
  chosen = [devices] if isinstance(devices, str) else list(devices)
  names = ['CPU:0', *(f'GPU:{number}' for number in range(len(gpus)))]
  short = [_short_name(name) for name in chosen]
  if len(short) != 1 or short[0] not in names:
    raise ValueError(
        f'`devices` must name one of {names}, or be {AUTO!r}, found '
        f'{devices!r}.'
    )
  return short[0]


def _short_name(device: str) -> str:
  """'CPU:0' for 'cpu', 'CPU:0' and '/device:CPU:0'."""
  name = device.upper().split('/')[-1].removeprefix('DEVICE:')
  return name if ':' in name else f'{name}:0'


def set_threads(devices: Devices = AUTO, plan: str = AUTO) -> None:
  """Gives every op one thread, where several clients work at once on a CPU.

  Then each client has a core for itself, which is faster than several clients
  that share the cores op by op, and keeps its speed on a busy machine. Where
  one client works after the other, or on a GPU, TensorFlow's choice is best.

  Call it before TensorFlow runs anything; afterwards threads cannot be changed.

  Args:
    devices: As for `create_compiled_context`.
    plan: As for `create_compiled_context`.

  Raises:
    RuntimeError: If TensorFlow has started.
    ValueError: If a device is not known.

  Example:

    ```python
    from tff_adaptive import runtime

    runtime.set_threads()
    runtime.set_compiled_context()
    ```
  """
  if plan == LOOP or 'GPU' in choose_device(devices):
    return
  tf.config.threading.set_inter_op_parallelism_threads(num_cores())
  tf.config.threading.set_intra_op_parallelism_threads(1)
