# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Functions without clients, as functions of TensorFlow.

These are what a place runs by itself: all of a computation without clients, or
what `tff.federated_map` applies. Functions of sequences, such as
`tff.sequence_reduce`, become the loops that users of TensorFlow would write.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _graph_defs
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime import running
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import dataset_cache
from tff_adaptive.runtime.datasets import elements
from tff_adaptive.runtime.graphs import graph_functions
from tff_adaptive.runtime.steps import expressions
from tff_adaptive.runtime.steps import mapped_sequences


class Pieces:
  """The functions of TensorFlow within an expression.

  Attributes:
    takes_seed: Whether one of them draws random numbers.
  """

  def __init__(
      self, expression: expressions.Block, seeds_shuffles: bool = True
  ):
    """Converts them all.

    Args:
      expression: The expression.
      seeds_shuffles: Whether shuffles without a seed take that of a function.
        Defaults to True.

    Raises:
      UnsupportedComputationError: If one cannot be compiled.
    """
    # The expression keeps the ids alive.
    self._expression = expression
    self._functions = {
        id(part): _build(part, seeds_shuffles)
        for part in expressions.walk(expression)
        if isinstance(part, tff.framework.CompiledComputation)
    }
    self.takes_seed = self.draw_in(expression)

  def for_leaves(
      self, block: expressions.Block, leaves: Sequence[Any]
  ) -> tuple[graph_functions.GraphFunction, list[Any]]:
    """Returns the function of a part of the expression, and what it takes.

    Args:
      block: The part.
      leaves: The leaves of its argument, in the graph that is being built.

    Raises:
      NeedsDatasetsError: If there are `PackedClients`, and it needs datasets.
    """
    function = self._functions[id(block)]
    found = list(map(mapped_sequences.as_rows, leaves))
    in_form = function.for_leaves(found)
    if not in_form.reads_tensors:
      found = list(map(mapped_sequences.as_variant, leaves))
    return in_form, found

  def nodes(self) -> Iterator[Any]:
    """Yields the nodes of all functions that run by themselves.

    Those of functions that datasets call for their elements are left out.
    """
    for function in self._functions.values():
      graph_def = function.serialized.graph_def
      called = _graph_defs.all_called(
          graph_def.node,
          _graph_defs.functions_of(graph_def),
          follows=lambda node: 'Dataset' not in node.op,
      )
      yield from graph_def.node
      for one in called:
        yield from one.node_def

  def rereads(self, block: expressions.Block) -> bool:
    """Returns whether a part may read a sequence more than once."""
    readers = [part for part in expressions.walk(block) if _reads(part)]
    return len(readers) > 1 or any(
        self._functions[id(part)].reread
        for part in readers
        if id(part) in self._functions
    )

  def draw_in(self, block: expressions.Block) -> bool:
    """Returns whether a part of the expression draws random numbers."""
    return any(
        self._functions[id(part)].takes_seed
        for part in expressions.walk(block)
        if id(part) in self._functions
    )


def _build(
    block: tff.framework.CompiledComputation, seeds_shuffles: bool
) -> graph_functions.GraphFunction:
  signature = block.type_signature
  return graph_functions.build_graph_function(
      tff.framework.ConcreteComputation.from_building_block(block),
      tensor_sequences=expressions.has_sequences(signature.parameter)
      and not expressions.has_sequences(signature.result),
      may_return_sequences=True,
      seeds_shuffles=seeds_shuffles,
  )


def _reads(block: expressions.Block) -> bool:
  """Returns whether an expression is a function of sequences."""
  if isinstance(block, tff.framework.CompiledComputation):
    return expressions.has_sequences(block.type_signature.parameter)
  return getattr(block, 'uri', None) in SEQUENCE_INTRINSICS


