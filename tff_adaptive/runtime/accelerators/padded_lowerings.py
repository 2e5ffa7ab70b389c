# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops that meet arrays with more room than rows, or sizes of them, in JAX.

A rule applies the op's own lowering to the arrays as they are, after it has
checked that rows stay apart, and says where the rows are in the result. What
adds rows up counts only those that a batch has.
"""

from collections.abc import Callable, Iterable, Sequence
import functools
from typing import Any

import jax.numpy as jnp
import numpy as np

from tff_adaptive.runtime.accelerators import array_lowerings
from tff_adaptive.runtime.accelerators import list_lowerings
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import math_lowerings
from tff_adaptive.runtime.accelerators import network_lowerings
from tff_adaptive.runtime.accelerators import padding
from tff_adaptive.runtime.accelerators import random_lowerings

_Padded = padding.Padded
_Rule = Callable[..., Any]
# The rules by op.
_RULES: dict[str, _Rule] = {}
# Ops of which a result is a shape if their inputs are.
_OF_SHAPES = frozenset(
    {
        'BroadcastGradientArgs',
        'ConcatOffset',
        'ConcatV2',
        'DynamicStitch',
        'ExpandDims',
        'FloorDiv',
        'GatherV2',
        'Identity',
        'IdentityN',
        'Mul',
        'Pack',
        'Prod',
        'Reshape',
        'Slice',
        'Split',
        'Squeeze',
        'StridedSlice',
        'Transpose',
        'Unpack',
    }
)


def _rule(*ops: str) -> Callable[[_Rule], _Rule]:
  def register(rule):
    _RULES.update(dict.fromkeys(ops, rule))
    return rule

  return register


def concerns(inputs: Iterable[Any]) -> bool:
  """Returns whether an input is padded, or a shape with a size."""
  return any(
      isinstance(value, _Padded) or padding.has_sizes(value) for value in inputs
  )


def lower(node: lowerings.Node, inputs: Sequence[Any]) -> Any:
  """Returns the outputs of an op of which an input is as `concerns` says.

  Raises:
    PaddingError: If the op has no rule.
  """
  if node.op in _OF_SHAPES and all(map(lowerings.is_known, inputs)):
    try:
      return _of_shapes(node, inputs)
    except TypeError:
      pass  # No multiple of a size: a number like others.
  if node.op in _RULES:
    try:
      return _RULES[node.op](node, *inputs)
    except AttributeError as error:  # Of an input that a rule expects padded.
      raise padding.PaddingError(
          f'{node.op} mixes batches with other arrays'
      ) from error
  padding.check_has_none(_padded_in(inputs), f'an input of {node.op}')
  return _own(node, *_numbers(node, inputs))


def _own(node: lowerings.Node, *inputs: Any) -> Any:
  """Returns what the op's own lowering returns."""
  return lowerings.find(node.op)(node, *inputs)


def _integer(node: lowerings.Node) -> Any:
  """Returns the dtype of shapes at a node."""
  for name in ('T', 'Tparams', 'SrcT', 'Tidx'):
    if node.has(name) and not node.is_variant(name):
      return node.dtype(name)
  return np.int32


def _numbers(node: lowerings.Node, inputs: Iterable[Any]) -> list[Any]:
  return [
      padding.as_numbers(value, _integer(node))
      if padding.has_sizes(value)
      else value
      for value in inputs
  ]


def _of_shapes(node: lowerings.Node, inputs: Sequence[Any]) -> Any:
  """Returns the outputs of an op of shapes, shapes again."""
  outputs = _own(node, *inputs)
  if not isinstance(outputs, tuple):
    return padding.as_sizes(outputs, _integer(node))
  return tuple(padding.as_sizes(one, _integer(node)) for one in outputs)


def _common(node: lowerings.Node, values: Iterable[Any]) -> Any:
  """Returns the one of several equal values."""
  found = set(values)
  if len(found) != 1:
    raise padding.PaddingError(f'{node.op} takes batches of different sizes')
  return found.pop()


def _padded_in(inputs: Iterable[Any]) -> list[_Padded]:
  return [value for value in inputs if isinstance(value, _Padded)]


def _bare(inputs: Iterable[Any]) -> list[Any]:
  return [padding.bare(value) for value in inputs]


def _refuse(node: lowerings.Node, is_refused: Any) -> None:
  if is_refused:
    raise padding.PaddingError(f'{node.op} works across the rows of a batch')


