# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rewrites computations, so that they are rounds or graphs like others.

Functions of sequences, such as `tff.sequence_reduce`, become functions of
TensorFlow, which a round takes as it takes any other work of clients.

A computation may make datasets of what clients are given: with
`tff.simulation.compose_dataset_computation_with_iterative_process`, for
example, each client opens its data by its id in every round. Such datasets are
made before the round instead, once for each value unless that reads files, so
that they are read and kept as those of an argument are.
"""

import collections
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _error_texts
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import values
from tff_adaptive.runtime.datasets import elements
from tff_adaptive.runtime.steps import expressions
from tff_adaptive.runtime.steps import local_functions

# The values of which a function keeps the datasets; those used last are. What a
# dataset holds is a part of what the function does.
_MAX_KEPT = 10_000
_SEED = np.zeros([2], np.int32)


Prepared = tuple[
    tff.framework.ConcreteComputation, Optional[Callable[[Any], Any]]
]


def prepare(computation: tff.framework.ConcreteComputation) -> Prepared:
  """Rewrites a computation so that more of it is a round, or one graph.

  Args:
    computation: A computation.

  Returns:
    A computation that takes the clients' datasets, too, which it would make of
    its argument, and a function that adds them to an argument; the latter is
    None if there are none.

  Raises:
    UnsupportedComputationError: If the computation is malformed.
  """
  return _take_datasets_out(_with_tensorflow_loops(computation))


class _Maker:
  """A function from a client's value to datasets, called once for each value.

  If it reads files itself, and not the datasets, it is called in every round.

  Attributes:
    draws: Whether it draws random numbers, so that calls differ.
    result_type: The type of what it makes.
  """

  def __init__(self, block: expressions.Block):
    """Converts the function.

    Raises:
      UnsupportedComputationError: If it cannot be compiled.
    """
    # Shuffles draw when the datasets are read.
    pieces = local_functions.Pieces(block, seeds_shuffles=False)
    self._function = local_functions.Function(block, pieces)
    # No dataset names such a file, which may have changed.
    self._reads_files = any(map(_reads_file, pieces.nodes()))
    self.draws = self._function.takes_seed
    self.result_type = block.type_signature.result
    self._flatten = values.build_flatten(block.type_signature.parameter)
    self._types = expressions.leaf_types(self.result_type)
    self._pack = values.build_pack(self.result_type)
    self._kept: collections.OrderedDict[Any, Any] = collections.OrderedDict()

  def __call__(self, value: Any) -> Any:
    """Returns what is made of a value.

    Raises:
      TypeError: If the value does not match the type.
      ValueError: If TensorFlow rejects it.
    """
    tensors = list(
        map(elements.to_leaf, self._flatten(value), self._function.types)
    )
    if self._reads_files:
      return self._make(value, tensors)
    key = tuple(map(_key_of, tensors))
    if key not in self._kept:
      self._kept[key] = self._make(value, tensors)
      if len(self._kept) > _MAX_KEPT:
        self._kept.popitem(last=False)
    self._kept.move_to_end(key)
    return self._kept[key]

  def _make(self, value: Any, tensors: Sequence[tf.Tensor]) -> Any:
    try:
      leaves = self._function(tensors, {}, _SEED)
    except tf.errors.InvalidArgumentError as e:
      said = _error_texts.graph_error_line(e)
      raise ValueError(
          f"TensorFlow failed to make a client's dataset of {value!r}: {said}."
      ) from e
    return self._pack(map(elements.from_tensor, leaves, self._types))


def _reads_file(node: Any) -> bool:
  """Returns whether a node reads a file, or the names of files, at once."""
  return node.op in ('MatchingFiles', 'ReadFile')


def _key_of(tensor: tf.Tensor) -> Any:
  """Returns what equals that of another tensor only if the values do."""
  array = np.asarray(tensor.numpy())
  is_text = array.dtype == object
  return array.shape, repr(array.tolist()) if is_text else array.tobytes()


def _find_maker(
    block: expressions.Block, name: str
) -> Optional[tuple[expressions.Path, _Maker]]:
  """Reads an expression that makes datasets of an argument.

  Args:
    block: The expression.
    name: The name of the argument.

  Returns:
    The indices of the part of the argument, and the function; None if it is
    another expression.
  """
  if not _is_map(block):
    return None
  function, source = block.argument
  signature = function.type_signature
  path = expressions.path_of(source)
  if (
      path is None
      or path[0] != name
      or expressions.has_sequences(signature.parameter)
      or not expressions.has_sequences(signature.result)
      or expressions.find_free(function)
  ):
    return None
  try:
    maker = _Maker(function)
  except computations.UnsupportedComputationError:
    return None
  return None if maker.draws else (path[1:], maker)


def _is_map(block: expressions.Block) -> bool:
  """Returns whether an expression is a call of `tff.federated_map`."""
  function = getattr(block, 'function', None)
  return getattr(function, 'uri', None) == tff.framework.FEDERATED_MAP.uri


def _maps_to_datasets(computation: tff.framework.ConcreteComputation) -> bool:
  """Returns whether clients make datasets somewhere in a computation."""
  # An expression would tell too, but takes as long as a tenth of a first round.
  proto = tff.framework.serialize_computation(computation)
  return any(
      part.intrinsic.uri == tff.framework.FEDERATED_MAP.uri
      and computations.has_sequence(part.type.function.result)
      for part in computations.parts(proto, 'intrinsic')
  )


def _take_datasets_out(
    computation: tff.framework.ConcreteComputation,
) -> Prepared:
  """Takes the making of clients' datasets out of a computation."""
  unchanged = (computation, None)
  if not computations.takes_clients(computation.type_signature):
    return unchanged
  if not _maps_to_datasets(computation):
    return unchanged
  with computations.errors_as_unsupported('the computation is malformed'):
    block = tff.framework.to_call_dominant(computation.to_building_block())
  name, parameter = block.parameter_name, block.parameter_type
  found = {
      local: made
      for local, value in block.result.locals
      if (made := _find_maker(value, name)) is not None
  }
  if not found:
    return unchanged
  return _take_out(block, found, computation.type_signature.result), _build_add(
      parameter, list(found.values())
  )


