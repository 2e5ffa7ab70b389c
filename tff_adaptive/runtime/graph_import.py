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

from collections.abc import Iterable, Mapping
from typing import Any, Union

import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.runtime import flattening
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
      steps: Mapping[str, flattening.FlatBody],
      compiles_steps: bool,
  ):
    """Initializes the import.

    Args:
      graph_def: The changed graph.
      arguments: What takes the place of tensors, by their names; for a sequence
        a `sequences.Sequence` or the variant of a dataset.
      reads_tensors: Whether the graph reads sequences from tensors.
      steps: The bodies of loops that are flat, by the names of their functions.
      compiles_steps: Whether XLA compiles the bodies of loops.
    """
    self._reads_tensors = reads_tensors
    self._steps = steps
    self._compiles_steps = compiles_steps
    # What is mapped to an argument needs no place in the graph.
    given = set(map(_function_library.node_of, arguments))
    self._nodes = {n.name: n for n in graph_def.node if n.name not in given}
    self._graph_def = graph_def
    self._tensors = {_with_index(name): t for name, t in arguments.items()}
    self._sequences = {
        name: value
        for name, value in self._tensors.items()
        if isinstance(value, sequences.Sequence)
    }
    self._waiting = set(self._nodes)

  def run(self, results: list[str]) -> list[tf.Tensor]:
    """Puts what the results depend on into the current graph.

    Args:
      results: The names of tensors.

    Returns:
      The tensors, in the current graph.
    """
    for name in map(_function_library.node_of, results):
      self._add(name)
    return [self._tensors[_with_index(name)] for name in results]

  def _add(self, name: str) -> None:
    """Adds a node and what it depends on."""
    if name not in self._waiting:
      return
    functions = {
        f.signature.name: f.signature for f in self._graph_def.library.function
    }
    for node in self._reductions_before(name):
      self._add_nodes(self._needed(node.input))
      self._add_loop(node, functions)
    if name in self._waiting:
      self._add_nodes(self._needed([name]))

  def _reductions_before(self, name: str) -> list[Any]:
    """The reductions that a node depends on, or is, each after those before."""
    found: list[Any] = []
    if not self._reads_tensors:
      return found
    seen: set[str] = set()

    def visit(name):
      if name in self._waiting and name not in seen:
        seen.add(name)
        for source in self._nodes[name].input:
          visit(_function_library.node_of(source))
        if self._nodes[name].op == sequences.REDUCE_OP:
          found.append(self._nodes[name])

    visit(name)
    return found

  def _needed(self, names: Iterable[str]) -> list[Any]:
    """The nodes that are not there yet and that others depend on, in order."""
    found: list[Any] = []

    def visit(name):
      if name in self._waiting:
        self._waiting.discard(name)
        for source in self._nodes[name].input:
          visit(_function_library.node_of(source))
        found.append(self._nodes[name])

    for name in names:
      visit(_function_library.node_of(name))
    return found

  def _add_nodes(self, nodes: list[Any]) -> None:
    """Imports nodes; their tensors are known by their names from then on."""
    graph_def = tf.compat.v1.GraphDef(
        node=nodes,
        versions=self._graph_def.versions,
        library=self._graph_def.library,
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

  def _sequence(self, name: str) -> Union[tf.Tensor, sequences.Sequence]:
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
    if isinstance(self._tensors[name], sequences.Sequence):
      self._tensors[name] = self._tensors[name].to_variant()
    return self._tensors[name]

  def _add_loop(self, node: Any, signatures: dict[str, Any]) -> None:
    self._waiting.discard(node.name)
    data = [name for name in node.input if not name.startswith('^')]
    control = [name for name in node.input if name.startswith('^')]
    name = node.attr['f'].func.name
    loop = sequences.build_reduction(
        node, signatures[name], self._steps.get(name), self._compiles_steps
    )
    with tf.control_dependencies(list(map(self._outside, control))):
      # Identities wait; what only reads variables in the loop does not.
      inputs = [tf.identity(self._outside(name)) for name in data[1:]]
    outputs = loop.function(self._sequence(data[0]), *inputs)
    for index, tensor in enumerate(outputs):
      self._tensors[f'{node.name}:{index}'] = tensor
    self._tensors[f'^{node.name}'] = tf.group(*outputs)


def _with_index(name: str) -> str:
  return name if ':' in name else f'{name}:0'
