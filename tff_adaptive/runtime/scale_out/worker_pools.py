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
"""The workers of a driver: they share rounds, and are replaced if they die."""

from collections.abc import Iterator, Sequence
import itertools
from typing import Any, NamedTuple, Optional
import weakref

from absl import logging
import numpy as np
import ray
from ray.util import scheduling_strategies

from tff_adaptive.data import client_data
from tff_adaptive.runtime.scale_out import chunk_messages
from tff_adaptive.runtime.scale_out import clusters
from tff_adaptive.runtime.scale_out import sharing
from tff_adaptive.runtime.scale_out import workers

# How much the newest round counts for what is thought of a worker's speed.
_SPEED_SMOOTHING = 0.5
# How much faster a worker is thought to have become in a round without it: one
# that was slow once is tried again, with a single chunk.
_SPEED_RECOVERY = 1.1
# Others may be about to end.
_SECONDS_FOR_PLACES = 60.0
# A worker that dies again and again would do so forever.
_MAX_LOSSES_PER_WORKER = 3

# What Ray says of a worker that is gone.
_DEATHS = (
    ray.exceptions.OutOfMemoryError,
    ray.exceptions.RayActorError,
    ray.exceptions.WorkerCrashedError,
)


class ChunkSum(NamedTuple):
  """A chunk that is done.

  Attributes:
    number: Its place among the chunks of the round.
    tensors: The tensors of its sum.
    seconds: How long a worker took for it.
  """

  number: int
  tensors: list[np.ndarray]
  seconds: float


class _Task(NamedTuple):
  """What a worker is doing.

  Attributes:
    worker: The number of the worker.
    actor: The worker; once it has died, another one has its number.
    chunks: The numbers of its chunks.
  """

  worker: int
  actor: Any
  chunks: Sequence[int]


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
    num_lost: How many workers have died.
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
    self.num_lost = 0
    self._settings = settings
    self._speeds: list[Optional[float]] = [None] * num_workers
    self._workers = [self._start(place) for place in range(num_workers)]

  def process_ids(self) -> list[int]:
    """Returns the process ids of the workers, once all are ready."""
    return ray.get([worker.process_id.remote() for worker in self._workers])

  def sum_chunks(
      self,
      round_key: int,
      chunks: Sequence[chunk_messages.Chunk],
      *,
      broadcast: Sequence[np.ndarray],
      server_seed: np.ndarray,
  ) -> Iterator[ChunkSum]:
    """Shares chunks among the workers.

    Args:
      round_key: The key of the computation among `rounds`.
      chunks: The chunks.
      broadcast: The tensors that all clients get; sent once to a machine.
      server_seed: What fixes the server's random numbers, int32 of shape [2].

    Yields:
      The chunks, as they are done.

    Raises:
      ClusterError: If workers die again and again.
      Exception: Of any kind, that a worker has raised.
    """
    sent = ray.put(list(broadcast))
    rounds = self.rounds.references()
    sources = self.sources.references()

    def begin(worker: int, numbers: Sequence[int]):
      share = workers.Share(
          round_key, rounds, [chunks[i] for i in numbers], server_seed, sources
      )
      actor = self._workers[worker]
      reference = actor.sum_chunks.remote(share, sent)
      running[reference] = _Task(worker, actor, numbers)

    running: dict[Any, _Task] = {}
    loads = [chunk.load for chunk in chunks]
    for worker, numbers in enumerate(
        sharing.share(loads, self._known_speeds())
    ):
      if numbers:
        begin(worker, numbers)
      else:
        self._forgive(worker)
    limit = self.num_lost + _MAX_LOSSES_PER_WORKER * len(self._workers)
    while running:
      (reference,), _ = ray.wait(list(running))
      task = running.pop(reference)
      try:
        done = ray.get(reference)
      except _DEATHS as error:
        # Each of its tasks tells of a death; the first one has it replaced.
        if self._workers[task.worker] is task.actor:
          self._replace(task.worker, limit, error)
        for heir, inherited in self._share_again(task, loads):
          begin(heir, inherited)
      except ray.exceptions.RayTaskError as error:
        raise (error.cause or error) from error
      else:
        self._learn_speed(task, loads, done.seconds)
        yield from map(ChunkSum, task.chunks, done.sums, done.chunk_seconds)

  def close(self) -> None:
    """Ends the workers."""
    for worker in self._workers:
      ray.kill(worker)
    self._workers = []
    ray.util.remove_placement_group(self._places)

  def _start(self, place: int) -> Any:
    """Starts a worker in its place."""
    return (
        ray.remote(workers.Worker)
        .options(
            num_cpus=self._settings.num_cpus,
            num_gpus=int(self._settings.uses_gpu),
            runtime_env={
                'env_vars': {
                    'TF_ENABLE_ONEDNN_OPTS': str(
                        int(self._settings.uses_onednn)
                    )
                }
            },
            scheduling_strategy=scheduling_strategies.PlacementGroupSchedulingStrategy(
                self._places, placement_group_bundle_index=place
            ),
        )
        .remote(self._settings)
    )

  def _replace(self, worker: int, limit: int, error: Exception) -> None:
    """Starts another worker in the place of one that has died."""
    self.num_lost += 1
    if self.num_lost > limit:
      raise clusters.ClusterError(
          'Workers of Ray die again and again; look into its logs, they may '
          f'need more memory ({str(error).splitlines()[0]}).'
      ) from error
    logging.warning('A worker has died; another one takes its place.')
    ray.kill(self._workers[worker])  # It may be out of reach only.
    self._workers[worker] = self._start(worker)
    self._speeds[worker] = None

  def _share_again(
      self, task: _Task, loads: Sequence[float]
  ) -> Iterator[tuple[int, Sequence[int]]]:
    """Yields who gets the chunks of a worker that has died.

    The others do, after what they have to do already, since the new one has to
    start first; without others it gets them.
    """
    speeds = self._known_speeds()
    others = [w for w in range(len(speeds)) if w != task.worker]
    heirs = others or [task.worker]
    shares = sharing.share(
        [loads[i] for i in task.chunks], [speeds[w] for w in heirs]
    )
    for worker, places in zip(heirs, shares):
      if places:
        yield worker, [task.chunks[place] for place in places]

  def _known_speeds(self) -> list[float]:
    """Returns the speeds of the workers; of a new one, the mean of the rest."""
    mean = self._mean_speed()
    return [mean if speed is None else speed for speed in self._speeds]

  def _learn_speed(
      self, task: _Task, loads: Sequence[float], seconds: Optional[float]
  ) -> None:
    """Takes into account how fast a worker was, if it has only worked."""
    if seconds is None:
      return
    speed = sum(loads[i] for i in task.chunks) / max(seconds, 1e-6)
    if not speed:
      return  # Clients without examples say nothing.
    old = self._speeds[task.worker]
    if old is not None:
      speed = _SPEED_SMOOTHING * speed + (1 - _SPEED_SMOOTHING) * old
    self._speeds[task.worker] = speed

  def _forgive(self, worker: int) -> None:
    """Brings a slow worker that gets nothing closer to the mean of all."""
    speed, mean = self._speeds[worker], self._mean_speed()
    if speed is not None and speed < mean:
      self._speeds[worker] = min(_SPEED_RECOVERY * speed, mean)

  def _mean_speed(self) -> float:
    """Returns the mean of the speeds that are known; 1 if none is."""
    known = [speed for speed in self._speeds if speed is not None]
    return sum(known) / len(known) if known else 1.0


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
