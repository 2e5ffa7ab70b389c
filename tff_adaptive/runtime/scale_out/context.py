# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""An execution context that distributes a round's clients over workers."""

from collections.abc import Iterator
import contextlib
import os
from typing import Any, NamedTuple, Optional

from absl import logging
from tensorflow.python.framework import config as tf_config
from tensorflow.python.util import _pywrap_util_port
import tensorflow_federated as tff

from tff_adaptive.data import specs
from tff_adaptive.runtime import compiled
from tff_adaptive.runtime import dataset_cache
from tff_adaptive.runtime import native
from tff_adaptive.runtime import plans


class ClusterError(RuntimeError):
  """The cluster cannot do what was asked; the text is one sentence."""


def connect(address: Optional[str], num_cpus: int) -> bool:
  """Connects this process to a Ray cluster, unless it is connected already.

  Args:
    address: The cluster's address: 'auto' for one on this machine, or the
      'host:port' of its head. None starts a new cluster on this machine, which
      ends with this process.
    num_cpus: The number of cores of a new cluster.

  Returns:
    Whether this call connected; if so, call `disconnect` at the end.

  Raises:
    ClusterError: If Ray is not installed or does not start, or there is no
      cluster at the address.
  """
  ray = _import_ray()
  if ray.is_initialized():
    found = ray.get_runtime_context().gcs_address
    # Not an error, since a cluster has several addresses.
    if address not in (None, 'auto', found):
      logging.warning(
          'This process is connected to the Ray cluster at %s; the address %s '
          'is not used. If it is another cluster, call `ray.shutdown()` first.',
          found,
          address,
      )
    return False
  options: dict[str, Any] = {'address': address}
  if address is None:
    options = {
        'address': 'local',
        'num_cpus': num_cpus,
        'include_dashboard': False,
    }
  try:
    ray.init(**options, configure_logging=False, log_to_driver=False)
  except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
    if address is None:
      raise ClusterError(
          f'Ray did not start on this machine: {error}'
      ) from error
    raise ClusterError(
        f'There is no Ray cluster at {address!r}; start one with `ray start '
        f'--head`, or correct the address ({error}).'
    ) from error
  logging.info('Ray: %s', ray.cluster_resources())
  return True


def _import_ray():
  """Imports Ray, with its usage reports switched off."""
  os.environ.setdefault('RAY_USAGE_STATS_ENABLED', '0')
  # Nobody reads the metrics, and Ray complains if it cannot send them.
  os.environ.setdefault('RAY_enable_metrics_collection', '0')
  # The default of Ray's next versions; it warns if unset.
  os.environ.setdefault('RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO', '0')
  try:
    import ray  # pylint: disable=import-outside-toplevel
  except ImportError as error:
    raise ClusterError(
        'Ray is not installed: pip install "ray>=2.40".'
    ) from error
  return ray


def disconnect() -> None:
  """Ends the connection that `connect` made."""
  _import_ray().shutdown()


# The value that TensorFlow uses. Later changes of the environment do not affect
# this process, but would affect workers.
_USES_ONEDNN = _pywrap_util_port.IsMklEnabled()
_CPU = 'CPU'
_GPU = 'GPU'
_DEVICES = (_CPU, _GPU)


class RoundCosts(NamedTuple):
  """The costs of a round on workers, from state to state.

  Attributes:
    seconds: The wall time of the round on the driver.
    server_seconds: The driver's time before and after the clients' work:
      prepare, report, update.
    merge_seconds: The driver's time to merge the sums of the chunks.
    work_seconds: The workers' time, summed over all chunks.
    num_chunks: The number of chunks of the cohort.
    broadcast_bytes: The size of the broadcast, sent once to each machine.
    chunk_bytes: The size of the client ids or rows of all chunks.
    sum_bytes: The size of the sums of all chunks, sent to the driver.
  """

  seconds: float
  server_seconds: float
  merge_seconds: float
  work_seconds: float
  num_chunks: int
  broadcast_bytes: int
  chunk_bytes: int
  sum_bytes: int


