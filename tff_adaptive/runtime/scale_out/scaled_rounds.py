# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A federated round that is distributed over workers."""

import collections
from collections.abc import Callable, Iterator, Sequence
import contextlib
import functools
import time
from typing import Any, Optional

import numpy as np
import ray
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _error_texts
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.graphs import graph_functions
from tff_adaptive.runtime.scale_out import messages
from tff_adaptive.runtime.scale_out import worker_pools
from tff_adaptive.runtime.scale_out import workers


class ScaledRound(rounds.Round):
  """A computation over clients, distributed over workers.

  The chunks and the order in which their sums are merged are those of a
  `rounds.CompiledRound`, so that the result does not depend on the workers.

  Attributes:
    costs: The costs of the latest round; None before the first.
  """

  def __init__(
      self,
      form: computations.RoundForm,
      setting: rounds.Setting,
      pool: worker_pools.WorkerPool,
  ):
    """Converts the computation and sends it to the workers.

    Args:
      form: See `rounds.Round`.
      setting: Likewise.
      pool: The workers.

    Raises:
      UnsupportedComputationError: If the computation cannot be compiled.
    """
    super().__init__(form, setting)
    self.costs: Optional[messages.RoundCosts] = None
    self._pool = pool
    self._sum_type = form.parts['accumulate'].type_signature.result
    spec = workers.build_spec(form, self.plan)
    self._key = pool.rounds.key_of(self, spec)
    self._prepare = self._build('prepare', [self._form.state_type])
    self._zero = self._build('zero', [])
    # For leaves to which it only appends rows, it returns these rows. Its last
    # argument is the number of the first client in the second sum.
    self._merge = self._build(
        'merge', [self._sum_type] * 2, tf.TensorSpec([], tf.int32)
    )

  def __call__(self, state, clients, key):
    """Runs the computation, see `rounds.Program`.

    Raises:
      ClusterError: If workers die repeatedly.
      TypeError: If a value does not match its type, or cannot be sent.
    """
    self._setting.note(self._pipelines)
    costs: dict[str, Any] = collections.defaultdict(int)
    seeds = self._seeds(len(clients), key)
    seed = tf.constant(seeds.server)
    with _timing(costs, 'seconds'):
      with _timing(costs, 'server_seconds'):
        state_leaves = self._convert_state(state)
        prepared = self._prepare(*state_leaves, seed)
        broadcast = [tensor.numpy() for tensor in prepared]
      chunks = list(self._cut(clients, key, seeds.clients))
      sums = self._pool.sum_chunks(
          self._key, chunks, broadcast=broadcast, server_seed=seeds.server
      )
      starts = [chunk.start for chunk in chunks]
      total = self._merge_all(_in_order(sums, starts), seed, costs)
      with _timing(costs, 'server_seconds'):
        tensors = self._finish(*state_leaves, *total, seed)
        result = self._to_result(map(values.to_array, tensors))
    if self.plan.runs_xla:
      self.path = plans.XLA
    elif self.path is None:
      self.path = plans.COMPILED
    costs['num_chunks'] = len(chunks)
    costs['broadcast_bytes'] = _bytes(broadcast)
    costs['chunk_bytes'] = sum(map(messages.num_bytes, chunks))
    self.costs = messages.RoundCosts(
        *(costs[name] for name in messages.RoundCosts._fields)
    )
    return result

  def _merge_all(
      self,
      sums: Iterator[workers.SummedChunk],
      seed: tf.Tensor,
      costs: dict[str, Any],
  ) -> list[tf.Tensor]:
    """Merges the sums of all chunks, which arrive in order."""
    total = self._zero(seed)
    rows = {}
    if self._parts.has_neutral_zero:
      rows = {place: [total[place]] for place in self._parts['merge'].appends}
    for chunk_sum in sums:
      costs['work_seconds'] += chunk_sum.seconds
      costs['sum_bytes'] += _bytes(chunk_sum.tensors)
      tensors = list(map(tf.constant, chunk_sum.tensors))
      if not self._parts.has_neutral_zero:
        total = tensors  # The only chunk.
        continue
      with _timing(costs, 'merge_seconds'):
        total = self._merge(
            *total, *tensors, seed, tf.constant(chunk_sum.start)
        )
        for place, parts in rows.items():
          parts.append(total[place])
    with _timing(costs, 'merge_seconds'):
      for place, parts in rows.items():
        total[place] = tf.concat(parts, axis=0)
    return total

  def _cut(
      self, clients: Sequence[Any], key: round_keys.RoundKey, seeds: np.ndarray
  ) -> Iterator[messages.Chunk]:
    """Yields the chunks of a cohort."""
    size = max(1, len(clients))
    if self._parts.has_neutral_zero:
      size = self.plan.chunk_size_of(len(clients))
    loads = _loads(clients)
    for start in range(0, len(clients), size):
      end = min(start + size, len(clients))
      yield messages.Chunk(
          start,
          self._describe(clients[start:end], key.of_part(start, end)),
          end - start,
          seeds[start:end],
          sum(loads[start:end]),
      )

  def _describe(self, members: Sequence[Any], key: round_keys.RoundKey) -> Any:
    """Returns the message for the clients of a chunk."""
    if isinstance(members, cohort_lib.Cohort):
      return messages.from_cohort(members, self._key_of(members.source))
    collected = self._collect(members, key)
    if collected.pipelines is not None:
      raise TypeError(
          "The clients' data cannot be sent to workers as arrays of rows, "
          f'because {collected.pipelines}; provide a `Cohort`, or use the '
          'compiled context.'
      )
    return messages.from_leaves(collected.leaves)

  def _key_of(self, source: client_data.ClientArrays) -> int:
    """Returns the key of clients' data, which each worker fetches once.

    It is another one if the source's arrays were changed in place, as far as a
    sample of them tells.
    """
    content = None
    if isinstance(source, client_data.PackedClientArrays):
      content = dataset_cache.sample(source.values.values())
    try:
      return self._pool.sources.key_of(source, source, content)
    except ray.exceptions.RayError:
      raise
    except Exception as error:  # pylint: disable=broad-exception-caught
      # Any object may refuse, in its own way. Of a TypeError, Ray's text names
      # the object, and the cause the problem.
      reason = _error_texts.first_line(error.__cause__ or error)
      raise TypeError(
          "The clients' data cannot be sent to the workers: "
          f'{type(source).__name__} cannot be pickled; use arrays in memory or '
          f'a file ({reason}).'
      ) from error

  def _build(
      self, name: str, types: Sequence[tff.Type], *numbers: tf.TensorSpec
  ) -> Callable[..., list[tf.Tensor]]:
    """Builds a part's function of tensors of types, a seed and numbers."""
    specs = values.tensor_specs(*types)

    def run(*tensors):
      leaves, keys = tensors[: len(specs)], tensors[len(specs) :]
      with tf.device('/device:CPU:0'):
        return self._parts.with_seed(name, *keys)(*leaves)

    return graph_functions.build(run, [*specs, _SEED_SPEC, *numbers])

  @functools.cached_property
  def _finish(self) -> Callable[..., list[tf.Tensor]]:
    """Builds the function from the state and the total sum to the result."""
    types = [self._form.state_type, self._sum_type]
    num_state_leaves = len(values.leaf_types(types[0]))

    def run(*tensors):
      *leaves, seed = tensors
      part = functools.partial(self._parts.with_seed, seed=seed)
      report = part('report')(*leaves[num_state_leaves:])
      return part('update')(*leaves[:num_state_leaves], *report)

    return graph_functions.build(
        run, [*values.tensor_specs(*types), _SEED_SPEC]
    )


