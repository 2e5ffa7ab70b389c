# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops that make, read and rearrange arrays, in JAX."""

from typing import Any

from jax import lax
import jax.numpy as jnp
import numpy as np

from tff_adaptive.runtime.accelerators import kept_rows
from tff_adaptive.runtime.accelerators import list_lowerings
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import tokens


@lowerings.lowers('Const')
def _const(node):
  value = node.tensor('value')
  return tokens.encode(value) if value.dtype == object else value


@lowerings.lowers(
    'CheckNumerics',
    'EnsureShape',
    'Identity',
    'PlaceholderWithDefault',
    'PreventGradient',
    'Snapshot',
    'StopGradient',
)
def _identity(node, x):
  del node  # Unused.
  return x


@lowerings.lowers('IdentityN')
def _identities(node, *inputs):
  del node  # Unused.
  return inputs


# What an accelerator cannot say; wrong labels become NaN there.
@lowerings.lowers('Assert', 'NoOp', 'Print', 'PrintV2')
def _nothing(node, *inputs):
  del node, inputs  # Unused.
  return ()


@lowerings.lowers('Shape')
def _shape(node, x):
  return np.asarray(np.shape(x), node.dtype('out_type'))


@lowerings.lowers('ShapeN')
def _shapes(node, *inputs):
  return tuple(np.asarray(np.shape(x), node.dtype('out_type')) for x in inputs)


@lowerings.lowers('Size')
def _size(node, x):
  return np.asarray(np.prod(np.shape(x)), node.dtype('out_type'))


@lowerings.lowers('Rank')
def _rank(node, x):
  del node  # Unused.
  return np.asarray(np.ndim(x), np.int32)


@lowerings.lowers('Fill')
def _fill(node, shape, value):
  del node  # Unused.
  return lowerings.full(lowerings.as_shape(shape), value)


@lowerings.lowers('ZerosLike')
def _zeros_like(node, x):
  del node  # Unused.
  if isinstance(x, list_lowerings.TensorList):
    return x.cleared()
  return lowerings.full(np.shape(x), np.zeros([], x.dtype))


@lowerings.lowers('OnesLike')
def _ones_like(node, x):
  del node  # Unused.
  return lowerings.full(np.shape(x), np.ones([], x.dtype))


@lowerings.lowers('Empty')
def _empty(node, shape):
  return lowerings.full(
      lowerings.as_shape(shape), np.zeros([], node.dtype('dtype'))
  )


@lowerings.lowers('Range')
def _range(node, start, limit, delta):
  del node  # Unused.
  known = [lowerings.as_known(v, 'a range') for v in (start, limit, delta)]
  return np.arange(*known, dtype=known[0].dtype)


@lowerings.lowers('Reshape')
def _reshape(node, x, shape):
  del node  # Unused.
  return lowerings.numpy_for(x).reshape(x, lowerings.as_shape(shape))


@lowerings.lowers('ExpandDims')
def _expand_dims(node, x, axis):
  del node  # Unused.
  (place,) = lowerings.as_shape(axis, 'an axis')
  return lowerings.numpy_for(x).expand_dims(x, place)


@lowerings.lowers('Squeeze')
def _squeeze(node, x):
  axes = node.integers('squeeze_dims') or node.integers('axis') or None
  return lowerings.numpy_for(x).squeeze(x, tuple(axes) if axes else None)


@lowerings.lowers('Transpose')
def _transpose(node, x, order):
  del node  # Unused.
  return lowerings.numpy_for(x).transpose(x, lowerings.as_shape(order))


@lowerings.lowers('Pack')
def _pack(node, *inputs):
  return lowerings.numpy_for(*inputs).stack(inputs, node.integer('axis'))


@lowerings.lowers('Unpack')
def _unpack(node, x):
  axis = node.integer('axis')
  module = lowerings.numpy_for(x)
  return tuple(module.moveaxis(module.asarray(x), axis, 0))


@lowerings.lowers('ConcatV2')
def _concat(node, *inputs):
  del node  # Unused.
  *values, axis = inputs
  return lowerings.numpy_for(*values).concatenate(
      values, int(lowerings.as_known(axis, 'an axis'))
  )