class InGraph(expressions.Evaluator):
  """Adds an expression without clients to the graph that is being built.

  Leaves are tensors; for sequences, see `mapped_sequences`.
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
    """Returns the leaves of a value, without `Mapped`."""
    return list(map(mapped_sequences.apply, expressions.flatten(value)))

  def _next_seed(self) -> tf.Tensor:
    self._num_draws += 1
    return tf.random.experimental.stateless_fold_in(self._seed, self._num_draws)

  def call_tensorflow(self, block, argument):
    leaves = [] if argument is None else self.leaves_of(argument)
    piece, leaves = self._pieces.for_leaves(block, leaves)
    seed = self._next_seed() if piece.takes_seed else None
    results = iter(piece(*leaves, seed=seed))
    return expressions.pack(results, block.type_signature.result)

  def call_intrinsic(self, block, argument):
    if block.uri not in _INTRINSICS:
      raise computations.UnsupportedComputationError(
          f'`{block.uri}` is called within the work of a place'
      )
    return _INTRINSICS[block.uri](self, block.type_signature, argument)

  def _on_elements(
      self, function: expressions.Closure
  ) -> tuple[Callable[..., Any], bool]:
    """Returns a function of a number and an element, and whether it draws."""
    if not self._pieces.draw_in(function.block):
      alone = InGraph(self._pieces, None)
      return lambda _, argument: alone.apply(function, argument), False
    seed = self._next_seed()

    def call(number, argument):
      folded = tf.random.experimental.stateless_fold_in(seed, number)
      return InGraph(self._pieces, folded).apply(function, argument)

    return call, True

  def select(
      self,
      function: expressions.Closure,
      keys: tf.Tensor,
      value: Any,
      sequence_type: tff.SequenceType,
  ) -> Any:
    """Returns the sequence of what a function selects, for each key.

    Args:
      function: A function of a value and a key.
      keys: The keys.
      value: The value.
      sequence_type: The type of the sequence.
    """
    call, draws = self._on_elements(function)

    def of_key(number, key):
      return call(number, [value, key])

    specs = elements.component_specs(sequence_type)
    if not elements.are_alike(specs):
      dataset = tf.data.Dataset.from_tensor_slices((keys,))
      return mapped_sequences.Mapped(
          of_key,
          draws,
          tf.data.experimental.to_variant(dataset),
          (tff.SequenceType(np.int32), sequence_type),
      )

    # A dataset with a function in it is slow to start.
    def row(number):
      selected = expressions.flatten(of_key(number, tf.gather(keys, number)))
      return tuple(
          mapped_sequences.components_of(sequence_type.element, selected)
      )

    rows = tf.map_fn(
        row, tf.range(tf.size(keys)), fn_output_signature=tuple(specs)
    )
    return mapped_sequences.Selected(rows)

  def select_rows(self, *arguments: Any) -> list[tf.Tensor]:
    """Returns the rows of `select`; elements must be of one shape."""
    return list(self.select(*arguments).rows)

  def sequence_map(self, signature, argument):
    """Returns `tff.sequence_map`."""
    function, sequence = argument
    call, draws = self._on_elements(function)
    types = (signature.parameter[1], signature.result)
    return mapped_sequences.Mapped(call, draws, sequence, types)

  def sequence_reduce(self, signature, argument):
    """Returns `tff.sequence_reduce`."""
    sequence, zero, function = argument
    call, draws = self._on_elements(function)
    return mapped_sequences.reduce(
        sequence,
        signature.parameter[0],
        expressions.flatten(zero),
        lambda number, total, element: call(number, [total, element]),
        signature.result,
        draws,
    )

  def sequence_sum(self, signature, argument):
    """Returns `tff.sequence_sum`."""
    specs = values.tensor_specs(signature.result)
    return mapped_sequences.reduce(
        argument,
        signature.parameter,
        [tf.zeros(spec.shape, spec.dtype) for spec in specs],
        lambda _, *both: list(map(tf.add, *map(expressions.flatten, both))),
        signature.result,
        False,
    )

  def apply_at_server(self, _, argument):
    """Returns `tff.federated_map` of a value at the server."""
    return self.apply(*argument)

  def call_at_server(self, _, argument):
    """Returns `tff.federated_eval` at the server."""
    return self.apply(argument, None)

  def keep(self, _, argument):
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


def is_without_clients(block: expressions.Block) -> bool:
  """Returns whether `InGraph` evaluates an expression as a whole."""
  return all(
      part.uri in _INTRINSICS
      for part in expressions.walk(block)
      if isinstance(part, tff.framework.Intrinsic)
  )


# Adds a value to the graph being built: of an evaluator, the argument, if
# there is one, and the names that the function reads.
Body = Callable[[InGraph, Optional[Any], expressions.Scope], Any]


class Function:
  """A function without clients, compiled to one function of TensorFlow.

  Attributes:
    takes_seed: Whether it draws random numbers.
    free: What it reads from outside, see `find_free`.
    types: The types of the leaves of the argument, and of what it reads.
    returns_sequences: Whether it returns sequences.
  """

  def __init__(
      self,
      block: expressions.Block,
      pieces: Pieces,
      *,
      parameter: Optional[tff.Type] = None,
      body: Optional[Body] = None,
      cache: Optional[dataset_cache.DatasetCache] = None,
  ):
    """Initializes the function, which is built at its first call.

    Args:
      block: The expression of a function.
      pieces: The functions of TensorFlow within it.
      parameter: The type of the argument. Defaults to that of the expression.
      body: Adds the value to the graph. Defaults to that of the expression.
      cache: The cache of datasets. None (the default) reads none.

    Raises:
      UnsupportedComputationError: If it takes or returns other than tensors and
        sequences.
    """
    self._pieces = pieces
    self._body = body or (
        lambda graph, argument, scope: graph.apply(
            expressions.Closure(block, scope), argument
        )
    )
    self._parameter = parameter or block.type_signature.parameter
    self.free = expressions.find_free(block)
    self.types = expressions.leaf_types(self._parameter)
    for type_spec in self.free.values():
      self.types += expressions.leaf_types(type_spec)
    self.takes_seed = pieces.draw_in(block)
    self.returns_sequences = expressions.has_sequences(
        block.type_signature.result
    )
    are_read = expressions.has_sequences(tff.StructType(self.types))
    self.are_reread = are_read and cache is not None and pieces.rereads(block)
    self._call = running.GraphCall(
        self.add,
        self.types,
        [tf.TensorSpec([2], tf.int32)],
        cache=cache,
        are_reread=self.are_reread,
    )

  @property
  def path(self) -> str:
    """How its latest call ran, see `CompiledContext.path_of`."""
    return self._call.path

  def __call__(
      self,
      leaves: Sequence[Any],
      scope: expressions.Scope,
      seed: Any,
      key: Optional[round_keys.RoundKey] = None,
  ) -> list[tf.Tensor]:
    """Runs the function.

    Args:
      leaves: The leaves of the argument: tensors, or sequences as given.
      scope: The values of the names that it reads.
      seed: The seed of its random numbers, int32 of shape [2].
      key: The key of what datasets draw. Without one, sequences are not read.

    Returns:
      The leaves of the result.

    Raises:
      TypeError: If a sequence does not match its type.
    """
    # A dataset that is returned stays as it was given.
    key = None if self.returns_sequences else key
    return self._call(
        self.leaves(leaves, scope), lambda: [tf.constant(seed)], key=key
    )

  def leaves(
      self, leaves: Sequence[Any], scope: expressions.Scope
  ) -> list[Any]:
    """Returns the leaves of `types`, given what `__call__` is."""
    read = [
        leaf
        for path in self.free
        for leaf in expressions.flatten(expressions.at(path, scope))
    ]
    return [*leaves, *read]

  def add(self, *tensors: Any) -> list[tf.Tensor]:
    """Adds the function to the graph being built; returns its leaves.

    Args:
      *tensors: Those of `types`, or `PackedClients` of one client, and the
        seed.

    Raises:
      NeedsDatasetsError: If it needs datasets in place of `PackedClients`.
    """
    leaves = iter(tensors[:-1])
    argument = None
    if self._parameter is not None:
      argument = expressions.pack(leaves, self._parameter)
    scope = expressions.scope_of(
        {path: expressions.pack(leaves, t) for path, t in self.free.items()}
    )
    graph = InGraph(self._pieces, tensors[-1])
    results = graph.leaves_of(self._body(graph, argument, scope))
    return list(map(mapped_sequences.as_variant, results))
