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
"""A federated round that workers share."""

from collections.abc import Callable, Iterator, Sequence
import functools
import itertools
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import chunks
from tff_adaptive.runtime import client_tensors
from tff_adaptive.runtime import dataset_cache
from tff_adaptive.runtime import elements
from tff_adaptive.runtime import graph_functions
from tff_adaptive.runtime import map_reduce_forms
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime import values
from tff_adaptive.runtime.scale_out import chunk_messages
from tff_adaptive.runtime.scale_out import partial_rounds
from tff_adaptive.runtime.scale_out import round_costs
from tff_adaptive.runtime.scale_out import worker_pools


class ScaledRound:
  """A computation over clients, shared among workers.

  The cohort is cut into the same chunks as by a `rounds.CompiledRound`, and
  their sums are merged in the same order, so that the result does not depend on
  the workers.

  Attributes:
    type_signature: The `tff.FunctionType` of the computation.
    plan: How the clients' work runs.
    takes_client_seeds: Whether random numbers are drawn for each client.
    costs: What the newest round has taken; None before the first.
  """

  def __init__(
      self,
      computation: tff.framework.ConcreteComputation,
      plan: plans.Plan,
      cache: dataset_cache.DatasetCache,
      note_pipelines: Callable[[str], None],
      pool: worker_pools.WorkerPool,
  ):
    """Converts the computation and tells the workers.

    Args:
      computation: A computation with an argument at the clients.
      plan: How the clients' work runs.
      cache: Keeps the clients' data that was read here.
      note_pipelines: As for `rounds.CompiledRound`.
      pool: The workers.

    Raises:
      UnsupportedComputationError: If the computation cannot be compiled.
    """
    self._form = map_reduce_forms.get_round_form(computation)
    form = self._form.form
    self.type_signature = computation.type_signature
    self.plan = plan
    # Those of the workers, too: here it is found out what cannot be compiled.
    self._parts = chunks.ServerParts(
        {name: getattr(form, name) for name in chunks.NAMES}
    )
    work = chunks.ClientWork(form.work, self._form.clients_type)
    self._pipelines = work.pipelines
    self._note_pipelines = note_pipelines
    self.takes_client_seeds = (
        work.takes_seed or self._parts['accumulate'].takes_seed
    )
    self._sum_type = form.accumulate.type_signature.result
    self._convert_state = elements.build_conversion(self._form.state_type)
    self._pack = values.build_pack(self._form.result_type)
    self.costs: Optional[round_costs.RoundCosts] = None
    self._cache = cache
    self._pool = pool
    spec = partial_rounds.build_spec(self._form, self.plan)
    self._key = pool.rounds.add(self, spec)

  def split(self, argument: Any) -> tuple[Any, Any]:
    """Splits an argument, see `map_reduce_forms.RoundForm`."""
    return self._form.split(argument)

  def __call__(
      self, state: Any, clients: Sequence[Any], seeds: rounds.Seeds
  ) -> Any:
    """Runs the computation.

    Args:
      state: The value at the server; `()` if the computation takes none.
      clients: The values at the clients.
      seeds: What fixes the random numbers.

    Returns:
      What the computation returns, with NumPy arrays for tensors.

    Raises:
      ClusterError: If workers die again and again.
      TypeError: If a value does not fit its type, or cannot be sent.
    """
    reason = self._pipelines
    if reason is not None and reason != self.plan.pipelines:
      self._note_pipelines(reason)
      self.plan = attrs.evolve(self.plan, pipelines=reason)
    meter = round_costs.Meter()
    seed = tf.constant(seeds.server)
    with meter.timing('server_seconds'):
      state_leaves = self._convert_state(state)
      prepared = self._prepare(*state_leaves, seed)
      broadcast = [tensor.numpy() for tensor in prepared]
    chunks = list(self._cut(clients, seeds.clients))
    sums = self._pool.sum_chunks(
        self._key, chunks, broadcast=broadcast, server_seed=seeds.server
    )
    total = self._merge_all(
        sums, [chunk.num_clients for chunk in chunks], seed, meter
    )
    with meter.timing('server_seconds'):
      result = self._finish(*state_leaves, *total, seed)
      packed = self._pack(map(values.to_array, result))
    meter.add(
        num_chunks=len(chunks),
        broadcast_bytes=_bytes(broadcast),
        chunk_bytes=sum(map(chunk_messages.num_bytes, chunks)),
    )
    self.costs = meter.finish()
    return packed if self._form.returns_state else packed[1]

  def _merge_all(
      self,
      sums: Iterator[worker_pools.ChunkSum],
      sizes: Sequence[int],
      seed: tf.Tensor,
      meter: round_costs.Meter,
  ) -> list[tf.Tensor]:
    """The sum over all chunks, of these numbers of clients."""
    total = self._zero(seed)
    rows = {place: [total[place]] for place in self._parts['merge'].appends}
    starts = itertools.accumulate(sizes, initial=0)
    for start, chunk_sum in zip(starts, _in_order(sums)):
      meter.add(
          work_seconds=chunk_sum.seconds, sum_bytes=_bytes(chunk_sum.tensors)
      )
      tensors = list(map(tf.constant, chunk_sum.tensors))
      if not self._parts.has_neutral_zero:
        total = tensors  # There is one chunk.
        continue
      with meter.timing('merge_seconds'):
        total = self._merge(*total, *tensors, tf.constant(start), seed)
        for place, parts in rows.items():
          parts.append(total[place])
    with meter.timing('merge_seconds'):
      for place, parts in rows.items():
        total[place] = tf.concat(parts, axis=0)
    return total

  def _cut(
      self, clients: Sequence[Any], seeds: np.ndarray
  ) -> Iterator[chunk_messages.Chunk]:
    """Yields the chunks of a cohort."""
    size = max(1, len(clients))
    if self._parts.has_neutral_zero:
      size = self.plan.chunk_size_of(len(clients))
    loads = _loads(clients)
    for start in range(0, len(clients), size):
      end = min(start + size, len(clients))
      yield chunk_messages.Chunk(
          self._describe(clients[start:end]),
          end - start,
          seeds[start:end],
          sum(loads[start:end]),
      )

  def _describe(self, members: Sequence[Any]) -> Any:
    """Returns what is sent of the clients of a chunk."""
    if isinstance(members, cohort_lib.Cohort):
      key = self._pool.sources.key_of(members.source)
      return chunk_messages.from_cohort(members, key)
    collected = client_tensors.collect(
        members, self._form.clients_type, self._cache, self._pipelines
    )
    if collected.pipelines is not None:
      raise TypeError(
          "The clients' data cannot be sent to workers as rows of arrays, "
          f'because {collected.pipelines}; give them as a `Cohort`, or use the '
          'compiled context.'
      )
    return chunk_messages.from_leaves(collected.leaves)

  @functools.cached_property
  def _prepare(self) -> Callable[..., list[tf.Tensor]]:
    """From the state to what clients get."""
    return self._build('prepare', [self._form.state_type])

  @functools.cached_property
  def _zero(self) -> Callable[..., list[tf.Tensor]]:
    """Returns the empty sum."""
    return self._build('zero', [])

  @functools.cached_property
  def _merge(self) -> Callable[..., list[tf.Tensor]]:
    """From two sums to one; in places that only grow, to the rows to append.

    The number of the first client in the second sum comes after them.
    """

    def run(*tensors):
      *leaves, start, seed = tensors
      with tf.device('/device:CPU:0'):
        return self._parts.with_seed('merge', seed, start)(*leaves)

    specs = [*_specs([self._sum_type] * 2), tf.TensorSpec([], tf.int32)]
    return graph_functions.build(run, [*specs, _SEED_SPEC])

  def _build(
      self, name: str, types: Sequence[tff.Type]
  ) -> Callable[..., list[tf.Tensor]]:
    """Builds a function of the tensors of some types and a seed."""

    def run(*tensors):
      *leaves, seed = tensors
      with tf.device('/device:CPU:0'):
        return self._parts.with_seed(name, seed)(*leaves)

    return graph_functions.build(run, [*_specs(types), _SEED_SPEC])

  @functools.cached_property
  def _finish(self) -> Callable[..., list[tf.Tensor]]:
    """From the state and the sum over all clients to the result."""
    types = [self._form.state_type, self._sum_type]
    num_state_leaves = len(_specs(types[:1]))

    def run(*tensors):
      *leaves, seed = tensors
      part = functools.partial(self._parts.with_seed, seed=seed)
      report = part('report')(*leaves[num_state_leaves:])
      return part('update')(*leaves[:num_state_leaves], *report)

    return graph_functions.build(run, [*_specs(types), _SEED_SPEC])