# Ops that treat each entry alike.


@_rule(
    *math_lowerings.ELEMENTWISE,
    'Bitcast',
    'Cast',
    'CheckNumerics',
    'DivNoNan',
    'EnsureShape',
    'Identity',
    'LeakyRelu',
    'LeakyReluGrad',
    'OnesLike',
    'PlaceholderWithDefault',
    'PreventGradient',
    'RealDiv',
    'SelectV2',
    'Snapshot',
    'StopGradient',
    'TruncateDiv',
    'ZerosLike',
)
def _elementwise(node, *inputs):
  if node.op == 'Cast' and padding.has_sizes(inputs[0]):
    if np.issubdtype(node.dtype('DstT'), np.integer):
      return inputs[0]
  inputs = _numbers(node, inputs)
  padded = _padded_in(inputs)
  if not padded:
    return _own(node, *inputs)
  if isinstance(padded[0].values, list_lowerings.TensorList):
    return _of_lists(node, padded)
  place = _common(node, (value.axis - value.ndim for value in padded))
  size = _common(node, (value.size for value in padded))
  if node.op == 'Bitcast':  # Between dtypes of other sizes, axes differ.
    sizes = (
        padded[0].values.dtype.itemsize,
        np.dtype(node.dtype('type')).itemsize,
    )
    _refuse(node, sizes[0] != sizes[1])
  for value in inputs:
    if not isinstance(value, _Padded) and np.ndim(value) >= -place:
      _refuse(node, np.shape(value)[place] != 1)
  found = _own(node, *_bare(inputs))
  return _Padded(found, found.ndim + place, size)


def _of_lists(node, padded):
  """Applies an op to lists of padded arrays."""
  axis = _common(node, (value.axis for value in padded))
  size = _common(node, (value.size for value in padded))
  return _Padded(_own(node, *_bare(padded)), axis, size)


@_rule('AddN')
def _add_all(node, *inputs):
  if any(
      isinstance(padding.bare(value), list_lowerings.TensorList)
      for value in inputs
  ):
    return _of_lists(node, _padded_in(inputs))
  return _elementwise(node, *inputs)


@_rule('IdentityN')
def _identities(node, *inputs):
  del node  # Unused.
  return inputs


@_rule('Assert', 'NoOp', 'Print', 'PrintV2')
def _nothing(node, *inputs):
  del node, inputs  # Unused.
  return ()


@_rule('Select')
def _select(node, condition, x, y):
  if np.ndim(condition) == 1 and np.ndim(x) > 1:
    padded = _padded_in([condition, x, y])
    _refuse(node, len(padded) < 3 or any(value.axis for value in padded))
    found = _own(node, *_bare([condition, x, y]))
    return _Padded(found, 0, _common(node, (one.size for one in padded)))
  return _elementwise(node, condition, x, y)


# Ops of which each row of the output is of one row of the input.


def _by_row(node: lowerings.Node, num_rows: int, *inputs: Any) -> Any:
  """Returns the outputs of an op of rows, which are the first inputs' axis 0.

  Args:
    node: The node.
    num_rows: The number of inputs that have rows.
    *inputs: The inputs; sizes in those after them are shapes of the output.
  """
  rows, others = inputs[:num_rows], list(map(padding.rooms, inputs[num_rows:]))
  padding.check_has_none(others, f'an input of {node.op}')
  _refuse(
      node, any(not isinstance(row, _Padded) or row.axis != 0 for row in rows)
  )
  size = _common(node, (row.size for row in rows))
  outputs = _own(node, *_bare(rows), *others)
  if not isinstance(outputs, tuple):
    return _Padded(outputs, 0, size)
  return tuple(_Padded(output, 0, size) for output in outputs)


for _op, _num_rows in {
    'AvgPool': 1,
    'BiasAdd': 1,
    'Conv2D': 1,
    'DepthwiseConv2dNative': 1,
    'InTopK': 2,
    'InTopKV2': 2,
    'MaxPool': 1,
    'MaxPoolGrad': 3,
    'ResizeNearestNeighbor': 1,
    'ResizeNearestNeighborGrad': 1,
    'SoftmaxCrossEntropyWithLogits': 2,
    'SparseSoftmaxCrossEntropyWithLogits': 2,
}.items():
  _RULES[_op] = lambda node, *inputs, num=_num_rows: _by_row(node, num, *inputs)


