# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Imports a rewritten graph into the one that is being built.

Reductions over sequences of tensors become loops there.
"""

import collections
from collections.abc import Iterable
from typing import Any, Optional

import tensorflow as tf

from tff_adaptive import _graph_defs
from tff_adaptive.data import batching
from tff_adaptive.runtime.sequences import dataset_chains
from tff_adaptive.runtime.sequences import sequences


class GraphImport:
  """Imports a modified graph into the current one, piece by piece.

  Each top-level reduction over a sequence of tensors becomes a loop of the
  current graph; its dependencies are imported before it, the rest after it.
  """

  def __init__(
      self,
      graph_def: Any,
      arguments: dict[str, tf.Tensor],
      reads_tensors: bool,
  ):
    """Initializes the import.

    Args:
      graph_def: The modified graph.
      arguments: Replacements of tensors by name; for a sequence, a
        `PackedClients` or the variant of a dataset.
      reads_tensors: Whether the graph reads sequences from tensors.
    """
    self._reads_tensors = reads_tensors
    # Nodes that are mapped to an argument are not imported.
    given = set(map(_graph_defs.node_of, arguments))
    self._nodes = {n.name: n for n in graph_def.node if n.name not in given}
    self._graph_def = graph_def
    self._tensors = {
        _graph_defs.with_index(name): t for name, t in arguments.items()
    }
    self._sequences = {
        name: value
        for name, value in self._tensors.items()
        if isinstance(value, batching.PackedClients)
    }
    self._functions = _graph_defs.functions_of(graph_def)
    # How often they were read so far.
    self._num_reads = collections.Counter[str]()
    self._shuffles: dict[str, list[tf.Tensor]] = {}

  def run(self, results: list[str]) -> list[tf.Tensor]:
    """Imports the named results and their dependencies; returns the results."""
    names = list(map(_graph_defs.node_of, results))
    needed = self._needed(names)
    # Imports are few because each takes time proportional to the size of the
    # functions, however few nodes there are.
    self._add_functions(needed)
    for node in needed:
      if self._reads_tensors and node.op == _graph_defs.REDUCE_OP:
        self._add_loop(node)
    self._add_nodes(self._needed(names))
    return [self._tensors[_graph_defs.with_index(name)] for name in results]

  def _needed(self, names: Iterable[str]) -> list[Any]:
    """Returns nodes and dependencies to import, in topological order."""
    waiting = {
        name: node
        for name, node in self._nodes.items()
        if f'^{name}' not in self._tensors
    }
    return _graph_defs.in_order(waiting, names)

  def _add_functions(self, nodes: list[Any]) -> None:
    """Imports the functions that nodes call."""
    library = _graph_defs.select_called(nodes, self._graph_def.library)
    if library.function:
      tf.graph_util.import_graph_def(
          tf.compat.v1.GraphDef(
              library=library, versions=self._graph_def.versions
          ),
          name='',
      )

  def _add_nodes(self, nodes: list[Any]) -> None:
    """Imports nodes and registers their tensors by name."""
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
        if _graph_defs.node_of(name) not in added
    }
    operations = tf.graph_util.import_graph_def(
        graph_def,
        input_map={
            name: _graph_defs.captured(self._outside(name)) for name in outside
        },
        return_elements=[node.name for node in nodes],
        name=_graph_defs.scope('computation'),
    )
    for node, operation in zip(nodes, operations):
      for index, tensor in enumerate(operation.outputs):
        self._tensors[f'{node.name}:{index}'] = tensor
      self._tensors[f'^{node.name}'] = operation

  def _outside(self, name: str) -> tf.Tensor:
    """Returns the tensor for an input from outside of a piece."""
    if not name.startswith('^'):
      return self._tensor(_graph_defs.with_index(name))
    source = self._tensors.get(name)
    if source is None:  # An argument.
      return self._tensors[f'{name[1:]}:0']
    if isinstance(source, tf.Tensor):
      return source
    # Only tensors can be mapped, even where only a control edge is needed.
    with tf.control_dependencies([source]):
      self._tensors[name] = tf.constant(0)
    return self._tensors[name]

  def _read(self, name: str) -> Optional[batching.PackedClients]:
    """Returns the argument that is a sequence; None for any other tensor.

    Its reads are in topological order. If they differ, this is the next one.
    """
    while _graph_defs.with_index(name) not in self._sequences:
      node = self._nodes.get(_graph_defs.node_of(name))
      if node is None or node.op != 'Identity':
        return None
      name = node.input[0]
    name = _graph_defs.with_index(name)
    self._num_reads[name] += 1
    return _of_read(self._sequences[name], self._num_reads[name] - 1)

  def _tensor(self, name: str) -> tf.Tensor:
    """Returns the tensor with a name; for a sequence, its variant."""
    found = self._tensors[name]
    if isinstance(found, batching.PackedClients):
      found = sequences.to_variant(_of_read(found, 0))
      self._tensors[name] = found
    return found

  def _add_loop(self, node: Any) -> None:
    """Adds the loop that replaces a reduction."""
    _, control = _graph_defs.split_inputs(node)
    loop = dataset_chains.build_reduction(
        node,
        self._nodes,
        self._functions,
        set(map(_graph_defs.node_of, self._sequences)),
        self._shuffles,
    )
    control = [*control, *loop.control]
    inputs: list[Any] = [None] * len(loop.inputs)
    for place in loop.datasets:
      inputs[place] = self._read(loop.inputs[place])
    tensors = [n for n, found in zip(loop.inputs, inputs) if found is None]
    self._add_nodes(self._needed([*tensors, *control]))
    with tf.control_dependencies(list(map(self._outside, control))):
      # Identities wait for control inputs; variable reads in the loop do not.
      for place, name in enumerate(loop.inputs):
        if inputs[place] is None:
          inputs[place] = tf.identity(self._outside(name))
    outputs = loop.function(*inputs)
    for index, tensor in enumerate(outputs):
      self._tensors[f'{node.name}:{index}'] = tensor
    self._tensors[f'^{node.name}'] = tf.group(*outputs)


def _of_read(
    client: batching.PackedClients, number: int
) -> batching.PackedClients:
  """Returns a client's sequence as it is in a read, if its reads differ."""
  if not client.starts.shape.rank:
    return client
  return client._replace(starts=client.starts[number], ends=client.ends[number])
