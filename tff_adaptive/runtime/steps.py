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

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import reports
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import dataset_cache
from tff_adaptive.runtime import expressions
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import rounds
from tff_adaptive.runtime import values

# Odd numbers that set the seeds of steps apart.
_STEP_FACTORS = np.array([0x9E3779B1, 0x85EBCA6B], np.uint32)


class _Clients:
  """The clients' values as given."""

  def __init__(self, value: Sequence[Any], member_type: tff.Type):
    self.value = value
    self.member_type = member_type
    self.leaf_types = expressions.leaf_types(member_type)
    self.has_sequences = _has_sequences(member_type)

  @functools.cached_property
  def by_leaf(self) -> list[list[Any]]:
    """The leaves of all clients, by their place in the type."""
    flatten = values.build_flatten(self.member_type)
    by_client = [
        list(map(expressions.to_leaf, flatten(value), self.leaf_types))
        for value in self.value
    ]
    return [
        [leaves[place] for leaves in by_client]
        for place in range(len(self.leaf_types))
    ]


@attrs.frozen(eq=False)
class _Column:
  """A leaf that differs between clients.

  Attributes:
    clients: The values of which it is a leaf; None if it was computed.
    place: Its place in them.
    computed: The leaf of each client, if it was computed.
  """

  clients: Optional[_Clients] = None
  place: int = 0
  computed: Sequence[Any] = ()

  @property
  def leaves(self) -> Sequence[Any]:
    """The leaf of each client."""
    if self.clients is None:
      return self.computed
    return self.clients.by_leaf[self.place]

  @property
  def values(self) -> Sequence[Any]:
    """The leaf of each client, sequences as they were given."""
    return [
        leaf.value if isinstance(leaf, expressions.Given) else leaf
        for leaf in self.leaves
    ]


@attrs.frozen(eq=False)
class _Placed:
  """A value at the server or the clients.

  Attributes:
    leaves: Its leaves. At the clients, those that differ are a `_Column`.
  """

  leaves: list[Any]

  def of_client(self, number: int) -> list[Any]:
    """Returns the leaves of a client."""
    return [
        leaf.leaves[number] if isinstance(leaf, _Column) else leaf
        for leaf in self.leaves
    ]


class _Seeds:
  """The seeds of the steps of a run."""

  def __init__(self, seeds: round_keys.Seeds):
    self._seeds = seeds
    self._num_steps = 0

  def next(self) -> round_keys.Seeds:
    """Returns the seeds of the next step."""
    self._num_steps += 1
    spread = _STEP_FACTORS * np.uint32(self._num_steps)
    return round_keys.Seeds(
        *((seed.view(np.uint32) + spread).view(np.int32) for seed in self._seeds)
    )


def _has_sequences(type_spec: tff.Type) -> bool:
  return any(
      isinstance(leaf, tff.SequenceType)
      for leaf in expressions.leaf_types(type_spec)
  )


def _places(type_spec: Optional[tff.Type]) -> list[tff.Type]:
  """Returns the types in nested structs, in order."""
  if type_spec is None:
    return []
  if not isinstance(type_spec, tff.StructType):
    return [type_spec]
  fields = tff.structure.iter_elements(type_spec)
  return [place for _, field in fields for place in _places(field)]


def _differs(type_spec: tff.Type) -> bool:
  """Returns whether a value differs between clients."""
  return (
      isinstance(type_spec, tff.FederatedType)
      and type_spec.placement is tff.CLIENTS
      and not type_spec.all_equal
  )