_SEED_SPEC = tf.TensorSpec([2], tf.int32)
# The cost of a client besides its batches.
_CLIENT_LOAD = 1.0


@contextlib.contextmanager
def _timing(costs: dict[str, Any], name: str) -> Iterator[None]:
  """Adds the time of a block to `costs[name]`."""
  start = time.perf_counter()
  yield
  costs[name] += time.perf_counter() - start


def _bytes(arrays: Sequence[Any]) -> int:
  # A text alone is no array.
  return sum(np.asarray(array).nbytes for array in arrays)


def _loads(clients: Sequence[Any]) -> list[float]:
  """Returns the cost of each client's work, in batches.

  A constant plus the number of batches, which is known without reading data.
  """
  if not isinstance(clients, cohort_lib.Cohort):
    return [1.0] * len(clients)
  num_steps = [
      None
      if clients.source.known_num_examples(client_id) is None
      else clients.num_steps(place)
      for place, client_id in enumerate(clients.client_ids)
  ]
  known = [number for number in num_steps if number is not None]
  mean = sum(known) / len(known) if known else 1.0
  return [
      _CLIENT_LOAD + (mean if number is None else number)
      for number in num_steps
  ]


def _in_order(
    sums: Iterator[workers.SummedChunk], starts: Sequence[int]
) -> Iterator[workers.SummedChunk]:
  """Yields sums in the order of their chunks, each as soon as possible."""
  waiting: dict[int, workers.SummedChunk] = {}
  to_come = iter(starts)
  start = next(to_come, None)
  for chunk_sum in sums:
    waiting[chunk_sum.start] = chunk_sum
    while start in waiting:
      yield waiting.pop(start)
      start = next(to_come, None)
