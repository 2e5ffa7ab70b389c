# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compiled functions of a computation that runs step by step.

Work on the clients' datasets is a round, whose sum puts the clients' results
side by side: it is as fast as any other, with cached datasets and several
clients at once.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import reports
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime import running
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.steps import expressions
from tff_adaptive.runtime.steps import local_functions
from tff_adaptive.runtime.steps import mapped_sequences


class ClientLoop:
  """A function that runs for all clients, or adds them up."""

  def __init__(
      self,
      function: local_functions.Function,
      columns: Sequence[int],
      results: Sequence[tf.TensorSpec],
      *,
      num_added: Optional[int] = None,
      num_parallel: int = 1,
      cache: Optional[dataset_cache.DatasetCache] = None,
  ):
    """Initializes the loop, which is built at its first run.

    Args:
      function: The function of a client.
      columns: The places of the leaves of its argument that are stacked.
      results: The specs of the leaves of its result. Their shapes are those of
        all clients, unless these are added up.
      num_added: The number of leaves of a sum. The argument begins with them,
        and the function returns the next ones. None, the default, returns the
        clients' results, stacked.
      num_parallel: The number of clients that run at once. Defaults to 1.
      cache: The cache of datasets. None (the default) reads none.
    """
    self._function = function
    self._columns = frozenset(columns)
    self._results = results
    self._num_added = num_added
    self._num_parallel = num_parallel
    self._call = running.GraphCall(
        self.add,
        function.types,
        [tf.TensorSpec([None, 2], tf.int32)],
        columns=self._columns,
        cache=cache,
        # Each client reads a sequence that all have.
        are_reread=True,
    )

  def __call__(
      self,
      leaves: Sequence[Any],
      scope: expressions.Scope,
      seeds: Sequence[np.ndarray],
      key: round_keys.RoundKey,
  ) -> list[tf.Tensor]:
    """Runs the loop.

    Args:
      leaves: The leaves of the argument; columns have a first axis of clients.
      scope: The values of the names that the function reads.
      seeds: The seeds of the clients.
      key: The key of unseeded shuffles.

    Returns:
      The leaves of the results, stacked, or those of the sum.
    """
    found = self.leaves(leaves, scope)
    return self._call(found, lambda: [tf.constant(np.stack(seeds))], key=key)

  def leaves(
      self, leaves: Sequence[Any], scope: expressions.Scope
  ) -> list[Any]:
    """Returns the leaves of `add`, given those of `__call__`."""
    return self._function.leaves(leaves, scope)

  def add(self, *tensors: Any) -> list[tf.Tensor]:
    """Adds the loop to the graph being built; returns its leaves.

    Args:
      *tensors: Those of `leaves`, and the seeds of the clients, int32 of shape
        [num_clients, 2].
    """
    *leaves, seeds = tensors
    if self._num_added is None:
      return self._add_map(leaves, seeds)
    return self._add_sum(leaves, seeds)

  def _add_client(
      self, leaves: Sequence[Any], seeds: tf.Tensor, number: tf.Tensor
  ) -> list[tf.Tensor]:
    """Adds a client to the graph being built; returns its result."""
    picked = [
        mapped_sequences.pick(leaf, number) if place in self._columns else leaf
        for place, leaf in enumerate(leaves)
    ]
    results = self._function.add(*picked, tf.gather(seeds, number))
    for result, spec in zip(results, self._results):
      result.set_shape(spec.shape)
    return results

  def _add_map(
      self, leaves: Sequence[Any], seeds: tf.Tensor
  ) -> list[tf.Tensor]:
    return list(
        tf.map_fn(
            lambda number: tuple(self._add_client(leaves, seeds, number)),
            tf.range(tf.shape(seeds)[0]),
            fn_output_signature=tuple(self._results),
            parallel_iterations=self._num_parallel,
        )
    )

  def _add_sum(
      self, leaves: Sequence[Any], seeds: tf.Tensor
  ) -> list[tf.Tensor]:
    count = self._num_added

    def add_client(number, *total):
      given = [*total, *leaves[count:]]
      return (number + 1, *self._add_client(given, seeds, number))

    shapes = (tf.TensorShape([]), *(spec.shape for spec in self._results))
    _, *total = tf.while_loop(
        lambda number, *_: number < tf.shape(seeds)[0],
        add_client,
        (tf.zeros([], tf.int32), *leaves[:count]),
        shape_invariants=shapes,
        parallel_iterations=1,
    )
    return total


