# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Computations that are not a round as one graph, with loops over the clients.

Each step of a run calls a graph. If what the clients have are tensors of one
shape, all steps fit into one graph, which is called once.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import graph_calls
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.datasets import elements
from tff_adaptive.runtime.steps import expressions
from tff_adaptive.runtime.steps import mapped_sequences
from tff_adaptive.runtime.steps import placed_values
from tff_adaptive.runtime.steps import step_functions
from tff_adaptive.runtime.steps import step_runs


class _NotOneGraphError(Exception):
  """Steps have to run one by one."""


class _GraphRun(step_runs.Run):
  """Adds all steps to the graph that is being built.

  Attributes:
    server_steps: The numbers of the steps in which the server draws.
    client_steps: The numbers of those in which clients do.
  """

  def __init__(
      self,
      functions: step_functions.StepFunctions,
      num_clients: tf.Tensor,
      server_seeds: tf.Tensor,
      client_seeds: tf.Tensor,
  ):
    """Initializes the run.

    Args:
      functions: The functions of the computation.
      num_clients: The number of clients, at least 1.
      server_seeds: The seeds of `server_steps`, int32 of shape [num_steps, 2].
      client_seeds: Those of `client_steps`, [num_steps, num_clients, 2].
    """
    # The key counts the steps; any other part of it is of no use here.
    super().__init__(functions, 1, round_keys.RoundKey(0, 0))
    self._zeros = tf.zeros([num_clients, 2], tf.int32)
    self._server_seeds = server_seeds
    self._client_seeds = client_seeds
    self.server_steps: list[int] = []
    self.client_steps: list[int] = []

  def _next_seeds(self, function):
    step = self._next_key().step
    if not function.takes_seed:
      return self._zeros
    self.client_steps.append(step)
    return self._client_seeds[len(self.client_steps) - 1]

  def _call(self, function, leaves, scope):
    step, seed = self._next_key().step, tf.zeros([2], tf.int32)
    if function.takes_seed:
      self.server_steps.append(step)
      seed = self._server_seeds[len(self.server_steps) - 1]
    return function.add(*function.leaves(leaves, scope), seed)

  def _loop(self, loop, leaves, scope, seeds):
    return loop.add(*loop.leaves(leaves, scope), seeds)

  def _call_each(self, *arguments):
    raise _NotOneGraphError

  def _add_each(self, *arguments):
    raise _NotOneGraphError

  def select(self, signature, argument):
    keys, limit, value, function = argument
    sequence_type = signature.result.member
    specs = elements.component_specs(sequence_type)
    if not elements.are_alike(specs):
      raise _NotOneGraphError
    compiled = self._functions.selection(
        function.block, signature, as_rows=True
    )
    (num_keys,) = signature.parameter[0].member.shape
    placed = self._for_each(
        compiled,
        [_checked(*keys.leaves, *limit.leaves), *value.leaves],
        function.scope,
        [tf.TensorSpec([num_keys, *s.shape], s.dtype) for s in specs],
    )
    rows = mapped_sequences.Selected(tuple(placed.stack(specs)))
    return placed_values.Placed([placed_values.Column(stacked=rows)])


def _checked(keys: Any, limit: tf.Tensor) -> Any:
  """Returns keys, checked when the graph runs."""
  tensor = keys.stack() if isinstance(keys, placed_values.Column) else keys
  are_there = tf.reduce_all((tensor >= 0) & (tensor < limit))
  # The steps find out which one is not.
  check = tf.debugging.Assert(are_there, ['a key is not there'])
  with tf.control_dependencies([check]):
    tensor = tf.identity(tensor)
  if isinstance(keys, placed_values.Column):
    return placed_values.Column(stacked=tensor)
  return tensor


