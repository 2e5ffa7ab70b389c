# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs computations that are not a round, step by step.

A `CompiledRound` is one graph: the server sends, clients work, the server adds
up. Other computations send what they have added up, leave results at the
clients, or have no clients at all. They are run here as TFF writes them, one
intrinsic after the other:

- without clients, the whole computation is one graph;
- work on the clients' datasets is a `CompiledRound` that returns the clients'
  results side by side, so that it is as fast;
- any other function is a graph that runs for one client after the other.
"""

from collections.abc import Callable, Sequence
import functools
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _error_texts
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import dataset_cache
from tff_adaptive.runtime import expressions
from tff_adaptive.runtime import graph_calls
from tff_adaptive.runtime import local_functions
from tff_adaptive.runtime import placed_values
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import step_functions
from tff_adaptive.runtime import values


class Steps:
  """A computation that runs step by step.

  Attributes:
    takes_clients: Whether it takes a value at the clients.
    takes_seed: Whether it draws random numbers.
    takes_sequences: Whether it takes sequences.
  """

  def __init__(
      self,
      computation: tff.framework.ConcreteComputation,
      plan: plans.Plan,
      cache: dataset_cache.DatasetCache,
      note_pipelines: Callable[[str], None],
  ):
    """Converts the computation; see `rounds.Round`.

    Raises:
      UnsupportedComputationError: If an op or an intrinsic is unsupported.
    """
    self._type = computation.type_signature
    for place in [
        *placed_values.places(self._type.parameter),
        *placed_values.places(self._type.result),
    ]:
      expressions.leaf_types(place)
    self._root = _simplify(computation)
    self._functions = step_functions.StepFunctions(
        self._root, plan, cache, note_pipelines
    )
    self.takes_clients = computations.takes_clients(self._type)
    self.takes_seed = self._functions.takes_seed
    self.takes_sequences = any(
        map(
            expressions.has_sequences,
            placed_values.places(self._type.parameter),
        )
    )
    self._is_whole = (
        not self.takes_clients
        and local_functions.is_without_clients(self._root)
    )
    if not self._is_whole:
      _check_intrinsics(self._root)
    flatten = values.build_flatten(self._type.parameter, into_members=False)
    self._flatten = flatten
    self._pack = values.build_pack(self._type.result, into_members=False)

  @property
  def path(self) -> str:
    """How it is executed, see `CompiledContext.path_of`."""
    if not self._is_whole:
      return plans.STEPS
    return self._functions.of(self._root).path

  @property
  def plan(self) -> Optional[plans.Plan]:
    """The plan of the clients' work; None without clients."""
    return None if self._is_whole else self._functions.plan

  def split(self, argument: Any) -> tuple[list[Any], Optional[Sequence[Any]]]:
    """Splits an argument at places.

    Returns:
      The values in order, and those of the clients that bring the key of random
      numbers; None if the argument does not tell the number of clients.
    """
    found = self._flatten(argument)
    at_clients = [
        value
        for value, place in zip(
            found, placed_values.places(self._type.parameter)
        )
        if placed_values.differs(place)
    ]
    computations.check_clients(at_clients)
    cohorts = [v for v in at_clients if isinstance(v, cohort_lib.Cohort)]
    return found, next(iter([*cohorts, *at_clients]), None)

  def __call__(
      self, found: list[Any], num_clients: int, key: round_keys.RoundKey
  ) -> Any:
    """Runs the computation.

    Args:
      found: The values of `split`.
      num_clients: The number of clients.
      key: The key of the round's random numbers.

    Returns:
      The result, with NumPy arrays for tensors and datasets for sequences.

    Raises:
      TypeError: If a value does not match its type.
      UnsupportedComputationError: If a step cannot be compiled.
      ValueError: If TensorFlow rejects the data.
    """
    run = _Run(self._functions, num_clients, key)
    try:
      result = self._evaluate(run, found)
    except tf.errors.InvalidArgumentError as e:
      said = _error_texts.graph_error_line(e)
      raise ValueError(f'TensorFlow failed in a step: {said}.') from e
    converted = map(
        functools.partial(placed_values.to_value, num_clients=num_clients),
        expressions.flatten(result),
        placed_values.places(self._type.result),
    )
    return self._pack(converted)

  def _evaluate(self, run: '_Run', found: list[Any]) -> Any:
    """Returns the result, given the values of the argument."""
    parameter, argument = self._type.parameter, None
    root = expressions.Closure(self._root, {})
    read = map(placed_values.read, found, placed_values.places(parameter))
    if self._is_whole:
      leaves = [leaf for value in read for leaf in placed_values.flatten(value)]
      return self._of_leaves(run.run(root, leaves))
    if parameter is not None:
      argument = expressions.pack(read, parameter, into_members=False)
    return run.apply(root, argument)

  def _of_leaves(self, leaves: list[Any]) -> list[Any]:
    """Returns the values at places, given all leaves of the result."""
    rest = iter(leaves)
    return [
        placed_values.Placed(
            [next(rest) for _ in expressions.leaf_types(place)]
        )
        for place in placed_values.places(self._type.result)
    ]


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
        part.uri in _INTRINSICS
        or part.uri in local_functions.SEQUENCE_INTRINSICS
    ):
      raise computations.UnsupportedComputationError(
          f'`{part.uri}` is unknown here; use the operators of TFF 0.87'
      )


