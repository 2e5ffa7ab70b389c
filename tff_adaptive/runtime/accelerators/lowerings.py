# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of TensorFlow's ops as functions of JAX.

A lowering takes a `Node` and its inputs, and returns the op's output, or a
tuple of its outputs. Inputs that are known while a program is traced, such as
shapes, are NumPy arrays; all others are arrays of JAX. Where all inputs are
known and small, so is the output: XLA needs shapes that are.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from tff_adaptive.runtime import computations

# The most elements of an array that is computed while a program is traced.
_MAX_KNOWN_SIZE = 4096


NoLoweringError = computations.NoLoweringError


class Node:
  """A node of a graph: its name, its op, and its attributes by type."""

  def __init__(self, node_def: Any):
    self.name = node_def.name
    self.op = node_def.op
    self._attributes = node_def.attr

  def has(self, name: str) -> bool:
    """Returns whether the node has an attribute."""
    return name in self._attributes

  def integer(self, name: str) -> int:
    """Returns the value of an attribute; for others likewise."""
    return self._attributes[name].i

  def boolean(self, name: str) -> bool:
    return self._attributes[name].b

  def number(self, name: str) -> float:
    return self._attributes[name].f

  def text(self, name: str) -> str:
    return self._attributes[name].s.decode()

  def integers(self, name: str) -> list[int]:
    return list(self._attributes[name].list.i)

  def function(self, name: str) -> str:
    """Returns the name of a function."""
    return self._attributes[name].func.name

  def functions(self, name: str) -> list[str]:
    return [function.name for function in self._attributes[name].list.func]

  def tensor(self, name: str) -> np.ndarray:
    proto = self._attributes[name].tensor
    shape = tf.TensorShape(proto.tensor_shape).as_list()
    if 0 in shape:  # TensorFlow reads no empty strings.
      return np.empty(shape, tf.as_dtype(proto.dtype).as_numpy_dtype)
    return tf.make_ndarray(proto)

  def dtype(self, name: str) -> Any:
    """Returns the NumPy dtype that an attribute names."""
    return tf.as_dtype(self._attributes[name].type).as_numpy_dtype

  def is_variant(self, name: str) -> bool:
    """Returns whether an attribute names the dtype of a list or a dataset."""
    return self._attributes[name].type == tf.variant.as_datatype_enum

  def is_string(self, name: str) -> bool:
    """Returns whether an attribute names the dtype of strings."""
    return self._attributes[name].type == tf.string.as_datatype_enum

  def num_dtypes(self, name: str) -> int:
    """Returns the length of an attribute that is a list of dtypes."""
    return len(self._attributes[name].list.type)

  def shape(self, name: str) -> tf.TensorShape:
    return tf.TensorShape(self._attributes[name].shape)


Lowering = Callable[..., Any]
_LOWERINGS: dict[str, Lowering] = {}


def lowers(*ops: str) -> Callable[[Lowering], Lowering]:
  """Returns a decorator that registers the lowering of ops."""

  def register(lowering):
    _LOWERINGS.update(dict.fromkeys(ops, lowering))
    return lowering

  return register


_Entry = TypeVar('_Entry')


def register_all(
    table: Mapping[str, _Entry], adapt: Callable[[_Entry], Lowering]
) -> None:
  """Registers the lowerings of ops that are alike but for an entry each."""
  for op, entry in table.items():
    _LOWERINGS[op] = adapt(entry)


def find(op: str) -> Lowering:
  """Returns the lowering of an op.

  Raises:
    NoLoweringError: If there is none.
  """
  if op not in _LOWERINGS:
    raise NoLoweringError(f'XLA has no form of the op {op} here')
  return _LOWERINGS[op]


def missing(ops: Collection[str]) -> list[str]:
  """Returns the ops without a lowering, in order."""
  return sorted(op for op in set(ops) if op not in _LOWERINGS)


def is_known(value: Any) -> bool:
  """Returns whether a value is known while a program is traced."""
  return isinstance(value, (np.ndarray, np.generic))


def numpy_for(*values: Any) -> Any:
  """Returns NumPy if all values are known and small, else JAX's NumPy."""
  if all(is_known(v) and v.size <= _MAX_KNOWN_SIZE for v in values):
    return np
  return jnp


def as_known(value: Any, what: str) -> np.ndarray:
  """Returns a value that has to be known while a program is traced.

  Raises:
    NoLoweringError: If it is not.
  """
  if not is_known(value):
    raise NoLoweringError(f'{what} is not known before the round runs')
  return np.asarray(value)


def as_shape(value: Any, what: str = 'a shape') -> tuple[int, ...]:
  """Returns a known vector as a shape; errors as those of `as_known`."""
  return tuple(as_known(value, what).reshape([-1]).tolist())


def as_axes(value: Any, rank: int) -> tuple[int, ...]:
  """Returns known axes, counted from the first one."""
  return tuple(axis % rank for axis in as_shape(value, 'an axis') if rank)


def full(shape: Sequence[int], value: Any) -> Any:
  """Returns an array of one value, known if it is small."""
  if is_known(value) and np.prod(shape) <= _MAX_KNOWN_SIZE:
    return np.full(shape, value)
  return jnp.full(shape, value)
