# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tells whether a function of a batch acts on each of its rows alone.

Such a function may be computed once for all rows, before they are shuffled and
batched, with the same bits. The ops are those of which the result of a row
depends on nothing but this row: functions of single numbers, and changes of
shapes that keep the first axis.
"""

from collections.abc import Sequence
import functools
from typing import Any, Optional

import numpy as np
import tensorflow as tf

# TensorFlow has no public reader of function bodies.
from tensorflow.python.framework import function_def_to_graph

from tff_adaptive import _graph_defs

_NAME = 'function'
_OF_NUMBERS = frozenset(
    'Abs Add AddV2 AsString BiasAdd Cast Ceil CheckNumerics ClipByValue Cos'
    ' DivNoNan Elu Equal Erf Exp Expm1 Floor FloorDiv FloorMod Greater'
    ' GreaterEqual Identity IsFinite IsInf IsNan LeakyRelu Less LessEqual Log'
    ' Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan'
    ' Neg NotEqual OnesLike Pow RealDiv Reciprocal Relu Relu6 Rint Round Rsqrt'
    ' Select SelectV2 Selu Sigmoid Sign Sin Softplus Sqrt Square'
    ' SquaredDifference StopGradient StringLength StringLower StringStrip'
    ' StringToHashBucketFast StringToNumber StringUpper Sub Tanh TruncateDiv'
    ' Xdivy Xlogy ZerosLike'.split()
)
_REDUCTIONS = frozenset('All Any Max Mean Min Prod Sum'.split())
_ARGUMENTS = frozenset('ArgMax ArgMin'.split())


def acts_on_rows(
    name: str, shapes: Sequence[tf.TensorShape], library: Any
) -> bool:
  """Returns whether a function acts on each row of its batch alone.

  Args:
    name: The name of the function.
    shapes: The shapes of the components of a batch; arguments after them are
      captured.
    library: The `FunctionDefLibrary` with the function.
  """
  if any(shape.rank is None for shape in shapes):
    return False
  function = type(library.function[0])()
  function.CopyFrom(_graph_defs.find(library, name))
  called = _graph_defs.select_called(function.node_def, library)
  # The same function is traced for each client, under another name.
  function.signature.name = _NAME
  return _acts_on_rows(
      function.SerializeToString(deterministic=True),
      called.SerializeToString(deterministic=True),
      tuple(tuple(shape) for shape in shapes),
  )


@functools.lru_cache(maxsize=256)
def _acts_on_rows(
    serialized: bytes, called: bytes, shapes: Sequence[Sequence[Any]]
) -> bool:
  """Returns what `acts_on_rows` does, of a function and those it calls."""
  library = tf.compat.v1.GraphDef().library
  function = library.function.add()
  function.ParseFromString(serialized)
  try:
    graph, results = _to_graph(
        function, shapes, type(library).FromString(called)
    )
  except (ValueError, KeyError, tf.errors.OpError):
    return False
  # By the names of tensors; those that are neither rows nor constant lack.
  are_rows: dict[str, bool] = {}
  for place, argument in enumerate(function.signature.input_arg):
    are_rows[f'{argument.name}:0'] = place < len(shapes)
  for op in graph.get_operations():
    if op.type == 'Placeholder':
      continue
    inputs = list(op.inputs)
    found = [are_rows.get(tensor.name) for tensor in inputs]
    if not any(found) and None not in found:
      are_rows.update((tensor.name, False) for tensor in op.outputs)
    elif None not in found and _keeps_rows(op, inputs, list(map(bool, found))):
      are_rows.update((tensor.name, True) for tensor in op.outputs)
  return all(are_rows.get(result) for result in results)


def _to_graph(
    function: Any, shapes: Sequence[Sequence[Any]], called: Any
) -> tuple[tf.Graph, list[str]]:
  """Returns a function's graph for batches of any size, and its results."""
  for node in function.node_def:
    # Shapes are inferred anew.
    node.attr.pop('_output_shapes', None)
  num_captured = len(function.signature.input_arg) - len(shapes)
  given = [tf.TensorShape([None, *shape[1:]]) for shape in shapes]
  with tf.Graph().as_default():
    tf.graph_util.import_graph_def(
        tf.compat.v1.GraphDef(library=called), name=''
    )
    graph_def, names = function_def_to_graph.function_def_to_graph_def(
        function, [*given, *[tf.TensorShape(None)] * num_captured]
    )
  graph_def.library.CopyFrom(called)
  results = [names[name] for name in function.ret.values()]
  if called.function:
    inliner = _graph_defs.Inliner(graph_def)
    results = inliner.inline_all(
        lambda node: node.op in _graph_defs.CALL_OPS, results
    )
  graph = tf.Graph()
  with graph.as_default():
    tf.graph_util.import_graph_def(graph_def, name='')
  return graph, results