@lowerings.lowers('ConcatOffset')
def _concat_offset(node, axis, *shapes):
  del node  # Unused.
  axis, offset, offsets = int(axis), 0, []
  for shape in shapes:
    one = np.zeros_like(shape)
    one[axis] = offset
    offsets.append(one)
    offset += shape[axis]
  return tuple(offsets)


@lowerings.lowers('Split')
def _split(node, axis, x):
  axis = int(lowerings.as_known(axis, 'an axis'))
  return tuple(lowerings.numpy_for(x).split(x, node.integer('num_split'), axis))


@lowerings.lowers('SplitV')
def _split_sizes(node, x, sizes, axis):
  del node  # Unused.
  axis = int(lowerings.as_known(axis, 'an axis'))
  parts = np.array(lowerings.as_shape(sizes))
  parts[parts < 0] = x.shape[axis] - parts[parts >= 0].sum()
  return tuple(
      lowerings.numpy_for(x).split(x, np.cumsum(parts)[:-1].tolist(), axis)
  )


@lowerings.lowers('Slice')
def _slice(node, x, begin, size):
  del node  # Unused.
  sizes = lowerings.as_shape(size, 'the size of a slice')
  if lowerings.is_known(begin):
    begins = lowerings.as_shape(begin)
    chosen = tuple(
        slice(b, None if s < 0 else b + s) for b, s in zip(begins, sizes)
    )
    return x[chosen]
  if any(s < 0 for s in sizes):
    raise lowerings.NoLoweringError('a slice has a size that is not known')
  last = np.subtract(np.shape(x), sizes)
  return jnp.where(
      jnp.all((begin >= 0) & (begin <= last)),
      lax.dynamic_slice(x, list(jnp.asarray(begin)), sizes),
      jnp.asarray(_filling(x), x.dtype),
  )


def as_index(node, begin, end, strides) -> tuple[Any, ...]:
  """Returns the index of Python for the masks of a strided slice.

  A begin that is not known is allowed for single entries.
  """
  masks = {
      name: node.integer(f'{name}_mask')
      for name in ('begin', 'end', 'ellipsis', 'new_axis', 'shrink_axis')
  }
  steps = lowerings.as_shape(strides, 'a stride')
  index: list[Any] = []
  for place, step in enumerate(steps):
    bit = 1 << place
    if masks['ellipsis'] & bit:
      index.append(Ellipsis)
    elif masks['new_axis'] & bit:
      index.append(None)
    elif masks['shrink_axis'] & bit:
      known = lowerings.is_known(begin)
      index.append(int(begin[place]) if known else begin[place])
    else:
      first = last = None
      if not masks['begin'] & bit:
        first = int(lowerings.as_known(begin, 'the begin of a slice')[place])
      if not masks['end'] & bit:
        last = int(lowerings.as_known(end, 'the end of a slice')[place])
      index.append(slice(first, last, step))
  return tuple(index)


def _is_prefix(node: lowerings.Node, end: Any, strides: Any) -> bool:
  """Returns whether a slice is of the first rows, of a number not known."""
  masks = [
      node.integer(f'{n}_mask') for n in ('end', 'new_axis', 'shrink_axis')
  ]
  return (
      not lowerings.is_known(end)
      and lowerings.as_shape(strides, 'a stride') == (1,)
      and not any(masks)
      and bool(node.integer('begin_mask') & 1)
  )


@lowerings.lowers('StridedSlice')
def _strided_slice(node, x, begin, end, strides):
  if _is_prefix(node, end, strides):
    last = jnp.where(end[0] < 0, end[0] + x.shape[0], end[0])
    count = jnp.clip(last, 0, x.shape[0])
    return kept_rows.KeptRows(jnp.asarray(x), count.astype(jnp.int32))
  return read(x, as_index(node, begin, end, strides), begin)


def read(x: Any, index: tuple[Any, ...], begin: Any) -> Any:
  """Returns the entries at an index of `as_index`."""
  if lowerings.is_known(begin):
    return x[index]
  return jnp.asarray(x).at[index].get(mode='fill', fill_value=_filling(x))