class StepGraph:
  """A computation that is not a round, as one graph."""

  def __init__(
      self,
      root: expressions.Block,
      type_signature: tff.FunctionType,
      functions: step_functions.StepFunctions,
      cache: dataset_cache.DatasetCache,
  ):
    """Initializes the computation; its graph is built at the first run.

    Args:
      root: Its expression.
      type_signature: Its type.
      functions: The functions within it.
      cache: The cache of datasets.
    """
    self._root = expressions.Closure(root, {})
    self._parameter = type_signature.parameter
    self._places = placed_values.places(type_signature.parameter)
    self._results = placed_values.places(type_signature.result)
    self._functions = functions
    self._types = [
        leaf for p in self._places for leaf in expressions.leaf_types(p)
    ]
    self._is_possible = not any(
        expressions.has_sequences(place)
        for place in [
            *filter(placed_values.differs, self._places),
            *self._results,
        ]
    )
    self._call = graph_calls.GraphCall(
        self._add, self._types, self._specs(), cache, are_reread=True
    )
    # Of the graph: the leaves of the result that differ between clients, and
    # the steps in which the server and clients draw.
    self._columns: list[int] = []
    self._server_steps: list[int] = []
    self._client_steps: list[int] = []

  @property
  def path(self) -> str:
    """How the latest run was executed, see `CompiledContext.path_of`."""
    return self._call.path

  def _specs(self) -> list[tf.TensorSpec]:
    """Returns the specs of all leaves, the number of clients and seeds."""
    specs = []
    for place in self._places:
      for leaf in map(graph_calls.leaf_spec, expressions.leaf_types(place)):
        if placed_values.differs(place):
          leaf = tf.TensorSpec([None, *leaf.shape], leaf.dtype)
        specs.append(leaf)
    shapes: list[list[Optional[int]]] = [[], [None, 2], [None, None, 2]]
    return [*specs, *(tf.TensorSpec(shape, tf.int32) for shape in shapes)]

  def __call__(
      self, read: Sequence[Any], num_clients: int, key: round_keys.RoundKey
  ) -> Optional[list[Any]]:
    """Runs the computation.

    Args:
      read: The values of the argument at places, see `placed_values.read`.
      num_clients: The number of clients.
      key: The key of the random numbers.

    Returns:
      The values of the result at places. None if steps have to run one by one:
      for the shapes of the clients' values, or to tell what fails.

    Raises:
      TypeError: If a value does not match its type.
    """
    if not self._is_possible or not num_clients:
      return None
    leaves = [leaf for value in read for leaf in placed_values.flatten(value)]
    stacked = placed_values.Placed(leaves).stack(self._types)
    if stacked is None:
      return None
    try:
      results = self._call(
          stacked, lambda: self._others(num_clients, key), key=key
      )
    except _NotOneGraphError:
      self._is_possible = False
      return None
    except tf.errors.InvalidArgumentError:
      return None
    return self._pack(
        placed_values.Column(stacked=leaf) if i in self._columns else leaf
        for i, leaf in enumerate(results)
    )

  def _others(
      self, num_clients: int, key: round_keys.RoundKey
  ) -> list[tf.Tensor]:
    """Returns the number of clients, and the seeds of the steps that draw."""
    server = [key._replace(step=s).server_seed() for s in self._server_steps]
    clients = [
        key._replace(step=s).seeds(num_clients).clients
        for s in self._client_steps
    ]
    return [
        tf.constant(num_clients),
        tf.constant(np.reshape(server, [-1, 2]), tf.int32),
        tf.constant(np.reshape(clients, [-1, num_clients, 2]), tf.int32),
    ]

  def _add(self, *tensors: Any) -> list[tf.Tensor]:
    """Adds the computation to the graph being built; returns its leaves."""
    *leaves, num_clients, server_seeds, client_seeds = tensors
    run = _GraphRun(self._functions, num_clients, server_seeds, client_seeds)
    argument, rest = None, iter(leaves)
    if self._parameter is not None:
      argument = expressions.pack(
          (_take(rest, place) for place in self._places),
          self._parameter,
          into_members=False,
      )
    result = expressions.flatten(run.apply(self._root, argument))
    found = [leaf for value in result for leaf in placed_values.flatten(value)]
    self._columns = placed_values.columns_of(found)
    self._server_steps, self._client_steps = run.server_steps, run.client_steps
    return [
        leaf.stack() if isinstance(leaf, placed_values.Column) else leaf
        for leaf in found
    ]

  def _pack(self, leaves: Iterable[Any]) -> list[Any]:
    """Returns the values of the result at places."""
    rest = iter(leaves)
    return [_take(rest, place, stacks=False) for place in self._results]


def _take(leaves: Iterator[Any], place: tff.Type, stacks: bool = True) -> Any:
  """Returns the value at a place, given the leaves of it and later ones.

  Args:
    leaves: The leaves.
    place: The type at the place.
    stacks: Whether leaves that differ between clients are stacked tensors.
      Defaults to True.
  """
  if not isinstance(place, tff.FederatedType):
    return next(leaves)
  found = [next(leaves) for _ in expressions.leaf_types(place)]
  if stacks and placed_values.differs(place):
    found = [placed_values.Column(stacked=leaf) for leaf in found]
  return placed_values.Placed(found)