class StepFunctions:
  """The functions of an expression, each compiled when it is needed.

  Attributes:
    setting: Where clients run.
    takes_seed: Whether one of them draws random numbers.
  """

  def __init__(
      self,
      root: expressions.Block,
      setting: rounds.Setting,
  ):
    """Converts the functions of TensorFlow.

    Args:
      root: The expression.
      setting: Where clients run.

    Raises:
      UnsupportedComputationError: If one is unsupported.
    """
    # The ids of its parts are keys.
    self._root = root
    self._pieces = local_functions.Pieces(root)
    self.setting = setting
    self._functions: dict[Any, local_functions.Function] = {}
    self._loops: dict[Any, ClientLoop] = {}
    self._thunks: dict[int, expressions.Block] = {}
    self._rounds: dict[Any, Optional[rounds.CompiledRound]] = {}
    self.takes_seed = self._pieces.takes_seed

  def of(self, block: expressions.Block) -> local_functions.Function:
    """Returns the compiled function of a part of the expression."""
    if id(block) not in self._functions:
      self._functions[id(block)] = local_functions.Function(
          block, self._pieces, cache=self.setting.cache
      )
    return self._functions[id(block)]

  def loop(
      self,
      function: local_functions.Function,
      columns: Sequence[int],
      results: Sequence[tf.TensorSpec],
      num_added: Optional[int] = None,
  ) -> ClientLoop:
    """Returns the loop of a function over clients."""
    key = (id(function), tuple(columns), num_added)
    if key not in self._loops:
      self._loops[key] = ClientLoop(
          function,
          columns,
          results,
          num_added=num_added,
          num_parallel=self.setting.plan.num_parallel_clients,
          cache=self.setting.cache,
      )
    return self._loops[key]

  def thunk(self, block: expressions.Block) -> expressions.Block:
    """Returns a part of the expression as a function without arguments."""
    if id(block) not in self._thunks:
      self._thunks[id(block)] = tff.framework.Lambda(None, None, block)
    return self._thunks[id(block)]

  def selection(
      self,
      block: expressions.Block,
      signature: tff.FunctionType,
      as_rows: bool = False,
  ) -> local_functions.Function:
    """Returns the function from a client's keys and a value to a sequence.

    Args:
      block: The function of a value and a key.
      signature: The type of the selection.
      as_rows: Whether to return the rows of the elements, which must be of one
        shape. Defaults to False.

    Returns:
      The function.
    """
    key = (id(block), as_rows)
    if key not in self._functions:
      keys, _, value, _ = signature.parameter

      def select(graph, argument, scope):
        select = graph.select_rows if as_rows else graph.select
        return select(
            expressions.Closure(block, scope),
            *argument,
            signature.result.member,
        )

      self._functions[key] = local_functions.Function(
          block,
          self._pieces,
          parameter=tff.StructType([keys.member, value.member]),
          body=select,
      )
    return self._functions[key]

  def round(
      self,
      block: expressions.Block,
      columns: Sequence[int],
      clients_type: tff.Type,
  ) -> Optional[rounds.CompiledRound]:
    """Returns the round of work on clients' datasets.

    Args:
      block: The work, a function.
      columns: The places of the leaves of its argument that differ.
      clients_type: The type of these leaves of a client.

    Returns:
      The round, see `_build_stacking`; None if the work cannot be compiled so.
    """
    key = (id(block), tuple(columns), clients_type)
    if key not in self._rounds:
      try:
        self._rounds[key] = rounds.CompiledRound(
            computations.get_round_form(
                _build_stacking(block, columns, clients_type)
            ),
            self.setting,
        )
      except computations.UnsupportedComputationError as e:
        self.setting.note(str(e))
        self._rounds[key] = None
    return self._rounds[key]


