# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists of tensors in JAX: an array with room for them, and how many there are.

Loops of recurrent layers write and read such lists, as do their gradients.
"""

from typing import Any, NamedTuple, Optional

import attrs
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from tff_adaptive.runtime.accelerators import lowerings


class _Known(NamedTuple):
  """An array that is known, in a form that JAX compares."""

  content: tuple[Any, ...]
  dtype: str
  shape: tuple[int, ...]

  def array(self) -> np.ndarray:
    """Returns the array."""
    return np.array(self.content, self.dtype).reshape(self.shape)


_VARIOUS = _Known((), '', ())


def _known_of(item: Any) -> _Known:
  """Returns what is known of an item."""
  if not lowerings.is_known(item):
    return _VARIOUS
  array = np.asarray(item)
  return _Known(tuple(array.ravel().tolist()), array.dtype.name, array.shape)


@attrs.frozen(eq=False)
class TensorList:
  """A list of tensors of one shape.

  Attributes:
    items: The tensors, with as many rows as there is room; None if their shape
      is not known before the first one is written.
    length: The number of tensors.
    room: The most tensors; None if a loop that writes the list decides it.
    dtype: Their dtype.
    known: What all tensors are that were pushed, if that is known, as `_Known`;
      `_VARIOUS` if they differ; None before the first one. Gradients of loops
      push sizes and read them as shapes.
  """

  items: Any
  length: Any
  room: Optional[int]
  dtype: Any
  known: Optional['_Known'] = None

  def with_items_of(self, shape: tuple[int, ...]) -> 'TensorList':
    """Returns the list with room for tensors of a shape."""
    if self.items is not None:
      return self
    if self.room is None:
      raise lowerings.NoLoweringError('a list has no known length')
    items = jnp.zeros([self.room, *shape], self.dtype)
    return attrs.evolve(self, items=items)

  def like(self, other: 'TensorList') -> 'TensorList':
    """Returns the list with room for tensors as another list has it."""
    if other.items is None:
      return self
    ready = self.with_items_of(other.items.shape[1:])
    return attrs.evolve(ready, known=other.known)

  def cleared(self) -> 'TensorList':
    """Returns a list of as many tensors of zeros."""
    items = None if self.items is None else jnp.zeros_like(self.items)
    return self._with_other(items)

  def plus(self, other: 'TensorList') -> 'TensorList':
    """Returns the list of the sums of the tensors of two lists."""
    if self.items is None:
      return other
    if other.items is None:
      return self
    return self._with_other(self.items + other.items)

  def set(self, place: Any, item: Any) -> 'TensorList':
    """Returns the list with another tensor at a place."""
    ready = self.with_items_of(np.shape(item))
    items = lax.dynamic_update_index_in_dim(
        ready.items, jnp.asarray(item), _as_index(place), 0
    )
    return ready._with_other(items)

  def _with_other(self, items: Any) -> 'TensorList':
    """Returns the list with other tensors, of which nothing is known."""
    return attrs.evolve(self, items=items, known=self.known and _VARIOUS)

  def push(self, item: Any, source: Any) -> 'TensorList':
    """Returns the list with another tensor at its end.

    Args:
      item: The tensor.
      source: What is known of it, in place of it.
    """
    if self.known is None and lowerings.is_known(self.length) and self.length:
      raise lowerings.NoLoweringError('a list of a tensor grows')
    known = _known_of(source)
    if self.known not in (None, known):
      known = _VARIOUS
    return attrs.evolve(
        self.set(self.length, item),
        length=self.length + np.int32(1),
        known=known,
    )

  def pop(self, shape: Any) -> tuple['TensorList', Any]:
    """Returns the list without its last tensor, and that tensor."""
    length = self.length - np.int32(1)
    shorter = attrs.evolve(self, length=length)
    if self.known is not None and self.known != _VARIOUS:
      return shorter, self.known.array()
    return shorter, self.get(length, shape)

  def get(self, place: Any, shape: Any) -> Any:
    """Returns the tensor at a place; zeros of a shape where none is written."""
    ready = self
    if self.items is None:
      ready = self.with_items_of(lowerings.as_shape(shape))
    return lax.dynamic_index_in_dim(ready.items, _as_index(place), 0, False)


def _as_index(place: Any) -> Any:
  return jnp.asarray(place).astype(jnp.int32).reshape([])


jax.tree_util.register_pytree_node(
    TensorList,
    lambda one: ((one.items, one.length), (one.room, one.dtype, one.known)),
    lambda known, leaves: TensorList(*leaves, *known),
)


def _known_shape(shape: Any) -> Optional[tuple[int, ...]]:
  """Returns a shape if it is known and complete."""
  if not lowerings.is_known(shape):
    return None
  sizes = tuple(np.reshape(shape, [-1]).tolist())
  # A scalar -1 is a shape of which nothing is known.
  if np.ndim(shape) == 0 or any(size < 0 for size in sizes):
    return None
  return sizes


def _make(
    node: lowerings.Node, shape: Any, room: Any, is_full: bool
) -> TensorList:
  size = int(lowerings.as_known(room, 'the length of a list'))
  length = np.asarray(size if is_full else 0, np.int32)
  if node.is_variant('element_dtype'):
    raise lowerings.NoLoweringError('a list holds lists')
  made = TensorList(
      None,
      length,
      size if size >= 0 else None,
      np.dtype(node.dtype('element_dtype')),
  )
  known = _known_shape(shape)
  if known is None or made.room is None:
    return made
  return made.with_items_of(known)


@lowerings.lowers('TensorListReserve')
def _reserve(node, shape, length):
  return _make(node, shape, length, True)


@lowerings.lowers('EmptyTensorList')
def _empty(node, shape, room):
  return _make(node, shape, room, False)


@lowerings.lowers('TensorListFromTensor')
def _from_tensor(node, tensor, shape):
  del node, shape  # Unused.
  items = jnp.asarray(tensor)
  size = items.shape[0]
  return TensorList(items, np.asarray(size, np.int32), size, items.dtype)


@lowerings.lowers('TensorListStack')
def _stack(node, handle, shape):
  del node  # Unused.
  ready = handle
  if handle.items is None:
    ready = handle.with_items_of(lowerings.as_shape(shape))
  if lowerings.is_known(handle.length):  # There may be room for more.
    return ready.items[: int(handle.length)]
  if handle.known is not None:
    raise lowerings.NoLoweringError('a list has no known length')
  return ready.items


@lowerings.lowers('TensorListSetItem')
def _set_item(node, handle, place, item):
  if node.boolean('resize_if_index_out_of_bounds'):
    if not lowerings.is_known(place) or place >= (handle.room or 0):
      raise lowerings.NoLoweringError('a list grows as it is written')
  return handle.set(place, item)


@lowerings.lowers('TensorListGetItem')
def _get_item(node, handle, place, shape):
  del node  # Unused.
  return handle.get(place, shape)


@lowerings.lowers('TensorListPushBack')
def _push(node, handle, item):
  del node  # Unused.
  return handle.push(item, item)


@lowerings.lowers('TensorListPopBack')
def _pop(node, handle, shape):
  del node  # Unused.
  return handle.pop(shape)


@lowerings.lowers('TensorListLength')
def _length(node, handle):
  del node  # Unused.
  return handle.length


@lowerings.lowers('TensorListElementShape')
def _element_shape(node, handle):
  if handle.items is None:
    return np.asarray(-1, node.dtype('shape_type'))
  return np.asarray(handle.items.shape[1:], node.dtype('shape_type'))
