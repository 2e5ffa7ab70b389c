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


def walk(block: Block) -> Iterator[Block]:
  """Yields an expression and those within it that may be evaluated."""
  yield block
  children = list(block.children())
  if isinstance(block, tff.framework.Call) and isinstance(
      block.argument, tff.framework.Struct
  ):
    if getattr(block.function, 'uri', None) == _AGGREGATE:
      children = [block.function, *block.argument]
      del children[1 + _MERGE]
  for child in children:
    yield from walk(child)


def find_free(block: Block) -> list[tff.framework.Reference]:
  """Returns the references to names from outside, in order, each once.

  Names must be unique, as in the call-dominant form.
  """
  bound, references = set(), {}
  for part in walk(block):
    if isinstance(part, tff.framework.Reference):
      references.setdefault(part.name, part)
    elif isinstance(part, tff.framework.Lambda):
      bound.add(part.parameter_name)
    elif isinstance(part, tff.framework.Block):
      bound.update(name for name, _ in part.locals)
  return [part for name, part in references.items() if name not in bound]


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


def _numbered(variant: tf.Tensor, leaf_type: tff.SequenceType) -> Any:
  """Returns a dataset of numbers and elements, as tuples of leaves."""
  specs = tuple(elements.component_specs(leaf_type))
  places = range(len(specs))
  order = _components(leaf_type.element, places)

  def add_number(number, components):
    by_leaf = tuple(components[order.index(place)] for place in places)
    return tf.cast(number, tf.int32), by_leaf

  dataset = tf.data.experimental.from_variant(variant, specs)
  return dataset.enumerate().map(_plain(add_number))


_plain = tf.autograph.experimental.do_not_convert


class InGraph(Evaluator):
  """Adds an expression without clients to the graph that is being built.

  Leaves are tensors; a sequence is the variant of a dataset.
  """

  def __init__(self, pieces: Pieces, seed: tf.Tensor):
    """Initializes the evaluator.

    Args:
      pieces: The functions of TensorFlow.
      seed: The seed of random numbers, int32 of shape [2].
    """
    self._pieces = pieces
    self._seed = seed
    self._num_draws = 0

  def _next_seed(self) -> tf.Tensor:
    self._num_draws += 1
    return tf.random.experimental.stateless_fold_in(self._seed, self._num_draws)

  def call_tensorflow(self, block, argument):
    piece = self._pieces[block]
    seed = self._next_seed() if piece.takes_seed else None
    leaves = [] if argument is None else flatten(argument)
    results = iter(piece(*leaves, seed=seed))
    return pack(results, block.type_signature.result)

  def call_intrinsic(self, block, argument):
    if block.uri not in _INTRINSICS:
      raise computations.UnsupportedComputationError(
          f'`{block.uri}` is called within the work of a place'
      )
    return _INTRINSICS[block.uri](self, block.type_signature, argument)

  def _build_on_element(self, function: Closure) -> Callable[..., list[Any]]:
    """Builds a function of an element's number, and the function's argument."""
    seed = self._next_seed()

    def run(number, argument):
      of_element = tf.random.experimental.stateless_fold_in(seed, number)
      return flatten(InGraph(self._pieces, of_element).apply(function, argument))

    return run

  def map(
      self,
      function: Closure,
      sequence: tf.Tensor,
      signature: tff.FunctionType,
      *before: Any,
  ) -> tf.Tensor:
    """Maps a function over the elements of a sequence.

    Args:
      function: A function of the elements.
      sequence: The sequence.
      signature: The type of the mapping, from a sequence to a sequence.
      *before: Arguments of the function before the element.

    Returns:
      The sequence of results.
    """
    call = self._build_on_element(function)
    taken, returned = signature.parameter, signature.result

    def run(number, leaves):
      element = pack(iter(leaves), taken.element)
      results = call(number, [*before, element] if before else element)
      return tuple(_components(returned.element, results))

    dataset = _numbered(sequence, taken).map(_plain(run))
    return tf.data.experimental.to_variant(dataset)

  def sequence_map(self, signature: tff.FunctionType, argument: Any) -> Any:
    """Returns `tff.sequence_map`."""
    function, sequence = argument
    taken = signature.parameter[1]
    return self.map(
        function, sequence, tff.FunctionType(taken, signature.result)
    )

  def sequence_reduce(self, signature: tff.FunctionType, argument: Any) -> Any:
    """Returns `tff.sequence_reduce`."""
    sequence, zero, function = argument
    call = self._build_on_element(function)
    taken = signature.parameter[0]

    def add(total, numbered):
      number, leaves = numbered
      element = pack(iter(leaves), taken.element)
      return tuple(call(number, [pack(iter(total), signature.result), element]))

    return self._reduce(sequence, taken, flatten(zero), add, signature.result)

  def sequence_sum(self, signature: tff.FunctionType, argument: Any) -> Any:
    """Returns `tff.sequence_sum`."""
    specs = values.tensor_specs(signature.result)
    zeros = [tf.zeros(spec.shape, spec.dtype) for spec in specs]

    def add(total, numbered):
      return tuple(map(tf.add, total, numbered[1]))

    taken = signature.parameter
    return self._reduce(argument, taken, zeros, add, signature.result)

  def _reduce(self, sequence, taken, zeros, add, result_type):
    leaves = _numbered(sequence, taken).reduce(tuple(zeros), _plain(add))
    return pack(iter(leaves), result_type)

  def apply_at_server(self, _: tff.FunctionType, argument: Any) -> Any:
    """Returns `tff.federated_map` of a value at the server."""
    return self.apply(*argument)

  def call_at_server(self, _: tff.FunctionType, argument: Any) -> Any:
    """Returns `tff.federated_eval` at the server."""
    return self.apply(argument, None)

  def keep(self, _: tff.FunctionType, argument: Any) -> Any:
    """Returns the argument: all is at the server, in the same order."""
    return argument


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
    self._free = find_free(block)
    self._types = leaf_types(self._parameter)
    for reference in self._free:
      self._types += leaf_types(reference.type_signature)
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
    read = [leaf for r in self._free for leaf in flatten(scope[r.name])]
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
    scope = {
        reference.name: pack(leaves, reference.type_signature)
        for reference in self._free
    }
    with tf.device(self._device and f'/device:{self._device}'):
      graph = InGraph(self._pieces, tensors[-1])
      return flatten(self._body(graph, argument, scope))


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


def to_value(leaf: Any, leaf_type: tff.Type) -> Any:
  """Returns a leaf of a result: an array, or a dataset."""
  tensor = to_tensor(leaf, leaf_type)
  if not isinstance(leaf_type, tff.SequenceType):
    return values.to_array(tensor)
  return tf.data.experimental.from_variant(
      tensor, elements.element_spec(leaf_type)
  )
