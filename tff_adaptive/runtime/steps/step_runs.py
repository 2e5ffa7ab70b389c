# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Evaluates an expression over clients one intrinsic after the other."""

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import running
from tff_adaptive.runtime.steps import expressions
from tff_adaptive.runtime.steps import local_functions
from tff_adaptive.runtime.steps import placed_values
from tff_adaptive.runtime.steps import step_functions


class Run(expressions.Evaluator):
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

  def _next_seeds(self, function: local_functions.Function) -> Any:
    """Returns the clients' seeds in the next step, in which a function runs."""
    key = self._next_key()
    if function.takes_seed:
      return key.seeds(self._num_clients).clients
    return np.zeros([self._num_clients, 2], np.int32)

  def _seeded(
      self, function: local_functions.Function, leaves: Sequence[Any]
  ) -> list[Any]:
    """Returns leaves; datasets of clients draw by the key of this step."""
    # A dataset that is returned stays as it was given.
    if function.returns_sequences:
      return list(leaves)
    return [
        leaf.seeded(leaf_type, self._key.draw_of(self._num_clients, place))
        if isinstance(leaf, placed_values.Column)
        else leaf
        for place, (leaf, leaf_type) in enumerate(zip(leaves, function.types))
    ]

  def _call(
      self,
      function: local_functions.Function,
      leaves: Sequence[Any],
      scope: expressions.Scope,
  ) -> list[Any]:
    """Runs a function in the next step; returns its leaves."""
    key = self._next_key()
    return function(leaves, scope, key.server_seed(), key)

  def _loop(
      self,
      loop: step_functions.ClientLoop,
      leaves: Sequence[Any],
      scope: expressions.Scope,
      seeds: Any,
  ) -> list[Any]:
    """Runs a loop over clients, given `_next_seeds`; returns its leaves."""
    return loop(leaves, scope, seeds, self._key)

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
    evaluate = getattr(self, INTRINSICS[block.uri])
    return evaluate(block.type_signature, argument)

  def run(
      self, function: expressions.Closure, leaves: Sequence[Any]
  ) -> list[Any]:
    """Returns the leaves of a result, given those of the argument."""
    if expressions.is_structural(function.block):
      return self._rearrange(function, leaves)
    compiled = self._functions.of(function.block)
    return self._call(compiled, leaves, function.scope)

  def _rearrange(self, function, leaves):
    parameter = function.block.type_signature.parameter
    argument = None
    if parameter is not None:
      argument = expressions.pack(iter(leaves), parameter)
    return expressions.flatten(self.apply(function, argument))

  def apply_at_server(self, _, argument):
    """Returns `tff.federated_map` of a value that is the same everywhere."""
    function, placed = argument
    return placed_values.Placed(self.run(function, placed.leaves))

  def call_at_server(self, _, argument):
    """Returns `tff.federated_eval` at the server."""
    return placed_values.Placed(self.run(argument, []))

  def place(self, _, argument):
    """Returns `tff.federated_value`."""
    return placed_values.Placed(expressions.flatten(argument))

  def broadcast(self, _, argument):
    """Returns `tff.federated_broadcast`."""
    return argument

  def zip(self, _, argument):
    """Returns `tff.federated_zip`."""
    fields = expressions.flatten(argument)
    return placed_values.Placed(placed_values.flatten(fields))

  def call_at_clients(self, _, argument):
    """Returns `tff.federated_eval` at the clients."""
    return self._map(argument, [])

  def map(self, _, argument):
    """Returns `tff.federated_map` at the clients."""
    function, placed = argument
    return self._map(function, placed.leaves)

  def _map(
      self, function: expressions.Closure, leaves: list[Any]
  ) -> placed_values.Placed:
    if expressions.is_structural(function.block):
      return placed_values.Placed(self._rearrange(function, leaves))
    types = expressions.leaf_types(function.block.type_signature.result)
    if not types:
      return placed_values.Placed([])
    stacked = self._map_in_round(function, leaves)
    if stacked is not None:
      return stacked
    compiled = self._functions.of(function.block)
    if not compiled.takes_seed and not placed_values.columns_of(leaves):
      return self.apply_at_server(
          None, [function, placed_values.Placed(leaves)]
      )
    specs = list(map(running.leaf_spec, types))
    return self._for_each(compiled, leaves, function.scope, specs)

  def _for_each(
      self,
      function: local_functions.Function,
      leaves: list[Any],
      scope: expressions.Scope,
      specs: Sequence[tf.TensorSpec],
  ) -> placed_values.Placed:
    """Runs a function for each client: in a loop, or one after the other."""
    seeds = self._next_seeds(function)
    placed = placed_values.Placed(self._seeded(function, leaves))
    stacked = placed.stack(function.types)
    if (
        self._num_clients
        and stacked is not None
        and all(spec.shape.is_fully_defined() for spec in specs)
    ):
      columns = placed_values.columns_of(leaves)
      loop = self._functions.loop(function, columns, specs)
      return placed_values.Placed.of_stacked(
          self._loop(loop, stacked, scope, seeds)
      )
    return self._call_each(function, placed, scope, seeds, len(specs))

  def _call_each(
      self,
      function: local_functions.Function,
      placed: placed_values.Placed,
      scope: expressions.Scope,
      seeds: Any,
      num_leaves: int,
  ) -> placed_values.Placed:
    """Runs a function for one client after the other."""
    results = [
        function(placed.of_client(number), scope, seed)
        for number, seed in enumerate(seeds)
    ]
    return placed_values.Placed(
        [
            placed_values.Column(leaves=[result[place] for result in results])
            for place in range(num_leaves)
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
    return placed_values.Placed.of_stacked(map(tf.convert_to_tensor, stacked))

  def aggregate(self, _, argument):
    """Returns `tff.federated_aggregate`."""
    placed, zero, accumulate, _, report = argument
    total = expressions.flatten(zero)
    add, scope = self._functions.of(accumulate.block), accumulate.scope
    seeds = self._next_seeds(add)
    placed = placed_values.Placed(
        self._seeded(add, [*total, *placed.leaves])[len(total) :]
    )
    leaves = [*total, *placed.leaves]
    stacked = placed_values.Placed(leaves).stack(add.types)
    if self._num_clients and stacked is not None:
      types = expressions.leaf_types(accumulate.block.type_signature.result)
      loop = self._functions.loop(
          add,
          placed_values.columns_of(leaves),
          list(map(running.leaf_spec, types)),
          num_added=len(total),
      )
      total = self._loop(loop, stacked, scope, seeds)
    else:
      total = self._add_each(add, total, placed, scope, seeds)
    return placed_values.Placed(self.run(report, total))

  def _add_each(
      self,
      add: local_functions.Function,
      total: list[Any],
      placed: placed_values.Placed,
      scope: expressions.Scope,
      seeds: Any,
  ) -> list[Any]:
    """Adds one client after the other to a total."""
    for number, seed in enumerate(seeds):
      total = add([*total, *placed.of_client(number)], scope, seed)
    return total

  def select(self, signature, argument):
    """Returns `tff.federated_select`."""
    keys, limit, value, function = argument
    compiled = self._functions.selection(function.block, signature)
    for number in range(self._num_clients):
      _check_keys(*keys.of_client(number), *limit.leaves)
    leaves = [*keys.leaves, *value.leaves]
    specs = [running.leaf_spec(signature.result.member)]
    return self._for_each(compiled, leaves, function.scope, specs)


def _check_keys(keys: tf.Tensor, limit: tf.Tensor) -> None:
  """Raises if a client selects what is not there."""
  outside = [key for key in keys.numpy() if not 0 <= key < limit.numpy()]
  if outside:
    raise ValueError(
        'The keys of `tff.federated_select` must be at least 0 and less than '
        f'`max_key`, {limit.numpy()}, found {outside[0]}.'
    )


# The methods of a run by intrinsic.
INTRINSICS: dict[str, str] = {
    tff.framework.FEDERATED_AGGREGATE.uri: 'aggregate',
    tff.framework.FEDERATED_APPLY.uri: 'apply_at_server',
    tff.framework.FEDERATED_BROADCAST.uri: 'broadcast',
    tff.framework.FEDERATED_EVAL_AT_CLIENTS.uri: 'call_at_clients',
    tff.framework.FEDERATED_EVAL_AT_SERVER.uri: 'call_at_server',
    tff.framework.FEDERATED_MAP.uri: 'map',
    tff.framework.FEDERATED_MAP_ALL_EQUAL.uri: 'apply_at_server',
    tff.framework.FEDERATED_VALUE_AT_CLIENTS.uri: 'place',
    tff.framework.FEDERATED_VALUE_AT_SERVER.uri: 'place',
    tff.framework.FEDERATED_ZIP_AT_CLIENTS.uri: 'zip',
    tff.framework.FEDERATED_ZIP_AT_SERVER.uri: 'zip',
    'federated_select': 'select',
}