class RayContext(compiled.CompiledContext):
  """Distributes rounds over Ray workers; see `create_ray_context`.

  Attributes:
    pool: The workers.
  """

  def __init__(
      self,
      plan: plans.Plan,
      pool: Any,
      *,
      owns_connection: bool,
      strict: bool,
      seed: int,
      max_cache_bytes: int = dataset_cache.DEFAULT_MAX_BYTES,
  ):
    """Initializes the context.

    Args:
      plan: How clients run, and on which device of each worker.
      pool: The workers.
      owns_connection: Whether `close` ends the connection to the cluster.
      strict: See `create_ray_context`.
      seed: See `CompiledContext`.
      max_cache_bytes: See `create_ray_context`.
    """
    super().__init__(
        plan, strict=strict, seed=seed, max_cache_bytes=max_cache_bytes
    )
    self.pool = pool
    self._owns_connection = owns_connection

  def close(self) -> None:
    """Ends the workers, and the cluster if this context started it.

    Computations over clients raise a `ClusterError` from then on.
    """
    super().close()
    with self._lock:
      if self.pool is not None:
        self.pool.close()
        self.pool = None
        if self._owns_connection:
          disconnect()

  def costs_of(
      self, computation: tff.framework.ConcreteComputation
  ) -> Optional[RoundCosts]:
    """Returns the costs of the latest round of a computation.

    Args:
      computation: A computation that ran in this context.

    Returns:
      The times and bytes of its parts; None if it has no clients, or the native
      runtime took over.

    Example:
      ```python
      with ray_context(num_workers=2) as context:
        output = process.next(state, cohort)
        print(context.costs_of(process.next).broadcast_bytes)
      ```
    """
    return getattr(self._programs.get(id(computation)), 'costs', None)

  def _compile_round(
      self, computation: tff.framework.ConcreteComputation
  ) -> Any:
    from tff_adaptive.runtime.scale_out import scaled_rounds  # pylint: disable=import-outside-toplevel

    self._check_open()
    return scaled_rounds.ScaledRound(
        computation,
        self._plan,
        self._cache,
        self._note_pipelines,
        pool=self.pool,
    )

  def _run_round(self, program: Any, arg: Any) -> Any:
    self._check_open()
    with self.pool.node.guarded():
      return super()._run_round(program, arg)

  def _check_open(self) -> None:
    if self.pool is None:
      raise ClusterError(
          'This context is closed and its workers have ended; create a new one '
          'with `create_ray_context`.'
      )


def choose_ray_plan(devices: str = _CPU, plan: str = plans.AUTO) -> plans.Plan:
  """Chooses the plan of the clients' work.

  The arguments are those of `create_ray_context`.

  Returns:
    The plan of a context with the same arguments.

  Raises:
    ValueError: If a device or a plan is unknown.
  """
  name = devices.upper().removesuffix(':0')
  if name not in _DEVICES:
    raise ValueError(
        f'`devices` must be one of {list(_DEVICES)}, found {devices!r}.'
    )
  return plans.choose(plan, f'{name}:0')


