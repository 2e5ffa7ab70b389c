# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A driver's pool of Ray workers, which are restarted if they die."""

from collections.abc import Iterator, Mapping, Sequence
import itertools
import time
from typing import Any, NamedTuple, Optional
import weakref

from absl import logging
import numpy as np
import ray
from ray._private import state as ray_state
from ray.util import actor_pool
from ray.util import scheduling_strategies

from tff_adaptive import _error_texts
from tff_adaptive.runtime.scale_out import clusters
from tff_adaptive.runtime.scale_out import messages
from tff_adaptive.runtime.scale_out import node_watch
from tff_adaptive.runtime.scale_out import workers

_SECONDS_FOR_PLACES = 60.0
# A cluster reports cores that became free, as of a closed context, later.
_SECONDS_FOR_FREE_CORES = 5.0
# Few, because each takes a millisecond; the last tasks fill the gaps.
_TASKS_PER_THREAD = 3
# The number of retries of a chunk whose worker has died.
_MAX_RETRIES = 3

_DEATHS = (
    ray.exceptions.OutOfMemoryError,
    ray.exceptions.RayActorError,
    ray.exceptions.WorkerCrashedError,
)


class _Entry(NamedTuple):
  """An object of a store.

  Attributes:
    key: Its key.
    reference: Its reference.
    content: What tells that it was changed.
  """

  key: int
  reference: ray.ObjectRef
  content: Any


class ObjectStore:
  """Objects that workers fetch once, each kept while its owner is alive."""

  def __init__(self):
    """Initializes an empty store."""
    self._numbers = itertools.count()
    self._entries: weakref.WeakKeyDictionary[Any, _Entry] = (
        weakref.WeakKeyDictionary()
    )

  def key_of(self, owner: Any, value: Any, content: Any = None) -> int:
    """Returns the unique key of an object; stores the object if it is new.

    The object is dropped when its owner is garbage-collected.

    Args:
      owner: The owner.
      value: The object.
      content: What tells that the object was changed, so that it is stored
        again under another key. Defaults to None, for one that never changes.

    Raises:
      Exception: If it cannot be pickled.
    """
    found = self._entries.get(owner)
    if found is None or found.content != content:
      found = _Entry(next(self._numbers), ray.put(value), content)
      self._entries[owner] = found
    return found.key

  def references(self) -> dict[int, ray.ObjectRef]:
    """Returns the references of all objects whose owners are alive."""
    return {entry.key: entry.reference for entry in self._entries.values()}


class WorkerPool:
  """The workers of a driver.

  Attributes:
    rounds: The specs of the computations over clients.
    sources: The sources of clients' data.
    node: The watch of Ray on this machine.
  """

  def __init__(
      self, num_workers: Optional[int], settings: workers.WorkerSettings
  ):
    """Starts the workers without waiting for them.

    Args:
      num_workers: The number of workers; None for as many as fit into the
        free cores, or GPUs, of the cluster.
      settings: The settings of each worker.

    Raises:
      ClusterError: If the cluster is too small for them.
    """
    if num_workers is None:
      num_workers = max(1, _free_workers(settings))
    self._places = _reserve(num_workers, settings)
    self.rounds = ObjectStore()
    self.sources = ObjectStore()
    self._settings = settings
    self._processes: set[workers.Process] = set()
    self._num_workers = num_workers
    self._workers = [self._start(place) for place in range(num_workers)]
    self.node = node_watch.NodeWatch(_raylet_socket())

  @property
  def num_lost(self) -> int:
    """The number of dead workers whose replacements have reported."""
    return max(0, len(self._processes) - self._num_workers)

  def process_ids(self) -> list[int]:
    """Returns the workers' process ids, once all workers are ready."""
    found = ray.get([worker.process.remote() for worker in self._workers])
    for process in found:
      self._meet(process)
    return [process.pid for process in found]

  def _meet(self, process: workers.Process) -> None:
    """Records a worker's process, which may replace a dead one."""
    num_lost = self.num_lost
    self._processes.add(process)
    if self.num_lost > num_lost:
      logging.warning('A worker has died and is replaced.')

  def sum_chunks(
      self,
      round_key: int,
      chunks: Sequence[messages.Chunk],
      *,
      broadcast: Sequence[np.ndarray],
      server_seed: np.ndarray,
  ) -> Iterator[workers.SummedChunk]:
    """Sums chunks on the workers, the most expensive ones first.

    Args:
      round_key: The key of the computation among `rounds`.
      chunks: The chunks.
      broadcast: The tensors that all clients get; sent once to each machine.
      server_seed: The seed of the server's computations, int32 of shape [2].

    Yields:
      The sums, as they are completed.

    Raises:
      ClusterError: If workers die repeatedly.
      Exception: Any error that a worker raised.
    """
    order = ray.put(
        workers.Order(
            round_key,
            self.rounds.references(),
            self.sources.references(),
            list(broadcast),
            server_seed,
        )
    )
    # A new pool for each round: leftovers of a failed round must not appear in
    # the next one.
    threads = self._workers * self._settings.num_threads
    done = actor_pool.ActorPool(threads).map_unordered(
        lambda worker, task: worker.sum_chunks.remote(order, task),
        _to_tasks(chunks, _TASKS_PER_THREAD * len(threads)),
    )
    try:
      for chunk_sum in itertools.chain.from_iterable(done):
        self._meet(chunk_sum.process)
        yield chunk_sum
    except _DEATHS as error:
      raise clusters.ClusterError(
          "Ray's workers die repeatedly; look into Ray's logs, they may need "
          f'more memory ({_error_texts.first_line(error)}).'
      ) from error
    except ray.exceptions.RayTaskError as error:
      raise (error.cause or error) from error

  def close(self) -> None:
    """Ends the workers."""
    self.node.close()
    if not self.node.is_dead:  # Ray would end this process.
      for worker in self._workers:
        ray.kill(worker)
      ray.util.remove_placement_group(self._places)
    self._workers = []

  def _start(self, place: int) -> Any:
    """Starts a worker in its reserved place; Ray restarts it if it dies."""
    settings = self._settings
    uses_onednn = str(int(settings.uses_onednn))
    return (
        ray.remote(workers.Worker)
        .options(
            num_cpus=settings.num_cpus,
            num_gpus=int(settings.uses_gpu),
            max_concurrency=settings.num_threads,
            max_restarts=-1,
            max_task_retries=_MAX_RETRIES,
            runtime_env={'env_vars': {'TF_ENABLE_ONEDNN_OPTS': uses_onednn}},
            scheduling_strategy=scheduling_strategies.PlacementGroupSchedulingStrategy(
                self._places, placement_group_bundle_index=place
            ),
        )
        .remote(settings)
    )


