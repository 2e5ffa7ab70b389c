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
"""A worker process: it keeps compiled work and data, and sums up chunks."""

from collections.abc import Collection, Mapping, Sequence
from concurrent import futures
import os
import time
from typing import Any, NamedTuple, Optional

import numpy as np
import ray
import tensorflow as tf

from tff_adaptive.data import client_data
from tff_adaptive.runtime import dataset_cache
from tff_adaptive.runtime.scale_out import chunk_messages
from tff_adaptive.runtime.scale_out import partial_rounds


class WorkerSettings(NamedTuple):
  """How a worker uses its machine.

  Attributes:
    num_cpus: How many chunks it works on at once, each with one thread an op.
    uses_gpu: Whether it has a GPU, where chunks follow each other.
    is_deterministic: Whether ops are to give the same bits whenever they run.
    uses_onednn: Whether TensorFlow takes the kernels of oneDNN on a CPU, whose
      bits are others. It looks into the environment when it is imported.
  """

  num_cpus: int
  uses_gpu: bool
  is_deterministic: bool
  uses_onednn: bool


class Share(NamedTuple):
  """What a worker gets to do in a round.

  Attributes:
    round_key: The key of the partial round.
    rounds: References to the specs of partial rounds, by their keys: all that
      there are; others can be dropped.
    chunks: The chunks that it is to sum up.
    server_seed: What fixes the server's random numbers, int32 of shape [2].
    sources: The same of the sources of the clients' data.
  """

  round_key: int
  rounds: Mapping[int, ray.ObjectRef]
  chunks: Sequence[chunk_messages.Chunk]
  server_seed: np.ndarray
  sources: Mapping[int, ray.ObjectRef]


class Sums(NamedTuple):
  """What a worker has done.

  Attributes:
    sums: The tensors of the sum of every chunk.
    chunk_seconds: How long every chunk took.
    seconds: How long it took from the first to the last; None where the
      computation was new to the worker, which then has built it first.
  """

  sums: list[list[np.ndarray]]
  chunk_seconds: list[float]
  seconds: Optional[float]


class Worker:
  """Runs in a process of its own, as an actor of Ray."""

  def __init__(self, settings: WorkerSettings):
    """Sets TensorFlow up, before it runs anything.

    Args:
      settings: How to use the machine.
    """
    if settings.uses_gpu:
      for gpu in tf.config.list_physical_devices('GPU'):
        tf.config.experimental.set_memory_growth(gpu, True)
    else:
      tf.config.set_visible_devices([], 'GPU')
      tf.config.threading.set_inter_op_parallelism_threads(settings.num_cpus)
      tf.config.threading.set_intra_op_parallelism_threads(1)
    if settings.is_deterministic:
      tf.config.experimental.enable_op_determinism()
    num_at_once = 1 if settings.uses_gpu else settings.num_cpus
    self._threads = futures.ThreadPoolExecutor(num_at_once)
    self._cache = dataset_cache.DatasetCache()
    self._rounds: dict[int, partial_rounds.PartialRound] = {}
    self._sources: dict[int, client_data.ClientArrays] = {}

  def process_id(self) -> int:
    """Returns the id of the process, once it is ready for work."""
    return os.getpid()

  def sum_chunks(self, share: Share, broadcast: Sequence[np.ndarray]) -> Sums:
    """Sums up chunks of a cohort.

    Args:
      share: The chunks.
      broadcast: The tensors that the server has sent.

    Returns:
      The sums, in the order of the chunks.

    Raises:
      Exception: Of any kind, if the data of a client cannot be read or do not
        fit the computation.
    """
    self._fetch_sources(share.sources)
    is_new = share.round_key not in self._rounds
    work = self._fetch_round(share.round_key, share.rounds)
    start = time.perf_counter()

    def sum_chunk(
        chunk: chunk_messages.Chunk,
    ) -> tuple[list[np.ndarray], float]:
      chunk_start = time.perf_counter()
      tensors = work(
          chunk,
          broadcast=broadcast,
          server_seed=share.server_seed,
          sources=self._sources,
      )
      return tensors, time.perf_counter() - chunk_start

    done = list(self._threads.map(sum_chunk, share.chunks))
    return Sums(
        [tensors for tensors, _ in done],
        [seconds for _, seconds in done],
        None if is_new else time.perf_counter() - start,
    )

  def _fetch_sources(self, references: Mapping[int, Any]) -> None:
    """Gets the sources that are new, and drops those that are gone."""
    for key in _missing(self._sources, references):
      del self._sources[key]
    for key in _missing(references, self._sources):
      self._sources[key] = ray.get(references[key])

  def _fetch_round(
      self, round_key: int, references: Mapping[int, Any]
  ) -> partial_rounds.PartialRound:
    """Gets a round, unless it is here, and drops those that are gone."""
    for key in _missing(self._rounds, references):
      del self._rounds[key]
    if round_key not in self._rounds:
      spec = ray.get(references[round_key])
      self._rounds[round_key] = partial_rounds.PartialRound(spec, self._cache)
    return self._rounds[round_key]


def _missing(keys: Collection[int], others: Collection[int]) -> list[int]:
  return [key for key in keys if key not in others]
