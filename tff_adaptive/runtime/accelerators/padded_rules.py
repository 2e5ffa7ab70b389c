# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of rules for arrays with more room than rows, or sizes of them.

A rule applies the op's own lowering to the arrays as they are, after it has
checked that rows stay apart, and says where the rows are in the result. What
adds rows up counts only those that a batch has.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import padding

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


def rule(*ops: str) -> Callable[[_Rule], _Rule]:
  """Returns a decorator that makes a function the rule of ops."""

  def register(function):
    _RULES.update(dict.fromkeys(ops, function))
    return function

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
  padding.check_has_none(padded_in(inputs), f'an input of {node.op}')
  return own(node, *numbers(node, inputs))


def own(node: lowerings.Node, *inputs: Any) -> Any:
  """Returns what the op's own lowering returns."""
  return lowerings.find(node.op)(node, *inputs)


def integer(node: lowerings.Node) -> Any:
  """Returns the dtype of shapes at a node."""
  for name in ('T', 'Tparams', 'SrcT', 'Tidx', 'dtype'):
    if node.has(name) and not node.is_variant(name):
      return node.dtype(name)
  return np.int32


def numbers(node: lowerings.Node, inputs: Iterable[Any]) -> list[Any]:
  """Returns the inputs, of which those with sizes are numbers."""
  return [
      padding.as_numbers(value, integer(node))
      if padding.has_sizes(value)
      else value
      for value in inputs
  ]


def _of_shapes(node: lowerings.Node, inputs: Sequence[Any]) -> Any:
  """Returns the outputs of an op of shapes, shapes again."""
  outputs = own(node, *inputs)
  if not isinstance(outputs, tuple):
    return padding.as_sizes(outputs, integer(node))
  return tuple(padding.as_sizes(one, integer(node)) for one in outputs)


def common(node: lowerings.Node, values: Iterable[Any]) -> Any:
  """Returns the one of several equal values."""
  found = set(values)
  if len(found) != 1:
    raise padding.PaddingError(f'{node.op} takes batches of different sizes')
  return found.pop()


def padded_in(inputs: Iterable[Any]) -> list[_Padded]:
  """Returns the inputs that are padded."""
  return [value for value in inputs if isinstance(value, _Padded)]


def bare(inputs: Iterable[Any]) -> list[Any]:
  """Returns the inputs as arrays, with all their room."""
  return [padding.bare(value) for value in inputs]


def refuse(node: lowerings.Node, is_refused: Any) -> None:
  """Raises `PaddingError` if an op works across rows."""
  if is_refused:
    raise padding.PaddingError(f'{node.op} works across the rows of a batch')
