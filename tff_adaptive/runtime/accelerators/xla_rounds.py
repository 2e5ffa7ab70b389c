# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A whole round as one program of XLA, which JAX compiles and runs.

The same parts as those of `rounds.CompiledRound` (prepare, work, zero,
accumulate, report, update), as functions of JAX. A loop over clients trains
some of them side by side and adds their results in the order of the cohort.
"""

from collections.abc import Callable, Sequence
import functools
from typing import Any

from absl import logging
import attrs
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime import values
from tff_adaptive.runtime.accelerators import client_shards
from tff_adaptive.runtime.accelerators import cohort_arrays
from tff_adaptive.runtime.accelerators import control_lowerings
from tff_adaptive.runtime.accelerators import device_values
from tff_adaptive.runtime.accelerators import devices
from tff_adaptive.runtime.accelerators import graph_programs
from tff_adaptive.runtime.accelerators import kept_rows
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import padding
from tff_adaptive.runtime.accelerators import tokens
from tff_adaptive.runtime.datasets import client_tensors
from tff_adaptive.runtime.graphs import graph_functions

# The most bytes of results of clients that wait for their sum.
_MAX_RESULT_BYTES = 2**28

# How to do without ops that no program has.
_HINTS = {
    'RangeDataset': "shuffle the clients' data before the round",
    'ShuffleDataset': "shuffle the clients' data before the round",
    'BatchDatasetV2': "batch the clients' data before the round",
    'ParallelBatchDataset': "batch the clients' data before the round",
}


class _Part:
  """A part of a round as a function of JAX."""

  def __init__(self, function: graph_functions.GraphFunction, offset: int = 0):
    """Reads the graph of a part.

    Args:
      function: The part.
      offset: What is added to the seed, so that each part draws its own.
    """
    serialized = function.serialized
    names = list(serialized.parameters)
    if function.takes_seed:
      names.append(graph_functions.SEED_NAME)
    self._takes_seed = function.takes_seed
    self._offset = offset
    self._program = graph_programs.GraphProgram(
        serialized.graph_def, names, serialized.results
    )

  def ops(self) -> set[str]:
    """Returns the ops of the graph."""
    return self._program.ops()

  def __call__(self, *values: Any, seed: Any) -> list[Any]:
    if self._takes_seed:
      values = (*values, seed + np.int32(self._offset))
    return self._program(*values)


def _room_for_results(
    train: Callable[[Any], list[Any]], num_side_by_side: int, num_clients: int
) -> Any:
  """Returns zeros for the results of clients that wait for their sum.

  Args:
    train: See `_loop_over_clients`.
    num_side_by_side: See there.
    num_clients: The most clients.
  """
  results = jax.eval_shape(train, jnp.zeros([], jnp.int32))
  num_bytes = sum(
      one.size * one.dtype.itemsize for one in jax.tree.leaves(results)
  )
  num_groups = max(_MAX_RESULT_BYTES // (num_side_by_side * num_bytes + 1), 1)
  size = min(num_groups * num_side_by_side, num_clients)
  return jax.tree.map(
      lambda one: jnp.zeros([size, *one.shape], one.dtype), results
  )


def _loop_over_clients(
    train: Callable[[Any], list[Any]],
    add_client: Callable[..., list[Any]],
    total: list[Any],
    num_clients: Any,
    num_side_by_side: int,
    lengths: Any,
) -> list[Any]:
  """Returns the sum after the results of all clients, while JAX traces.

  Args:
    train: Returns the results of a client, by its number.
    add_client: Adds them to a sum, given the number and the sum.
    total: The sum before the first client.
    num_clients: The number of clients.
    num_side_by_side: The number of clients that train at once.
    lengths: How long each client trains, of at least as many clients.
  """
  if num_side_by_side == 1:
    return lax.fori_loop(
        0, num_clients, lambda n, total: add_client(n, total, train(n)), total
    )
  room = _room_for_results(train, num_side_by_side, len(lengths))
  size = len(jax.tree.leaves(room)[0])
  places = np.arange(size, dtype=np.int32)

  def add_block(block, total):
    """Adds the results of consecutive clients, of which there is room."""
    first = block * size
    count = jnp.minimum(size, num_clients - first)
    # Those that are equally long are together, for a group trains as long as
    # its longest member.
    own = lengths[jnp.minimum(first + places, len(lengths) - 1)]
    by_length = jnp.argsort(jnp.where(places < count, -own, 1))

    def train_group(group, collected):
      # Where the last group is short, its last client trains again.
      place = group * num_side_by_side + places[:num_side_by_side]
      members = by_length[jnp.minimum(place, count - 1)]
      return jax.tree.map(
          lambda rows, output: rows.at[members].set(output),
          collected,
          jax.vmap(train)(first + members),
      )

    groups = -(-count // num_side_by_side)
    collected = lax.fori_loop(0, groups, train_group, room)

    def add_collected(place, total):
      one = jax.tree.map(lambda rows: rows[place], collected)
      return add_client(first + place, total, one)

    return lax.fori_loop(0, count, add_collected, total)

  return lax.fori_loop(0, -(-num_clients // size), add_block, total)


def _as_kept(rows: Any) -> kept_rows.KeptRows:
  """Returns the rows that a client appends, of which there may be fewer."""
  if isinstance(rows, kept_rows.KeptRows):
    return rows
  return kept_rows.KeptRows(rows, jnp.asarray(rows.shape[0], jnp.int32))


def _write(collected: Any, number: Any, rows: Any) -> Any:
  """Returns the rows of all clients, with those of one client."""
  return jax.tree.map(
      lambda room, value: room.at[number].set(value), collected, _as_kept(rows)
  )


def _join(zero: Any, collected: kept_rows.KeptRows) -> Any:
  """Returns the rows of all clients as an array, if all are kept."""
  rows = collected.rows
  return jnp.concatenate([zero, rows.reshape([-1, *rows.shape[2:]])])


def _to_numpy(leaf: Any, is_text: bool) -> Any:
  """Returns a leaf of the result."""
  if isinstance(leaf, kept_rows.KeptRows):
    found = leaf.to_numpy()
    return tokens.decode(found) if is_text else found
  if is_text:
    return tokens.decode(np.asarray(leaf))
  return device_values.to_numpy(leaf)


class XlaRound(rounds.Round):
  """A computation over clients, compiled by JAX."""

  def __init__(
      self,
      form: computations.RoundForm,
      setting: rounds.Setting,
  ):
    """Reads the computation; the program is compiled in the first round.

    Args:
      form: The computation's parts.
      setting: Where its clients run: a device of JAX, or several.

    Raises:
      UnsupportedComputationError: If a part cannot be read.
      NoLoweringError: If an op has no form in XLA.
    """
    super().__init__(form, setting)
    # Whether the server computes with what clients report row by row.
    self._joins_rows = False
    self._devices = devices.find(setting.plan.device)
    self._result_types = values.leaf_types(self._form.result_type)
    state_types = values.leaf_types(self._form.state_type)
    # Whether the result begins with the next state, which may take the memory
    # of the one before.
    self._returns_state = self._result_types[: len(state_types)] == state_types
    self._client_work = _Part(self._work)
    self._appends = self._parts['accumulate'].appends
    self._server_parts = {
        name: _Part(self._parts[name], place + 1)
        for place, name in enumerate(computations.SERVER_PARTS)
        if name in self._parts and (name != 'merge' or len(self._devices) > 1)
    }
    self._shards = self._build_shards() if len(self._devices) > 1 else None
    self._placement = (
        self._shards.everywhere
        if self._shards
        else jax.sharding.SingleDeviceSharding(self._devices[0])
    )
    self._to_device = device_values.build_conversion(
        self._form.state_type, self._placement
    )
    self._arrays = cohort_arrays.CohortArrays(
        self._placement,
        self.plan.num_parallel_clients,
        cohort_arrays.find_max_bytes(self._devices[0]),
    )
    self._programs: dict[Any, Any] = {}

    self._check_lowerings()

  def _build_shards(self) -> client_shards.ClientShards:
    """Returns what shares clients out among several devices."""
    merge = self._parts['merge']
    if merge.takes_seed or merge.appends != self._appends:
      raise lowerings.NoLoweringError('sums of several devices are not merged')
    if not self._parts.has_neutral_zero:
      raise lowerings.NoLoweringError(
          'a sum begins with more than zero, so that sums of several devices '
          'cannot be merged'
      )
    return client_shards.ClientShards(
        self._devices,
        functools.partial(self._server_parts['merge'], seed=None),
        self._appends,
    )

  def _check_lowerings(self) -> None:
    """Raises an error if a part cannot be a function of JAX."""
    if self._pipelines is not None:
      raise lowerings.NoLoweringError(self._pipelines)
    specs = values.tensor_specs(self._form.state_type)
    if any(spec.dtype == tf.string for spec in specs):
      raise lowerings.NoLoweringError('the state at the server holds strings')
    parts = [self._client_work, *self._server_parts.values()]
    ops = set().union(*(part.ops() for part in parts))
    if missing := lowerings.missing(ops - control_lowerings.CALLING.keys()):
      hints = [f'; {hint}' for op, hint in _HINTS.items() if op in missing]
      raise lowerings.NoLoweringError(
          f'XLA has no form of {", ".join(missing)} here{"".join(hints[:1])}'
      )

  def trace(
      self,
      state: Sequence[Any],
      rows: Any,
      numbers: Any,
      num_clients: Any,
      seeds: Any,
      *,
      layout: cohort_arrays.Layout,
  ) -> list[Any]:
    """Returns the leaves of the round's result, while JAX traces.

    The arguments are those of `arguments`.
    """
    server_seed, client_seeds = seeds
    broadcast = self._prepare(state, server_seed)
    zero = control_lowerings.as_arrays(
        self._server_parts['zero'](seed=server_seed)
    )

    def train(number):
      leaves = layout.client(rows, numbers, number)
      seed = client_seeds[number] if self.takes_client_seeds else None
      outputs = self._client_work(*leaves, *broadcast, seed=seed)
      padding.check_has_none(outputs, "a client's result")
      return control_lowerings.as_arrays(outputs)

    def add(number, total, outputs):
      seed = client_seeds[number] if self.takes_client_seeds else None
      accumulate = self._server_parts['accumulate']
      return accumulate(*total, *outputs, seed=seed)

    lengths = layout.lengths(numbers)

    def sum_share(members, count):
      return self._sum_clients(
          lambda place: train(members[place]),
          lambda place, *sums: add(members[place], *sums),
          zero,
          count,
          attrs.evolve(layout, num_clients=len(members)),
          lengths[members],
      )

    if self._shards is None:
      total = self._sum_clients(train, add, zero, num_clients, layout, lengths)
    else:
      total = self._shards.sum(sum_share, zero, num_clients)
    if self._joins_rows:
      for place in self._appends:
        total[place] = _join(zero[place], total[place])
    return control_lowerings.as_arrays(self._finish(state, total, server_seed))

  def _prepare(self, state: Sequence[Any], seed: Any) -> Sequence[Any]:
    """Returns what the clients get, while JAX traces."""
    return self._server_parts['prepare'](*state, seed=seed)

  def _finish(
      self, state: Sequence[Any], total: Sequence[Any], seed: Any
  ) -> Sequence[Any]:
    """Returns the result after all clients, while JAX traces."""
    report = self._server_parts['report'](*total, seed=seed)
    return self._server_parts['update'](*state, *report, seed=seed)

  def _sum_clients(
      self,
      train: Any,
      add: Any,
      zero: Sequence[Any],
      num_clients: Any,
      layout: cohort_arrays.Layout,
      lengths: Any,
  ) -> list[Any]:
    """Returns the sum of the clients' results, in their order."""
    appends = self._appends
    if not self._joins_rows and any(zero[place].shape[0] for place in appends):
      raise kept_rows.RowsAreUsedError('a sum begins with rows')
    unread = {place: zero[place] for place in appends}

    def add_client(number, total, outputs):
      before = [unread.get(place, leaf) for place, leaf in enumerate(total)]
      added = add(number, before, outputs)
      return control_lowerings.as_arrays(
          _write(leaf, number, value) if place in appends else value
          for place, (leaf, value) in enumerate(zip(total, added))
      )

    total = list(zero)
    if appends:
      first = jnp.zeros([], jnp.int32)
      shapes = jax.eval_shape(
          lambda: self._appended(add(first, zero, train(first)))
      )
      for place, shape in zip(appends, shapes):
        total[place] = jax.tree.map(
            lambda one: jnp.zeros([layout.num_clients, *one.shape], one.dtype),
            shape,
        )
    return _loop_over_clients(
        train, add_client, total, num_clients, layout.num_side_by_side, lengths
    )

  def _appended(self, added: Sequence[Any]) -> list[kept_rows.KeptRows]:
    """Returns what a client appends to a sum, see `_sum_clients`."""
    rows = [added[place] for place in self._appends]
    are_cut = any(isinstance(one, kept_rows.KeptRows) for one in rows)
    if are_cut and self._joins_rows:
      raise lowerings.NoLoweringError(
          'the server computes with rows of which clients keep some'
      )
    return list(map(_as_kept, rows))

  def __call__(self, state, clients, key):
    """Runs a round; raises also a `NoLoweringError`, at its first time."""
    collected = self._collect(clients, key)
    seeds = self._seeds(len(clients), key)
    leaves = self.run(state, collected, len(clients), seeds)
    self.path = plans.XLA
    return self._to_result(leaves)

  def run(
      self,
      state: Any,
      collected: client_tensors.Clients,
      num_clients: int,
      seeds: round_keys.Seeds,
  ) -> list[Any]:
    """Returns the leaves of the round's result.

    Args:
      state: The state at the server.
      collected: The data of the clients.
      num_clients: The number of clients.
      seeds: The seeds of random numbers.

    Raises:
      NoLoweringError: If the round, traced for the first time, has no form in
        XLA.
    """

    def run():
      layout, arguments = self._arguments(state, collected, num_clients, seeds)
      return self._program(layout)(*arguments)

    with jax.enable_x64(True), jax.default_device(self._devices[0]):
      result = self.until_traced(run)
    # All leaves are on their way before the first is waited for.
    for array in jax.tree.leaves(result):
      array.copy_to_host_async()
    return [
        _to_numpy(leaf, leaf_type.dtype.type is np.str_)
        for leaf, leaf_type in zip(result, self._result_types)
    ]

  def until_traced(self, run: Callable[[], Any]) -> Any:
    """Runs what traces the round; again in another form if one has to be."""
    try:
      return run()
    except kept_rows.RowsAreUsedError:
      if self._joins_rows:
        raise
      self._joins_rows = True  # Which fixes the number of clients.
      return self.until_traced(run)
    except lowerings.NoLoweringError as error:
      if not self._arrays.pads:
        raise
      logging.info('Each size of a batch is compiled by itself: %s', error)
      self._arrays.pads = False
      return self.until_traced(run)

  @property
  def result_type(self) -> tff.Type:
    """The type of the result, of which `trace` returns the leaves."""
    return self._form.result_type

  def argument_names(self) -> tuple[list[str], list[str]]:
    """Returns the names of the leaves of the state, and of a client's value."""
    form = self._form
    return (
        values.leaf_names(form.state_type),
        values.leaf_names(form.clients_type),
    )

  def arguments(
      self, state: Any, clients: Sequence[Any], key: round_keys.RoundKey
  ) -> tuple[cohort_arrays.Layout, tuple[Any, ...]]:
    """Returns the layout of a round's program, and the program's arguments.

    Args:
      state: The state at the server.
      clients: The values at the clients.
      key: The key of random numbers.

    Raises:
      NoLoweringError: If clients' pipelines would have to run.
    """
    return self._arguments(
        state,
        self._collect(clients, key),
        len(clients),
        self._seeds(len(clients), key),
    )

  def _arguments(
      self,
      state: Any,
      collected: client_tensors.Clients,
      num_clients: int,
      seeds: round_keys.Seeds,
  ) -> tuple[cohort_arrays.Layout, tuple[Any, ...]]:
    """Returns what `arguments` does, from the clients' data that were read."""
    if collected.pipelines is not None:
      raise lowerings.NoLoweringError(collected.pipelines)
    layout, rows, numbers = self._arrays.of(
        collected.leaves, num_clients, self._joins_rows
    )
    return layout, (
        self._to_device(state),
        rows,
        numbers,
        self._share_out(layout, numbers, num_clients),
        (seeds.server, layout.pad_clients(seeds.clients)),
    )

  def _share_out(
      self, layout: cohort_arrays.Layout, numbers: Any, num_clients: int
  ) -> Any:
    """Returns the number of clients; on several devices, their shares."""
    if self._shards is None:
      return np.int32(num_clients)
    lengths = np.asarray(layout.lengths(numbers))
    return self._shards.share_out(lengths[:num_clients], layout.num_clients)

  def _program(self, layout: cohort_arrays.Layout) -> Any:
    """Returns the compiled round for a layout."""
    if layout not in self._programs:
      self._programs[layout] = jax.jit(
          functools.partial(self.trace, layout=layout),
          in_shardings=self._placement,
          out_shardings=self._placement,
          donate_argnums=0 if self._returns_state else (),
      )
    return self._programs[layout]