@_rule('LogSoftmax', 'Softmax')
def _softmax(node, x):
  _refuse(node, x.axis == x.ndim - 1)
  return x.with_values(_own(node, x.values))


@_rule('AvgPoolGrad')
def _avg_pool_grad(node, shape, grad):
  _refuse(node, grad.axis != 0)
  return grad.with_values(_own(node, padding.rooms(shape), grad.values))


@_rule('Conv2DBackpropInput', 'DepthwiseConv2dNativeBackpropInput')
def _convolution_input(node, shape, kernel, grad):
  _refuse(node, grad.axis != 0 or isinstance(kernel, _Padded))
  return grad.with_values(_own(node, padding.rooms(shape), kernel, grad.values))


@_rule('Conv2DBackpropFilter', 'DepthwiseConv2dNativeBackpropFilter')
def _convolution_filter(node, x, shape, grad):
  _refuse(node, grad.axis != 0 or x.axis != 0)
  return _own(node, x.masked(0), shape, grad.masked(0))


def _has_rows_as_channels(node: lowerings.Node, x: _Padded) -> bool:
  """Returns whether each row is a channel, as in Keras 2's layer norm."""
  return node.text('data_format') == 'NCHW' and x.axis == 1


@_rule('FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3')
def _batch_norm(node, x, *parameters):
  if _has_rows_as_channels(node, x):
    y, *others = _own(node, x.values, *_bare(parameters))
    return x.with_values(y), *(_Padded(one, 0, x.size) for one in others)
  _refuse(node, x.axis != 0)
  y, *others = network_lowerings.batch_norm(
      node, x.values, *parameters, size=x.size
  )
  return x.with_values(y), *others


@_rule('FusedBatchNormGrad', 'FusedBatchNormGradV2', 'FusedBatchNormGradV3')
def _batch_norm_grad(node, grad, x, *parameters):
  _refuse(node, x.axis != grad.axis)
  if _has_rows_as_channels(node, x):
    by_x, *others = _own(node, grad.values, x.values, *_bare(parameters))
    parts = [_Padded(one, 0, x.size) for one in others[:2]]
    return x.with_values(by_x), *parts, *others[2:]
  _refuse(node, x.axis != 0)
  by_x, *others = network_lowerings.batch_norm_grad(
      node, grad.masked(0), x.masked(0), *parameters, size=x.size
  )
  return x.with_values(by_x), *others


# Sums, and products of matrices.


def _lowest(dtype: Any) -> Any:
  if np.issubdtype(dtype, np.integer):
    return np.iinfo(dtype).min
  return -np.inf


def _highest(dtype: Any) -> Any:
  if np.issubdtype(dtype, np.integer):
    return np.iinfo(dtype).max
  return np.inf


# What does not change a result, by the dtype.
_NEUTRAL: dict[str, Callable[[Any], Any]] = {
    'All': lambda _: True,
    'Any': lambda _: False,
    'EuclideanNorm': lambda _: 0,
    'Max': _lowest,
    'Mean': lambda _: 0,
    'Min': _highest,
    'Prod': lambda _: 1,
    'Sum': lambda _: 0,
}


def _axis_without(axis: int, gone: Iterable[int]) -> int:
  """Returns the number of an axis after others are gone."""
  return axis - sum(one < axis for one in gone)