class Steps:
  """A computation that runs step by step.

  Attributes:
    takes_clients: Whether it takes a value at the clients.
    takes_seed: Whether it draws random numbers.
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
    for place in [*_places(self._type.parameter), *_places(self._type.result)]:
      expressions.leaf_types(place)
    self._root = _simplify(computation)
    self.pieces = expressions.Pieces(self._root)
    self._plan = plan
    self._cache = cache
    self._note_pipelines = note_pipelines
    self._functions: dict[Any, expressions.Function] = {}
    self._thunks: dict[int, expressions.Block] = {}
    self._rounds: dict[Any, Optional[rounds.CompiledRound]] = {}
    self.takes_clients = computations.takes_clients(self._type)
    self.takes_seed = self.pieces.takes_seed
    self._is_whole = (
        not self.takes_clients and expressions.is_without_clients(self._root)
    )
    if not self._is_whole:
      _check_intrinsics(self._root)
    flatten = values.build_flatten(self._type.parameter, into_members=False)
    self._flatten = flatten
    self._pack = values.build_pack(self._type.result, into_members=False)

  @property
  def plan(self) -> Optional[plans.Plan]:
    """The plan of the clients' work; None without clients."""
    if self._is_whole:
      return None
    noted = [r.plan for r in self._rounds.values() if r and r.plan.pipelines]
    return noted[0] if noted else self._plan

  def split(self, argument: Any) -> tuple[list[Any], Optional[Sequence[Any]]]:
    """Splits an argument at places.

    Returns:
      The values in order, and those of the clients that bring the key of random
      numbers; None if the argument does not tell the number of clients.
    """
    found = self._flatten(argument)
    at_clients = [
        value
        for value, place in zip(found, _places(self._type.parameter))
        if _differs(place)
    ]
    computations.check_clients(at_clients)
    cohorts = [v for v in at_clients if isinstance(v, cohort_lib.Cohort)]
    return found, next(iter([*cohorts, *at_clients]), None)

  def __call__(
      self, found: list[Any], num_clients: int, seeds: round_keys.Seeds
  ) -> Any:
    """Runs the computation.

    Args:
      found: The values of `split`.
      num_clients: The number of clients.
      seeds: The seeds of the round.

    Returns:
      The result, with NumPy arrays for tensors and datasets for sequences.

    Raises:
      TypeError: If a value does not match its type.
      UnsupportedComputationError: If a step cannot be compiled.
    """
    parameter, argument = self._type.parameter, None
    if parameter is not None:
      read = map(_read, found, _places(parameter))
      argument = expressions.pack(read, parameter, into_members=False)
    run = _Run(self, num_clients, seeds)
    root = expressions.Closure(self._root, {})
    if self._is_whole:
      leaves = [
          leaf
          for value in expressions.flatten(argument if found else [])
          for leaf in (value.leaves if isinstance(value, _Placed) else [value])
      ]
      result = self._of_leaves(run.run(root, leaves))
    else:
      result = run.apply(root, argument)
    converted = map(
        functools.partial(_to_value, num_clients=num_clients),
        expressions.flatten(result),
        _places(self._type.result),
    )
    return self._pack(converted)

  def _of_leaves(self, leaves: list[Any]) -> list[Any]:
    """Returns the values at places, given all leaves of the result."""
    rest = iter(leaves)
    return [
        _Placed([next(rest) for _ in expressions.leaf_types(place)])
        for place in _places(self._type.result)
    ]

  def function(self, block: expressions.Block) -> expressions.Function:
    """Returns the compiled function of a part of the computation."""
    if id(block) not in self._functions:
      self._functions[id(block)] = expressions.Function(block, self.pieces)
    return self._functions[id(block)]

  def thunk(self, block: expressions.Block) -> expressions.Block:
    """Returns an expression as a function without arguments."""
    if id(block) not in self._thunks:
      self._thunks[id(block)] = tff.framework.Lambda(None, None, block)
    return self._thunks[id(block)]

  def selection(self, block: expressions.Block, signature: tff.FunctionType) -> expressions.Function:
    """Returns the function from a client's keys and a value to a sequence."""
    key = (id(block), 'selection')
    if key not in self._functions:
      keys, _, value, _ = signature.parameter
      types = (tff.SequenceType(np.int32), signature.result.member)

      def select(graph, argument, scope):
        slices = tf.data.Dataset.from_tensor_slices((argument[0],))
        return graph.map(
            expressions.Closure(block, scope),
            tf.data.experimental.to_variant(slices),
            types,
            [argument[1]],
        )

      self._functions[key] = expressions.Function(
          block,
          self.pieces,
          parameter=tff.StructType([keys.member, value.member]),
          body=select,
      )
    return self._functions[key]

  def round(
      self, function: expressions.Closure, columns: Sequence[int], clients_type: tff.Type
  ) -> Optional[rounds.CompiledRound]:
    """Returns the round of work on clients' datasets.

    Args:
      function: The work.
      columns: The places of the leaves of its argument that differ.
      clients_type: The type of these leaves of a client.

    Returns:
      The round, see `_build_stacking`; None if the work cannot be compiled so.
    """
    key = (id(function.block), tuple(columns), str(clients_type))
    if key not in self._rounds:
      try:
        self._rounds[key] = rounds.CompiledRound(
            _build_stacking(function.block, columns, clients_type),
            self._plan,
            self._cache,
            self._note_pipelines,
        )
      except computations.UnsupportedComputationError as e:
        self._rounds[key] = None
        self._note_pipelines(str(e))
    return self._rounds[key]


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
          'it reads data that the native runtime looks up'
      )
    if isinstance(part, tff.framework.Intrinsic) and not (
        part.uri in _INTRINSICS or part.uri in expressions.SEQUENCE_INTRINSICS
    ):
      raise computations.UnsupportedComputationError(
          f'`{part.uri}` is not known'
      )