def _take_out(
    block: expressions.Block,
    found: Mapping[str, tuple[expressions.Path, _Maker]],
    result_type: tff.Type,
) -> tff.framework.ConcreteComputation:
  """Returns a function of the argument and of the values of some locals."""
  name = block.parameter_name
  types = [
      tff.FederatedType(maker.result_type, tff.CLIENTS)
      for _, maker in found.values()
  ]
  whole = tff.StructType([block.parameter_type, *types])
  fields = [
      tff.framework.Selection(tff.framework.Reference(name, whole), index=index)
      for index in range(len(whole))
  ]
  made = dict(zip(found, fields[1:]))

  def replace(part):
    is_argument = (
        isinstance(part, tff.framework.Reference) and part.name == name
    )
    return (fields[0], True) if is_argument else (part, False)

  rest = [
      (
          local,
          made.get(local)
          or tff.framework.transform_preorder(value, replace)[0],
      )
      for local, value in block.result.locals
  ]
  result, _ = tff.framework.transform_preorder(block.result.result, replace)
  changed = tff.framework.Lambda(name, whole, tff.framework.Block(rest, result))
  # The type of the result also names Python's containers.
  return tff.framework.ConcreteComputation.with_type(
      tff.framework.ConcreteComputation.from_building_block(changed),
      tff.FunctionType(whole, result_type),
  )


def _build_add(
    parameter: tff.Type, makers: Sequence[tuple[expressions.Path, _Maker]]
) -> Callable[[Any], Any]:
  """Returns a function that adds what is made of an argument to it."""
  flatten = values.build_flatten(parameter, into_members=False)
  paths = list(_paths(parameter))

  def add(argument):
    given = flatten(argument)
    clients = [given[paths.index(path)] for path, _ in makers]
    computations.check_clients(clients)
    made = [list(map(make, ids)) for ids, (_, make) in zip(clients, makers)]
    return (argument, *made)

  return add


def _paths(type_spec: tff.Type) -> Iterator[expressions.Path]:
  """Yields the indices of the values that a type nests in structs."""
  if not isinstance(type_spec, tff.StructType):
    yield ()
    return
  for index, (_, field) in enumerate(tff.structure.iter_elements(type_spec)):
    for path in _paths(field):
      yield (index, *path)


def _as_tensorflow(
    block: tff.framework.Lambda,
) -> tff.framework.CompiledComputation:
  """Returns a function without placements as one function of TensorFlow.

  Raises:
    UnsupportedComputationError: If it is none.
  """
  pieces = local_functions.Pieces(block)
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
    graph = local_functions.InGraph(pieces, seed)
    argument = None
    if parameter is not None:
      argument = expressions.pack(iter(tensors), parameter)
    results = graph.leaves_of(
        graph.apply(expressions.Closure(block, {}), argument)
    )
    return values.build_pack(result_type)(
        map(
            elements.from_tensor,
            results,
            expressions.leaf_types(result_type),
        )
    )

  with computations.errors_as_unsupported('a function of sequences fails'):
    if parameter is None:
      traced = tff.tensorflow.computation(lambda: run(None))
    else:
      traced = tff.tensorflow.computation(run, parameter)
    return traced.to_compiled_building_block()


def _uses_sequences(block: expressions.Block) -> bool:
  return any(
      getattr(part, 'uri', None) in local_functions.SEQUENCE_INTRINSICS
      for part in expressions.walk(block)
  )


def _with_tensorflow_loops(
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
  if not any(
      uri.encode() in proto for uri in local_functions.SEQUENCE_INTRINSICS
  ):
    return computation

  def replace(block):
    if not (
        isinstance(block, tff.framework.Lambda)
        and expressions.has_no_places(block.parameter_type)
        and expressions.has_no_places(block.result.type_signature)
        and _uses_sequences(block)
        and not expressions.find_free(block)
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
