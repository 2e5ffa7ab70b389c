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

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.runtime import serialization


def find_appended(serialized: serialization.Serialized) -> dict[int, str]:
  """Finds the leaves of a sum that a part only appends rows to.

  Args:
    serialized: A part from a sum and something else to the next sum.

  Returns:
    From the place of such a leaf to the name of the tensor that is appended.
    Strings are left out: a GPU has no lists of them.
  """
  graph = _Graph(serialized.graph_def)
  appended = {}
  for place, result in enumerate(serialized.results):
    parameter = serialized.parameters[place]
    concat = graph.source(result)
    if (
        concat.op == 'ConcatV2'
        and concat.attr['T'].type != tf.string.as_datatype_enum
        and len(concat.input) == 3
        and graph.is_zero(concat.input[2])
        and graph.source(concat.input[0]) is graph.source(parameter)
        and graph.is_read_once(parameter, serialized.results)
    ):
      appended[place] = concat.input[1]
  return appended


class _Graph:
  """The nodes of a graph by their names."""

  def __init__(self, graph_def: Any):
    self._nodes = {node.name: node for node in graph_def.node}

  def source(self, tensor: str) -> Any:
    """Returns the node that a tensor comes from, but for identities."""
    node = self._nodes[_function_library.node_of(tensor)]
    while node.op == 'Identity':
      node = self._nodes[_function_library.node_of(node.input[0])]
    return node

  def is_zero(self, tensor: str) -> bool:
    """Whether a tensor is the constant 0."""
    node = self.source(tensor)
    if node.op != 'Const':
      return False
    return not tf.make_ndarray(node.attr['value'].tensor).any()

  def is_read_once(self, parameter: str, results: Sequence[str]) -> bool:
    """Whether one op reads a parameter, and no result is the parameter."""
    given = self.source(parameter)
    num_reads = sum(
        self.source(tensor) is given
        for node in self._nodes.values()
        if node.op != 'Identity'
        for tensor in node.input
    )
    return num_reads == 1 and all(self.source(r) is not given for r in results)


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
  return tf.constant([-1, *shape.as_list()[1:]], tf.int32)
