# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Evaluates TFF's expressions, and compiles those without clients.

A computation of TFF is an expression of few kinds: a function of TensorFlow, an
intrinsic such as `federated_map`, a literal, and calls, structs, selections and
blocks of these. While it is evaluated, a struct is a list, a function is a
`Closure`, and everything else is a leaf, for example a tensor.
"""

import abc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import computations
from tff_adaptive.runtime import elements
from tff_adaptive.runtime import graph_functions
from tff_adaptive.runtime import running
from tff_adaptive.runtime import values

Block = tff.framework.ComputationBuildingBlock
Scope = Mapping[str, Any]

_AGGREGATE = tff.framework.FEDERATED_AGGREGATE.uri
# Within an aggregation's argument: sums are never cut into parts to be merged.
_MERGE = 3


@attrs.frozen(eq=False)
class Closure:
  """A function, and the values of the names that it reads."""

  block: Block
  scope: Scope


@attrs.frozen(eq=False)
class Given:
  """A sequence as it was given, for example a list of batches."""

  value: Any


def flatten(value: Any) -> list[Any]:
  """Returns the leaves of a value, in order."""
  if not isinstance(value, list):
    return [value]
  return [leaf for field in value for leaf in flatten(field)]


def pack(
    leaves: Iterator[Any], type_spec: tff.Type, *, into_members: bool = True
) -> Any:
  """Packs leaves, in the order of `flatten`, into a value of a type.

  Args:
    leaves: The leaves.
    type_spec: The type.
    into_members: Whether the values of federated types are no leaves. Defaults
      to True.

  Returns:
    The value.
  """
  if isinstance(type_spec, tff.FederatedType) and into_members:
    type_spec = type_spec.member
  if not isinstance(type_spec, tff.StructType):
    return next(leaves)
  return [
      pack(leaves, field, into_members=into_members)
      for _, field in tff.structure.iter_elements(type_spec)
  ]


def leaf_types(type_spec: Optional[tff.Type]) -> list[tff.Type]:
  """Returns `values.leaf_types`.

  Raises:
    UnsupportedComputationError: If the type has other leaves, as functions.
  """
  try:
    return values.leaf_types(type_spec)
  except TypeError as e:
    raise computations.UnsupportedComputationError(
        f'it has a value of another kind. {e}'
    ) from e


def children(block: Block) -> list[Block]:
  """Returns the expressions within one, as far as they may be evaluated."""
  if isinstance(block, tff.framework.Call) and isinstance(
      block.argument, tff.framework.Struct
  ):
    if getattr(block.function, 'uri', None) == _AGGREGATE:
      arguments = list(block.argument)
      return [block.function, *arguments[:_MERGE], *arguments[_MERGE + 1 :]]
  return list(block.children())


def walk(block: Block) -> Iterator[Block]:
  """Yields an expression and those within it that may be evaluated."""
  yield block
  for child in children(block):
    yield from walk(child)


# The name of a value, and the indices of a part of it.
Path = tuple[Any, ...]


def path_of(block: Block) -> Optional[Path]:
  """Returns the path that an expression selects; None if it does more."""
  if isinstance(block, tff.framework.Reference):
    return (block.name,)
  if not isinstance(block, tff.framework.Selection):
    return None
  path = path_of(block.source)
  return path and (*path, block.as_index())


def find_free(block: Block) -> dict[Path, tff.Type]:
  """Returns what a function reads from outside, and the types.

  Names must be unique, as in the call-dominant form.
  """
  bound, found = set(), {}

  def visit(part):
    path = path_of(part)
    if path is not None:
      found[path] = part.type_signature
      return
    if isinstance(part, tff.framework.Lambda):
      bound.add(part.parameter_name)
    elif isinstance(part, tff.framework.Block):
      bound.update(name for name, _ in part.locals)
    for child in children(part):
      visit(child)

  visit(block)
  return {
      path: type_spec
      for path, type_spec in found.items()
      if path[0] not in bound
      # A part of what is read, too.
      if not any(path[:size] in found for size in range(1, len(path)))
  }


def at(path: Path, scope: Scope) -> Any:
  """Returns the value at a path."""
  value = scope[path[0]]
  for index in path[1:]:
    value = value[index]
  return value


def _scope_of(found: Mapping[Path, Any]) -> dict[str, Any]:
  """Returns a scope with the values at these paths only."""
  scope: dict[Any, Any] = {}
  for path, value in found.items():
    holder = scope
    for index in path[:-1]:
      holder = holder.setdefault(index, {})
    holder[path[-1]] = value
  return scope


class Evaluator(abc.ABC):
  """Evaluates expressions; subclasses call TensorFlow and intrinsics."""

  def evaluate(self, block: Block, scope: Scope) -> Any:
    """Returns the value of an expression, given those of names."""
    if isinstance(block, tff.framework.Reference):
      return scope[block.name]
    if isinstance(block, tff.framework.Selection):
      return self.evaluate(block.source, scope)[block.as_index()]
    if isinstance(block, tff.framework.Struct):
      return [self.evaluate(field, scope) for field in block]
    if isinstance(block, tff.framework.Block):
      inner = dict(scope)
      for name, value in block.locals:
        inner[name] = self.evaluate(value, inner)
      return self.evaluate(block.result, inner)
    if isinstance(block, tff.framework.Call):
      return self.call(block, scope)
    if isinstance(block, tff.framework.Literal):
      dtype = values.tensor_spec(block.type_signature).dtype
      return tf.constant(block.value, dtype)
    return Closure(block, scope)

  def call(self, block: tff.framework.Call, scope: Scope) -> Any:
    """Returns the value of a call."""
    argument = None
    if block.argument is not None:
      argument = self.evaluate(block.argument, scope)
    return self.apply(self.evaluate(block.function, scope), argument)

  def apply(self, function: Closure, argument: Any) -> Any:
    """Returns the value of a function at an argument, None without one."""
    block = function.block
    if isinstance(block, tff.framework.Lambda):
      scope = function.scope
      if block.parameter_name is not None:
        scope = {**scope, block.parameter_name: argument}
      return self.evaluate(block.result, scope)
    if isinstance(block, tff.framework.Intrinsic):
      return self.call_intrinsic(block, argument)
    return self.call_tensorflow(block, argument)

  @abc.abstractmethod
  def call_tensorflow(
      self, block: tff.framework.CompiledComputation, argument: Any
  ) -> Any:
    """Returns the result of a function of TensorFlow."""

  @abc.abstractmethod
  def call_intrinsic(self, block: tff.framework.Intrinsic, argument: Any) -> Any:
    """Returns the result of an intrinsic."""


class Pieces:
  """The functions of TensorFlow within an expression.

  Attributes:
    takes_seed: Whether one of them draws random numbers.
  """

  def __init__(self, expression: Block):
    """Converts them all.

    Raises:
      UnsupportedComputationError: If one cannot be compiled.
    """
    # The expression keeps the ids alive.
    self._expression = expression
    self._functions = {
        id(part): graph_functions.build_graph_function(
            tff.framework.ConcreteComputation.from_building_block(part),
            tensor_sequences=False,
            may_return_sequences=True,
        )
        for part in walk(expression)
        if isinstance(part, tff.framework.CompiledComputation)
    }
    self.takes_seed = self.draw_in(expression)

  def __getitem__(self, block: Block) -> graph_functions.GraphFunction:
    """Returns the function of a part of the expression."""
    return self._functions[id(block)]

  def draw_in(self, block: Block) -> bool:
    """Returns whether a part of the expression draws random numbers."""
    return any(
        self._functions[id(part)].takes_seed
        for part in walk(block)
        if id(part) in self._functions
    )


def _components(element_type: tff.Type, leaves: Iterable[Any]) -> list[Any]:
  """Returns an element's leaves in the order of `tf.nest`."""
  return tf.nest.flatten(values.build_pack(element_type)(iter(leaves)))


