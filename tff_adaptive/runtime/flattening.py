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
"""Graphs without calls and branches, which can be vectorized.

`tf.vectorized_map` turns ops on one client into ops on many. It cannot look
into functions that were imported, so calls are replaced by what they call, and
branches by both sides and a selection.
"""

from collections.abc import Collection
from typing import Any, Optional

import attrs
import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.runtime import sequences

PLACEHOLDER_OP = 'Placeholder'
CALL_OPS = ('PartitionedCall', 'StatefulPartitionedCall')
_BRANCH_OPS = ('If', 'StatelessIf')
_ASSERT_OP = 'Assert'
# They say of themselves that they have a state, and have none that matters.
_HARMLESS_OPS = ('NoOp', _ASSERT_OP)


@attrs.frozen(eq=False)
class FlatBody:
  """A function without calls, as a graph.

  Attributes:
    graph_def: Its nodes.
    parameters: The names of the placeholders that stand for its arguments.
    results: The names of the tensors that it returns.
  """

  graph_def: Any
  parameters: list[str]
  results: list[str]

  def __call__(self, *arguments: tf.Tensor) -> list[tf.Tensor]:
    """Adds the function to the graph that is being built."""
    used = {
        _function_library.node_of(name)
        for node in self.graph_def.node
        for name in node.input
    }.union(map(_function_library.node_of, self.results))
    return tf.graph_util.import_graph_def(
        self.graph_def,
        input_map={
            f'{name}:0': argument
            for name, argument in zip(self.parameters, arguments)
            if name in used
        },
        return_elements=self.results,
        name='step',
    )


def _asserts_in_a_side(node: Any, library: Any) -> bool:
  """Whether a side of a branch asserts what may not hold if it is not taken.

  What is taken if a condition does not hold may assert this very condition:
  TensorFlow puts an assertion on floats into a branch of its own.
  """
  condition, *data = [name for name in node.input if not name.startswith('^')]
  for function in _function_library.select_called([node], library).function:
    asserted = {n.input[0] for n in function.node_def if n.op == _ASSERT_OP}
    signature = function.signature
    if signature.name == node.attr['else_branch'].func.name:
      asserted -= {
          argument.name
          for argument, name in zip(signature.input_arg, data)
          if name == condition
      }
    if asserted:
      return True
  return False


def _split_branch(
    node: Any, inliner: _function_library.Inliner, graph_def: Any
):
  """Replaces a branch by calls of both sides and a selection."""
  condition, *data = [name for name in node.input if not name.startswith('^')]
  control = [name for name in node.input if name.startswith('^')]
  calls = []
  for side in ('then_branch', 'else_branch'):
    call = graph_def.node.add(name=f'{node.name}/{side}', op=CALL_OPS[0])
    calls.append(f'^{call.name}')
    call.input.extend(data + control)
    call.attr['f'].CopyFrom(node.attr[side])
    call.attr['Tin'].CopyFrom(node.attr['Tin'])
    call.attr['Tout'].CopyFrom(node.attr['Tout'])
  outputs = []
  for index, dtype in enumerate(node.attr['Tout'].list.type):
    select = graph_def.node.add(name=f'{node.name}/{index}', op='SelectV2')
    select.input.extend(
        [
            condition,
            f'{node.name}/then_branch:{index}',
            f'{node.name}/else_branch:{index}',
        ]
    )
    select.attr['T'].type = dtype
    outputs.append(f'{select.name}:0')
  node.op = 'NoOp'
  node.attr.clear()
  node.input[:] = calls + control
  return inliner.rename_outputs(node.name, outputs)


def _prune(graph_def: Any, results: list[str]) -> None:
  """Removes what the results do not depend on."""
  nodes = {node.name: node for node in graph_def.node}
  needed: set[str] = set()
  waiting = list(map(_function_library.node_of, results))
  while waiting:
    name = waiting.pop()
    if name not in needed:
      needed.add(name)
      waiting.extend(map(_function_library.node_of, nodes[name].input))
  del graph_def.node[:]
  graph_def.node.extend(node for name, node in nodes.items() if name in needed)


def _flatten(graph_def: Any, results: list[str]) -> Optional[list[str]]:
  """Flattens a graph in place.

  Args:
    graph_def: The graph.
    results: The names of the tensors that it returns.

  Returns:
    What they are called then, or None if a branch must not be split.
  """
  inliner = _function_library.Inliner(graph_def)
  while True:
    node = next(
        (n for n in graph_def.node if n.op in (*CALL_OPS, *_BRANCH_OPS)), None
    )
    if node is None:
      _prune(graph_def, results)
      return results
    if node.op in CALL_OPS:
      renamed = inliner.inline(node)
    elif _asserts_in_a_side(node, graph_def.library):
      return None
    else:
      renamed = _split_branch(node, inliner, graph_def)
    results = [renamed.get(name, name) for name in results]


def _is_pure(graph_def: Any, parameters: Collection[str]) -> bool:
  """Whether no op of a flat graph has a state or calls a function.

  Nor may there be a placeholder that is no parameter. Keras leaves some in
  branches that are never taken, but of a flat graph both sides are computed.
  """
  registry = tf.Graph()
  for node in graph_def.node:
    if node.op in _HARMLESS_OPS or node.op == sequences.REDUCE_OP:
      continue
    if node.op == PLACEHOLDER_OP:
      if node.name not in parameters:
        return False
      continue
    if any(_function_library.functions_in(node)):
      return False
    if registry.op_def_for_type(node.op).is_stateful:
      return False
  return True


def flatten_function(name: str, library: Any) -> Optional[FlatBody]:
  """Flattens a function.

  Args:
    name: The name of the function.
    library: The `FunctionDefLibrary` that it is in.

  Returns:
    The flat function, or None if it has a state, holds loops, or asserts in a
    branch.
  """
  graph_def = tf.compat.v1.GraphDef(library=library)
  inliner = _function_library.Inliner(graph_def)
  nodes, results = inliner.body(name)
  graph_def.node.extend(nodes)
  (function,) = [f for f in library.function if f.signature.name == name]
  flat_results = _flatten(graph_def, results)
  parameters = [arg.name for arg in function.signature.input_arg]
  if flat_results is None or not _is_pure(graph_def, parameters):
    return None
  graph_def.ClearField('library')
  # Arguments are there when the body begins, nothing has to wait for them.
  waits = {f'^{name}' for name in parameters}
  for node in graph_def.node:
    node.input[:] = [name for name in node.input if name not in waits]
  return FlatBody(graph_def, parameters, flat_results)


def flatten_graph(
    graph_def: Any, parameters: list[str], results: list[str]
) -> Optional[tuple[Any, list[str]]]:
  """Flattens a graph, but for its reductions.

  Args:
    graph_def: A `GraphDef`, which is not changed.
    parameters: The names of the tensors that it takes.
    results: The names of the tensors that it returns.

  Returns:
    The flat graph and what its results are called in it, or None if it has a
    state, holds loops other than reductions, or asserts in a branch.
  """
  flat = type(graph_def).FromString(graph_def.SerializeToString())
  flat_results = _flatten(flat, list(results))
  names = set(map(_function_library.node_of, parameters))
  if flat_results is None or not _is_pure(flat, names):
    return None
  return flat, flat_results
