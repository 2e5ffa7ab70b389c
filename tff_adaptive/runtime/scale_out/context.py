# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""An execution context that distributes a round's clients over workers."""

import contextlib
from typing import Any, Optional

from tensorflow.python.framework import config as tf_config
from tensorflow.python.util import _pywrap_util_port
import tensorflow_federated as tff

from tff_adaptive.data import specs
from tff_adaptive.runtime import compiled
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.scale_out import clusters
from tff_adaptive.runtime.scale_out import messages

# The value that TensorFlow uses. Later changes of the environment do not affect
# this process, but would affect workers.
_USES_ONEDNN = _pywrap_util_port.IsMklEnabled()
# By the names that users give. A worker sees its own GPU alone.
_DEVICES = {'CPU': 'CPU:0', 'GPU': 'XLA:GPU:0', 'XLA:CPU': 'XLA:CPU:0'}


class RayContext(compiled.CompiledContext):
  """Distributes the clients of TFF computations over Ray workers.

  Results have the same bits for any number of workers, and equal those of the
  compiled context with the same plan up to rounding; with one thread per op,
  see `runtime.set_threads`, they are identical. A worker that dies is replaced
  and its work repeated. Each worker gets the computation and the source of a
  `Cohort`'s data once (again if its arrays were changed in place) and the
  broadcast once a round, and reads its clients itself: files of client data
  must be at the same path on every machine. The rows of clients that are given
  as lists are sent in each round.

  Attributes:
    pool: The workers.

  Example:
    ```python
    from tff_adaptive.runtime import scale_out

    with scale_out.RayContext(num_workers=2):
      state = process.initialize()
      output = process.next(state, cohort)
    ```
  """

  def __init__(
      self,
      *,
      address: Optional[str] = None,
      num_workers: Optional[int] = None,
      cpus_per_worker: int = 1,
      devices: str = 'CPU',
      num_parallel_clients: Optional[int] = None,
      strict: bool = False,
      seed: Optional[int] = None,
      default_num_clients: int = 1,
      max_cache_bytes: int = dataset_cache.DEFAULT_MAX_BYTES,
  ):
    """Initializes the context, and starts its workers.

    Args:
      address: The address of a Ray cluster: 'auto' for one on this machine, or
        the 'host:port' of its head. Every machine in it needs this library. By
        default the cluster that the process is connected to, or a new one on
        this machine, which ends with the last context on it. A process that is
        connected already keeps its cluster, and warns if `address` is another
        one.
      num_workers: The number of workers. Defaults to as many as fit into the
        cluster beside others: by free GPUs with `devices='GPU'`, else by free
        cores.
      cpus_per_worker: The number of cores of a worker, each for one client at a
        time. Defaults to 1.
      devices: `'CPU'`, the default, or `'GPU'` for workers with a GPU each, on
        which JAX runs programs of XLA; `'XLA:CPU'` runs them on the CPU, for
        tests.
      num_parallel_clients: See `CompiledContext`, for programs of XLA and for
        computations that this process runs step by step.
      strict: See `CompiledContext`.
      seed: See `CompiledContext`.
      default_num_clients: See `CompiledContext`.
      max_cache_bytes: The size of each worker's cache of client data, see
        `CompiledContext`, and of this process's cache of datasets that are
        given as lists. Defaults to 4 GiB; 0 disables the caches.

    Raises:
      ClusterError: If Ray is not installed, or the cluster is not found or too
        small.
      TypeError: If a number is not an integer.
      ValueError: If a device is unknown, or a number is out of range.
    """
    super().__init__(
        devices=devices,
        num_parallel_clients=num_parallel_clients,
        strict=strict,
        seed=seed,
        default_num_clients=default_num_clients,
        max_cache_bytes=max_cache_bytes,
    )
    if num_workers is not None:
      specs.check_positive('num_workers', num_workers)
    specs.check_positive('cpus_per_worker', cpus_per_worker)
    wanted_cpus = cpus_per_worker * (num_workers or 0)
    self._disconnects = clusters.connect(
        address, max(wanted_cpus, plans.num_cores())
    )
    with contextlib.ExitStack() as on_error:
      if self._disconnects:
        on_error.callback(clusters.disconnect)
      # These modules import Ray, which is optional.
      from tff_adaptive.runtime.scale_out import worker_pools  # pylint: disable=import-outside-toplevel
      from tff_adaptive.runtime.scale_out import workers  # pylint: disable=import-outside-toplevel

      settings = workers.WorkerSettings(
          cpus_per_worker,
          'GPU' in self.device,
          tf_config.is_op_determinism_enabled(),
          _USES_ONEDNN,
          max_cache_bytes,
      )
      self.pool: Any = worker_pools.WorkerPool(num_workers, settings)
      on_error.pop_all()

  def _choose_plan(self, devices, num_parallel_clients):
    return choose_ray_plan(devices, num_parallel_clients)

  def close(self) -> None:
    """Ends the workers, and a cluster of contexts with the last of them.

    Computations over clients raise a `ClusterError` from then on.
    """
    super().close()
    with self._lock:
      if self.pool is not None:
        self.pool.close()
        self.pool = None
        if self._disconnects:
          clusters.disconnect()

  def costs_of(
      self, computation: tff.framework.ConcreteComputation
  ) -> Optional[messages.RoundCosts]:
    """Returns the costs of the latest round of a computation.

    Args:
      computation: A computation that ran in this context.

    Returns:
      The times and bytes of its parts; None if it has no clients, or the native
      runtime took over.

    Example:
      ```python
      with scale_out.RayContext(num_workers=2) as context:
        output = process.next(state, cohort)
        print(context.costs_of(process.next).broadcast_bytes)
      ```
    """
    return getattr(self._programs.get(id(computation)), 'costs', None)

  def _compile_round(
      self, form: computations.RoundForm, setting: rounds.Setting
  ) -> rounds.Round:
    from tff_adaptive.runtime.scale_out import scaled_rounds  # pylint: disable=import-outside-toplevel

    self._check_open()
    return scaled_rounds.ScaledRound(form, setting, self.pool)

  def _run(self, program: Any, arg: Any) -> Any:
    if not isinstance(program, rounds.Round):
      return super()._run(program, arg)
    self._check_open()
    with self.pool.node.guarded():
      return super()._run(program, arg)

  def _check_open(self) -> None:
    if self.pool is None:
      raise clusters.ClusterError(
          'This context is closed and its workers have ended; create a new one '
          '`RayContext`.'
      )


def choose_ray_plan(
    devices: str = 'CPU', num_parallel_clients: Optional[int] = None
) -> plans.Plan:
  """Chooses the plan of the clients' work.

  The arguments are those of `RayContext`.

  Returns:
    The plan of a context with the same arguments.

  Raises:
    TypeError: If the number of clients is not an integer.
    ValueError: If a device is unknown, or the number of clients not positive.
  """
  name = devices.upper().removesuffix(':0')
  if name not in _DEVICES:
    raise ValueError(
        f'`devices` must be one of {list(_DEVICES)}, found {devices!r}.'
    )
  return plans.choose(_DEVICES[name], num_parallel_clients)