_plain = tf.autograph.experimental.do_not_convert


def _dataset(variant: tf.Tensor, leaf_type: tff.SequenceType) -> Any:
  """Returns a dataset whose elements are tuples, see `_element`."""
  specs = tuple(elements.component_specs(leaf_type))
  return tf.data.experimental.from_variant(variant, specs)


def _element(components: Sequence[Any], element_type: tff.Type) -> Any:
  """Returns the value of an element, given the order of `tf.nest`."""
  places = range(len(components))
  order = _components(element_type, places)
  return pack(
      iter([components[order.index(place)] for place in places]), element_type
  )


@attrs.frozen(eq=False)
class _Mapped:
  """A sequence to whose elements a function is yet to be applied.

  Attributes:
    call: The function of an element's number and the element.
    draws: Whether it draws random numbers.
    source: A sequence, its variant or another `_Mapped`.
    types: The types of the source and of the sequence.
  """

  call: Callable[[tf.Tensor, Any], Any]
  draws: bool
  source: Any
  types: tuple[tff.SequenceType, tff.SequenceType]


class InGraph(Evaluator):
  """Adds an expression without clients to the graph that is being built.

  Leaves are tensors; a sequence is the variant of a dataset, or a `_Mapped`.
  """

  def __init__(self, pieces: Pieces, seed: Optional[tf.Tensor]):
    """Initializes the evaluator.

    Args:
      pieces: The functions of TensorFlow.
      seed: The seed of random numbers, int32 of shape [2]; None without any.
    """
    self._pieces = pieces
    self._seed = seed
    self._num_draws = 0

  def leaves_of(self, value: Any) -> list[tf.Tensor]:
    """Returns the leaves of a value as tensors."""
    return list(map(_to_variant, flatten(value)))

  def _next_seed(self) -> tf.Tensor:
    self._num_draws += 1
    return tf.random.experimental.stateless_fold_in(self._seed, self._num_draws)

  def call_tensorflow(self, block, argument):
    piece = self._pieces[block]
    seed = self._next_seed() if piece.takes_seed else None
    leaves = [] if argument is None else self.leaves_of(argument)
    results = iter(piece(*leaves, seed=seed))
    return pack(results, block.type_signature.result)

  def call_intrinsic(self, block, argument):
    if block.uri not in _INTRINSICS:
      raise computations.UnsupportedComputationError(
          f'`{block.uri}` is called within the work of a place'
      )
    return _INTRINSICS[block.uri](self, block.type_signature, argument)

  def _on_elements(self, function: Closure) -> tuple[Callable[..., Any], bool]:
    """Returns a function of a number and an element, and whether it draws."""
    if not self._pieces.draw_in(function.block):
      alone = InGraph(self._pieces, None)
      return lambda _, argument: alone.apply(function, argument), False
    seed = self._next_seed()

    def call(number, argument):
      folded = tf.random.experimental.stateless_fold_in(seed, number)
      return InGraph(self._pieces, folded).apply(function, argument)

    return call, True

  def map(
      self,
      function: Closure,
      sequence: Any,
      types: tuple[tff.SequenceType, tff.SequenceType],
      before: Sequence[Any] = (),
  ) -> _Mapped:
    """Maps a function over the elements of a sequence.

    Args:
      function: A function of the elements.
      sequence: The sequence.
      types: The types of the sequence and of the result.
      before: Arguments of the function before the element.

    Returns:
      The sequence of results.
    """
    call, draws = self._on_elements(function)
    if before:
      of_all = call
      call = lambda number, element: of_all(number, [*before, element])
    return _Mapped(call, draws, sequence, types)

  def sequence_map(self, signature: tff.FunctionType, argument: Any) -> Any:
    """Returns `tff.sequence_map`."""
    function, sequence = argument
    types = (signature.parameter[1], signature.result)
    return self.map(function, sequence, types)

  def sequence_reduce(self, signature: tff.FunctionType, argument: Any) -> Any:
    """Returns `tff.sequence_reduce`."""
    sequence, zero, function = argument
    call, draws = self._on_elements(function)
    return _reduce(
        sequence,
        signature.parameter[0],
        flatten(zero),
        lambda number, total, element: call(number, [total, element]),
        signature.result,
        draws,
    )

  def sequence_sum(self, signature: tff.FunctionType, argument: Any) -> Any:
    """Returns `tff.sequence_sum`."""
    specs = values.tensor_specs(signature.result)
    return _reduce(
        argument,
        signature.parameter,
        [tf.zeros(spec.shape, spec.dtype) for spec in specs],
        lambda _, *both: list(map(tf.add, *map(flatten, both))),
        signature.result,
        False,
    )

  def apply_at_server(self, _: tff.FunctionType, argument: Any) -> Any:
    """Returns `tff.federated_map` of a value at the server."""
    return self.apply(*argument)

  def call_at_server(self, _: tff.FunctionType, argument: Any) -> Any:
    """Returns `tff.federated_eval` at the server."""
    return self.apply(argument, None)

  def keep(self, _: tff.FunctionType, argument: Any) -> Any:
    """Returns the argument: all is at the server, in the same order."""
    return argument