_ARGUMENT = "argument_of_step"


def _unpack(
    source: expressions.Block,
) -> list[tff.framework.Selection]:
  """Returns the expressions of the leaves of a struct, in order."""
  if not isinstance(source.type_signature, tff.StructType):
    return [source]
  return [
      leaf
      for index in range(len(source.type_signature))
      for leaf in _unpack(tff.framework.Selection(source, index=index))
  ]


def _as_block(leaves: Iterator[Any], type_spec: tff.Type) -> expressions.Block:
  """Returns the expression of a value, given those of its leaves."""
  if not isinstance(type_spec, tff.StructType):
    return next(leaves)
  return tff.framework.Struct(
      [
          (name, _as_block(leaves, field))
          for name, field in tff.structure.iter_elements(type_spec)
      ]
  )


def _build_work(
    block: expressions.Block,
    columns: Sequence[int],
    server_type: tff.Type,
    clients_type: tff.Type,
) -> tff.framework.ConcreteComputation:
  """Returns work as a function of what all clients have and what differs."""
  given = tff.StructType([server_type, clients_type])
  whole = tff.framework.Reference(_ARGUMENT, given)
  at_server = iter(_unpack(tff.framework.Selection(whole, index=0)))
  at_clients = iter(_unpack(tff.framework.Selection(whole, index=1)))
  parameter = block.type_signature.parameter
  count = len(expressions.leaf_types(parameter))
  leaves = [
      next(at_clients if place in columns else at_server)
      for place in range(count)
  ]
  read = {
      path: _as_block(at_server, type_spec)
      for path, type_spec in expressions.find_free(block).items()
  }

  def replace(part):
    found = read.get(expressions.path_of(part))
    return (part, False) if found is None else (found, True)

  closed, _ = tff.framework.transform_postorder(block, replace)
  result = tff.framework.Call(closed, _as_block(iter(leaves), parameter))
  return tff.framework.ConcreteComputation.from_building_block(
      tff.framework.Lambda(_ARGUMENT, given, result)
  )


def _server_leaf_types(
    block: expressions.Block, columns: Sequence[int]
) -> list[tff.Type]:
  """Returns the types of the leaves that all clients have."""
  types = expressions.leaf_types(block.type_signature.parameter)
  free = [
      leaf
      for type_spec in expressions.find_free(block).values()
      for leaf in expressions.leaf_types(type_spec)
  ]
  return [
      *(leaf for place, leaf in enumerate(types) if place not in columns),
      *free,
  ]


def _build_stacking(
    block: expressions.Block, columns: Sequence[int], clients_type: tff.Type
) -> tff.framework.ConcreteComputation:
  """Builds a round that returns the results of all clients, side by side.

  Args:
    block: The work of a client, a function.
    columns: The places of the leaves of its argument that differ.
    clients_type: The type of these leaves.

  Returns:
    A computation from the other leaves at the server and those at the clients
    to a tuple of the leaves of the results, each with a first axis of clients.

  Raises:
    UnsupportedComputationError: If results are no tensors of a known shape.
  """
  server_type = tff.StructType(_server_leaf_types(block, columns))
  if expressions.has_sequences(server_type):
    raise computations.UnsupportedComputationError(
        "the clients' work also reads a dataset of the server"
    )
  result_type = block.type_signature.result
  flatten = values.build_flatten(result_type)

  with computations.errors_as_unsupported(
      "the clients' results cannot be stacked"
  ):
    work = _build_work(block, columns, server_type, clients_type)

    @tff.tensorflow.computation(result_type)
    def add_axis(result):
      return tuple(leaf[tf.newaxis] for leaf in flatten(result))

    @tff.federated_computation(
        tff.FederatedType(server_type, tff.SERVER),
        tff.FederatedType(clients_type, tff.CLIENTS),
    )
    def stack(at_server, at_clients):
      both = tff.federated_zip((tff.federated_broadcast(at_server), at_clients))
      results = tff.federated_map(add_axis, tff.federated_map(work, both))
      return reports.stack_at_server(results)

    return stack
