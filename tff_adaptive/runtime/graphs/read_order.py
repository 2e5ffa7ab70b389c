# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Orders reads of variables after the assignments of received values.

A Keras layer may derive a tensor from a variable when it is built, as
`tf.keras.layers.Normalization` does. In the graph of a computation, nothing
orders that read and the assignment of the received weights, which is in a
function. Initial values are assigned before both.

Likewise, nothing may order a read and the loop that trains a variable. TFF's
runtime then reads the value before the loop, which takes longer to start.
"""

from collections.abc import Callable, Iterator, Mapping
import functools
from typing import Any

from tff_adaptive import _function_library
from tff_adaptive.runtime import computations

_READ_OPS = frozenset(
    {
        'Identity',
        'ReadVariableOp',
        'ResourceGather',
        'ResourceGatherNd',
        'VarIsInitializedOp',
        'VariableShape',
    }
)

_LOOP_OPS = (_function_library.REDUCE_OP, 'While')


def _data_nodes(node: Any) -> list[str]:
  """Returns the names of the nodes, or the arguments, that a node reads."""
  data, _ = _function_library.split_inputs(node)
  return list(map(_function_library.node_of, data))


def _build_writes(functions: Mapping[str, Any]) -> Callable[[Any, str], bool]:
  """Returns a function that tells whether a node writes to a variable.

  Args:
    functions: The functions of the graph, by name.
  """

  def writes(node, handle):
    data = _data_nodes(node)
    called = _function_library.called_functions(node, functions)
    if not called:
      return handle in data and node.op not in _READ_OPS
    # The last inputs of a node are the last arguments of its functions. A
    # condition or a dataset may precede them.
    return any(
        argument_is_written(name, place - len(data))
        for name in called
        for place, source in enumerate(data)
        if source == handle
    )

  @functools.cache  # Many variables are passed through the same functions.
  def argument_is_written(name, place):
    function = functions[name]
    arguments = function.signature.input_arg
    return -place <= len(arguments) and any(
        writes(node, arguments[place].name) for node in function.node_def
    )

  return writes


class _Accesses:
  """The nodes of a graph that read and write variables, and their order.

  Nodes that initialize variables, or that no result needs, do not count.
  """

  def __init__(self, serialized: computations.Serialized):
    graph_def = serialized.graph_def
    functions = {f.signature.name: f for f in graph_def.library.function}
    nodes = {node.name: node for node in graph_def.node}
    initial = {
        node.name
        for node in _function_library.in_order(
            nodes, [serialized.initialize_op]
        )
    }
    needed = _function_library.in_order(nodes, serialized.results)
    users: dict[str, list[Any]] = {
        node.name: [] for node in needed if node.op == 'VarHandleOp'
    }
    for node in needed:
      if node.name not in initial:
        for source in set(_data_nodes(node)) & users.keys():
          users[source].append(node)
    writes = _build_writes(functions)
    self._variables = []
    for handle, found in users.items():
      writers = [node for node in found if writes(node, handle)]
      readers = [node for node in found if node not in writers]
      if readers and writers:
        self._variables.append((readers, writers))
    self._ancestors = self._find_ancestors(needed)

  def _find_ancestors(self, in_order: list[Any]) -> dict[str, int]:
    """Returns the readers and writers before each node, as a set of bits."""
    bits: dict[str, int] = {}
    for readers, writers in self._variables:
      for node in (*readers, *writers):
        bits.setdefault(node.name, 1 << len(bits))
    self._bits = bits
    found: dict[str, int] = {}
    for node in in_order:
      found[node.name] = 0
      for source in map(_function_library.node_of, node.input):
        found[node.name] |= found.get(source, 0) | bits.get(source, 0)
    return found

  def is_before(self, node: Any, other: Any) -> bool:
    """Returns whether a node runs before another one."""
    return bool(self._ancestors[other.name] & self._bits[node.name])

  def early_reads(self) -> Iterator[tuple[Any, list[Any]]]:
    """Yields readers that follow no writer, and the writers."""
    for readers, writers in self._variables:
      for reader in readers:
        if not any(self.is_before(writer, reader) for writer in writers):
          yield reader, writers


def _inline_writers(serialized: computations.Serialized) -> None:
  """Inlines calls that write to variables that were read early, in place."""
  while True:
    calls = {
        writer.name
        for _, writers in _Accesses(serialized).early_reads()
        for writer in writers
        if writer.op in _function_library.CALL_OPS
    }
    if not calls:
      return
    inliner = _function_library.Inliner(serialized.graph_def)
    serialized.results[:] = inliner.inline_all(
        functools.partial(_is_call, calls), serialized.results
    )


def _is_call(names: set[str], node: Any) -> bool:
  # An inlined call stays, as a no-op.
  return node.name in names and node.op != 'NoOp'


def _order(reader: Any, writers: list[Any], accesses: _Accesses) -> bool:
  """Orders a read between assignments and loops; returns whether it changed.

  Args:
    reader: The node that reads a variable.
    writers: The nodes that write to it, none of them before the reader.
    accesses: The order of the nodes.
  """
  later = [w for w in writers if not accesses.is_before(reader, w)]
  loops = [w for w in later if w.op in _LOOP_OPS]
  assignments = [
      w
      for w in later
      if w.op not in _LOOP_OPS
      if not any(accesses.is_before(loop, w) for loop in loops)
  ]
  reader.input.extend(f'^{writer.name}' for writer in assignments)
  for loop in loops:
    loop.input.append(f'^{reader.name}')
  return bool(later)


def read_assigned_values(serialized: computations.Serialized) -> None:
  """Orders unordered reads of variables, in place.

  They follow assignments and precede loops. A read and an assignment that are
  in the same function have an order already.
  """
  if not serialized.initialize_op:
    return
  _inline_writers(serialized)
  is_changed = True
  while is_changed:
    is_changed = False
    accesses = _Accesses(serialized)
    for reader, writers in accesses.early_reads():
      is_changed = _order(reader, writers, accesses)
      if is_changed:  # Other nodes are in another order now.
        break