@lowerings.lowers('StridedSliceGrad')
def _strided_slice_grad(node, shape, begin, end, strides, grad):
  zeros = jnp.zeros(lowerings.as_shape(shape), grad.dtype)
  return zeros.at[as_index(node, begin, end, strides)].set(grad)


@lowerings.lowers('TensorStridedSliceUpdate')
def _strided_slice_update(node, x, begin, end, strides, value):
  return jnp.asarray(x).at[as_index(node, begin, end, strides)].set(value)


@lowerings.lowers('Tile')
def _tile(node, x, multiples):
  del node  # Unused.
  repeats = lowerings.as_shape(multiples)
  size = np.prod(repeats) * np.size(x)
  module = lowerings.numpy_for(x) if size <= 4096 else jnp
  return module.tile(x, repeats)


@lowerings.lowers('BroadcastTo')
def _broadcast_to(node, x, shape):
  del node  # Unused.
  target = lowerings.as_shape(shape)
  if lowerings.is_known(x) and x.size == 1:
    return lowerings.full(target, np.reshape(x, []))
  return jnp.broadcast_to(x, target)


@lowerings.lowers('BroadcastArgs')
def _broadcast_args(node, first, second):
  del node  # Unused.
  shape = np.broadcast_shapes(*map(lowerings.as_shape, (first, second)))
  return np.asarray(shape, first.dtype)


@lowerings.lowers('BroadcastGradientArgs')
def _broadcast_gradient_args(node, first, second):
  del node  # Unused.
  shapes = [lowerings.as_shape(shape) for shape in (first, second)]
  rank = max(map(len, shapes))
  padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]

  def reduced(own, other):
    return np.asarray(
        [i for i in range(rank) if own[i] == 1 and other[i] != 1]
        if len(shapes[0]) == len(shapes[1])
        else [i for i in range(rank) if own[i] == 1],
        first.dtype,
    )

  return reduced(*padded), reduced(*reversed(padded))


@lowerings.lowers('Pad', 'PadV2')
def _pad(node, x, paddings, value=None):
  del node  # Unused.
  widths = lowerings.as_known(paddings, 'a padding')
  constant = jnp.zeros([], x.dtype) if value is None else value
  return jnp.pad(x, widths.tolist(), constant_values=constant)


@lowerings.lowers('MirrorPad')
def _mirror_pad(node, x, paddings):
  widths = lowerings.as_known(paddings, 'a padding')
  return jnp.pad(x, widths.tolist(), mode=node.text('mode').lower())


@lowerings.lowers('ReverseV2')
def _reverse(node, x, axes):
  del node  # Unused.
  return lowerings.numpy_for(x).flip(x, lowerings.as_axes(axes, np.ndim(x)))


@lowerings.lowers('InvertPermutation')
def _invert_permutation(node, x):
  del node  # Unused.
  return lowerings.numpy_for(x).argsort(x).astype(x.dtype)


@lowerings.lowers('Select')
def _select(node, condition, x, y):
  del node  # Unused.
  if np.ndim(condition) == 1 and np.ndim(x) > 1:
    condition = condition.reshape([-1] + [1] * (np.ndim(x) - 1))
  return lowerings.numpy_for(condition, x, y).where(condition, x, y)


@lowerings.lowers('SelectV2')
def _where(node, condition, x, y):
  del node  # Unused.
  return lowerings.numpy_for(condition, x, y).where(condition, x, y)


@lowerings.lowers('OneHot')
def _one_hot(node, indices, depth, on, off):
  axis = node.integer('axis')
  rank = np.ndim(indices)
  axis = rank if axis == -1 else axis
  # Not in the dtype of the indices, which may have fewer numbers.
  places = np.arange(int(lowerings.as_known(depth, 'a depth')), dtype=np.int32)
  places = places.reshape([-1] + [1] * (rank - axis))
  return jnp.where(jnp.expand_dims(indices, axis) == places, on, off)


