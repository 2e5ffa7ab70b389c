# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts how often a computation reads a sequence.

TensorFlow shuffles a dataset anew each time that it is read, so that a sequence
has an order for each of its reads.
"""

from collections.abc import Iterable, Mapping
import math
from typing import Any, NamedTuple, Optional

import tensorflow as tf

from tff_adaptive import _graph_defs
from tff_adaptive.runtime import computations
from tff_adaptive.runtime.sequences import dataset_nodes

_READING_OPS = (_graph_defs.REDUCE_OP, 'MakeIterator')
_LOOP_OPS = ('While', 'StatelessWhile', *_READING_OPS)
_BRANCHING_OPS = ('If', 'StatelessIf', 'Case', 'StatelessCase')


class Reread(NamedTuple):
  """How a sequence is read that is read more than once.

  Attributes:
    number: The number of reads; None if loops or branches decide it.
    is_ordered: Whether each read, except for the last one, is to the end and
      before the next one.
  """

  number: Optional[int]
  is_ordered: bool


def _times(left: float, right: float) -> float:
  """Returns a product; none of infinitely many is none."""
  return left * right if left and right else 0


def _reads(
    nodes: Iterable[Any], name: str, functions: Mapping[str, Any]
) -> dict[str, float]:
  """Returns how often nodes read a sequence, by their names, in order."""
  by_name = {node.name: node for node in nodes}
  # How often reading a dataset reads the sequence.
  factors: dict[str, float] = {name: 1}
  reads: dict[str, float] = {}
  for node in _graph_defs.in_order(by_name, by_name):
    data, _ = _graph_defs.split_inputs(node)
    found = {
        place: factors[_graph_defs.node_of(tensor)]
        for place, tensor in enumerate(data)
        if _graph_defs.node_of(tensor) in factors
    }
    if not found:
      continue
    total: float = 0
    if dataset_nodes.derives(node):
      sources = found if node.op == 'ZipDataset' else {0: found.pop(0, 0)}
      turns = math.inf if node.op == 'RepeatDataset' else 1
      factors[node.name] = _times(turns, sum(sources.values()))
    elif node.op in _READING_OPS:
      total += found.pop(0, 0)
    counts = _reads_by_functions(node, found, functions)
    is_loop = node.op in _LOOP_OPS or dataset_nodes.derives(node)
    if node.op in _BRANCHING_OPS:
      total += max(counts, default=0)
    else:
      total += _times(math.inf if is_loop else 1, sum(counts))
    if total:
      reads[node.name] = total
  return reads


def _reads_by_functions(
    node: Any, found: Mapping[int, float], functions: Mapping[str, Any]
) -> list[float]:
  """Returns how often the functions that a node calls read a sequence.

  Args:
    node: The node. Its last inputs are the last arguments of its functions.
    found: How often reading an input reads the sequence, by its place.
    functions: All functions of the graph by name.
  """
  data, _ = _graph_defs.split_inputs(node)
  counts = []
  for called in _graph_defs.called_functions(node, functions):
    arguments = functions[called].signature.input_arg
    count = 0.0
    for place, factor in found.items():
      name = arguments[place - len(data)].name
      inner = _reads(functions[called].node_def, name, functions)
      count += _times(factor, sum(inner.values()))
    counts.append(count)
  return counts


def _are_ordered(
    nodes: Mapping[str, Any], readers: Mapping[str, float]
) -> bool:
  """Returns whether each read is to the end and before the next one."""
  names = list(readers)
  for first, second in zip(names, names[1:]):
    needed = {n.name for n in _graph_defs.in_order(nodes, [second])}
    if readers[first] > 1 or first not in needed:
      return False
    node = nodes[first]
    while node is not None and (
        node.name == first or dataset_nodes.derives(node)
    ):
      # Else it has been shuffled as often as it is repeated.
      if node.op in dataset_nodes.PARTIAL_OPS:
        return False
      node = nodes.get(_graph_defs.node_of(node.input[0]))
  return True


def _find(
    serialized: computations.Serialized, name: str, functions: Mapping[str, Any]
) -> Optional[Reread]:
  """Returns how a sequence is read; None if it is read once or not at all."""
  nodes = {node.name: node for node in serialized.graph_def.node}
  readers = _reads(nodes.values(), name, functions)
  number = sum(readers.values())
  if number <= 1:
    return None
  needed = {n.name for n in _graph_defs.in_order(nodes, serialized.results)}
  are_loops = all(
      nodes[reader].op == _graph_defs.REDUCE_OP for reader in readers
  )
  # After the first read, a cache has its order.
  are_cached = any(
      node.op in dataset_nodes.CACHE_OPS
      for node in _graph_defs.all_nodes(serialized.graph_def)
  )
  is_unknown = math.isinf(number) or not are_loops or are_cached
  if is_unknown or not needed.issuperset(readers):
    return Reread(None, False)
  return Reread(int(number), _are_ordered(nodes, readers))


def find_reread(serialized: computations.Serialized) -> dict[int, Reread]:
  """Returns how the sequences are read that are read more than once.

  Args:
    serialized: A computation, in which calls that read sequences are inlined.

  Returns:
    The reads of sequences by their places among the parameters.
  """
  graph_def = serialized.graph_def
  functions = _graph_defs.functions_of(graph_def)
  sequences = {
      node.name
      for node in graph_def.node
      if node.op == 'Placeholder'
      if node.attr['dtype'].type == tf.variant.as_datatype_enum
  }
  found = {
      place: _find(serialized, name, functions)
      for place, name in enumerate(
          map(_graph_defs.node_of, serialized.parameters)
      )
      if name in sequences
  }
  return {place: reread for place, reread in found.items() if reread}