class _Run(expressions.Evaluator):
  """A run of a computation; evaluates its expression step by step.

  Leaves outside of places are tensors and sequences; values at places are
  `placed_values.Placed`.
  """

  def __init__(
      self,
      functions: step_functions.StepFunctions,
      num_clients: int,
      key: round_keys.RoundKey,
  ):
    self._functions = functions
    self._num_clients = num_clients
    self._key = key

  def _next_key(self) -> round_keys.RoundKey:
    """Returns the key of the next step."""
    self._key = self._key._replace(step=self._key.step + 1)
    return self._key

  def _next_seeds(self) -> Sequence[np.ndarray]:
    """Returns the clients' seeds in the next step."""
    key = self._next_key()
    if self._functions.takes_seed:
      return key.seeds(self._num_clients).clients
    return [key.server_seed()] * self._num_clients

  def call(self, block, scope):
    uri = getattr(block.function, 'uri', None)
    if uri not in local_functions.SEQUENCE_INTRINSICS:
      return super().call(block, scope)
    # Functions among the arguments have to be in the same graph.
    function = expressions.Closure(self._functions.thunk(block), scope)
    leaves = iter(self.run(function, []))
    return expressions.pack(leaves, block.type_signature)

  def call_tensorflow(self, block, argument):
    leaves = [] if argument is None else expressions.flatten(argument)
    results = iter(self.run(expressions.Closure(block, {}), leaves))
    return expressions.pack(results, block.type_signature.result)

  def call_intrinsic(self, block, argument):
    return _INTRINSICS[block.uri](self, block.type_signature, argument)

  def run(
      self, function: expressions.Closure, leaves: Sequence[Any]
  ) -> list[Any]:
    """Returns the leaves of a result, given those of the argument."""
    if expressions.is_structural(function.block):
      return self._rearrange(function, leaves)
    compiled, key = self._functions.of(function.block), self._next_key()
    return compiled(leaves, function.scope, key.server_seed(), key)

  def _rearrange(self, function, leaves):
    parameter = function.block.type_signature.parameter
    argument = None
    if parameter is not None:
      argument = expressions.pack(iter(leaves), parameter)
    return expressions.flatten(self.apply(function, argument))

  def apply_at_server(
      self, _: tff.FunctionType, argument: Any
  ) -> placed_values.Placed:
    """Returns `tff.federated_map` of a value that is the same everywhere."""
    function, placed = argument
    return placed_values.Placed(self.run(function, placed.leaves))

  def call_at_server(
      self, _: tff.FunctionType, argument: Any
  ) -> placed_values.Placed:
    """Returns `tff.federated_eval` at the server."""
    return placed_values.Placed(self.run(argument, []))

  def place(self, _: tff.FunctionType, argument: Any) -> placed_values.Placed:
    """Returns `tff.federated_value`."""
    return placed_values.Placed(expressions.flatten(argument))

  def broadcast(
      self, _: tff.FunctionType, argument: Any
  ) -> placed_values.Placed:
    """Returns `tff.federated_broadcast`."""
    return argument

  def zip(self, _: tff.FunctionType, argument: Any) -> placed_values.Placed:
    """Returns `tff.federated_zip`."""
    fields = expressions.flatten(argument)
    return placed_values.Placed(
        [leaf for placed in fields for leaf in placed.leaves]
    )

  def call_at_clients(
      self, _: tff.FunctionType, argument: Any
  ) -> placed_values.Placed:
    """Returns `tff.federated_eval` at the clients."""
    return self._map(argument, [])

  def map(self, _: tff.FunctionType, argument: Any) -> placed_values.Placed:
    """Returns `tff.federated_map` at the clients."""
    function, placed = argument
    return self._map(function, placed.leaves)

  def _map(
      self, function: expressions.Closure, leaves: list[Any]
  ) -> placed_values.Placed:
    if expressions.is_structural(function.block):
      return placed_values.Placed(self._rearrange(function, leaves))
    stacked = self._map_in_round(function, leaves)
    if stacked is not None:
      return stacked
    compiled = self._functions.of(function.block)
    if not compiled.takes_seed and not placed_values.columns_of(leaves):
      return self.apply_at_server(
          None, [function, placed_values.Placed(leaves)]
      )
    result_type = function.block.type_signature.result
    return self._for_each(compiled, leaves, function.scope, result_type)

  def _for_each(
      self,
      function: local_functions.Function,
      leaves: list[Any],
      scope: expressions.Scope,
      result_type: tff.Type,
  ) -> placed_values.Placed:
    """Runs a function for each client: in a loop, or one after the other."""
    seeds = self._next_seeds()
    placed = placed_values.Placed(leaves)
    stacked = placed.stack(function.types)
    types = expressions.leaf_types(result_type)
    specs = map(graph_calls.leaf_spec, types)
    if (
        len(seeds)
        and stacked is not None
        and all(spec.shape.is_fully_defined() for spec in specs)
    ):
      columns = placed_values.columns_of(leaves)
      loop = self._functions.loop(function, columns, result_type)
      return placed_values.Placed(
          [
              placed_values.Column(stacked=result)
              for result in loop(stacked, scope, seeds, self._key)
          ]
      )
    results = [
        function(placed.of_client(number), scope, seed)
        for number, seed in enumerate(seeds)
    ]
    return placed_values.Placed(
        [
            placed_values.Column(leaves=[result[place] for result in results])
            for place in range(len(types))
        ]
    )

  def _map_in_round(
      self, function: expressions.Closure, leaves: Sequence[Any]
  ) -> Optional[placed_values.Placed]:
    """Maps over clients' datasets in a round; returns None if it cannot be."""
    columns = placed_values.columns_of(leaves)
    signature = function.block.type_signature
    types = expressions.leaf_types(signature.parameter)
    if expressions.has_sequences(signature.result) or not any(
        isinstance(types[place], tff.SequenceType) and leaves[place].clients
        for place in columns
    ):
      return None
    same = [leaf for i, leaf in enumerate(leaves) if i not in columns]
    for path in self._functions.of(function.block).free:
      same += expressions.flatten(expressions.at(path, function.scope))
    clients = placed_values.join(
        [leaves[place] for place in columns], [types[i] for i in columns]
    )
    compiled = self._functions.round(
        function.block, columns, clients.member_type
    )
    if compiled is None:
      return None
    stacked = compiled(tuple(same), clients.value, self._next_key())
    return placed_values.Placed(
        [
            placed_values.Column(stacked=tf.convert_to_tensor(leaf))
            for leaf in stacked
        ]
    )

  def aggregate(
      self, _: tff.FunctionType, argument: Any
  ) -> placed_values.Placed:
    """Returns `tff.federated_aggregate`."""
    placed, zero, accumulate, _, report = argument
    total = expressions.flatten(zero)
    seeds = self._next_seeds()
    add, scope = self._functions.of(accumulate.block), accumulate.scope
    leaves = [*total, *placed.leaves]
    stacked = placed_values.Placed(leaves).stack(add.types)
    if len(seeds) and stacked is not None:
      loop = self._functions.loop(
          add,
          placed_values.columns_of(leaves),
          accumulate.block.type_signature.result,
          num_added=len(total),
      )
      total = loop(stacked, scope, seeds, self._key)
    else:
      for number, seed in enumerate(seeds):
        total = add([*total, *placed.of_client(number)], scope, seed)
    return placed_values.Placed(self.run(report, total))

  def select(
      self, signature: tff.FunctionType, argument: Any
  ) -> placed_values.Placed:
    """Returns `tff.federated_select`."""
    keys, limit, value, function = argument
    compiled = self._functions.selection(function.block, signature)
    for number in range(self._num_clients):
      _check_keys(*keys.of_client(number), *limit.leaves)
    leaves = [*keys.leaves, *value.leaves]
    return self._for_each(
        compiled, leaves, function.scope, signature.result.member
    )


