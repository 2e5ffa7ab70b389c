# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compiled functions of a computation that runs step by step.

Work on the clients' datasets is a round, whose sum puts the clients' results
side by side: it is as fast as any other, with cached datasets and several
clients at once.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import reports
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.steps import client_loops
from tff_adaptive.runtime.steps import expressions
from tff_adaptive.runtime.steps import local_functions


class StepFunctions:
  """The functions of an expression, each compiled when it is needed.

  Attributes:
    plan: The plan of the clients' work.
    takes_seed: Whether one of them draws random numbers.
  """

  def __init__(
      self,
      root: expressions.Block,
      plan: plans.Plan,
      cache: dataset_cache.DatasetCache,
      note_pipelines: Callable[[str], None],
  ):
    """Converts the functions of TensorFlow; see `rounds.Round`.

    Raises:
      UnsupportedComputationError: If one is unsupported.
    """
    # The ids of its parts are keys.
    self._root = root
    self._pieces = local_functions.Pieces(root)
    self.plan = plan
    self._cache = cache
    self._note_pipelines = note_pipelines
    self._functions: dict[Any, local_functions.Function] = {}
    self._loops: dict[Any, client_loops.ClientLoop] = {}
    self._thunks: dict[int, expressions.Block] = {}
    self._rounds: dict[Any, Optional[rounds.CompiledRound]] = {}
    self.takes_seed = self._pieces.takes_seed

  def _note(self, reason: str) -> None:
    """Reports the first reason why clients' pipelines run."""
    if self.plan.pipelines is None:
      self._note_pipelines(reason)
      self.plan = attrs.evolve(self.plan, pipelines=reason)

  def of(self, block: expressions.Block) -> local_functions.Function:
    """Returns the compiled function of a part of the expression."""
    if id(block) not in self._functions:
      self._functions[id(block)] = local_functions.Function(
          block, self._pieces, cache=self._cache
      )
    return self._functions[id(block)]

  def loop(
      self,
      function: local_functions.Function,
      columns: Sequence[int],
      results: Sequence[tf.TensorSpec],
      num_added: Optional[int] = None,
  ) -> client_loops.ClientLoop:
    """Returns the loop of a function over clients."""
    key = (id(function), tuple(columns), num_added)
    if key not in self._loops:
      self._loops[key] = client_loops.ClientLoop(
          function,
          columns,
          results,
          num_added=num_added,
          num_parallel=self.plan.num_parallel_clients,
          cache=self._cache,
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
            _build_stacking(block, columns, clients_type),
            self.plan,
            self._cache,
            self._note,
        )
      except computations.UnsupportedComputationError as e:
        self._note(str(e))
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
