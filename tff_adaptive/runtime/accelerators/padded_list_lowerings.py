# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists of arrays with the rows of a padded batch, in JAX.

See `padded_rules`.
"""

from typing import Any

from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import padded_array_lowerings
from tff_adaptive.runtime.accelerators import padded_rules as rules
from tff_adaptive.runtime.accelerators import padding

_Padded = padding.Padded


@rules.rule('EmptyTensorList', 'TensorListReserve')
def _make_list(node, shape, length):
  return padded_array_lowerings.make(node, shape, length)


@rules.rule('TensorListFromTensor')
def _from_tensor(node, tensor, shape):
  rules.refuse(node, not isinstance(tensor, _Padded) or tensor.axis == 0)
  found = rules.own(node, tensor.values, padding.rooms(shape))
  return _Padded(found, tensor.axis - 1, tensor.size)


@rules.rule('TensorListStack')
def _stack(node, handle, shape):
  found = rules.own(node, padding.bare(handle), padding.rooms(shape))
  if isinstance(handle, _Padded):
    return _Padded(found, handle.axis + 1, handle.size)
  return _Padded(found, padding.axis_of(list(shape)) + 1, _size_in(shape))


def _size_in(shape: Any) -> padding.Size:
  return list(shape)[padding.axis_of(list(shape))]


def _with_item(node, handle, item, write):
  """Returns a list after an item is written, of which either is padded."""
  if padding.has_sizes(item):
    return write(padding.as_numbers(item, handle.dtype), item)
  rules.refuse(node, not isinstance(item, _Padded))
  if isinstance(handle, _Padded):
    is_other = (handle.axis, handle.size) != (item.axis, item.size)
    rules.refuse(node, is_other)
  return item.with_values(write(item.values, item.values))


@rules.rule('TensorListSetItem')
def _set_item(node, handle, place, item):
  own = padding.bare(handle)
  return _with_item(
      node, handle, item, lambda value, _: rules.own(node, own, place, value)
  )


@rules.rule('TensorListPushBack')
def _push(node, handle, item):
  return _with_item(node, handle, item, padding.bare(handle).push)


@rules.rule('TensorListGetItem')
def _get_item(node, handle, place, shape):
  found = rules.own(node, padding.bare(handle), place, padding.rooms(shape))
  if isinstance(handle, _Padded):
    return handle.with_values(found)
  return _Padded(found, padding.axis_of(list(shape)), _size_in(shape))


@rules.rule('TensorListPopBack')
def _pop(node, handle, shape):
  shorter, found = rules.own(node, padding.bare(handle), padding.rooms(shape))
  if isinstance(handle, _Padded):
    return handle.with_values(shorter), handle.with_values(found)
  if lowerings.is_known(found):
    return shorter, found
  return shorter, _Padded(found, padding.axis_of(list(shape)), _size_in(shape))


@rules.rule('TensorListLength')
def _length(node, handle):
  return rules.own(node, handle.values)


@rules.rule('TensorListElementShape')
def _element_shape(node, handle):
  sizes = list(handle.values.items.shape[1:])
  sizes[handle.axis] = handle.size
  return padding.as_sizes(sizes, node.dtype('shape_type'))