def _unwrap(
    sequence: Any, leaf_type: tff.SequenceType
) -> tuple[tf.Tensor, tff.SequenceType, Callable[..., Any], bool]:
  """Returns the variant below a sequence, its type, and what is yet to be done.

  The latter is a function of an element's number and the element, and whether
  it draws random numbers.
  """
  if not isinstance(sequence, _Mapped):
    return sequence, leaf_type, lambda _, element: element, False
  variant, source_type, before, draws = _unwrap(
      sequence.source, sequence.types[0]
  )

  def call(number, element):
    return sequence.call(number, before(number, element))

  return variant, source_type, call, draws or sequence.draws


def _to_variant(leaf: Any) -> tf.Tensor:
  """Returns a leaf as a tensor."""
  if not isinstance(leaf, _Mapped):
    return leaf
  taken, returned = leaf.types
  variant, source_type, call, draws = _unwrap(leaf, returned)
  del taken  # That of the last of several functions.

  def run(number, *components):
    element = _element(components, source_type.element)
    results = flatten(call(number, element))
    return tuple(_components(returned.element, results))

  dataset = _dataset(variant, source_type)
  if draws:
    dataset = dataset.enumerate().map(
        _plain(lambda number, row: run(tf.cast(number, tf.int32), *row))
    )
  else:
    dataset = dataset.map(_plain(lambda *row: run(None, *row)))
  return tf.data.experimental.to_variant(dataset)


