# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A worker process: keeps compiled work and client data, and sums chunks."""

from collections.abc import Mapping, Sequence
import os
import threading
import time
from typing import Any, NamedTuple

import numpy as np
import ray
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.proto.v0 import computation_pb2

from tff_adaptive.data import client_data
from tff_adaptive.runtime import chunks
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import values
from tff_adaptive.runtime.accelerators import devices
from tff_adaptive.runtime.datasets import client_tensors
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.graphs import graph_functions
from tff_adaptive.runtime.scale_out import messages

_PARTS = ('work', 'zero', 'accumulate')


class PartialRoundSpec(NamedTuple):
  """The specification of a round's partial sums, as it is sent to workers.

  Attributes:
    parts: The serialized parts `work`, `zero` and `accumulate`, by name.
    clients_type: The type of one client's argument, with its containers.
    plan: The plan of the clients' work.
  """

  parts: Mapping[str, bytes]
  clients_type: tff.Type
  plan: plans.Plan


def build_spec(
    form: computations.RoundForm, plan: plans.Plan
) -> PartialRoundSpec:
  """Returns the specification of a round for workers."""
  return PartialRoundSpec(
      {name: _serialize(form.parts[name]) for name in _PARTS},
      form.clients_type,
      plan,
  )


def _serialize(computation: tff.framework.ConcreteComputation) -> bytes:
  return tff.framework.serialize_computation(computation).SerializeToString()


def _deserialize(serialized: bytes) -> tff.framework.ConcreteComputation:
  proto = computation_pb2.Computation.FromString(serialized)
  return tff.framework.deserialize_computation(proto)


class _GraphSum:
  """Sums over clients, as in a `rounds.CompiledRound`.

  Attributes:
    pipelines: Why clients' `tf.data` pipelines run; None if they do not.
  """

  def __init__(
      self,
      parts: dict[str, tff.framework.ConcreteComputation],
      clients_type: tff.Type,
  ):
    """Converts the parts; graphs are built when clients arrive.

    Raises:
      UnsupportedComputationError: If a part cannot be compiled.
    """
    work = parts.pop('work')
    _, self._broadcast_type = work.type_signature.parameter
    self._work = graph_functions.build_graph_function(work)
    self.pipelines = client_tensors.why_pipelines(self._work, clients_type)
    self._parts = chunks.ServerParts(parts)
    self._functions: dict[client_tensors.Layouts, Any] = {}
    # Several threads may sum chunks.
    self._lock = threading.Lock()

  def __call__(
      self,
      broadcast: Sequence[np.ndarray],
      clients: client_tensors.Clients,
      num_clients: int,
      seeds: round_keys.Seeds,
  ) -> list[np.ndarray]:
    """Returns the tensors of a sum, see `PartialRound`."""
    layouts = clients.layouts()
    with self._lock:
      if layouts not in self._functions:
        self._functions[layouts] = self._build(layouts)
    with chunks.errors_of_round(self._work, self._parts):
      result = self._functions[layouts](
          *map(tf.constant, broadcast),
          *tf.nest.flatten(clients.leaves),
          tf.constant(num_clients),
          *map(tf.constant, seeds),
      )
      return [tensor.numpy() for tensor in result]

  def _build(self, layouts: client_tensors.Layouts) -> Any:
    """Builds the function of a chunk for clients of a layout."""
    arguments = (
        values.tensor_specs(self._broadcast_type),
        layouts,
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([2], tf.int32),
        tf.TensorSpec([None, 2], tf.int32),
    )

    def run(*flat):
      broadcast, clients, num_clients, server_seed, client_seeds = (
          tf.nest.pack_sequence_as(arguments, flat)
      )
      chunk_sum = chunks.ChunkSum(
          work=self._work.for_leaves(layouts),
          parts=self._parts,
          clients=clients,
          broadcast=broadcast,
          server_seed=server_seed,
          client_seeds=client_seeds,
      )
      return chunk_sum(tf.zeros([], tf.int32), num_clients)

    return graph_functions.build(run, tf.nest.flatten(arguments))


class PartialRound:
  """Sums over chunks, on the CPU by TensorFlow or elsewhere by JAX."""

  def __init__(self, spec: PartialRoundSpec, cache: dataset_cache.DatasetCache):
    """Converts the parts; programs are built when clients arrive.

    Raises:
      UnsupportedComputationError: If a part cannot be compiled for the device.
    """
    self._clients_type = spec.clients_type
    self._cache = cache
    parts = {name: _deserialize(part) for name, part in spec.parts.items()}
    self._sum: Any
    if spec.plan.runs_xla:
      devices.find(spec.plan.device)  # Else the import's error is shown.
      # Most workers need no JAX.
      from tff_adaptive.runtime.accelerators import xla_sums  # pylint: disable=import-outside-toplevel

      self._sum = xla_sums.XlaSum(parts, spec.clients_type, spec.plan)
    else:
      self._sum = _GraphSum(parts, spec.clients_type)

  def __call__(
      self,
      chunk: messages.Chunk,
      *,
      broadcast: Sequence[np.ndarray],
      server_seed: np.ndarray,
      sources: Mapping[int, client_data.ClientArrays],
  ) -> list[np.ndarray]:
    """Returns the sum over a chunk.

    Args:
      chunk: The clients.
      broadcast: The tensors of the broadcast.
      server_seed: The seed of the server's computations, int32 of shape [2].
      sources: The sources of clients' data by key.

    Returns:
      The tensors of the sum.

    Raises:
      NoLoweringError: If JAX is to sum, and cannot.
      TypeError: If the clients' data do not match the computation.
      ValueError: If TensorFlow rejects them.
    """
    clients = messages.to_clients(
        chunk.clients,
        member_type=self._clients_type,
        sources=sources,
        cache=self._cache,
        pipelines=self._sum.pipelines,
    )
    seeds = round_keys.Seeds(server_seed, chunk.seeds)
    return self._sum(broadcast, clients, chunk.num_clients, seeds)


