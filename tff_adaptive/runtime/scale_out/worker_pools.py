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
"""The workers of a driver, which Ray gives work and restarts if they die."""

from collections.abc import Iterator, Sequence
import itertools
from typing import Any
import weakref

from absl import logging
import numpy as np
import ray
from ray.util import actor_pool
from ray.util import scheduling_strategies

from tff_adaptive.data import client_data
from tff_adaptive.runtime.scale_out import clusters
from tff_adaptive.runtime.scale_out import messages
from tff_adaptive.runtime.scale_out import workers

_SECONDS_FOR_PLACES = 60.0
# Few, for each takes a millisecond; the last ones fill the gaps.
_TASKS_PER_THREAD = 3
# How often a chunk is tried again whose worker has died.
_MAX_RETRIES = 3

_DEATHS = (
    ray.exceptions.OutOfMemoryError,
    ray.exceptions.RayActorError,
    ray.exceptions.WorkerCrashedError,
)


class ObjectStore:
  """References to objects that workers fetch once."""

  def __init__(self):
    """Initializes an empty store."""
    self._references: dict[int, ray.ObjectRef] = {}
    self._numbers = itertools.count()

  def add(self, owner: Any, value: Any) -> int:
    """Puts an object into the store.

    Args:
      owner: The object is dropped when this is gone.
      value: The object.

    Returns:
      Its key, which no other one gets.

    Raises:
      TypeError: If it cannot be sent to another process.
    """
    key = next(self._numbers)
    self._references[key] = ray.put(value)
    weakref.finalize(owner, self._references.pop, key, None)
    return key

  def references(self) -> dict[int, ray.ObjectRef]:
    """Returns the references of all objects that are still there."""
    return dict(self._references)


class SourceStore(ObjectStore):
  """References to the sources of clients' data."""

  def __init__(self):
    """Initializes an empty store."""
    super().__init__()
    self._keys: weakref.WeakKeyDictionary[client_data.ClientArrays, int] = (
        weakref.WeakKeyDictionary()
    )

  def key_of(self, source: client_data.ClientArrays) -> int:
    """Returns the key of a source, which is put into the store if it is new.

    Args:
      source: The source.

    Returns:
      Its key, as long as the source is there.

    Raises:
      TypeError: If it cannot be sent to another process.
    """
    if source not in self._keys:
      try:
        self._keys[source] = self.add(source, source)
      except TypeError as error:
        raise TypeError(
            "The clients' data cannot be sent to the workers: "
            f'{type(source).__name__} holds what cannot be pickled; use arrays '
            f'in memory or a file ({str(error).splitlines()[0]}).'
        ) from error
    return self._keys[source]


class WorkerPool:
  """The workers of a driver.

  Attributes:
    rounds: The specs of the computations over clients.
    sources: The sources of clients' data.
  """

  def __init__(self, num_workers: int, settings: workers.WorkerSettings):
    """Starts the workers, and does not wait for them.

    Args:
      num_workers: How many there are.
      settings: How each uses its machine.

    Raises:
      ClusterError: If the cluster has no room for them.
    """
    self._places = _reserve(num_workers, settings)
    self.rounds = ObjectStore()
    self.sources = SourceStore()
    self._settings = settings
    self._process_ids: set[int] = set()
    self._workers = [self._start(place) for place in range(num_workers)]

  @property
  def num_lost(self) -> int:
    """How many workers have died, as far as those after them were met."""
    return max(0, len(self._process_ids) - len(self._workers))

  def process_ids(self) -> list[int]:
    """Returns the process ids of the workers, once all are ready."""
    found = ray.get([worker.process_id.remote() for worker in self._workers])
    for process_id in found:
      self._meet(process_id)
    return found

  def _meet(self, process_id: int) -> None:
    """Takes note of a worker's process, which may be another one's heir."""
    num_lost = self.num_lost
    self._process_ids.add(process_id)
    if self.num_lost > num_lost:
      logging.warning('A worker has died; another one takes its place.')

  def sum_chunks(
      self,
      round_key: int,
      chunks: Sequence[messages.Chunk],
      *,
      broadcast: Sequence[np.ndarray],
      server_seed: np.ndarray,
  ) -> Iterator[workers.ChunkSum]:
    """Has the workers sum up chunks, those that take longest first.

    Args:
      round_key: The key of the computation among `rounds`.
      chunks: The chunks.
      broadcast: The tensors that all clients get; sent once to a machine.
      server_seed: What fixes the server's random numbers, int32 of shape [2].

    Yields:
      The sums, as they are done.

    Raises:
      ClusterError: If workers die again and again.
      Exception: Of any kind, that a worker has raised.
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
    # A new one for each round: what a round that has failed left behind must
    # not come back in the next one.
    threads = self._workers * self._settings.num_threads
    done = actor_pool.ActorPool(threads).map_unordered(
        lambda worker, task: worker.sum_chunks.remote(order, task),
        _to_tasks(chunks, _TASKS_PER_THREAD * len(threads)),
    )
    try:
      for chunk_sum in itertools.chain.from_iterable(done):
        self._meet(chunk_sum.process_id)
        yield chunk_sum
    except _DEATHS as error:
      raise clusters.ClusterError(
          'Workers of Ray die again and again; look into its logs, they may '
          f'need more memory ({str(error).splitlines()[0]}).'
      ) from error
    except ray.exceptions.RayTaskError as error:
      raise (error.cause or error) from error

  def close(self) -> None:
    """Ends the workers."""
    for worker in self._workers:
      ray.kill(worker)
    self._workers = []
    ray.util.remove_placement_group(self._places)

  def _start(self, place: int) -> Any:
    """Starts a worker in its place; Ray starts another one if it dies."""
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


def _to_tasks(
    chunks: Sequence[messages.Chunk], num_tasks: int
) -> list[Sequence[messages.Chunk]]:
  """Deals chunks out to tasks, those that take longest first."""
  from_longest = sorted(chunks, key=lambda chunk: -chunk.load)
  tasks = (from_longest[i::num_tasks] for i in range(num_tasks))
  return list(filter(None, tasks))


def _reserve(num_workers: int, settings: workers.WorkerSettings) -> Any:
  """Returns the places of all workers, which nobody else gets.

  Without that, workers for whom there is no room would be waited for forever,
  and one that has died could lose its place to others.
  """
  found, num_gpus = clusters.resources(), int(settings.uses_gpu)
  fits = (
      num_workers * settings.num_cpus <= found.num_cpus
      and num_workers * num_gpus <= found.num_gpus
  )
  if fits:
    place = {'CPU': settings.num_cpus, 'GPU': num_gpus}
    places = ray.util.placement_group([place] * num_workers, strategy='SPREAD')
    if places.wait(_SECONDS_FOR_PLACES):
      return places
    ray.util.remove_placement_group(places)
  free = clusters.free_resources()
  each = f'{settings.num_cpus} cores' + ' and a GPU' * num_gpus
  raise clusters.ClusterError(
      f'There is no room for {num_workers} workers with {each} each: the '
      f'cluster has {found.num_cpus} cores and {found.num_gpus} GPUs, of which '
      f'{free.num_cpus} and {free.num_gpus} are free; ask for fewer, or add '
      'machines.'
  )