def _reduce(
    sequence: Any,
    leaf_type: tff.SequenceType,
    zeros: list[tf.Tensor],
    add: Callable[..., Any],
    result_type: tff.Type,
    draws: bool,
) -> Any:
  """Returns the reduction of a sequence.

  Args:
    sequence: The sequence.
    leaf_type: Its type.
    zeros: The leaves of the first total.
    add: Maps an element's number, a total and the element to the next total.
    result_type: The type of a total.
    draws: Whether it draws random numbers.
  """
  variant, source_type, call, also_draws = _unwrap(sequence, leaf_type)
  counts = [tf.zeros([], tf.int32)] if draws or also_draws else []

  def step(state, components):
    counted, total = state[: len(counts)], state[len(counts) :]
    number = counted[0] if counts else None
    element = call(number, _element(components, source_type.element))
    added = add(number, pack(iter(total), result_type), element)
    return (*(count + 1 for count in counted), *flatten(added))

  dataset = _dataset(variant, source_type)
  totals = dataset.reduce((*counts, *zeros), _plain(step))
  return pack(iter(totals[len(counts) :]), result_type)


SEQUENCE_INTRINSICS: Mapping[str, Callable[..., Any]] = {
    'sequence_map': InGraph.sequence_map,
    'sequence_reduce': InGraph.sequence_reduce,
    'sequence_sum': InGraph.sequence_sum,
}
_INTRINSICS: Mapping[str, Callable[..., Any]] = {
    **SEQUENCE_INTRINSICS,
    tff.framework.FEDERATED_APPLY.uri: InGraph.apply_at_server,
    tff.framework.FEDERATED_EVAL_AT_SERVER.uri: InGraph.call_at_server,
    tff.framework.FEDERATED_VALUE_AT_SERVER.uri: InGraph.keep,
    tff.framework.FEDERATED_ZIP_AT_SERVER.uri: InGraph.keep,
}