@lowerings.lowers('GatherV2', 'Gather')
def gather(node, x, indices, axis=0):
  """Returns what TensorFlow's op does, for known and other arrays."""
  batch_dims = node.integer('batch_dims') if node.has('batch_dims') else 0
  batch_dims += np.ndim(indices) if batch_dims < 0 else 0
  axis = int(lowerings.as_known(np.asarray(axis), 'an axis'))
  if batch_dims == 0 and lowerings.numpy_for(x, indices) is np:
    return np.take(x, indices, axis)
  indices = _from_begin(indices, np.shape(x)[axis])
  # An index out of range is zero on TensorFlow's GPU, an error on its CPU.
  options = {'mode': 'fill', 'fill_value': _filling(x)}
  if batch_dims == 0:
    return jnp.take(x, indices, axis, **options)
  axis %= np.ndim(x)
  if axis != batch_dims:
    raise lowerings.NoLoweringError('a gather has an axis after its batch')
  rank = np.ndim(x) - axis - 1
  shape = np.shape(indices)
  picks = jnp.reshape(indices, [*shape[:axis], -1, *[1] * rank])
  taken = jnp.take_along_axis(x, picks, axis, **options)
  return taken.reshape([*shape, *np.shape(x)[axis + 1 :]])


def _filling(x: Any) -> Any:
  """Returns what an index out of range gives: not a number, where there is."""
  return jnp.nan if jnp.issubdtype(x.dtype, jnp.inexact) else 0


def _from_begin(places: Any, size: int) -> Any:
  """Returns places on an axis; the size for negative ones, not counted back."""
  places = jnp.asarray(places)
  return jnp.where(places < 0, size, places)


def _entries(x: Any, indices: Any) -> Any:
  """Returns JAX's reference to entries; those out of range are not written.

  Args:
    x: The array.
    indices: Their indices, each along the last axis.
  """
  if not np.shape(indices)[-1]:
    raise lowerings.NoLoweringError('an index is of no axis')
  columns = jnp.moveaxis(jnp.asarray(indices), -1, 0)
  return jnp.asarray(x).at[tuple(map(_from_begin, columns, np.shape(x)))]


@lowerings.lowers('GatherNd')
def _gather_nd(node, x, indices):
  del node  # Unused.
  return _entries(x, indices).get(mode='fill', fill_value=_filling(x))


@lowerings.lowers('ScatterNd')
def _scatter_nd(node, indices, updates, shape):
  del node  # Unused.
  zeros = jnp.zeros(lowerings.as_shape(shape), updates.dtype)
  return _entries(zeros, indices).add(updates)


@lowerings.lowers('TensorScatterUpdate')
def _scatter_update(node, x, indices, updates):
  del node  # Unused.
  return _entries(x, indices).set(updates)


@lowerings.lowers('TensorScatterAdd')
def _scatter_add(node, x, indices, updates):
  del node  # Unused.
  return _entries(x, indices).add(updates)


@lowerings.lowers('TensorScatterSub')
def _scatter_sub(node, x, indices, updates):
  del node  # Unused.
  return _entries(x, indices).add(-updates)


@lowerings.lowers('UnsortedSegmentSum')
def _segment_sum(node, x, ids, number):
  del node  # Unused.
  size = int(lowerings.as_known(number, 'a number of segments'))
  zeros = jnp.zeros([size, *np.shape(x)[np.ndim(ids) :]], x.dtype)
  # A negative id drops its row.
  return zeros.at[_from_begin(ids, size)].add(x, mode='drop')


@lowerings.lowers('DynamicStitch', 'ParallelDynamicStitch')
def _dynamic_stitch(node, *inputs):
  number = node.integer('N')
  places = [lowerings.as_known(i, 'a place') for i in inputs[:number]]
  size = 1 + max((int(p.max()) for p in places if p.size), default=-1)
  data = inputs[number:]
  inner = np.shape(data[0])[np.ndim(places[0]) :]
  if all(map(lowerings.is_known, data)):
    known = np.zeros([size, *inner], data[0].dtype)
    for place, value in zip(places, data):
      known[place] = value
    return known
  stitched = jnp.zeros([size, *inner], data[0].dtype)
  for place, value in zip(places, data):
    stitched = stitched.at[place].set(value)
  return stitched