def _raylet_socket() -> Optional[str]:
  """Returns the path of the socket of Ray's process on this machine, if any."""
  node = ray._private.worker._global_node  # pylint: disable=protected-access
  return getattr(node, 'raylet_socket_name', None)


def _to_tasks(
    chunks: Sequence[messages.Chunk], num_tasks: int
) -> list[Sequence[messages.Chunk]]:
  """Distributes chunks over tasks, the most expensive ones first."""
  from_longest = sorted(chunks, key=lambda chunk: -chunk.load)
  tasks = (from_longest[i::num_tasks] for i in range(num_tasks))
  return list(filter(None, tasks))


def _count(resources: Mapping[str, float]) -> tuple[int, int]:
  """Returns the numbers of cores and GPUs among Ray's resources."""
  return int(resources.get('CPU', 0)), int(resources.get('GPU', 0))


def _fitting_workers(
    nodes: Mapping[str, Mapping[str, float]], settings: workers.WorkerSettings
) -> int:
  """Returns the number of workers that fit into resources of machines."""
  num_workers = 0
  for resources in nodes.values():
    num_cpus, num_gpus = _count(resources)
    by_cpus = num_cpus // settings.num_cpus
    num_workers += min(by_cpus, num_gpus) if settings.uses_gpu else by_cpus
  return num_workers


def _max_workers(settings: workers.WorkerSettings) -> int:
  """Returns the number of workers that the cluster has room for."""
  nodes = {
      node['NodeID']: node['Resources'] for node in ray.nodes() if node['Alive']
  }
  return _fitting_workers(nodes, settings)


def _free_workers(settings: workers.WorkerSettings) -> int:
  """Returns the number of workers that fit beside other jobs and contexts."""
  end = time.monotonic() + _SECONDS_FOR_FREE_CORES
  while True:
    free = ray_state.available_resources_per_node()
    num_workers = _fitting_workers(free, settings)
    if num_workers >= _max_workers(settings) or time.monotonic() > end:
      return num_workers
    time.sleep(0.1)


def _reserve(num_workers: int, settings: workers.WorkerSettings) -> Any:
  """Reserves resources for all workers.

  Otherwise, workers that do not fit would be waited for forever, and a worker
  that died could lose its place to other jobs.
  """
  if num_workers <= _max_workers(settings):
    place = {'CPU': settings.num_cpus, 'GPU': int(settings.uses_gpu)}
    places = ray.util.placement_group([place] * num_workers, strategy='SPREAD')
    if places.wait(_SECONDS_FOR_PLACES):
      return places
    ray.util.remove_placement_group(places)
  num_cpus, num_gpus = _count(ray.cluster_resources())
  free_cpus, free_gpus = _count(ray.available_resources())
  each = f'{settings.num_cpus} cores' + ' and a GPU' * settings.uses_gpu
  raise clusters.ClusterError(
      f'There is no room for {num_workers} workers with {each} each: the '
      f'cluster has {num_cpus} cores and {num_gpus} GPUs, of which '
      f'{free_cpus} and {free_gpus} are free; ask for fewer, close other '
      'contexts, or add machines.'
  )