def create_ray_context(
    *,
    address: Optional[str] = None,
    num_workers: Optional[int] = None,
    cpus_per_worker: int = 1,
    devices: str = _CPU,
    plan: str = plans.AUTO,
    strict: bool = False,
    seed: Optional[int] = None,
    max_cache_bytes: int = dataset_cache.DEFAULT_MAX_BYTES,
) -> RayContext:
  """Creates a context that distributes a round's clients over workers.

  Results have the same bits for any number of workers, and equal those of the
  compiled context with the same plan up to rounding; with one thread per op,
  see `runtime.set_threads`, they are identical. A worker that dies is replaced
  and its work repeated. Each worker gets the computation and the source of a
  `Cohort`'s data once and the broadcast once a round, and reads its clients
  itself: files of client data must be at the same path on every machine. The
  rows of clients that are given as lists are sent in each round.

  Args:
    address: The address of a Ray cluster: 'auto' for one on this machine, or
      the 'host:port' of its head. Every machine in it needs this library. By
      default the cluster that the process is connected to, or a new one on this
      machine that ends with the context. A process that is connected
      already keeps its cluster, and warns if `address` is another one.
    num_workers: The number of workers. Defaults to as many as fit: by GPUs with
      `devices='GPU'`, else by cores.
    cpus_per_worker: The number of cores of a worker, each for one client at a
      time. Defaults to 1.
    devices: `'CPU'`, the default, or `'GPU'` for workers with a GPU each.
    plan: See `runtime.create_compiled_context`.
    strict: See `runtime.create_compiled_context`.
    seed: The seed of random numbers if neither a `Cohort` nor `begin_round`
      sets one. Defaults to a random seed.
    max_cache_bytes: The size of each worker's cache of client data, see
      `runtime.create_compiled_context`, and of this process's cache of datasets
      that are given as lists. Defaults to 4 GiB; 0 disables the caches.

  Returns:
    The context, for `tff.framework.set_default_context`; close it at the end.

  Raises:
    ClusterError: If Ray is not installed, or the cluster is not found or too
      small.
    TypeError: If a number is not an integer.
    ValueError: If a device or a plan is unknown, or a number is out of range.

  Example:
    ```python
    import tensorflow_federated as tff
    from tff_adaptive.runtime import scale_out

    context = scale_out.create_ray_context(num_workers=2)
    tff.framework.set_default_context(context)
    ```
  """
  chosen = choose_ray_plan(devices, plan)
  seed = compiled.choose_seed(seed)
  specs.check_not_negative('max_cache_bytes', max_cache_bytes)
  if num_workers is not None:
    specs.check_positive('num_workers', num_workers)
  specs.check_positive('cpus_per_worker', cpus_per_worker)
  wanted_cpus = cpus_per_worker * (num_workers or 0)
  owns_connection = connect(address, max(wanted_cpus, plans.num_cores()))
  with contextlib.ExitStack() as on_error:
    if owns_connection:
      on_error.callback(disconnect)
    # These modules import Ray, which is optional.
    from tff_adaptive.runtime.scale_out import worker_pools  # pylint: disable=import-outside-toplevel
    from tff_adaptive.runtime.scale_out import workers  # pylint: disable=import-outside-toplevel

    settings = workers.WorkerSettings(
        cpus_per_worker,
        chosen.device.startswith(_GPU),
        tf_config.is_op_determinism_enabled(),
        _USES_ONEDNN,
        max_cache_bytes,
    )
    pool = worker_pools.WorkerPool(num_workers, settings)
    on_error.pop_all()
  native.free_default_context_at_exit()
  return RayContext(
      chosen,
      pool,
      owns_connection=owns_connection,
      strict=strict,
      seed=seed,
      max_cache_bytes=max_cache_bytes,
  )


def set_ray_context(**kwargs: Any) -> RayContext:
  """Makes a Ray context TFF's default context.

  Args:
    **kwargs: See `create_ray_context`, also for errors.

  Returns:
    The context.

  Example:
    ```python
    import tensorflow_federated as tff
    from tff_adaptive.runtime import scale_out

    scale_out.set_ray_context(address='auto')
    process = tff.learning.algorithms.build_weighted_fed_avg(...)
    ```
  """
  context = create_ray_context(**kwargs)
  native.set_default_context(context)
  return context


@contextlib.contextmanager
def ray_context(
    *,
    address: Optional[str] = None,
    num_workers: Optional[int] = None,
    cpus_per_worker: int = 1,
    devices: str = _CPU,
    plan: str = plans.AUTO,
    strict: bool = False,
    seed: Optional[int] = None,
    max_cache_bytes: int = dataset_cache.DEFAULT_MAX_BYTES,
) -> Iterator[RayContext]:
  """Distributes the clients of TFF computations within a `with` block.

  The arguments and errors are those of `create_ray_context`.

  Yields:
    The context, installed for the calling thread.

  Example:
    ```python
    from tff_adaptive.runtime import scale_out

    with scale_out.ray_context(num_workers=2):
      state = process.initialize()
      output = process.next(state, cohort)
    ```
  """
  context = create_ray_context(
      address=address,
      num_workers=num_workers,
      cpus_per_worker=cpus_per_worker,
      devices=devices,
      plan=plan,
      strict=strict,
      seed=seed,
      max_cache_bytes=max_cache_bytes,
  )
  with (
      contextlib.closing(context),
      tff.framework.get_context_stack().install(context),
  ):
    yield context
