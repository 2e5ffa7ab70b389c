# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ops that keep the rows of a padded batch apart, in JAX.

See `padded_rules`.
"""

from typing import Any

import numpy as np

from tff_adaptive.runtime.accelerators import list_lowerings
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import math_lowerings
from tff_adaptive.runtime.accelerators import network_lowerings
from tff_adaptive.runtime.accelerators import padded_rules as rules
from tff_adaptive.runtime.accelerators import padding

_Padded = padding.Padded


# Ops that treat each entry alike.


@rules.rule(
    *math_lowerings.ELEMENTWISE,
    'Bitcast',
    'Cast',
    'CheckNumerics',
    'DivNoNan',
    'EnsureShape',
    'FloorDiv',
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
  inputs = rules.numbers(node, inputs)
  padded = rules.padded_in(inputs)
  if not padded:
    return rules.own(node, *inputs)
  if isinstance(padded[0].values, list_lowerings.TensorList):
    return _of_lists(node, padded)
  place = rules.common(node, (value.axis - value.ndim for value in padded))
  size = rules.common(node, (value.size for value in padded))
  if node.op == 'Bitcast':  # Between dtypes of other sizes, axes differ.
    sizes = (
        padded[0].values.dtype.itemsize,
        np.dtype(node.dtype('type')).itemsize,
    )
    rules.refuse(node, sizes[0] != sizes[1])
  for value in inputs:
    if not isinstance(value, _Padded) and np.ndim(value) >= -place:
      rules.refuse(node, np.shape(value)[place] != 1)
  found = rules.own(node, *rules.bare(inputs))
  return _Padded(found, found.ndim + place, size)


def _of_lists(node, padded):
  """Applies an op to lists of padded arrays."""
  axis = rules.common(node, (value.axis for value in padded))
  size = rules.common(node, (value.size for value in padded))
  return _Padded(rules.own(node, *rules.bare(padded)), axis, size)


@rules.rule('AddN')
def _add_all(node, *inputs):
  if any(
      isinstance(padding.bare(value), list_lowerings.TensorList)
      for value in inputs
  ):
    return _of_lists(node, rules.padded_in(inputs))
  return _elementwise(node, *inputs)


@rules.rule('IdentityN')
def _identities(node, *inputs):
  del node  # Unused.
  return inputs


@rules.rule('Assert', 'NoOp', 'Print', 'PrintV2')
def _nothing(node, *inputs):
  del node, inputs  # Unused.
  return ()


@rules.rule('Select')
def _select(node, condition, x, y):
  if np.ndim(condition) == 1 and np.ndim(x) > 1:
    padded = rules.padded_in([condition, x, y])
    rules.refuse(node, len(padded) < 3 or any(value.axis for value in padded))
    found = rules.own(node, *rules.bare([condition, x, y]))
    return _Padded(found, 0, rules.common(node, (one.size for one in padded)))
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
  rules.refuse(
      node, any(not isinstance(row, _Padded) or row.axis != 0 for row in rows)
  )
  size = rules.common(node, (row.size for row in rows))
  outputs = rules.own(node, *rules.bare(rows), *others)
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
  rules.rule(_op)(
      lambda node, *inputs, num=_num_rows: _by_row(node, num, *inputs)
  )


@rules.rule('LogSoftmax', 'Softmax')
def _softmax(node, x):
  rules.refuse(node, x.axis == x.ndim - 1)
  return x.with_values(rules.own(node, x.values))


@rules.rule('AvgPoolGrad')
def _avg_pool_grad(node, shape, grad):
  rules.refuse(node, grad.axis != 0)
  return grad.with_values(rules.own(node, padding.rooms(shape), grad.values))


@rules.rule('Conv2DBackpropInput', 'DepthwiseConv2dNativeBackpropInput')
def _convolution_input(node, shape, kernel, grad):
  rules.refuse(node, grad.axis != 0 or isinstance(kernel, _Padded))
  return grad.with_values(
      rules.own(node, padding.rooms(shape), kernel, grad.values)
  )


@rules.rule('Conv2DBackpropFilter', 'DepthwiseConv2dNativeBackpropFilter')
def _convolution_filter(node, x, shape, grad):
  rules.refuse(node, grad.axis != 0 or x.axis != 0)
  return rules.own(node, x.masked(0), shape, grad.masked(0))


def _has_rows_as_channels(node: lowerings.Node, x: _Padded) -> bool:
  """Returns whether each row is a channel, as in Keras 2's layer norm."""
  return network_lowerings.has_channels_first(node) and x.axis == 1


@rules.rule('FusedBatchNorm', 'FusedBatchNormV2', 'FusedBatchNormV3')
def _batch_norm(node, x, *parameters):
  if _has_rows_as_channels(node, x):
    y, *others = rules.own(node, x.values, *rules.bare(parameters))
    return x.with_values(y), *(_Padded(one, 0, x.size) for one in others)
  rules.refuse(node, x.axis != 0)
  y, *others = network_lowerings.batch_norm(
      node, x.values, *parameters, size=x.size
  )
  return x.with_values(y), *others


@rules.rule(
    'FusedBatchNormGrad', 'FusedBatchNormGradV2', 'FusedBatchNormGradV3'
)
def _batch_norm_grad(node, grad, x, *parameters):
  rules.refuse(node, x.axis != grad.axis)
  if _has_rows_as_channels(node, x):
    by_x, *others = rules.own(
        node, grad.values, x.values, *rules.bare(parameters)
    )
    parts = [_Padded(one, 0, x.size) for one in others[:2]]
    return x.with_values(by_x), *parts, *others[2:]
  rules.refuse(node, x.axis != 0)
  by_x, *others = network_lowerings.batch_norm_grad(
      node, grad.masked(0), x.masked(0), *parameters, size=x.size
  )
  return x.with_values(by_x), *others
