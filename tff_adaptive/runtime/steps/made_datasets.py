# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Datasets that a computation makes of what clients are given, as of their ids.

With `tff.simulation.compose_dataset_computation_with_iterative_process`, for
example, each client opens its data by its id in every round. Such datasets are
made before the round instead, once for each value, so that they are read and
kept as those of an argument are.
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
from tff_adaptive.runtime.steps import expressions
from tff_adaptive.runtime.steps import local_functions

# The values of which a function keeps the datasets; those used last are. What a
# dataset holds is a part of what the function does.
_MAX_KEPT = 10_000
_SEED = np.zeros([2], np.int32)


class _Maker:
  """A function from a client's value to datasets, called once for each value.

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
        map(expressions.to_leaf, self._flatten(value), self._function.types)
    )
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
    return self._pack(map(expressions.from_tensor, leaves, self._types))


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


def _maps_to_datasets(block: expressions.Block) -> bool:
  """Returns whether clients make datasets somewhere in an expression."""
  return any(
      _is_map(part) and expressions.has_sequences(part.type_signature)
      for part in expressions.walk(block)
  )


def extract(
    computation: tff.framework.ConcreteComputation,
) -> tuple[tff.framework.ConcreteComputation, Callable[[Any], Any]]:
  """Takes the making of clients' datasets out of a computation.

  Args:
    computation: A computation.

  Returns:
    A computation that takes these datasets, too, and a function that adds them
    to an argument. If there are none, the same computation, and a function that
    returns the argument.
  """
  unchanged = (computation, lambda argument: argument)
  if not computations.takes_clients(computation.type_signature):
    return unchanged
  block = computation.to_building_block()
  if not _maps_to_datasets(block):
    return unchanged
  with computations.errors_as_unsupported('the computation is malformed'):
    block = tff.framework.to_call_dominant(block)
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