def _keeps_rows(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  """Returns whether each row of an op's output depends on that row alone."""
  ranks = [tensor.shape.rank for tensor in inputs]
  if None in (rank for rank, rows in zip(ranks, found) if rows):
    return False
  if op.type in _OF_NUMBERS:
    return _broadcasts(inputs, found)
  check = _CHECKS.get(op.type)
  return check is not None and check(op, inputs, found)


def _broadcasts(inputs: list[Any], found: list[bool]) -> bool:
  """Returns whether the first axis of all rows is that of the result."""
  rank, *others = {t.shape.rank for t, rows in zip(inputs, found) if rows}
  if others:
    return False
  constants = [t.shape for t, rows in zip(inputs, found) if not rows]
  return all(
      shape.rank is not None
      and (shape.rank < rank or (shape.rank == rank and shape[0] == 1))
      for shape in constants
  )


def _value(tensor: Any) -> Optional[np.ndarray]:
  value = tf.get_static_value(tensor)
  return None if value is None else np.asarray(value)


def _axes(tensor: Any, rank: int) -> Optional[list[int]]:
  """Returns constant axes as numbers that are not negative."""
  value = _value(tensor)
  return None if value is None else [int(a) % rank for a in value.ravel()]


def _reshape(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  shape = _value(inputs[1])
  row = inputs[0].shape[1:]
  if found[1] or shape is None or not shape.size or not row.is_fully_defined():
    return False
  return shape[0] == -1 and np.prod(shape[1:]) == row.num_elements()


def _expand_dims(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  axes = _axes(inputs[1], inputs[0].shape.rank + 1)
  return not found[1] and axes is not None and 0 not in axes


def _squeeze(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  axes = [axis % inputs[0].shape.rank for axis in op.get_attr('squeeze_dims')]
  return bool(axes) and 0 not in axes


def _reduce(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  axes = _axes(inputs[1], inputs[0].shape.rank)
  return not found[1] and axes is not None and 0 not in axes


def _concat(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  axes = _axes(inputs[-1], inputs[0].shape.rank)
  return all(found[:-1]) and axes is not None and 0 not in axes


def _pack(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  axis = op.get_attr('axis') % (inputs[0].shape.rank + 1)
  return all(found) and axis != 0


def _unpack(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  return op.get_attr('axis') % inputs[0].shape.rank != 0


def _transpose(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  order = _value(inputs[1])
  return not found[1] and order is not None and order[0] == 0


def _one_hot(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  axis = op.get_attr('axis')
  return not any(found[1:]) and axis in (-1, inputs[0].shape.rank)


def _gather(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  """Rows of a constant table by number, or the same places of each row."""
  axes = _axes(inputs[2], inputs[0].shape.rank or 1)
  if axes is None or op.get_attr('batch_dims'):
    return False
  if found[0]:
    return not found[1] and axes != [0]
  return axes == [0]


def _look_up(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  return found == [False, True, False]


def _slice(op: Any, inputs: list[Any], found: list[bool]) -> bool:
  """All of the first axis, of `x[:, ...]` or `x[..., i]`."""
  if any(found[1:]):
    return False
  whole = 1  # The bit of the first axis.
  begins, ends = (_value(inputs[place]) for place in (1, 2))
  strides = _value(inputs[3])
  if begins is None or ends is None or strides is None:
    return False
  if op.get_attr('ellipsis_mask') & whole:
    return len(begins) - 1 < inputs[0].shape.rank
  return bool(
      op.get_attr('begin_mask') & whole
      and op.get_attr('end_mask') & whole
      and not op.get_attr('new_axis_mask') & whole
      and not op.get_attr('shrink_axis_mask') & whole
      and strides[0] == 1
  )


_CHECKS = {
    'ConcatV2': _concat,
    'ExpandDims': _expand_dims,
    'GatherV2': _gather,
    'LookupTableFindV2': _look_up,
    'OneHot': _one_hot,
    'Pack': _pack,
    'Reshape': _reshape,
    'Squeeze': _squeeze,
    'StridedSlice': _slice,
    'Transpose': _transpose,
    'Unpack': _unpack,
    **dict.fromkeys(_REDUCTIONS | _ARGUMENTS, _reduce),
}
