# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads TFF's expressions, and evaluates them.

A computation of TFF is an expression of few kinds: a function of TensorFlow, an
intrinsic such as `federated_map`, a literal, and calls, structs, selections and
blocks of these. While it is evaluated, a struct is a list, a function is a
`Closure`, and everything else is a leaf, for example a tensor.
"""

import abc
from collections.abc import Iterator, Mapping
from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.runtime import computations
from tff_adaptive.runtime import values

Block = Any  # A `tff.framework.ComputationBuildingBlock`; TFF has no types.
Scope = Mapping[str, Any]

_AGGREGATE = tff.framework.FEDERATED_AGGREGATE.uri
# Within an aggregation's argument: sums are never cut into parts to be merged.
_MERGE = 3


@attrs.frozen(eq=False)
class Closure:
  """A function, and the values of the names that it reads."""

  block: Block
  scope: Scope


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
        'it takes or returns other than tensors, datasets and structs of them '
        f'({type_spec}); call the function within the computation instead'
    ) from e


def has_sequences(type_spec: tff.Type) -> bool:
  """Returns whether a type has sequences."""
  return any(
      isinstance(leaf, tff.SequenceType) for leaf in leaf_types(type_spec)
  )


def has_no_places(type_spec: Optional[tff.Type]) -> bool:
  """Returns whether a type consists of tensors and sequences only."""
  return all(
      isinstance(place, (tff.TensorType, tff.SequenceType))
      for place in values.places(type_spec)
  )


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


def scope_of(found: Mapping[Path, Any]) -> dict[str, Any]:
  """Returns a scope with the values at these paths only."""
  scope: dict[Any, Any] = {}
  for path, value in found.items():
    holder = scope
    for index in path[:-1]:
      holder = holder.setdefault(index, {})
    holder[path[-1]] = value
  return scope


def is_structural(block: Block) -> bool:
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
      for part in walk(block)
  )


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
  def call_intrinsic(
      self, block: tff.framework.Intrinsic, argument: Any
  ) -> Any:
    """Returns the result of an intrinsic."""
