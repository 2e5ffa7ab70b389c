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
"""The part of a round that workers do: sums over chunks of its cohort."""

from collections.abc import Mapping, Sequence
import threading
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow_federated.proto.v0 import computation_pb2

from tff_adaptive.data import client_data
from tff_adaptive.runtime import chunks
from tff_adaptive.runtime import client_tensors
from tff_adaptive.runtime import dataset_cache
from tff_adaptive.runtime import graph_functions
from tff_adaptive.runtime import map_reduce_forms
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import values
from tff_adaptive.runtime.scale_out import chunk_messages
from tff_adaptive.runtime.scale_out import type_messages

_PARTS = ('zero', 'accumulate')


class PartialRoundSpec(NamedTuple):
  """What a worker needs to know of a computation, as it is sent.

  Attributes:
    work: The serialized part `work` of a MapReduce round.
    parts: The serialized parts `zero` and `accumulate`, by name.
    clients_type: The type of one client's argument, with its containers.
    plan: How clients work.
  """

  work: bytes
  parts: Mapping[str, bytes]
  clients_type: type_messages.TypeMessage
  plan: plans.Plan


def build_spec(
    round_form: map_reduce_forms.RoundForm, plan: plans.Plan
) -> PartialRoundSpec:
  """Returns what workers need to know of a round."""
  form = round_form.form
  return PartialRoundSpec(
      _serialize(form.work),
      {name: _serialize(getattr(form, name)) for name in _PARTS},
      type_messages.from_type(round_form.clients_type),
      plan,
  )


def _serialize(computation: tff.framework.ConcreteComputation) -> bytes:
  return tff.framework.serialize_computation(computation).SerializeToString()


def _deserialize(serialized: bytes) -> tff.framework.ConcreteComputation:
  proto = computation_pb2.Computation.FromString(serialized)
  return tff.framework.deserialize_computation(proto)


class PartialRound:
  """Sums over chunks, like those of a `rounds.CompiledRound`."""

  def __init__(self, spec: PartialRoundSpec, cache: dataset_cache.DatasetCache):
    """Converts the parts; graphs are built when clients come.

    Args:
      spec: The parts and the plan.
      cache: Keeps the clients' data that were read.

    Raises:
      UnsupportedComputationError: If a part cannot be compiled.
    """
    work = _deserialize(spec.work)
    _, self._broadcast_type = work.type_signature.parameter
    self._clients_type = type_messages.to_type(spec.clients_type)
    self._work = chunks.ClientWork(work, self._clients_type)
    self._parts = chunks.ServerParts(
        {name: _deserialize(part) for name, part in spec.parts.items()}
    )
    self._plan = spec.plan
    self._cache = cache
    self._functions: dict[client_tensors.Layouts, Any] = {}
    # Chunks may be summed up in several threads.
    self._lock = threading.Lock()

  def __call__(
      self,
      chunk: chunk_messages.Chunk,
      *,
      broadcast: Sequence[np.ndarray],
      server_seed: np.ndarray,
      sources: Mapping[int, client_data.ClientArrays],
  ) -> list[np.ndarray]:
    """Returns the sum over a chunk.

    Args:
      chunk: The clients.
      broadcast: The tensors that the server has sent.
      server_seed: What fixes random numbers of the server, int32 of shape [2].
      sources: The sources of clients' data by their keys.

    Returns:
      The tensors of the sum.

    Raises:
      TypeError: If clients' data do not fit the computation.
      ValueError: If the model does not take them.
    """
    clients = chunk_messages.to_clients(
        chunk.clients,
        member_type=self._clients_type,
        sources=sources,
        cache=self._cache,
        pipelines=self._work.pipelines,
    )
    layouts = clients.layouts()
    with self._lock:
      if layouts not in self._functions:
        self._functions[layouts] = self._build(layouts)
    with chunks.errors_of_data():
      result = self._functions[layouts](
          *map(tf.constant, broadcast),
          *tf.nest.flatten(clients.leaves),
          tf.constant(chunk.num_clients),
          tf.constant(server_seed),
          tf.constant(chunk.seeds),
      )
      return [tensor.numpy() for tensor in result]

  def _build(self, layouts: client_tensors.Layouts) -> Any:
    """The function of a chunk for clients of some layout."""
    arguments = (
        list(map(values.tensor_spec, values.leaf_types(self._broadcast_type))),
        layouts,
        tf.TensorSpec([], tf.int32),
        tf.TensorSpec([2], tf.int32),
        tf.TensorSpec([None, 2], tf.int32),
    )

    def run(*flat):
      broadcast, clients, num_clients, server_seed, client_seeds = (
          tf.nest.pack_sequence_as(arguments, flat)
      )
      with tf.device(f'/device:{self._plan.device}'):
        chunk_sum = chunks.build_chunk_sum(
            work=self._work.form_for(layouts),
            parts=self._parts,
            clients=clients,
            broadcast=broadcast,
            server_seed=server_seed,
            client_seeds=client_seeds,
        )
        return chunk_sum(tf.zeros([], tf.int32), num_clients)

    return graph_functions.build(run, tf.nest.flatten(arguments))
