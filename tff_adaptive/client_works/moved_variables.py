# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds variables that a forward pass moves, such as batch statistics."""

from collections.abc import Iterable, Iterator
import contextlib
from typing import Any
import warnings

import tensorflow as tf

_ASSIGNMENTS = (
    'AssignVariableOp',
    'AssignAddVariableOp',
    'AssignSubVariableOp',
)
# The attribute of a function call op that lists the resources it only reads.
_READ_ONLY = '_read_only_resource_inputs'


@contextlib.contextmanager
def find(variables: Iterable[tf.Variable]) -> Iterator[list[str]]:
  """Finds the variables that the operations of a block write to.

  Args:
    variables: The variables to look for.

  Yields:
    A list that holds their names after the block. It stays empty if the block
    runs eagerly, since no operations are added to a graph.
  """
  moved: list[str] = []
  if tf.executing_eagerly():
    yield moved
    return
  graph = tf.compat.v1.get_default_graph()
  num_before = len(graph.get_operations())
  yield moved
  added = graph.get_operations()[num_before:]
  # A function graph has its own handles of captured variables.
  inner = {
      id(outer): handle for outer, handle in getattr(graph, 'captures', ())
  }
  for variable in variables:
    handle = inner.get(id(variable.handle), variable.handle)
    if any(_writes(operation, handle) for operation in added):
      moved.append(variable.name.partition(':')[0])


def warn(moved: tuple[str, ...]) -> None:
  """Warns of a model that moves variables.

  Args:
    moved: The names of the variables, at least one.
  """
  others = f' and {len(moved) - 1} more' if len(moved) > 1 else ''
  warnings.warn(
      f'The model moves `{moved[0]}`{others} in training, but a process '
      'carries only trainable weights, so it is evaluated with the initial '
      'values: use `tf.keras.layers.GroupNormalization` instead of batch '
      'normalization.',
      UserWarning,
  )


def _writes(operation: tf.Operation, handle: Any) -> bool:
  """Returns whether an operation is known to write to a variable."""
  places = [i for i, tensor in enumerate(operation.inputs) if tensor is handle]
  if not places or operation.type in _ASSIGNMENTS:
    return bool(places)
  try:
    only_read = operation.get_attr(_READ_ONLY)
  except ValueError:
    return False
  return not set(places) <= set(only_read)
