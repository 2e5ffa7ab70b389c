# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs computations that are not a round, step by step.

A `CompiledRound` is one graph: the server sends, clients work, the server adds
up. Other computations send what they have added up, leave results at the
clients, or have no clients at all. They are run here as TFF writes them, one
intrinsic after the other:

- without clients, or if all that clients have are tensors of one shape, the
  whole computation is one graph;
- else, work on the clients' datasets is a `CompiledRound` that returns the
  clients' results side by side, so that it is as fast;
- any other function is a graph that runs for one client after the other.
"""

from collections.abc import Sequence
import functools
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _error_texts
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime import running
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import elements
from tff_adaptive.runtime.steps import expressions
from tff_adaptive.runtime.steps import local_functions
from tff_adaptive.runtime.steps import mapped_sequences
from tff_adaptive.runtime.steps import placed_values
from tff_adaptive.runtime.steps import step_functions
from tff_adaptive.runtime.steps import step_runs


class Steps(rounds.Program):
  """A computation that runs step by step."""

  def __init__(
      self,
      computation: tff.framework.ConcreteComputation,
      setting: rounds.Setting,
  ):
    """Converts the computation.

    Args:
      computation: The computation.
      setting: Where its clients run.

    Raises:
      UnsupportedComputationError: If an op or an intrinsic is unsupported.
    """
    self._type = computation.type_signature
    self._places = values.places(self._type.parameter)
    self._results = values.places(self._type.result)
    for place in [*self._places, *self._results]:
      expressions.leaf_types(place)
    self._root = _simplify(computation)
    self._functions = step_functions.StepFunctions(self._root, setting)
    self.takes_clients = computations.takes_clients(self._type)
    self.takes_seed = self._functions.takes_seed
    self.takes_sequences = any(map(expressions.has_sequences, self._places))
    # None if the whole is a function without clients.
    self._graph: Optional[StepGraph] = None
    if self.takes_clients or not local_functions.is_without_clients(self._root):
      _check_intrinsics(self._root)
      self._graph = StepGraph(self._root, self._type, self._functions)
    self.path = plans.STEPS
    flatten = values.build_flatten(self._type.parameter, into_members=False)
    self._flatten = flatten
    self._pack = values.build_pack(self._type.result, into_members=False)

  @property
  def plan(self) -> Optional[plans.Plan]:
    """The plan of the clients' work; None without clients."""
    return None if self._graph is None else self._functions.setting.plan

  def split(self, argument):
    found = self._flatten(argument)
    at_clients = [
        value
        for value, place in zip(found, self._places)
        if computations.differs_by_client(place)
    ]
    computations.check_clients(at_clients)
    cohorts = [v for v in at_clients if isinstance(v, cohort_lib.Cohort)]
    return found, next(iter([*cohorts, *at_clients]), None)

  def __call__(self, given, clients, key):
    num_clients = len(clients)
    try:
      result = self._evaluate(given, num_clients, key)
    except tf.errors.InvalidArgumentError as e:
      said = _error_texts.graph_error_line(e)
      raise ValueError(f'TensorFlow failed in a step: {said}.') from e
    converted = map(
        functools.partial(placed_values.to_value, num_clients=num_clients),
        result,
        self._results,
    )
    return self._pack(converted)

  def _evaluate(
      self, found: list[Any], num_clients: int, key: round_keys.RoundKey
  ) -> list[Any]:
    """Returns the values of the result at places."""
    parameter, argument = self._type.parameter, None
    root = expressions.Closure(self._root, {})
    read = list(map(placed_values.read, found, self._places))
    run = step_runs.Run(self._functions, num_clients, key)
    if self._graph is None:
      results = run.run(root, placed_values.flatten(read))
      self.path = self._functions.of(self._root).path
      return placed_values.pack(results, self._results)
    result = self._graph(read, num_clients, key)
    if result is not None:
      self.path = self._graph.path
      return result
    if parameter is not None:
      argument = expressions.pack(iter(read), parameter, into_members=False)
    self.path = plans.STEPS
    return expressions.flatten(run.apply(root, argument))


def _simplify(
    computation: tff.framework.ConcreteComputation,
) -> expressions.Block:
  """Returns an expression of few intrinsics, in the call-dominant form."""
  with computations.errors_as_unsupported('the computation is malformed'):
    if computations.uses_secure_sums(computation):
      computation = tff.backends.test.replace_secure_intrinsics_with_bodies(
          computation
      )
    block, _ = tff.tensorflow.replace_intrinsics_with_bodies(
        computation.to_building_block()
    )
    return tff.framework.to_call_dominant(block)


def _check_intrinsics(root: expressions.Block) -> None:
  for part in expressions.walk(root):
    if isinstance(part, tff.framework.Data):
      raise computations.UnsupportedComputationError(
          "TFF's worker looks up its data by name; pass them as an argument "
          'instead'
      )
    if isinstance(part, tff.framework.Intrinsic) and not (
        part.uri in step_runs.INTRINSICS
        or part.uri in local_functions.SEQUENCE_INTRINSICS
    ):
      raise computations.UnsupportedComputationError(
          f'`{part.uri}` is unknown here; use the operators of TFF 0.87'
      )


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
    return placed_values.Placed.of_stacked([rows])


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


# Of the number of clients, and of the seeds of the server and the clients.
_SHAPES_OF_OTHERS: Sequence[list[Optional[int]]] = (
    [],
    [None, 2],
    [None, None, 2],
)


class StepGraph:
  """A computation that is not a round, as one graph."""

  def __init__(
      self,
      root: expressions.Block,
      type_signature: tff.FunctionType,
      functions: step_functions.StepFunctions,
  ):
    """Initializes the computation; its graph is built at the first run.

    Args:
      root: Its expression.
      type_signature: Its type.
      functions: The functions within it.
    """
    self._root = expressions.Closure(root, {})
    self._parameter = type_signature.parameter
    self._places = values.places(type_signature.parameter)
    self._results = values.places(type_signature.result)
    self._functions = functions
    leaves = [
        (leaf, computations.differs_by_client(place))
        for place in self._places
        for leaf in expressions.leaf_types(place)
    ]
    self._types = [leaf for leaf, _ in leaves]
    self._is_possible = not any(
        expressions.has_sequences(place)
        for place in [
            *filter(computations.differs_by_client, self._places),
            *self._results,
        ]
    )
    self._call = running.GraphCall(
        self._add,
        self._types,
        [tf.TensorSpec(shape, tf.int32) for shape in _SHAPES_OF_OTHERS],
        columns=[place for place, (_, stacks) in enumerate(leaves) if stacks],
        cache=functions.setting.cache,
        are_reread=True,
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
    leaves = placed_values.flatten(read)
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
    leaves = [
        placed_values.Column(stacked=leaf) if i in self._columns else leaf
        for i, leaf in enumerate(results)
    ]
    return placed_values.pack(leaves, self._results)

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
    argument = None
    if self._parameter is not None:
      argument = expressions.pack(
          iter(placed_values.pack(leaves, self._places, are_stacked=True)),
          self._parameter,
          into_members=False,
      )
    result = expressions.flatten(run.apply(self._root, argument))
    found = placed_values.flatten(result)
    self._columns = placed_values.columns_of(found)
    self._server_steps, self._client_steps = run.server_steps, run.client_steps
    return [
        leaf.stack() if isinstance(leaf, placed_values.Column) else leaf
        for leaf in found
    ]
