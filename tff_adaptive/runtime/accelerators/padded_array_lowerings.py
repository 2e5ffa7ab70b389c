# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shapes and arrays with the rows of a padded batch, in JAX.

See `padded_rules`.
"""

from collections.abc import Iterable, Sequence
import functools
from typing import Any

import numpy as np

from tff_adaptive.runtime.accelerators import array_lowerings
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import padded_rules as rules
from tff_adaptive.runtime.accelerators import padding
from tff_adaptive.runtime.accelerators import random_lowerings

_Padded = padding.Padded


# Shapes, and arrays made of them.


@rules.rule('Shape')
def _shape(node, x):
  return padding.as_sizes(x.shape, node.dtype('out_type'))


@rules.rule('ShapeN')
def _shapes(node, *inputs):
  return tuple(
      padding.as_sizes(np.asarray(value.shape, object), node.dtype('out_type'))
      for value in inputs
  )


@rules.rule('Size')
def _size(node, x):
  others = np.prod(np.delete(x.values.shape, x.axis), dtype=np.int64)
  return padding.as_sizes(x.size * int(others), node.dtype('out_type'))


@rules.rule('Rank')
def _rank(node, x):
  del node  # Unused.
  return np.asarray(x.ndim, np.int32)


@rules.rule('Empty', 'Fill')
def make(node, shape, *inputs):
  """Returns the output of an op whose first input is a shape."""
  sizes = list(shape)
  axis = padding.axis_of(sizes)
  padding.check_has_none(inputs, f'an input of {node.op}')
  return _Padded(
      rules.own(node, padding.rooms(shape), *inputs), axis, sizes[axis]
  )


@rules.rule(
    *(name + version for name in random_lowerings.OPS for version in ('', 'V2'))
)
def _draw(node, shape, *inputs):
  axis = padding.axis_of(list(shape))
  rules.refuse(node, np.prod(shape[:axis]) != 1)
  return make(node, shape, *inputs)


@rules.rule('Range')
def _range(node, start, limit, delta):
  is_plain = lowerings.is_known(start) and lowerings.is_known(delta)
  size = limit[()] if padding.has_sizes(limit) else None
  if not is_plain or start != 0 or delta != 1 or size is None:
    raise padding.PaddingError('a range begins or ends with a row')
  return _Padded(np.arange(size.room, dtype=rules.integer(node)), 0, size)


@rules.rule('BroadcastTo')
def _broadcast_to(node, x, shape):
  sizes = list(shape)
  axis = padding.axis_of(sizes)
  place = axis - len(sizes)
  if isinstance(x, _Padded):
    rules.refuse(node, x.axis - x.ndim != place or x.size != sizes[axis])
  elif np.ndim(x) >= -place:
    rules.refuse(node, np.shape(x)[place] != 1)
  found = rules.own(node, padding.bare(x), padding.rooms(shape))
  return _Padded(found, axis, sizes[axis])


@rules.rule('BroadcastArgs')
def _broadcast_args(node, first, second):
  shapes = [list(first), list(second)]
  rank = max(map(len, shapes))
  padded = [[1] * (rank - len(shape)) + shape for shape in shapes]
  found = []
  for one, other in zip(*padded):
    is_one = not isinstance(one, padding.Size) and one == 1
    found.append(other if is_one else one)
  return padding.as_sizes(found, rules.integer(node))


@rules.rule('DenseToDenseSetOperation')
def _set_operation(node, a, b):
  """Compares shapes, in which each `Size` stands for a number of its own."""
  sizes, others = (
      {entry for entry in one.flat if isinstance(entry, padding.Size)}
      for one in (a, b)
  )
  # A size that only one has may equal a number of the other.
  rules.refuse(node, sizes != others)
  number_of = {size: -1 - place for place, size in enumerate(sizes)}
  known = [
      np.reshape([number_of.get(e, e) for e in one.flat], one.shape)
      for one in (a, b)
  ]
  places, found, shape = rules.own(node, *known)
  size_of = {number: size for size, number in number_of.items()}
  entries = [size_of.get(entry, entry) for entry in found.tolist()]
  return places, padding.as_sizes(entries, rules.integer(node)), shape


def _product(sizes: Iterable[Any]) -> Any:
  return functools.reduce(lambda x, y: x * y, sizes, 1)


@rules.rule('Reshape')
def _reshape(node, x, shape):
  if not isinstance(x, _Padded):
    rules.refuse(node, padding.has_sizes(shape))
    return rules.own(node, *rules.numbers(node, [x]), shape)
  target = list(lowerings.as_shape(shape))
  if -1 in target:
    known = _product(size for size in target if not _is_unknown(size))
    try:
      target[target.index(-1)] = _product(x.shape) // known
    except TypeError as error:
      raise padding.PaddingError('a shape is no multiple of a size') from error
  axis = padding.axis_of(target)
  rules.refuse(
      node,
      _product(target) != _product(x.shape)
      or _product(target[:axis]) != _product(x.shape[: x.axis]),
  )
  size = target[axis]
  target[axis] = size.room
  return _Padded(x.values.reshape(target), axis, size)


def _is_unknown(size: Any) -> bool:
  return not isinstance(size, padding.Size) and size == -1


# Ops that rearrange arrays.


@rules.rule('ExpandDims')
def _expand_dims(node, x, axis):
  (place,) = lowerings.as_axes(axis, x.ndim + 1)
  found = rules.own(node, x.values, axis)
  return _Padded(found, x.axis + (place <= x.axis), x.size)


@rules.rule('Squeeze')
def _squeeze(node, x):
  axes = node.integers('squeeze_dims') or node.integers('axis')
  gone = [axis % x.ndim for axis in axes]
  rules.refuse(node, not gone or x.axis in gone)
  return _Padded(
      rules.own(node, x.values),
      padding.axis_without(x.axis, gone),
      x.size,
  )


@rules.rule('Transpose')
def _transpose(node, x, order):
  places = list(lowerings.as_axes(order, x.ndim))
  return _Padded(rules.own(node, x.values, order), places.index(x.axis), x.size)


@rules.rule('Pack')
def _pack(node, *inputs):
  padded = rules.padded_in(inputs)
  if not padded:
    return rules.own(node, *rules.numbers(node, inputs))
  rules.refuse(node, len(padded) < len(inputs))
  axis = rules.common(node, (value.axis for value in padded))
  size = rules.common(node, (value.size for value in padded))
  place = node.integer('axis') % (padded[0].ndim + 1)
  return _Padded(
      rules.own(node, *rules.bare(inputs)),
      axis + (place <= axis),
      size,
  )


@rules.rule('ConcatV2')
def _concat(node, *inputs):
  *values, place = inputs
  padded = rules.padded_in(values)
  if not padded:
    return rules.own(node, *rules.numbers(node, values), place)
  rules.refuse(node, len(padded) < len(values))
  axis = rules.common(node, (value.axis for value in padded))
  size = rules.common(node, (value.size for value in padded))
  rules.refuse(node, axis in lowerings.as_axes(place, padded[0].ndim))
  return _Padded(rules.own(node, *rules.bare(values), place), axis, size)


@rules.rule('Unpack')
def _unpack(node, x):
  place = node.integer('axis') % x.ndim
  rules.refuse(node, place == x.axis)
  axis = padding.axis_without(x.axis, [place])
  return tuple(_Padded(one, axis, x.size) for one in rules.own(node, x.values))


@rules.rule('Split')
def _split(node, axis, x):
  rules.refuse(node, x.axis in lowerings.as_axes(axis, x.ndim))
  return tuple(map(x.with_values, rules.own(node, axis, x.values)))


@rules.rule('SplitV')
def _split_sizes(node, x, sizes, axis):
  rules.refuse(node, x.axis in lowerings.as_axes(axis, x.ndim))
  return tuple(map(x.with_values, rules.own(node, x.values, sizes, axis)))


@rules.rule('Slice')
def _slice(node, x, begin, size):
  sizes = list(size) if padding.has_sizes(size) else np.asarray(size).tolist()
  is_whole = sizes[x.axis] in (-1, x.size)
  begins = lowerings.as_shape(begin, 'the begin of a slice')
  rules.refuse(node, begins[x.axis] != 0 or not is_whole)
  sizes[x.axis] = -1
  return x.with_values(rules.own(node, x.values, begin, np.asarray(sizes)))


def _sliced_axis(
    node, index: Sequence[Any], bounds: Sequence[Any], shape: Any, axis: int
) -> int:
  """Returns where an axis is after an index that takes all of it.

  Args:
    node: The node.
    index: The index, with the room in place of sizes.
    bounds: Where it begins and ends, with the sizes.
    shape: The shape of the array.
    axis: The axis.
  """
  num_given = sum(entry is not None and entry is not ... for entry in index)
  place = before = 0
  for number, entry in enumerate([*index, ...]):
    if entry is None:
      before += 1
      continue
    width = len(shape) - num_given if entry is ... else 1
    if place <= axis < place + width:
      is_other = _has_sizes_except(bounds, number)
      rules.refuse(node, is_other or not _is_whole(entry, shape[axis]))
      return before + axis - place
    place += width
    before += width if entry is ... or isinstance(entry, slice) else 0
  raise padding.PaddingError(f'{node.op} has no axis {axis}')


def _has_sizes_except(bounds: Sequence[Any], number: int) -> bool:
  """Returns whether a size is at another place than a number."""
  return any(
      isinstance(bound, padding.Size) and place != number
      for one in bounds
      if padding.has_sizes(one)
      for place, bound in enumerate(one)
  )


def _is_whole(entry: Any, room: int) -> bool:
  """Returns whether an entry of an index takes all rows."""
  if entry is ...:
    return True
  return (
      isinstance(entry, slice)
      and entry.start in (None, 0)
      and (entry.stop is None or entry.stop >= room)
      and entry.step in (None, 1)
  )


@rules.rule('StridedSlice')
def _strided_slice(node, x, begin, end, strides):
  bounds = begin, end
  index = array_lowerings.as_index(node, *map(padding.rooms, bounds), strides)
  axis = _sliced_axis(node, index, bounds, x.values.shape, x.axis)
  return _Padded(array_lowerings.read(x.values, index, begin), axis, x.size)


@rules.rule('StridedSliceGrad')
def _strided_slice_grad(node, shape, begin, end, strides, grad):
  sizes = list(shape)
  axis = padding.axis_of(sizes)
  bounds = begin, end
  room, begin, end = map(padding.rooms, (shape, begin, end))
  index = array_lowerings.as_index(node, begin, end, strides)
  _sliced_axis(node, index, bounds, room, axis)
  found = rules.own(node, room, begin, end, strides, grad.values)
  return _Padded(found, axis, sizes[axis])


@rules.rule('Tile')
def _tile(node, x, multiples):
  repeats = list(multiples)
  if isinstance(x, _Padded):
    rules.refuse(node, repeats[x.axis] != 1)
    return x.with_values(rules.own(node, x.values, multiples))
  axis = padding.axis_of(repeats)
  rules.refuse(node, np.shape(x)[axis] != 1)
  return _Padded(
      rules.own(node, x, padding.rooms(multiples)), axis, repeats[axis]
  )


@rules.rule('MirrorPad', 'Pad', 'PadV2')
def _pad(node, x, paddings, *value):
  widths = lowerings.as_known(paddings, 'a padding')
  rules.refuse(node, np.any(widths[x.axis]))
  return x.with_values(rules.own(node, x.values, paddings, *value))


@rules.rule('ReverseV2')
def _reverse(node, x, axes):
  rules.refuse(node, x.axis in lowerings.as_axes(axes, x.ndim))
  return x.with_values(rules.own(node, x.values, axes))


@rules.rule('OneHot')
def _one_hot(node, indices, *inputs):
  axis = node.integer('axis')
  is_before = 0 <= axis <= indices.axis
  found = rules.own(node, indices.values, *inputs)
  return _Padded(found, indices.axis + is_before, indices.size)


@rules.rule('Gather', 'GatherV2')
def _gather(node, x, indices, axis=0):
  batch_dims = node.integer('batch_dims') if node.has('batch_dims') else 0
  place = int(lowerings.as_known(np.asarray(axis), 'an axis')) % np.ndim(x)
  found = rules.own(node, *rules.bare([x, indices]), axis)
  if not isinstance(x, _Padded):
    rules.refuse(node, batch_dims)
    return _Padded(found, place + indices.axis, indices.size)
  if isinstance(indices, _Padded):
    rules.refuse(node, not batch_dims or x.axis or indices.axis or place == 0)
    return _Padded(found, 0, rules.common(node, (x.size, indices.size)))
  rules.refuse(node, batch_dims or place == x.axis)
  later = np.ndim(indices) - 1 if place < x.axis else 0
  return _Padded(found, x.axis + later, x.size)


@rules.rule('ResourceGather')
def _gather_from_variable(node, variable, indices):
  rules.refuse(node, node.integer('batch_dims'))
  return indices.with_values(rules.own(node, variable, indices.values))


@rules.rule('GatherNd')
def _gather_nd(node, x, indices):
  rules.refuse(node, not isinstance(indices, _Padded) or indices.axis != 0)
  depth = indices.values.shape[-1]
  rules.refuse(node, isinstance(x, _Padded) and x.axis >= depth)
  return indices.with_values(rules.own(node, *rules.bare([x, indices])))


@rules.rule('UnsortedSegmentSum')
def _segment_sum(node, x, ids, number):
  rules.refuse(
      node, x.axis != 0 or not isinstance(ids, _Padded) or ids.axis != 0
  )
  return rules.own(node, x.masked(0), ids.values, number)


@rules.rule('ScatterNd')
def _scatter_nd(node, indices, updates, shape):
  rules.refuse(
      node, padding.has_sizes(shape) or not isinstance(updates, _Padded)
  )
  return rules.own(node, padding.bare(indices), updates.masked(0), shape)


@rules.rule('TensorScatterAdd', 'TensorScatterSub')
def _scatter(node, x, indices, updates):
  rules.refuse(node, isinstance(x, _Padded) or not isinstance(updates, _Padded))
  return rules.own(node, x, padding.bare(indices), updates.masked(0))