def is_without_clients(block: Block) -> bool:
  """Returns whether `InGraph` evaluates an expression as a whole."""
  return all(
      part.uri in _INTRINSICS
      for part in walk(block)
      if isinstance(part, tff.framework.Intrinsic)
  )


# Adds a value to the graph being built: of an evaluator, the argument, if
# there is one, and the names that the function reads.
Body = Callable[[InGraph, Optional[Any], Scope], Any]


class Function:
  """A function without clients, compiled to one function of TensorFlow.

  Attributes:
    takes_seed: Whether it draws random numbers.
    free: What it reads from outside, see `find_free`.
  """

  def __init__(
      self,
      block: Block,
      pieces: Pieces,
      *,
      parameter: Optional[tff.Type] = None,
      body: Optional[Body] = None,
      device: Optional[str] = None,
  ):
    """Initializes the function, which is built at its first call.

    Args:
      block: The expression of a function.
      pieces: The functions of TensorFlow within it.
      parameter: The type of the argument. Defaults to that of the expression.
      body: Adds the value to the graph. Defaults to that of the expression.
      device: Where it runs. Defaults to TensorFlow's choice.

    Raises:
      UnsupportedComputationError: If it takes or returns other than tensors and
        sequences.
    """
    self._pieces = pieces
    self._body = body or (
        lambda graph, argument, scope: graph.apply(
            Closure(block, scope), argument
        )
    )
    self._parameter = parameter or block.type_signature.parameter
    self.free = find_free(block)
    self._types = leaf_types(self._parameter)
    for type_spec in self.free.values():
      self._types += leaf_types(type_spec)
    self._device = device
    self._function: Optional[Callable[..., list[tf.Tensor]]] = None
    self._run = running.Runner()
    self.takes_seed = pieces.draw_in(block)

  def __call__(
      self, leaves: Sequence[Any], scope: Scope, seed: Any
  ) -> list[tf.Tensor]:
    """Runs the function.

    Args:
      leaves: The leaves of the argument: tensors, or sequences as given.
      scope: The values of the names that it reads.
      seed: The seed of its random numbers, int32 of shape [2].

    Returns:
      The leaves of the result.

    Raises:
      TypeError: If a sequence does not match its type.
    """
    if self._function is None:
      self._function = graph_functions.build(self._add, self._specs())
    read = [leaf for path in self.free for leaf in flatten(at(path, scope))]
    tensors = map(to_tensor, [*leaves, *read], self._types)
    return self._run(self._function, *tensors, tf.constant(seed))

  def _specs(self) -> list[tf.TensorSpec]:
    specs = [
        tf.TensorSpec([], tf.variant)
        if isinstance(leaf_type, tff.SequenceType)
        else values.tensor_spec(leaf_type)
        for leaf_type in self._types
    ]
    return [*specs, tf.TensorSpec([2], tf.int32)]

  def _add(self, *tensors: tf.Tensor) -> list[tf.Tensor]:
    """Adds the function to the graph being built; returns its leaves."""
    leaves = iter(tensors[:-1])
    argument = None
    if self._parameter is not None:
      argument = pack(leaves, self._parameter)
    scope = _scope_of(
        {path: pack(leaves, t) for path, t in self.free.items()}
    )
    with tf.device(self._device and f'/device:{self._device}'):
      graph = InGraph(self._pieces, tensors[-1])
      return graph.leaves_of(self._body(graph, argument, scope))


def to_tensor(leaf: Any, leaf_type: tff.Type) -> tf.Tensor:
  """Returns the tensor of a leaf; of a sequence, the variant of a dataset."""
  if isinstance(leaf, Given):
    return elements.build_leaf(leaf_type)(leaf.value)
  return leaf


