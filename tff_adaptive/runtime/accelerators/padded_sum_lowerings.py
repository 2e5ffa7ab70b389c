# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sums over the rows of a padded batch, and products of matrices, in JAX.

See `padded_rules`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import math_lowerings
from tff_adaptive.runtime.accelerators import padded_rules as rules
from tff_adaptive.runtime.accelerators import padding

_Padded = padding.Padded


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


@rules.rule(*_NEUTRAL)
def _reduce(node, x, axes):
  if not isinstance(x, _Padded):
    return rules.own(node, *rules.numbers(node, [x]), axes)
  gone = lowerings.as_axes(axes, x.ndim)
  if x.axis not in gone:
    kept = (
        x.axis
        if node.boolean('keep_dims')
        else padding.axis_without(x.axis, gone)
    )
    return _Padded(rules.own(node, x.values, axes), kept, x.size)
  masked = x.masked(_NEUTRAL[node.op](x.values.dtype))
  if node.op != 'Mean':
    return rules.own(node, masked, axes)
  others = [x.values.shape[axis] for axis in gone if axis != x.axis]
  count = x.size.number * int(np.prod(others, dtype=np.int64))
  return math_lowerings.mean(node, masked, gone, count)


@rules.rule('BiasAddGrad', 'L2Loss')
def _sum(node, x):
  rules.refuse(node, node.op == 'BiasAddGrad' and x.axis)
  return rules.own(node, x.masked(0))


@rules.rule('ArgMax', 'ArgMin')
def _arg_reduce(node, x, axis):
  (gone,) = lowerings.as_axes(axis, x.ndim)
  rules.refuse(node, gone == x.axis)
  return _Padded(
      rules.own(node, x.values, axis),
      padding.axis_without(x.axis, [gone]),
      x.size,
  )


@rules.rule('TopKV2')
def _top_k(node, x, k):
  rules.refuse(node, x.axis == x.ndim - 1)
  return tuple(map(x.with_values, rules.own(node, x.values, k)))


@rules.rule('Cumprod', 'Cumsum')
def _cumulate(node, x, axis):
  neutral = 1 if node.op == 'Cumprod' else 0
  return x.with_values(rules.own(node, x.masked(neutral), axis))


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
    return rules.own(node, x.masked(0), y.masked(0))
  found = rules.own(node, *rules.bare([x, y]))
  size = rules.common(node, (value.size for value in rules.padded_in([x, y])))
  if axes == [rows, None]:
    return _Padded(found, found.ndim - 2, size)
  if axes == [None, columns]:
    return _Padded(found, found.ndim - 1, size)
  stacked = {axis for axis in axes if axis is not None}
  rules.refuse(node, len(stacked) != 1 or max(stacked) > -3)
  for value, axis in zip((x, y), axes):
    if axis is None and np.ndim(value) >= -max(stacked):
      rules.refuse(node, np.shape(value)[max(stacked)] != 1)
  return _Padded(found, found.ndim + max(stacked), size)


@rules.rule('MatMul')
def _matmul(node, x, y):
  rows = -1 if node.boolean('transpose_a') else -2
  columns = -2 if node.boolean('transpose_b') else -1
  return _multiply(node, x, y, rows, columns)


@rules.rule('BatchMatMul', 'BatchMatMulV2', 'BatchMatMulV3')
def _batch_matmul(node, x, y):
  rows = -1 if node.boolean('adj_x') else -2
  columns = -2 if node.boolean('adj_y') else -1
  return _multiply(node, x, y, rows, columns)


@rules.rule('Einsum')
def _einsum(node, *inputs):
  given, output = node.text('equation').split('->')
  labels = {
      letters[value.axis]
      for letters, value in zip(given.split(','), inputs)
      if isinstance(value, _Padded)
  }
  label = rules.common(node, labels)
  rules.refuse(node, '.' in given)
  for letters, value in zip(given.split(','), inputs):
    rules.refuse(node, label in letters and not isinstance(value, _Padded))
  size = rules.common(node, (value.size for value in rules.padded_in(inputs)))
  if label in output:
    return _Padded(
        rules.own(node, *rules.bare(inputs)),
        output.index(label),
        size,
    )
  return rules.own(
      node,
      *(one.masked(0) if isinstance(one, _Padded) else one for one in inputs),
  )
