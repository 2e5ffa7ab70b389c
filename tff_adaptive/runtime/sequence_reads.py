# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts how often a computation reads a sequence.

TensorFlow shuffles a dataset anew each time that it is read, so that rows in
one order stand only for a sequence that is read once.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import dataset_chains

_READING_OPS = (_function_library.REDUCE_OP, 'MakeIterator')
_LOOP_OPS = ('While', 'StatelessWhile', *_READING_OPS)
_BRANCHING_OPS = ('If', 'StatelessIf', 'Case', 'StatelessCase')
# More reads are not told apart.
_SEVERAL = 2


def _num_reads(
    nodes: Iterable[Any], name: str, functions: Mapping[str, Any]
) -> int:
  """Returns how often nodes read a sequence; 2 for more often in a loop."""
  by_name = {node.name: node for node in nodes}
  # How often reading a dataset reads the sequence.
  factors, total = {name: 1}, 0
  for node in _function_library.in_order(by_name, by_name):
    data, _ = _function_library.split_inputs(node)
    found = {
        place: factors[_function_library.node_of(tensor)]
        for place, tensor in enumerate(data)
        if _function_library.node_of(tensor) in factors
    }
    if not found:
      continue
    if dataset_chains.derives(node):
      is_again = node.op == 'RepeatDataset'
      sources = found if node.op == 'ZipDataset' else {0: found.pop(0, 0)}
      factors[node.name] = sum(sources.values()) * (_SEVERAL if is_again else 1)
    elif node.op in _READING_OPS:
      total += found.pop(0, 0)
    # What is left is passed to functions, whose last arguments are the inputs.
    counts = [
        sum(
            factor
            * _num_reads(
                functions[called].node_def,
                functions[called].signature.input_arg[place - len(data)].name,
                functions,
            )
            for place, factor in found.items()
        )
        for called in _function_library.called_functions(node, functions)
    ]
    if node.op in _BRANCHING_OPS:
      total += max(counts, default=0)
    else:
      is_loop = node.op in _LOOP_OPS or dataset_chains.derives(node)
      total += sum(counts) * (_SEVERAL if is_loop else 1)
  return total


def find_reread(serialized: computations.Serialized) -> frozenset[int]:
  """Returns the places of the sequences that are read more than once."""
  graph_def = serialized.graph_def
  functions = {f.signature.name: f for f in graph_def.library.function}
  sequences = {
      node.name
      for node in graph_def.node
      if node.op == 'Placeholder'
      if node.attr['dtype'].type == tf.variant.as_datatype_enum
  }
  names = map(_function_library.node_of, serialized.parameters)
  return frozenset(
      place
      for place, name in enumerate(names)
      if name in sequences and _num_reads(graph_def.node, name, functions) > 1
  )
