# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Finds the variables that a model moves by itself as it trains.

Batch normalization keeps averages in such variables. A process carries the
trained weights from round to round, and no averages.
"""

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
# What TensorFlow notes of an op that calls a function: which of its resources
# this only reads.
_READ_ONLY = '_read_only_resource_inputs'


@contextlib.contextmanager
def find_moved(variables: Iterable[tf.Variable]) -> Iterator[list[str]]:
  """Finds the variables that the operations of a block write to.

  Args:
    variables: Those that it may write to.

  Yields:
    A list, which holds their names after the block. It stays empty where the
    block runs eagerly, and no operations are added to a graph.
  """
  moved: list[str] = []
  if tf.executing_eagerly():
    yield moved
    return
  graph = tf.compat.v1.get_default_graph()
  num_before = len(graph.get_operations())
  yield moved
  added = graph.get_operations()[num_before:]
  # A function has handles of its own for the variables around it.
  inner = {
      id(outer): handle for outer, handle in getattr(graph, 'captures', ())
  }
  for variable in variables:
    handle = inner.get(id(variable.handle), variable.handle)
    if any(_writes(operation, handle) for operation in added):
      moved.append(variable.name.partition(':')[0])


class Watch:
  """Warns of a model that moves variables, once."""

  def __init__(self) -> None:
    self._has_warned = False

  @contextlib.contextmanager
  def over(self, variables: Iterable[tf.Variable]) -> Iterator[None]:
    """Warns if the operations of a block write to variables; see `find_moved`.

    Args:
      variables: Those that it may write to.

    Yields:
      Nothing.
    """
    with find_moved(variables) as moved:
      yield
    if moved and not self._has_warned:
      self._has_warned = True
      warnings.warn(_describe(moved), UserWarning)


def _describe(moved: list[str]) -> str:
  others = f' and {len(moved) - 1} more' if len(moved) > 1 else ''
  return (
      f'The model moves `{moved[0]}`{others} as it trains, and a process '
      'carries trained weights only, so that it is evaluated with the values '
      'that these began with: take `tf.keras.layers.GroupNormalization` in '
      'place of batch normalization.'
  )


def _writes(operation: tf.Operation, handle: Any) -> bool:
  """Returns whether an operation writes to a variable, if that can be told."""
  places = [i for i, tensor in enumerate(operation.inputs) if tensor is handle]
  if not places or operation.type in _ASSIGNMENTS:
    return bool(places)
  try:
    only_read = operation.get_attr(_READ_ONLY)
  except ValueError:
    return False
  return not set(places) <= set(only_read)
