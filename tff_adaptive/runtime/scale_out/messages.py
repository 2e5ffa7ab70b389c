# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Messages to workers: the clients of a chunk, and TFF types; their costs.

For a `Cohort` only client ids are sent, with the states of clients that have
one: a worker reads the data from a source that it gets once. For other
sequences, such as lists of `tf.data.Dataset`, the rows are sent.

Types are pickled with their containers, which determine the order of a
sequence's components: TFF cannot pickle types, and loses the containers when it
serializes them.
"""

from collections.abc import Mapping, Sequence
import copyreg
from typing import Any, NamedTuple, Optional, Union

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import client_data
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import client_tensors
from tff_adaptive.runtime.datasets import dataset_cache


class CohortChunk(NamedTuple):
  """Consecutive clients of a cohort, without their data.

  Attributes:
    cohort_type: The class of the cohort.
    fields: The cohort's fields, except the source of its data.
    source_key: The key of that source.
  """

  cohort_type: type[cohort_lib.Cohort]
  fields: Mapping[str, Any]
  source_key: int


# Consecutive clients as arrays: the leaves of `client_tensors.Clients`.
Rows = tuple[Any, ...]


class Chunk(NamedTuple):
  """Consecutive clients of a round.

  Attributes:
    start: The number of the first client.
    clients: The ids or the rows of the clients.
    num_clients: The number of clients.
    seeds: The seeds of their random numbers, int32 of shape [num_clients, 2];
      [0, 2] if they draw none.
    load: The cost of their work, in batches.
  """

  start: int
  clients: Union[CohortChunk, Rows]
  num_clients: int
  seeds: np.ndarray
  load: float


def num_bytes(chunk: Chunk) -> int:
  """Returns the size of a chunk's client ids or rows, states and seeds."""
  sent: Any = chunk.clients
  if isinstance(sent, CohortChunk):
    sent = [list(sent.fields['client_ids']), sent.fields.get('states', ())]
  arrays = [*tf.nest.flatten(sent), chunk.seeds]
  return sum(np.asarray(array).nbytes for array in arrays)


def from_cohort(cohort: cohort_lib.Cohort, source_key: int) -> CohortChunk:
  """Returns the message for clients of a cohort, by the key of its source."""
  fields = attrs.asdict(cohort, recurse=False)
  del fields['source'], fields['packed']
  if isinstance(cohort, cohort_lib.StatefulCohort):
    fields['states'] = {
        client_id: cohort.states[client_id]
        for client_id in cohort.client_ids
        if client_id in cohort.states
    }
  return CohortChunk(type(cohort), fields, source_key)


def from_leaves(leaves: Sequence[client_tensors.Leaf]) -> Rows:
  """Returns the message for clients whose rows were read."""
  return tf.nest.map_structure(lambda tensor: tensor.numpy(), tuple(leaves))


def to_clients(
    clients: Union[CohortChunk, Rows],
    *,
    member_type: tff.Type,
    sources: Mapping[int, client_data.ClientArrays],
    cache: dataset_cache.DatasetCache,
    pipelines: Optional[str],
) -> client_tensors.Clients:
  """Reads the data of the clients of a chunk, see `client_tensors.collect`."""
  if not isinstance(clients, CohortChunk):
    leaves = tf.nest.map_structure(tf.constant, clients)
    return client_tensors.Clients(leaves, None, plans.COMPILED)
  cohort = clients.cohort_type(
      source=sources[clients.source_key], **clients.fields
  )
  key = round_keys.RoundKey.of(cohort)
  assert key is not None
  return client_tensors.collect(cohort, member_type, cache, pipelines, key)


def _reduce_type(type_spec: tff.Type) -> tuple[Any, tuple[Any, ...]]:
  """Returns the constructor and arguments of a type, for `pickle`."""
  if isinstance(type_spec, tff.TensorType):
    return tff.types.tensorflow_to_type, (values.tensor_spec(type_spec),)
  if isinstance(type_spec, tff.SequenceType):
    return tff.SequenceType, (type_spec.element,)
  fields = list(tff.structure.iter_elements(type_spec))
  if isinstance(type_spec, tff.StructWithPythonType):
    return tff.StructWithPythonType, (fields, type_spec.python_container)
  return tff.StructType, (fields,)


for _type_class in (
    tff.SequenceType,
    tff.StructType,
    tff.StructWithPythonType,
    tff.TensorType,
):
  copyreg.pickle(_type_class, _reduce_type)


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