def to_leaf(value: Any, leaf_type: tff.Type) -> Any:
  """Returns the leaf of a value; sequences are read where they are needed.

  Raises:
    TypeError: If a tensor does not match its type.
  """
  if isinstance(leaf_type, tff.SequenceType):
    return Given(value)
  return elements.build_leaf(leaf_type)(value)


def from_tensor(tensor: tf.Tensor, leaf_type: tff.Type) -> Any:
  """Returns a leaf of a function's result: a tensor, or a dataset."""
  if not isinstance(leaf_type, tff.SequenceType):
    return tensor
  return tf.data.experimental.from_variant(
      tensor, elements.element_spec(leaf_type)
  )


def _as_tensorflow(
    block: tff.framework.Lambda,
) -> tff.framework.CompiledComputation:
  """Returns a function without placements as one function of TensorFlow.

  Raises:
    UnsupportedComputationError: If it is none.
  """
  pieces = Pieces(block)
  parameter, result_type = block.parameter_type, block.result.type_signature
  flatten_argument = values.build_flatten(parameter)

  def run(given):
    leaves = flatten_argument(given)
    tensors = [
        tf.data.experimental.to_variant(leaf)
        if isinstance(leaf, tf.data.Dataset)
        else tf.convert_to_tensor(leaf)
        for leaf in leaves
    ]
    seed = None
    if pieces.takes_seed:
      bounds = {'minval': tf.int32.min, 'maxval': tf.int32.max}
      seed = tf.random.uniform([2], dtype=tf.int32, **bounds)
    graph = InGraph(pieces, seed)
    argument = None
    if parameter is not None:
      argument = pack(iter(tensors), parameter)
    results = graph.leaves_of(graph.apply(Closure(block, {}), argument))
    return values.build_pack(result_type)(
        map(from_tensor, results, leaf_types(result_type))
    )

  with computations.errors_as_unsupported('a function of sequences fails'):
    if parameter is None:
      traced = tff.tensorflow.computation(lambda: run(None))
    else:
      traced = tff.tensorflow.computation(run, parameter)
    return traced.to_compiled_building_block()


def _uses_sequences(block: Block) -> bool:
  return any(
      getattr(part, 'uri', None) in SEQUENCE_INTRINSICS for part in walk(block)
  )


def _holds_no_places(type_spec: Optional[tff.Type]) -> bool:
  """Returns whether a type consists of tensors and sequences only."""
  if isinstance(type_spec, tff.StructType):
    fields = tff.structure.iter_elements(type_spec)
    return all(_holds_no_places(field) for _, field in fields)
  return isinstance(
      type_spec, (type(None), tff.TensorType, tff.SequenceType)
  )


def with_tensorflow_loops(
    computation: tff.framework.ConcreteComputation,
) -> tff.framework.ConcreteComputation:
  """Replaces functions of sequences, such as `tff.sequence_reduce`.

  Args:
    computation: A computation.

  Returns:
    A computation that gives the same, in which a function without placements
    that calls them is one function of TensorFlow, as if it were written so.
  """
  proto = tff.framework.serialize_computation(computation).SerializeToString()
  if not any(uri.encode() in proto for uri in SEQUENCE_INTRINSICS):
    return computation

  def replace(block):
    if not (
        isinstance(block, tff.framework.Lambda)
        and _holds_no_places(block.parameter_type)
        and _holds_no_places(block.result.type_signature)
        and _uses_sequences(block)
        and not find_free(block)
    ):
      return block, False
    try:
      return _as_tensorflow(block), True
    except computations.UnsupportedComputationError:
      return block, False

  block, _ = tff.tensorflow.replace_intrinsics_with_bodies(
      computation.to_building_block()
  )
  block, _ = tff.framework.transform_preorder(
      tff.framework.to_call_dominant(block), replace
  )
  # The original type also names Python's containers.
  return tff.framework.ConcreteComputation.with_type(
      tff.framework.ConcreteComputation.from_building_block(block),
      computation.type_signature,
  )