class WorkerSettings(NamedTuple):
  """The settings of a worker.

  Attributes:
    num_cpus: The number of chunks that run at once, with one thread per op.
    uses_gpu: Whether it has a GPU, to which chunks go one after the other.
    is_deterministic: Whether ops give the same bits at every run.
    uses_onednn: Whether TensorFlow uses oneDNN's CPU kernels, which give other
      bits. TensorFlow reads this from the environment at its import.
    max_cache_bytes: The size of its cache of client data.
  """

  num_cpus: int
  uses_gpu: bool
  is_deterministic: bool
  uses_onednn: bool
  max_cache_bytes: int

  @property
  def num_threads(self) -> int:
    """The number of chunks that run at once."""
    return 1 if self.uses_gpu else self.num_cpus


class Order(NamedTuple):
  """The common input of all chunks of a round.

  Attributes:
    round_key: The key of the partial round.
    rounds: References to all specs of partial rounds by key; workers drop the
      others.
    sources: The same for the sources of the clients' data.
    broadcast: The tensors of the broadcast.
    server_seed: The seed of the server's computations, int32 of shape [2].
  """

  round_key: int
  rounds: Mapping[int, ray.ObjectRef]
  sources: Mapping[int, ray.ObjectRef]
  broadcast: Sequence[np.ndarray]
  server_seed: np.ndarray


class Process(NamedTuple):
  """A process of the cluster.

  Attributes:
    node: The id of its node.
    pid: The process id, which another node may use too.
  """

  node: str
  pid: int


class SummedChunk(NamedTuple):
  """The result of a chunk.

  Attributes:
    start: The number of its first client.
    tensors: The tensors of its sum.
    seconds: The time that it took.
    process: The process of the worker, see `Process`.
  """

  start: int
  tensors: list[np.ndarray]
  seconds: float
  process: Process


class Worker:
  """A Ray actor that sums chunks in its own process."""

  def __init__(self, settings: WorkerSettings):
    """Configures TensorFlow before it runs anything."""
    # What a GPU does, JAX does.
    tf.config.set_visible_devices([], 'GPU')
    if not settings.uses_gpu:
      tf.config.threading.set_inter_op_parallelism_threads(settings.num_cpus)
      tf.config.threading.set_intra_op_parallelism_threads(1)
    if settings.is_deterministic:
      tf.config.experimental.enable_op_determinism()
    self._cache = dataset_cache.DatasetCache(settings.max_cache_bytes)
    self._rounds: dict[int, PartialRound] = {}
    self._sources: dict[int, client_data.ClientArrays] = {}
    # Ray calls methods from several threads.
    self._lock = threading.Lock()

  def process(self) -> Process:
    """Returns the process, once the worker is ready."""
    return Process(ray.get_runtime_context().get_node_id(), os.getpid())

  def sum_chunks(
      self, order: Order, chunks: Sequence[messages.Chunk]
  ) -> list[SummedChunk]:
    """Sums chunks of a cohort.

    Raises:
      Exception: Any error, for example if a client's data cannot be read or do
        not match the computation.
    """
    with self._lock:
      self._fetch_sources(order.sources)
      work = self._fetch_round(order.round_key, order.rounds)
      sources = dict(self._sources)

    def sum_chunk(chunk: messages.Chunk) -> SummedChunk:
      start = time.perf_counter()
      tensors = work(
          chunk,
          broadcast=order.broadcast,
          server_seed=order.server_seed,
          sources=sources,
      )
      seconds = time.perf_counter() - start
      return SummedChunk(chunk.start, tensors, seconds, self.process())

    return list(map(sum_chunk, chunks))

  def _fetch_sources(self, references: Mapping[int, Any]) -> None:
    """Fetches new sources, and drops those that are no longer listed."""
    for key in self._sources.keys() - references.keys():
      del self._sources[key]
    for key in references.keys() - self._sources.keys():
      self._sources[key] = ray.get(references[key])

  def _fetch_round(
      self, round_key: int, references: Mapping[int, Any]
  ) -> PartialRound:
    """Fetches a round if it is new, and drops those no longer listed."""
    for key in self._rounds.keys() - references.keys():
      del self._rounds[key]
    if round_key not in self._rounds:
      spec = ray.get(references[round_key])
      self._rounds[round_key] = PartialRound(spec, self._cache)
    return self._rounds[round_key]
