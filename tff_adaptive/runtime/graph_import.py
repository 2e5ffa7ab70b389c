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
"""Graphs of computations, put into the graph that is being built."""

from collections.abc import Iterable
from typing import Any, Union

import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.data import packed_clients
from tff_adaptive.runtime import sequences


class GraphImport:
  """The changed graph, put into the current one piece by piece.

  Each reduction at the top of what reads sequences from tensors becomes a loop
  of the current graph; what it depends on is put there before, the rest after.
  """

  def __init__(
      self,
      graph_def: Any,
      arguments: dict[str, tf.Tensor],
      reads_tensors: bool,
  ):
    """Initializes the import.

    Args:
      graph_def: The changed graph.
      arguments: What takes the place of tensors, by their names; for a sequence
        a `PackedClients` or the variant of a dataset.
      reads_tensors: Whether the graph reads sequences from tensors.
    """
    self._reads_tensors = reads_tensors
    # What is mapped to an argument needs no place in the graph.
    given = set(map(_function_library.node_of, arguments))
    self._nodes = {n.name: n for n in graph_def.node if n.name not in given}
    self._graph_def = graph_def
    self._tensors = {_with_index(name): t for name, t in arguments.items()}
    self._sequences = {
        name: value
        for name, value in self._tensors.items()
        if isinstance(value, packed_clients.PackedClients)
    }
    self._signatures = {
        f.signature.name: f.signature for f in graph_def.library.function
    }

  def run(self, results: list[str]) -> list[tf.Tensor]:
    """Puts what the results depend on into the current graph.

    Args:
      results: The names of tensors.

    Returns:
      The tensors, in the current graph.
    """
    names = list(map(_function_library.node_of, results))
    needed = self._needed(names)
    # Once, and as few imports as can be: each takes as long as functions are
    # large, however few nodes there are.
    self._add_functions(needed)
    for node in needed:
      if self._becomes_loop(node):
        self._add_nodes(self._needed(node.input))
        self._add_loop(node)
    self._add_nodes(self._needed(names))
    return [self._tensors[_with_index(name)] for name in results]

  def _becomes_loop(self, node: Any) -> bool:
    return self._reads_tensors and node.op == sequences.REDUCE_OP

  def _needed(self, names: Iterable[str]) -> list[Any]:
    """The nodes that are not there yet of some and of all that they depend on.

    Args:
      names: The names of nodes or of tensors.

    Returns:
      The nodes, each after those that it depends on.
    """
    found: list[Any] = []
    seen: set[str] = set()
    waiting = [(name, False) for name in names]
    while waiting:
      name, is_next = waiting.pop()
      name = _function_library.node_of(name)
      if is_next:
        found.append(self._nodes[name])
      elif (
          name in self._nodes and name not in seen and not self._is_there(name)
      ):
        seen.add(name)
        waiting.append((name, True))
        waiting.extend((source, False) for source in self._nodes[name].input)
    return found

  def _is_there(self, name: str) -> bool:
    return f'^{name}' in self._tensors

  def _add_functions(self, nodes: list[Any]) -> None:
    """Imports the functions that nodes call."""
    library = _function_library.select_called(nodes, self._graph_def.library)
    if library.function:
      tf.graph_util.import_graph_def(
          tf.compat.v1.GraphDef(
              library=library, versions=self._graph_def.versions
          ),
          name='',
      )

  def _add_nodes(self, nodes: list[Any]) -> None:
    """Imports nodes; their tensors are known by their names from then on."""
    if not nodes:
      return
    graph_def = tf.compat.v1.GraphDef(
        node=nodes, versions=self._graph_def.versions
    )
    added = {node.name for node in nodes}
    outside = {
        name
        for node in nodes
        for name in node.input
        if _function_library.node_of(name) not in added
    }
    operations = tf.graph_util.import_graph_def(
        graph_def,
        input_map={name: self._outside(name) for name in outside},
        return_elements=[node.name for node in nodes],
        name='computation',
    )
    for node, operation in zip(nodes, operations):
      for index, tensor in enumerate(operation.outputs):
        self._tensors[f'{node.name}:{index}'] = tensor
      self._tensors[f'^{node.name}'] = operation

  def _outside(self, name: str) -> tf.Tensor:
    """The tensor that stands for an input from outside of a piece."""
    if not name.startswith('^'):
      return self._tensor(_with_index(name))
    source = self._tensors.get(name)
    if source is None:  # An argument.
      return self._tensors[f'{name[1:]}:0']
    if isinstance(source, tf.Tensor):
      return source
    # Only tensors can be mapped to, also where only their op is meant.
    with tf.control_dependencies([source]):
      self._tensors[name] = tf.constant(0)
    return self._tensors[name]

  def _sequence(
      self, name: str
  ) -> Union[tf.Tensor, packed_clients.PackedClients]:
    """What a reduction reads: an argument, or else some variant tensor."""
    source = name
    while _with_index(source) not in self._sequences:
      node = self._nodes[_function_library.node_of(source)]
      if node.op != 'Identity':
        return self._outside(name)
      source = node.input[0]
    return self._sequences[_with_index(source)]

  def _tensor(self, name: str) -> tf.Tensor:
    """The tensor of a name; of a sequence its variant."""
    found = self._tensors[name]
    if isinstance(found, packed_clients.PackedClients):
      found = self._tensors[name] = sequences.to_variant(found)
    return found

  def _add_loop(self, node: Any) -> None:
    """Adds the loop that a reduction becomes."""
    data = [name for name in node.input if not name.startswith('^')]
    control = [name for name in node.input if name.startswith('^')]
    name = node.attr['f'].func.name
    loop = sequences.build_reduction(node, self._signatures[name])
    with tf.control_dependencies(list(map(self._outside, control))):
      # Identities wait; what only reads variables in the loop does not.
      inputs = [tf.identity(self._outside(name)) for name in data[1:]]
    outputs = loop.function(self._sequence(data[0]), *inputs)
    for index, tensor in enumerate(outputs):
      self._tensors[f'{node.name}:{index}'] = tensor
    self._tensors[f'^{node.name}'] = tf.group(*outputs)


def _with_index(name: str) -> str:
  return name if ':' in name else f'{name}:0'