@lowerings.lowers('ListDiff')
def _list_diff(node, x, others):
  known = lowerings.as_known(x, 'a list')
  (places,) = np.nonzero(~np.isin(known, lowerings.as_known(others, 'a list')))
  return known[places], places.astype(node.dtype('out_idx'))


_SET_OPERATIONS = {
    'a-b': np.setdiff1d,
    'b-a': lambda a, b: np.setdiff1d(b, a),
    'intersection': np.intersect1d,
    'union': np.union1d,
}


@lowerings.lowers('DenseToDenseSetOperation')
def _set_operation(node, a, b):
  """Compares the rows of matrices, which are shapes where metrics use it."""
  rows = [lowerings.as_known(value, 'a set') for value in (a, b)]
  if any(value.ndim != 2 for value in rows):
    raise lowerings.NoLoweringError(f'{node.op} is not of matrices')
  operate = _SET_OPERATIONS[node.text('set_operation')]
  found = [operate(*pair) for pair in zip(*rows)]
  places = [
      (row, place) for row, one in enumerate(found) for place in range(len(one))
  ]
  return (
      np.asarray(places, np.int64).reshape([-1, 2]),
      np.concatenate([np.zeros(0, a.dtype), *found]).astype(a.dtype),
      np.asarray([len(found), max(map(len, found), default=0)], np.int64),
  )


@lowerings.lowers('MatrixDiagV3', 'MatrixDiag')
def _matrix_diag(node, diagonal, number=0, rows=-1, columns=-1, padding=0):
  size = diagonal.shape[-1]
  _check_option(node, number, [0])
  _check_option(node, rows, [-1, size])
  _check_option(node, columns, [-1, size])
  _check_option(node, padding, [0])
  # A product would turn a diagonal that is no number into rows of them.
  zero = jnp.zeros([], diagonal.dtype)
  return jnp.where(np.eye(size, dtype=bool), diagonal[..., None], zero)


def _check_option(node, option, numbers) -> None:
  """Raises an error if an input is known as none of some numbers."""
  if not np.all(np.isin(np.asarray(option), numbers)):
    raise lowerings.NoLoweringError(f'{node.op} is not of one whole diagonal')


@lowerings.lowers('MatrixDiagPart', 'MatrixDiagPartV3')
def _matrix_diag_part(node, x, number=0, *padding):
  del padding  # Of shorter diagonals.
  _check_option(node, number, [0])
  return jnp.diagonal(x, axis1=-2, axis2=-1)


@lowerings.lowers('DiagPart')
def _diag_part(node, x):
  if np.ndim(x) != 2:
    raise lowerings.NoLoweringError(f'{node.op} is not of a matrix')
  return jnp.diagonal(x)


@lowerings.lowers('MatrixBandPart')
def _band_part(node, x, lower, upper):
  del node  # Unused.
  rows, columns = np.shape(x)[-2:]
  distance = np.arange(rows)[:, None] - np.arange(columns)[None, :]
  is_kept = ((lower < 0) | (distance <= lower)) & (
      (upper < 0) | (-distance <= upper)
  )
  return jnp.where(is_kept, x, jnp.zeros([], x.dtype))


@lowerings.lowers('TopKV2')
def _top_k(node, x, k):
  values, places = lax.top_k(x, int(lowerings.as_known(k, 'a number of tops')))
  return values, places.astype(node.dtype('index_type'))


@lowerings.lowers('InTopKV2', 'InTopK')
def _in_top_k(node, predictions, targets, k):
  del node  # Unused.
  own = jnp.take_along_axis(predictions, targets[:, None], 1)
  is_valid = (targets >= 0) & (targets < predictions.shape[1])
  is_valid &= jnp.all(jnp.isfinite(predictions), 1)
  return is_valid & (jnp.sum(predictions > own, 1) < k)


@lowerings.lowers('Bitcast')
def _bitcast(node, x):
  return lax.bitcast_convert_type(x, node.dtype('type'))
