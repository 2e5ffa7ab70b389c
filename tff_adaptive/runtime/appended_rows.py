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
"""Sums that rows are appended to, without copying them at every client.

TFF adds up one client after another. Where a sum is a concatenation, as that of
`aggregators.stack_at_server`, every client copies the rows of all before it,
which costs the square of the cohort's size. Here the concatenation is found in
the graph of the part that adds, and left out: the part returns the new rows
alone, which are kept in a list and concatenated once.
"""

from typing import Any

import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.runtime import computations


def find_appended(serialized: computations.Serialized) -> dict[int, str]:
  """Finds the leaves of a sum that a part only appends rows to.

  Args:
    serialized: A part from a sum and something else to the next sum.

  Returns:
    From the place of such a leaf to the name of the tensor that is appended.
    Strings are left out: a GPU has no lists of them.
  """
  graph = _Graph(serialized)
  appended = {}
  for place, result in enumerate(serialized.results):
    parameter = graph.source(serialized.parameters[place])
    concat = graph.source(result)
    if (
        concat.op == 'ConcatV2'
        and concat.attr['T'].type != tf.string.as_datatype_enum
        and len(concat.input) == 3
        and graph.is_zero(concat.input[2])
        and graph.source(concat.input[0]) is parameter
        and graph.is_used_once(parameter)
        and graph.is_used_once(concat)
    ):
      appended[place] = concat.input[1]
  return appended


def _passes_on(node: Any) -> bool:
  """Whether a node is an identity that waits for nothing else."""
  return node.op == 'Identity' and len(node.input) == 1


class _Graph:
  """The nodes of a graph by their names."""

  def __init__(self, serialized: computations.Serialized):
    self._nodes = {node.name: node for node in serialized.graph_def.node}
    self._results = serialized.results

  def source(self, tensor: str) -> Any:
    """Returns the node that a tensor comes from, but for identities."""
    node = self._nodes[_function_library.node_of(tensor)]
    while _passes_on(node):
      node = self._nodes[_function_library.node_of(node.input[0])]
    return node

  def is_zero(self, tensor: str) -> bool:
    """Whether a tensor is the constant 0."""
    node = self.source(tensor)
    if node.op != 'Const':
      return False
    return not tf.make_ndarray(node.attr['value'].tensor).any()

  def is_used_once(self, node: Any) -> bool:
    """Whether a node is one input or one result, and nothing waits for it."""
    used = [
        tensor
        for reader in self._nodes.values()
        if not _passes_on(reader)
        for tensor in reader.input
    ]
    return sum(self.source(t) is node for t in [*used, *self._results]) == 1


def new_list(rows: tf.Tensor, shape: tf.TensorShape) -> tf.Tensor:
  """Begins a list of rows.

  Args:
    rows: The first rows, [num_rows, ...]; there may be none.
    shape: The shape of all rows of the list, [None, ...].

  Returns:
    The list, a scalar of type variant.
  """
  empty = tf.raw_ops.EmptyTensorList(
      element_shape=_element_shape(shape),
      max_num_elements=-1,
      element_dtype=rows.dtype,
  )
  return append(empty, rows)


def append(rows_list: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
  """Returns a list with rows after those that it has."""
  return tf.raw_ops.TensorListPushBack(input_handle=rows_list, tensor=rows)


def concatenate(
    rows_list: tf.Tensor, dtype: tf.DType, shape: tf.TensorShape
) -> tf.Tensor:
  """Returns all rows of a list, of type `dtype` and shape `shape`."""
  rows = tf.raw_ops.TensorListConcatV2(
      input_handle=rows_list,
      element_dtype=dtype,
      element_shape=_element_shape(shape),
      leading_dims=tf.constant([], tf.int64),
  ).tensor
  rows.set_shape(shape)
  return rows


def _element_shape(shape: tf.TensorShape) -> tf.Tensor:
  """The shape of a list's rows, with -1 for what is not known."""
  if shape.rank is None:
    return tf.constant(-1)
  return tf.constant([-1, *(-1 if s is None else s for s in shape[1:])])