_SEED_SPEC = tf.TensorSpec([2], tf.int32)


def _specs(types: Sequence[tff.Type]) -> list[tf.TensorSpec]:
  return [
      values.tensor_spec(leaf)
      for type_spec in types
      for leaf in values.leaf_types(type_spec)
  ]


def _bytes(arrays: Sequence[np.ndarray]) -> int:
  return sum(array.nbytes for array in arrays)


def _loads(clients: Sequence[Any]) -> list[float]:
  """Returns what the work of every client costs, as far as that is known."""
  if not isinstance(clients, cohort_lib.Cohort):
    return [1.0] * len(clients)
  sizes = list(map(clients.source.known_num_examples, clients.client_ids))
  known = [size for size in sizes if size is not None]
  mean = sum(known) / len(known) if known else 1.0
  return [float(mean if size is None else size) for size in sizes]


def _in_order(
    sums: Iterator[worker_pools.ChunkSum],
) -> Iterator[worker_pools.ChunkSum]:
  """Yields sums in the order of their chunks, each as soon as it can be."""
  waiting: dict[int, worker_pools.ChunkSum] = {}
  number = 0
  for chunk_sum in sums:
    waiting[chunk_sum.number] = chunk_sum
    while number in waiting:
      yield waiting.pop(number)
      number += 1
