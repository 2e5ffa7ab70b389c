# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists of tensors in JAX: an array with room for them, and how many there are.

Loops of recurrent layers write and read such lists, as do their gradients.
"""

from typing import Any, Optional

import attrs
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from tff_adaptive.runtime.accelerators import lowerings


@attrs.frozen(eq=False)
class TensorList:
  """A list of tensors of one shape.

  Attributes:
    items: The tensors, with as many rows as there is room; None if their shape
      is not known before the first one is written.
    length: The number of tensors.
    room: The most tensors.
    dtype: Their dtype.
  """

  items: Any
  length: Any
  room: int
  dtype: Any

  def with_items_of(self, shape: tuple[int, ...]) -> 'TensorList':
    """Returns the list with room for tensors of a shape."""
    if self.items is not None:
      return self
    items = jnp.zeros([self.room, *shape], self.dtype)
    return attrs.evolve(self, items=items)

  def like(self, other: 'TensorList') -> 'TensorList':
    """Returns the list with room for tensors as another list has it."""
    if other.items is None:
      return self
    return self.with_items_of(other.items.shape[1:])

  def cleared(self) -> 'TensorList':
    """Returns a list of as many tensors of zeros."""
    items = None if self.items is None else jnp.zeros_like(self.items)
    return attrs.evolve(self, items=items)

  def set(self, place: Any, item: Any) -> 'TensorList':
    """Returns the list with another tensor at a place."""
    ready = self.with_items_of(np.shape(item))
    items = lax.dynamic_update_index_in_dim(
        ready.items, jnp.asarray(item), _as_index(place), 0
    )
    return attrs.evolve(ready, items=items)

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
    lambda one: ((one.items, one.length), (one.room, one.dtype)),
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
  if size < 0:
    raise lowerings.NoLoweringError('a list has no known length')
  length = np.asarray(size if is_full else 0, np.int32)
  if node.is_variant('element_dtype'):
    raise lowerings.NoLoweringError('a list holds lists')
  made = TensorList(None, length, size, np.dtype(node.dtype('element_dtype')))
  known = _known_shape(shape)
  return made if known is None else made.with_items_of(known)


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
  if handle.items is None:
    return handle.with_items_of(lowerings.as_shape(shape)).items
  return handle.items


@lowerings.lowers('TensorListSetItem')
def _set_item(node, handle, place, item):
  del node  # Unused.
  return handle.set(place, item)


@lowerings.lowers('TensorListGetItem')
def _get_item(node, handle, place, shape):
  del node  # Unused.
  return handle.get(place, shape)


@lowerings.lowers('TensorListPushBack')
def _push(node, handle, item):
  del node  # Unused.
  return attrs.evolve(
      handle.set(handle.length, item), length=handle.length + np.int32(1)
  )


@lowerings.lowers('TensorListPopBack')
def _pop(node, handle, shape):
  del node  # Unused.
  length = handle.length - np.int32(1)
  return attrs.evolve(handle, length=length), handle.get(length, shape)


@lowerings.lowers('TensorListLength')
def _length(node, handle):
  del node  # Unused.
  return handle.length


@lowerings.lowers('TensorListElementShape')
def _element_shape(node, handle):
  if handle.items is None:
    return np.asarray(-1, node.dtype('shape_type'))
  return np.asarray(handle.items.shape[1:], node.dtype('shape_type'))