def _read(value: Any, place: tff.Type) -> Any:
  """Returns a value of an argument as `_Run` has it."""
  if not isinstance(place, tff.FederatedType):
    return expressions.to_leaf(value, place)
  if _differs(place):
    clients = _Clients(value, place.member)
    return _Placed(
        [_Column(clients, i) for i in range(len(clients.leaf_types))]
    )
  leaves = values.build_flatten(place.member)(value)
  types = expressions.leaf_types(place.member)
  return _Placed(list(map(expressions.to_leaf, leaves, types)))


def _to_leaf_value(leaf: Any, leaf_type: tff.Type) -> Any:
  """Returns a leaf of the result: an array, or a dataset."""
  tensor = expressions.to_tensor(leaf, leaf_type)
  if isinstance(leaf_type, tff.SequenceType):
    return expressions.from_tensor(tensor, leaf_type)
  return values.to_array(tensor)


def _to_value(value: Any, place: tff.Type, num_clients: int) -> Any:
  """Returns a value of the result."""
  if not isinstance(value, _Placed):
    return _to_leaf_value(value, place)
  types, pack = expressions.leaf_types(place), values.build_pack(place)
  if not _differs(place):
    return pack(map(_to_leaf_value, value.leaves, types))
  return [
      pack(map(_to_leaf_value, value.of_client(number), types))
      for number in range(num_clients)
  ]


def _is_structural(block: expressions.Block) -> bool:
  """Returns whether a function only rearranges the leaves of its argument."""
  return isinstance(block, tff.framework.Lambda) and all(
      isinstance(
          part,
          (
              tff.framework.Lambda,
              tff.framework.Reference,
              tff.framework.Selection,
              tff.framework.Struct,
              tff.framework.Block,
          ),
      )
      for part in expressions.walk(block)
  )


_ARGUMENT = 'argument_of_step'


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


def _as_block(leaves: Any, type_spec: tff.Type) -> expressions.Block:
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
  if _has_sequences(server_type):
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
      both = tff.federated_zip(
          (tff.federated_broadcast(at_server), at_clients)
      )
      results = tff.federated_map(add_axis, tff.federated_map(work, both))
      return reports.stack_at_server(results)

    return stack