@_rule(*_NEUTRAL)
def _reduce(node, x, axes):
  if not isinstance(x, _Padded):
    return _own(node, *_numbers(node, [x]), axes)
  gone = lowerings.as_axes(axes, x.ndim)
  if x.axis not in gone:
    kept = x.axis if node.boolean('keep_dims') else _axis_without(x.axis, gone)
    return _Padded(_own(node, x.values, axes), kept, x.size)
  masked = x.masked(_NEUTRAL[node.op](x.values.dtype))
  if node.op != 'Mean':
    return _own(node, masked, axes)
  total = jnp.sum(
      masked, gone, keepdims=node.boolean('keep_dims'), dtype=masked.dtype
  )
  count = np.prod([x.values.shape[axis] for axis in gone], dtype=np.int64)
  count = x.size.number * (int(count) // x.size.room)
  return total / count.astype(total.dtype)


@_rule('BiasAddGrad', 'L2Loss')
def _sum(node, x):
  return _own(node, x.masked(0))


@_rule('ArgMax', 'ArgMin')
def _arg_reduce(node, x, axis):
  (gone,) = lowerings.as_axes(axis, x.ndim)
  _refuse(node, gone == x.axis)
  return _Padded(
      _own(node, x.values, axis), _axis_without(x.axis, [gone]), x.size
  )


@_rule('TopKV2')
def _top_k(node, x, k):
  _refuse(node, x.axis == x.ndim - 1)
  return tuple(map(x.with_values, _own(node, x.values, k)))


@_rule('Cumprod', 'Cumsum')
def _cumulate(node, x, axis):
  neutral = 1 if node.op == 'Cumprod' else 0
  return x.with_values(_own(node, x.masked(neutral), axis))


def _multiply(node, x, y, rows: int, columns: int) -> Any:
  """Returns a product of matrices.

  Args:
    node: The node.
    x: The first factor.
    y: The second factor.
    rows: The axis of the rows of x, counted from the end; the other of the last
      two is added up.
    columns: The axis of the columns of y, likewise.
  """
  axes = [
      value.axis - value.ndim if isinstance(value, _Padded) else None
      for value in (x, y)
  ]
  added = (-3 - rows, -3 - columns)
  if axes == list(added):
    return _own(node, x.masked(0), y.masked(0))
  found = _own(node, *_bare([x, y]))
  size = _common(node, (value.size for value in _padded_in([x, y])))
  if axes == [rows, None]:
    return _Padded(found, found.ndim - 2, size)
  if axes == [None, columns]:
    return _Padded(found, found.ndim - 1, size)
  stacked = {axis for axis in axes if axis is not None}
  _refuse(node, len(stacked) != 1 or max(stacked) > -3)
  for value, axis in zip((x, y), axes):
    if axis is None and np.ndim(value) >= -max(stacked):
      _refuse(node, np.shape(value)[max(stacked)] != 1)
  return _Padded(found, found.ndim + max(stacked), size)


@_rule('MatMul')
def _matmul(node, x, y):
  rows = -1 if node.boolean('transpose_a') else -2
  columns = -2 if node.boolean('transpose_b') else -1
  return _multiply(node, x, y, rows, columns)


@_rule('BatchMatMul', 'BatchMatMulV2', 'BatchMatMulV3')
def _batch_matmul(node, x, y):
  rows = -1 if node.boolean('adj_x') else -2
  columns = -2 if node.boolean('adj_y') else -1
  return _multiply(node, x, y, rows, columns)


@_rule('Einsum')
def _einsum(node, *inputs):
  given, output = node.text('equation').split('->')
  labels = {
      letters[value.axis]
      for letters, value in zip(given.split(','), inputs)
      if isinstance(value, _Padded)
  }
  label = _common(node, labels)
  _refuse(node, '.' in given)
  for letters, value in zip(given.split(','), inputs):
    _refuse(node, label in letters and not isinstance(value, _Padded))
  size = _common(node, (value.size for value in _padded_in(inputs)))
  if label in output:
    return _Padded(_own(node, *_bare(inputs)), output.index(label), size)
  return _own(
      node,
      *(one.masked(0) if isinstance(one, _Padded) else one for one in inputs),
  )


# Shapes, and arrays made of them.


@_rule('Shape')
def _shape(node, x):
  return padding.as_sizes(x.shape, node.dtype('out_type'))


@_rule('ShapeN')
def _shapes(node, *inputs):
  return tuple(
      padding.as_sizes(np.asarray(value.shape, object), node.dtype('out_type'))
      for value in inputs
  )


@_rule('Size')
def _size(node, x):
  others = np.prod(np.delete(x.values.shape, x.axis), dtype=np.int64)
  return padding.as_sizes(x.size * int(others), node.dtype('out_type'))


@_rule('Rank')
def _rank(node, x):
  del node  # Unused.
  return np.asarray(x.ndim, np.int32)


def _make(node, shape, *inputs):
  """Makes an array of a shape; the first entries do not depend on its size."""
  sizes = list(shape)
  axis = padding.axis_of(sizes)
  padding.check_has_none(inputs, f'an input of {node.op}')
  return _Padded(_own(node, padding.rooms(shape), *inputs), axis, sizes[axis])


_RULES.update(dict.fromkeys(['Fill', 'Empty'], _make))


@_rule(
    *(name + version for name in random_lowerings.OPS for version in ('', 'V2'))
)
def _draw(node, shape, *inputs):
  axis = padding.axis_of(list(shape))
  _refuse(node, np.prod(shape[:axis]) != 1)
  return _make(node, shape, *inputs)


@_rule('Range')
def _range(node, start, limit, delta):
  is_plain = lowerings.is_known(start) and lowerings.is_known(delta)
  size = limit[()] if padding.has_sizes(limit) else None
  if not is_plain or start != 0 or delta != 1 or size is None:
    raise padding.PaddingError('a range begins or ends with a row')
  return _Padded(np.arange(size.room, dtype=_integer(node)), 0, size)


@_rule('BroadcastTo')
def _broadcast_to(node, x, shape):
  sizes = list(shape)
  axis = padding.axis_of(sizes)
  place = axis - len(sizes)
  if isinstance(x, _Padded):
    _refuse(node, x.axis - x.ndim != place or x.size != sizes[axis])
  elif np.ndim(x) >= -place:
    _refuse(node, np.shape(x)[place] != 1)
  found = _own(node, padding.bare(x), padding.rooms(shape))
  return _Padded(found, axis, sizes[axis])


@_rule('BroadcastArgs')
def _broadcast_args(node, first, second):
  shapes = [list(first), list(second)]
  rank = max(map(len, shapes))
  padded = [[1] * (rank - len(shape)) + shape for shape in shapes]
  found = []
  for one, other in zip(*padded):
    is_one = not isinstance(one, padding.Size) and one == 1
    found.append(other if is_one else one)
  return padding.as_sizes(found, _integer(node))


@_rule('DenseToDenseSetOperation')
def _set_operation(node, a, b):
  """Compares shapes, in which each `Size` stands for a number of its own."""
  sizes, others = (
      {entry for entry in one.flat if isinstance(entry, padding.Size)}
      for one in (a, b)
  )
  # A size that only one has may equal a number of the other.
  _refuse(node, sizes != others)
  number_of = {size: -1 - place for place, size in enumerate(sizes)}
  known = [
      np.reshape([number_of.get(e, e) for e in one.flat], one.shape)
      for one in (a, b)
  ]
  places, found, shape = _own(node, *known)
  size_of = {number: size for size, number in number_of.items()}
  entries = [size_of.get(entry, entry) for entry in found.tolist()]
  return places, padding.as_sizes(entries, _integer(node)), shape


def _product(sizes: Iterable[Any]) -> Any:
  return functools.reduce(lambda x, y: x * y, sizes, 1)


@_rule('Reshape')
def _reshape(node, x, shape):
  if not isinstance(x, _Padded):
    _refuse(node, padding.has_sizes(shape))
    return _own(node, *_numbers(node, [x]), shape)
  target = list(lowerings.as_shape(shape))
  if -1 in target:
    known = _product(size for size in target if not _is_unknown(size))
    try:
      target[target.index(-1)] = _product(x.shape) // known
    except TypeError as error:
      raise padding.PaddingError('a shape is no multiple of a size') from error
  axis = padding.axis_of(target)
  _refuse(
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


@_rule('ExpandDims')
def _expand_dims(node, x, axis):
  (place,) = lowerings.as_axes(axis, x.ndim + 1)
  found = _own(node, x.values, axis)
  return _Padded(found, x.axis + (place <= x.axis), x.size)


@_rule('Squeeze')
def _squeeze(node, x):
  axes = node.integers('squeeze_dims') or node.integers('axis')
  gone = [axis % x.ndim for axis in axes]
  _refuse(node, not gone or x.axis in gone)
  return _Padded(_own(node, x.values), _axis_without(x.axis, gone), x.size)


@_rule('Transpose')
def _transpose(node, x, order):
  places = list(lowerings.as_axes(order, x.ndim))
  return _Padded(_own(node, x.values, order), places.index(x.axis), x.size)


@_rule('Pack')
def _pack(node, *inputs):
  padded = _padded_in(inputs)
  if not padded:
    return _own(node, *_numbers(node, inputs))
  _refuse(node, len(padded) < len(inputs))
  axis = _common(node, (value.axis for value in padded))
  size = _common(node, (value.size for value in padded))
  place = node.integer('axis') % (padded[0].ndim + 1)
  return _Padded(_own(node, *_bare(inputs)), axis + (place <= axis), size)


@_rule('ConcatV2')
def _concat(node, *inputs):
  *values, place = inputs
  padded = _padded_in(values)
  if not padded:
    return _own(node, *_numbers(node, values), place)
  _refuse(node, len(padded) < len(values))
  axis = _common(node, (value.axis for value in padded))
  size = _common(node, (value.size for value in padded))
  _refuse(node, axis in lowerings.as_axes(place, padded[0].ndim))
  return _Padded(_own(node, *_bare(values), place), axis, size)


@_rule('Unpack')
def _unpack(node, x):
  place = node.integer('axis') % x.ndim
  _refuse(node, place == x.axis)
  axis = _axis_without(x.axis, [place])
  return tuple(_Padded(one, axis, x.size) for one in _own(node, x.values))


@_rule('Split')
def _split(node, axis, x):
  _refuse(node, x.axis in lowerings.as_axes(axis, x.ndim))
  return tuple(map(x.with_values, _own(node, axis, x.values)))


@_rule('SplitV')
def _split_sizes(node, x, sizes, axis):
  _refuse(node, x.axis in lowerings.as_axes(axis, x.ndim))
  return tuple(map(x.with_values, _own(node, x.values, sizes, axis)))


@_rule('Slice')
def _slice(node, x, begin, size):
  sizes = list(size) if padding.has_sizes(size) else np.asarray(size).tolist()
  is_whole = sizes[x.axis] in (-1, x.size)
  begins = lowerings.as_shape(begin, 'the begin of a slice')
  _refuse(node, begins[x.axis] != 0 or not is_whole)
  sizes[x.axis] = -1
  return x.with_values(_own(node, x.values, begin, np.asarray(sizes)))


def _sliced_axis(node, index: Sequence[Any], shape: Any, axis: int) -> int:
  """Returns where an axis is after an index that takes all of it."""
  num_given = sum(entry is not None and entry is not ... for entry in index)
  place = before = 0
  for entry in [*index, ...]:
    if entry is None:
      before += 1
      continue
    width = len(shape) - num_given if entry is ... else 1
    if place <= axis < place + width:
      _refuse(node, not _is_whole(entry, shape[axis]))
      return before + axis - place
    place += width
    before += width if entry is ... or isinstance(entry, slice) else 0
  raise padding.PaddingError(f'{node.op} has no axis {axis}')


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


@_rule('StridedSlice')
def _strided_slice(node, x, begin, end, strides):
  begin, end = padding.rooms(begin), padding.rooms(end)
  index = array_lowerings.as_index(node, begin, end, strides)
  axis = _sliced_axis(node, index, x.values.shape, x.axis)
  return _Padded(x.values[index], axis, x.size)


@_rule('StridedSliceGrad')
def _strided_slice_grad(node, shape, begin, end, strides, grad):
  sizes = list(shape)
  axis = padding.axis_of(sizes)
  room, begin, end = map(padding.rooms, (shape, begin, end))
  index = array_lowerings.as_index(node, begin, end, strides)
  _sliced_axis(node, index, room, axis)
  found = _own(node, room, begin, end, strides, grad.values)
  return _Padded(found, axis, sizes[axis])


@_rule('Tile')
def _tile(node, x, multiples):
  repeats = list(multiples)
  if isinstance(x, _Padded):
    _refuse(node, repeats[x.axis] != 1)
    return x.with_values(_own(node, x.values, multiples))
  axis = padding.axis_of(repeats)
  _refuse(node, np.shape(x)[axis] != 1)
  return _Padded(_own(node, x, padding.rooms(multiples)), axis, repeats[axis])


@_rule('MirrorPad', 'Pad', 'PadV2')
def _pad(node, x, paddings, *value):
  widths = lowerings.as_known(paddings, 'a padding')
  _refuse(node, np.any(widths[x.axis]))
  return x.with_values(_own(node, x.values, paddings, *value))


@_rule('ReverseV2')
def _reverse(node, x, axes):
  _refuse(node, x.axis in lowerings.as_axes(axes, x.ndim))
  return x.with_values(_own(node, x.values, axes))


@_rule('OneHot')
def _one_hot(node, indices, *inputs):
  axis = node.integer('axis')
  is_before = 0 <= axis <= indices.axis
  found = _own(node, indices.values, *inputs)
  return _Padded(found, indices.axis + is_before, indices.size)


@_rule('Gather', 'GatherV2', 'ResourceGather')
def _gather(node, x, indices, axis=0):
  batch_dims = node.integer('batch_dims') if node.has('batch_dims') else 0
  place = int(lowerings.as_known(np.asarray(axis), 'an axis')) % np.ndim(x)
  found = _own(node, *_bare([x, indices]), axis)
  if not isinstance(x, _Padded):
    _refuse(node, batch_dims)
    return _Padded(found, place + indices.axis, indices.size)
  if isinstance(indices, _Padded):
    _refuse(node, not batch_dims or x.axis or indices.axis or place == 0)
    return _Padded(found, 0, _common(node, (x.size, indices.size)))
  _refuse(node, batch_dims or place == x.axis)
  later = np.ndim(indices) - 1 if place < x.axis else 0
  return _Padded(found, x.axis + later, x.size)


@_rule('GatherNd')
def _gather_nd(node, x, indices):
  _refuse(node, not isinstance(indices, _Padded) or indices.axis != 0)
  return indices.with_values(_own(node, *_bare([x, indices])))


@_rule('UnsortedSegmentSum')
def _segment_sum(node, x, ids, number):
  _refuse(node, x.axis != 0 or not isinstance(ids, _Padded) or ids.axis != 0)
  return _own(node, x.masked(0), ids.values, number)


@_rule('ScatterNd')
def _scatter_nd(node, indices, updates, shape):
  _refuse(node, padding.has_sizes(shape) or not isinstance(updates, _Padded))
  return _own(node, padding.bare(indices), updates.masked(0), shape)


@_rule('TensorScatterAdd', 'TensorScatterSub')
def _scatter(node, x, indices, updates):
  _refuse(node, isinstance(x, _Padded) or not isinstance(updates, _Padded))
  return _own(node, x, padding.bare(indices), updates.masked(0))


# Lists of arrays.


@_rule('EmptyTensorList', 'TensorListReserve')
def _make_list(node, shape, length):
  return _make(node, shape, length)


@_rule('TensorListFromTensor')
def _from_tensor(node, tensor, shape):
  _refuse(node, not isinstance(tensor, _Padded) or tensor.axis == 0)
  found = _own(node, tensor.values, padding.rooms(shape))
  return _Padded(found, tensor.axis - 1, tensor.size)


@_rule('TensorListStack')
def _stack(node, handle, shape):
  found = _own(node, padding.bare(handle), padding.rooms(shape))
  if isinstance(handle, _Padded):
    return _Padded(found, handle.axis + 1, handle.size)
  return _Padded(found, padding.axis_of(list(shape)) + 1, _size_in(shape))


def _size_in(shape: Any) -> padding.Size:
  return list(shape)[padding.axis_of(list(shape))]


def _with_item(node, handle, item, write):
  """Returns a list after an item is written, of which either is padded."""
  if padding.has_sizes(item):
    return write(padding.as_numbers(item, handle.dtype), item)
  _refuse(node, not isinstance(item, _Padded))
  if isinstance(handle, _Padded):
    is_other = (handle.axis, handle.size) != (item.axis, item.size)
    _refuse(node, is_other)
  return item.with_values(write(item.values, item.values))


@_rule('TensorListSetItem')
def _set_item(node, handle, place, item):
  own = padding.bare(handle)
  return _with_item(node, handle, item, lambda value, _: own.set(place, value))


@_rule('TensorListPushBack')
def _push(node, handle, item):
  return _with_item(node, handle, item, padding.bare(handle).push)


@_rule('TensorListGetItem')
def _get_item(node, handle, place, shape):
  found = _own(node, padding.bare(handle), place, padding.rooms(shape))
  if isinstance(handle, _Padded):
    return handle.with_values(found)
  return _Padded(found, padding.axis_of(list(shape)), _size_in(shape))


@_rule('TensorListPopBack')
def _pop(node, handle, shape):
  shorter, found = _own(node, padding.bare(handle), padding.rooms(shape))
  if isinstance(handle, _Padded):
    return handle.with_values(shorter), handle.with_values(found)
  if lowerings.is_known(found):
    return shorter, found
  return shorter, _Padded(found, padding.axis_of(list(shape)), _size_in(shape))


@_rule('TensorListLength')
def _length(node, handle):
  return _own(node, handle.values)


@_rule('TensorListElementShape')
def _element_shape(node, handle):
  sizes = list(handle.values.items.shape[1:])
  sizes[handle.axis] = handle.size
  return padding.as_sizes(sizes, node.dtype('shape_type'))
