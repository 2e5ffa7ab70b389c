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

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import tensorflow_federated as tff

from tff_adaptive.runtime import chunks
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime.accelerators import client_rows
from tff_adaptive.runtime.accelerators import cohort_arrays
from tff_adaptive.runtime.accelerators import control_lowerings
from tff_adaptive.runtime.accelerators import devices
from tff_adaptive.runtime.accelerators import graph_programs
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.graphs import graph_functions


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


def compile_round(
    computation: tff.framework.ConcreteComputation,
    setting: rounds.Setting,
    note_no_xla: Callable[[str], None],
) -> rounds.Round:
  """Compiles a computation over clients.

  Args:
    computation: The computation.
    setting: Where its clients run: a device of JAX.
    note_no_xla: Called with the reason, a clause, if TensorFlow has to run the
      round on the CPU; may raise an error.

  Returns:
    The round.

  Raises:
    UnsupportedComputationError: If the computation is not a round.
  """
  try:
    return XlaRound(computation, setting, note_no_xla)
  except lowerings.NoLoweringError as error:
    note_no_xla(str(error))
    return rounds.CompiledRound(computation, setting.on_cpu())


class XlaRound(rounds.Round):
  """A computation over clients, compiled by JAX."""

  def __init__(
      self,
      computation: tff.framework.ConcreteComputation,
      setting: rounds.Setting,
      note_no_xla: Callable[[str], None],
  ):
    """Reads the computation; the program is compiled in the first round.

    Args:
      computation: See `compile_round`; for the others likewise.
      setting: The setting.
      note_no_xla: The function.

    Raises:
      UnsupportedComputationError: If the computation is not a round.
      NoLoweringError: If an op has no form in XLA.
    """
    super().__init__(computation, setting)
    self._on_tensorflow = functools.cache(
        lambda: rounds.CompiledRound(computation, setting.on_cpu())
    )
    self._note_no_xla = note_no_xla
    self._is_on_tensorflow = False
    self._device = devices.find(setting.plan.device)
    self._client_work = _Part(self._work)
    self._server_parts = {
        name: _Part(self._parts[name], place + 1)
        for place, name in enumerate(chunks.NAMES)
        if name != 'merge'
    }
    self._arrays = cohort_arrays.CohortArrays(self._device)
    self._programs: dict[Any, Any] = {}

    self._check_lowerings()

  def _check_lowerings(self) -> None:
    """Raises an error if a part cannot be a function of JAX."""
    if self._pipelines is not None:
      raise lowerings.NoLoweringError(self._pipelines)
    parts = [self._client_work, *self._server_parts.values()]
    ops = set().union(*(part.ops() for part in parts))
    if missing := lowerings.missing(ops - control_lowerings.CALLING.keys()):
      raise lowerings.NoLoweringError(
          f'XLA has no form of {", ".join(missing)} here'
      )

  def _run_round(
      self,
      state: Sequence[Any],
      rows: Any,
      numbers: Any,
      num_clients: Any,
      seeds: Any,
      *,
      layout: cohort_arrays.Layout,
  ) -> list[Any]:
    """Returns the leaves of the round's result, while JAX traces."""
    server_seed, client_seeds = seeds
    parts = {
        name: functools.partial(part, seed=server_seed)
        for name, part in self._server_parts.items()
    }
    broadcast = parts['prepare'](*state)
    zero = control_lowerings.as_arrays(parts['zero']())

    def train(number):
      leaves = layout.client(rows, numbers, number)
      seed = client_seeds[number] if self.takes_client_seeds else None
      outputs = self._client_work(*leaves, *broadcast, seed=seed)
      return control_lowerings.as_arrays(outputs)

    def add(number, total, outputs):
      seed = client_seeds[number] if self.takes_client_seeds else None
      accumulate = self._server_parts['accumulate']
      return accumulate(*total, *outputs, seed=seed)

    total = self._sum_clients(train, add, zero, num_clients, layout)
    return control_lowerings.as_arrays(
        parts['update'](*state, *parts['report'](*total))
    )

  def _sum_clients(
      self,
      train: Any,
      add: Any,
      zero: Sequence[Any],
      num_clients: Any,
      layout: cohort_arrays.Layout,
  ) -> list[Any]:
    """Returns the sum of the clients' results, in their order."""
    appends = self._parts['accumulate'].appends
    side_by_side = layout.num_side_by_side
    total = list(zero)
    for place in appends:
      shape = self._appended_shape(train, add, zero, place)
      total[place] = jnp.zeros([layout.num_clients, *shape], zero[place].dtype)

    def add_one(number, total, outputs):
      unread = [zero[p] if p in appends else t for p, t in enumerate(total)]
      added = add(number, unread, outputs)
      return control_lowerings.as_arrays(
          t.at[number].set(a) if p in appends else a
          for p, (t, a) in enumerate(zip(total, added))
      )

    if side_by_side == 1:
      total = lax.fori_loop(
          0, num_clients, lambda n, t: add_one(n, t, train(n)), total
      )
    else:

      def add_group(group, total):
        first = group * side_by_side
        members = first + np.arange(side_by_side, dtype=np.int32)
        members = jnp.minimum(members, num_clients - 1)
        outputs = jax.vmap(train)(members)

        def add_member(place, total):
          own = [output[place] for output in outputs]
          return add_one(first + place, total, own)

        count = jnp.minimum(side_by_side, num_clients - first)
        return lax.fori_loop(0, count, add_member, total)

      num_groups = -(-num_clients // side_by_side)
      total = lax.fori_loop(0, num_groups, add_group, total)
    for place in appends:
      rows = total[place]
      joined = rows.reshape([-1, *rows.shape[2:]])
      total[place] = jnp.concatenate([zero[place], joined])
    return total

  def _appended_shape(self, train, add, zero, place) -> tuple[int, ...]:
    """Returns the shape of the rows that a client appends to a leaf."""
    first = jnp.zeros([], jnp.int32)
    added = jax.eval_shape(
        lambda: control_lowerings.as_arrays(add(first, zero, train(first)))
    )
    return added[place].shape

  def __call__(self, state, clients, key):
    if self._is_on_tensorflow:
      return self._run_on_tensorflow(state, clients, key)
    try:
      return self._run_on_xla(state, clients, key)
    except lowerings.NoLoweringError as error:
      self._note_no_xla(str(error))
    # For all later rounds too, so that results do not mix both.
    self._is_on_tensorflow = True
    return self._run_on_tensorflow(state, clients, key)

  def _run_on_tensorflow(self, state, clients, key):
    program = self._on_tensorflow()
    result = program(state, clients, key)
    self.path = program.path
    return result

  def _run_on_xla(self, state, clients, key):
    collected = self._collect(clients, key)
    if collected.pipelines is not None:
      raise lowerings.NoLoweringError(collected.pipelines)
    self.path = plans.XLA
    num_clients = len(clients)
    with jax.enable_x64(True):
      layout, rows, numbers = self._arrays.of(
          collected.leaves, num_clients, bool(self._parts['accumulate'].appends)
      )
      seeds = self._seeds(num_clients, key)
      arguments = (
          [self._to_device(leaf) for leaf in self._convert_state(state)],
          rows,
          numbers,
          np.int32(num_clients),
          (seeds.server, layout.pad_clients(seeds.clients)),
      )
      result = self._program(layout)(*arguments)
    return self._to_result(np.asarray(leaf)[()] for leaf in result)

  def _to_device(self, leaf: Any) -> Any:
    return jax.device_put(leaf.numpy(), self._device)

  def _program(self, layout: cohort_arrays.Layout) -> Any:
    if layout not in self._programs:
      self._programs[layout] = jax.jit(
          functools.partial(self._run_round, layout=layout)
      )
    return self._programs[layout]