class _Run(expressions.Evaluator):
  """A run of a computation; evaluates its expression step by step.

  Leaves outside of places are tensors and sequences; values at places are
  `_Placed`.
  """

  def __init__(
      self, program: Steps, num_clients: int, seeds: round_keys.Seeds
  ):
    self._program = program
    self._num_clients = num_clients
    self._seeds = _Seeds(seeds)

  def call(self, block, scope):
    uri = getattr(block.function, 'uri', None)
    if uri not in expressions.SEQUENCE_INTRINSICS:
      return super().call(block, scope)
    # Functions among the arguments have to be in the same graph.
    function = expressions.Closure(self._program.thunk(block), scope)
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
    """Returns the leaves of a function's result, given those of its argument."""
    if _is_structural(function.block):
      return self._rearrange(function, leaves)
    compiled = self._program.function(function.block)
    return compiled(leaves, function.scope, self._seeds.next().server)

  def _rearrange(self, function, leaves):
    parameter = function.block.type_signature.parameter
    argument = None
    if parameter is not None:
      argument = expressions.pack(iter(leaves), parameter)
    return expressions.flatten(self.apply(function, argument))

  def apply_at_server(self, _: tff.FunctionType, argument: Any) -> _Placed:
    """Returns `tff.federated_map` of a value that is the same everywhere."""
    function, placed = argument
    return _Placed(self.run(function, placed.leaves))

  def call_at_server(self, _: tff.FunctionType, argument: Any) -> _Placed:
    """Returns `tff.federated_eval` at the server."""
    return _Placed(self.run(argument, []))

  def place(self, _: tff.FunctionType, argument: Any) -> _Placed:
    """Returns `tff.federated_value`."""
    return _Placed(expressions.flatten(argument))

  def broadcast(self, _: tff.FunctionType, argument: Any) -> _Placed:
    """Returns `tff.federated_broadcast`."""
    return argument

  def zip(self, _: tff.FunctionType, argument: Any) -> _Placed:
    """Returns `tff.federated_zip`."""
    fields = expressions.flatten(argument)
    return _Placed([leaf for placed in fields for leaf in placed.leaves])

  def call_at_clients(self, _: tff.FunctionType, argument: Any) -> _Placed:
    """Returns `tff.federated_eval` at the clients."""
    return self._map(argument, [])

  def map(self, _: tff.FunctionType, argument: Any) -> _Placed:
    """Returns `tff.federated_map` at the clients."""
    function, placed = argument
    return self._map(function, placed.leaves)

  def _map(
      self, function: expressions.Closure, leaves: Sequence[Any]
  ) -> _Placed:
    if _is_structural(function.block):
      return _Placed(self._rearrange(function, leaves))
    stacked = self._map_in_round(function, leaves)
    if stacked is not None:
      return stacked
    compiled = self._program.function(function.block)
    placed, seeds = _Placed(list(leaves)), self._seeds.next()
    if not compiled.takes_seed and not _columns(leaves):
      return _Placed(compiled(leaves, function.scope, seeds.server))
    results = [
        compiled(placed.of_client(number), function.scope, seed)
        for number, seed in enumerate(self._of_clients(seeds))
    ]
    count = len(
        expressions.leaf_types(function.block.type_signature.result)
    )
    return _Placed(
        [
            _Column(computed=[result[place] for result in results])
            for place in range(count)
        ]
    )

  def _of_clients(self, seeds: round_keys.Seeds) -> Sequence[np.ndarray]:
    """Returns the seeds of the clients."""
    if len(seeds.clients):
      return seeds.clients
    return [seeds.server] * self._num_clients

  def _map_in_round(
      self, function: expressions.Closure, leaves: Sequence[Any]
  ) -> Optional[_Placed]:
    """Maps over clients' datasets in a round; returns None if it cannot be."""
    columns = _columns(leaves)
    given = [leaves[place].clients for place in columns]
    result_type = function.block.type_signature.result
    if _has_sequences(result_type) or not any(
        clients and clients.has_sequences for clients in given
    ):
      return None
    same = [leaf for i, leaf in enumerate(leaves) if i not in columns]
    for path in expressions.find_free(function.block):
      same += expressions.flatten(expressions.at(path, function.scope))
    types = expressions.leaf_types(function.block.type_signature.parameter)
    clients = _join(
        [leaves[place] for place in columns], [types[i] for i in columns]
    )
    compiled = self._program.round(function, columns, clients.member_type)
    if compiled is None:
      return None
    seeds = self._seeds.next()
    if not compiled.takes_client_seeds:
      seeds = seeds._replace(clients=seeds.clients[:0])
    stacked = compiled(tuple(same), clients.value, seeds)
    return _Placed(
        [_Column(computed=tf.unstack(leaf)) for leaf in stacked]
    )

  def aggregate(self, _: tff.FunctionType, argument: Any) -> _Placed:
    """Returns `tff.federated_aggregate`."""
    placed, zero, accumulate, _, report = argument
    total = expressions.flatten(zero)
    seeds = self._of_clients(self._seeds.next())
    add = self._program.function(accumulate.block)
    for number, seed in enumerate(seeds):
      total = add([*total, *placed.of_client(number)], accumulate.scope, seed)
    return _Placed(self.run(report, total))

  def select(self, signature: tff.FunctionType, argument: Any) -> _Placed:
    """Returns `tff.federated_select`."""
    keys, limit, value, function = argument
    compiled = self._program.selection(function.block, signature)
    (limit,), (keys,) = limit.leaves, keys.leaves
    sequences = []
    for number, seed in enumerate(self._of_clients(self._seeds.next())):
      (of_client,) = _Placed([keys]).of_client(number)
      _check_keys(of_client, limit)
      leaves = [of_client, *value.leaves]
      sequences += compiled(leaves, function.scope, seed)
    return _Placed([_Column(computed=sequences)])


def _check_keys(keys: tf.Tensor, limit: tf.Tensor) -> None:
  """Raises if a client selects what is not there."""
  outside = [key for key in keys.numpy() if not 0 <= key < limit.numpy()]
  if outside:
    raise ValueError(
        'The keys of `tff.federated_select` must be at least 0 and less than '
        f'`max_key`, {limit.numpy()}, found {outside[0]}.'
    )


def _columns(leaves: Sequence[Any]) -> list[int]:
  """Returns the places of the leaves that differ between clients."""
  return [i for i, leaf in enumerate(leaves) if isinstance(leaf, _Column)]


def _join(
    columns: Sequence[_Column], types: Sequence[tff.Type]
) -> _Clients:
  """Returns columns as values of clients; those given stay as they are."""
  clients = columns[0].clients
  if clients is not None and [
      column.place for column in columns if column.clients is clients
  ] == list(range(len(clients.leaf_types))) and len(columns) == len(clients.leaf_types):
    return clients
  rows = zip(*(column.values for column in columns))
  return _Clients(list(rows), tff.StructType(types))


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