def _check_keys(keys: tf.Tensor, limit: tf.Tensor) -> None:
  """Raises if a client selects what is not there."""
  outside = [key for key in keys.numpy() if not 0 <= key < limit.numpy()]
  if outside:
    raise ValueError(
        'The keys of `tff.federated_select` must be at least 0 and less than '
        f'`max_key`, {limit.numpy()}, found {outside[0]}.'
    )


_INTRINSICS: dict[str, Callable[..., Any]] = {
    tff.framework.FEDERATED_AGGREGATE.uri: _Run.aggregate,
    tff.framework.FEDERATED_APPLY.uri: _Run.apply_at_server,
    tff.framework.FEDERATED_BROADCAST.uri: _Run.broadcast,
    tff.framework.FEDERATED_EVAL_AT_CLIENTS.uri: _Run.call_at_clients,
    tff.framework.FEDERATED_EVAL_AT_SERVER.uri: _Run.call_at_server,
    tff.framework.FEDERATED_MAP.uri: _Run.map,
    tff.framework.FEDERATED_MAP_ALL_EQUAL.uri: _Run.apply_at_server,
    tff.framework.FEDERATED_VALUE_AT_CLIENTS.uri: _Run.place,
    tff.framework.FEDERATED_VALUE_AT_SERVER.uri: _Run.place,
    tff.framework.FEDERATED_ZIP_AT_CLIENTS.uri: _Run.zip,
    tff.framework.FEDERATED_ZIP_AT_SERVER.uri: _Run.zip,
    'federated_select': _Run.select,
}
