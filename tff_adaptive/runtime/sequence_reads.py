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

_READING_OPS = (_function_library.REDUCE_OP, 'MakeIterator')
_ALIASING_OPS = ('Identity', 'IdentityN')
# Ops of whose functions one runs, and the place of their first argument.
_FIRST_ARGUMENTS = {'If': 1, 'StatelessIf': 1, 'Case': 1, 'StatelessCase': 1}
_LOOP_OPS = ('While', 'StatelessWhile')


def _num_reads(
    nodes: Iterable[Any], name: str, functions: Mapping[str, Any]
) -> int:
  """Returns how often nodes read a sequence; 2 for more often in a loop."""
  by_name = {node.name: node for node in nodes}
  aliases, total = {name}, 0
  for node in _function_library.in_order(by_name, by_name):
    data, _ = _function_library.split_inputs(node)
    places = [
        place
        for place, tensor in enumerate(data)
        if _function_library.node_of(tensor) in aliases
    ]
    if places and node.op in _ALIASING_OPS:
      aliases.add(node.name)
    # Other inputs are those of the function, which an element follows.
    if node.op in _READING_OPS and 0 in places:
      places.remove(0)
      total += 1
    shift = _FIRST_ARGUMENTS.get(node.op, 0)
    counts = [
        sum(
            _num_reads(
                functions[called].node_def,
                functions[called].signature.input_arg[place - shift].name,
                functions,
            )
            for place in places
        )
        for called in _function_library.called_functions(node, functions)
    ]
    if node.op in _FIRST_ARGUMENTS:
      total += max(counts, default=0)
    else:
      repeats = 2 if node.op in (*_LOOP_OPS, *_READING_OPS) else 1
      total += repeats * sum(counts)
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
