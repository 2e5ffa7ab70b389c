# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The variables of a computation's graph.

- `make_anonymous`: each run has variables and tables of its own, so that runs
  may be concurrent.
- `read_assigned_values`: reads come after the assignments of received values.
- `find_untrained`: trainable variables that a client's work does not train.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import functools
import re
from typing import Any, Optional

import tensorflow as tf

from tff_adaptive import _graph_defs
from tff_adaptive.runtime import computations

# Named table ops and their anonymous counterparts.
_ANONYMOUS_TABLES = {
    f'{kind}V2': f'Anonymous{kind}'
    for kind in (
        'HashTable',
        'MutableDenseHashTable',
        'MutableHashTable',
        'MutableHashTableOfTensors',
    )
}
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

_LOOP_OPS = (_graph_defs.REDUCE_OP, 'While')


@functools.cache
def _keeps_state(op: str) -> bool:
  """Returns whether an op has named state that outlives a run, as queues do."""
  attributes = {attr.name for attr in tf.Graph().op_def_for_type(op).attr}
  return {'container', 'shared_name'} <= attributes


def make_anonymous(serialized: computations.Serialized) -> None:
  """Gives every run its own resources, created when it starts."""
  graph_def = serialized.graph_def
  library = {f.signature.name for f in graph_def.library.function}
  handles = set()
  for node in _graph_defs.all_nodes(graph_def):
    if node.op in _ANONYMOUS_TABLES:
      node.op = _ANONYMOUS_TABLES[node.op]
      for name in ('container', 'shared_name', 'use_node_name_sharing'):
        node.attr.pop(name, None)
      handles.add(node.name)
    elif node.op == 'VarHandleOp':
      node.attr['shared_name'].s = _graph_defs.ANONYMOUS.encode()
      node.attr['container'].s = b''
      handles.add(node.name)
    elif node.op not in library and _keeps_state(node.op):
      raise computations.UnsupportedComputationError(
          f'{node.name!r} ({node.op}) would keep its state between runs; pass '
          'the state as an argument and return it instead'
      )
  if not serialized.initialize_op:
    return
  nodes = {node.name: node for node in graph_def.node}
  needed = _graph_defs.in_order(nodes, [serialized.initialize_op])
  initialization = {node.name for node in needed}
  for node in graph_def.node:
    uses_resource = any(
        _graph_defs.node_of(name) in handles for name in node.input
    )
    if uses_resource and node.name not in initialization:
      node.input.append(f'^{serialized.initialize_op}')


def _build_writes(functions: Mapping[str, Any]) -> Callable[[Any, str], bool]:
  """Returns a function that tells whether a node writes to a variable.

  Args:
    functions: The functions of the graph, by name.
  """

  def writes(node, handle):
    called = _graph_defs.called_functions(node, functions)
    if not called:
      found = _graph_defs.sources_of(node)
      return handle in found and node.op not in _READ_OPS
    return any(
        argument_is_written(name, argument)
        for name in called
        for source, argument in _graph_defs.arguments_of(node, functions[name])
        if source == handle
    )

  @functools.cache  # Many variables are passed through the same functions.
  def argument_is_written(name, argument):
    return any(writes(node, argument) for node in functions[name].node_def)

  return writes


class _Accesses:
  """The nodes of a graph that read and write variables, and their order.

  Nodes that initialize variables, or that no result needs, do not count.
  """

  def __init__(self, serialized: computations.Serialized):
    graph_def = serialized.graph_def
    functions = _graph_defs.functions_of(graph_def)
    nodes = {node.name: node for node in graph_def.node}
    initial = {
        node.name
        for node in _graph_defs.in_order(nodes, [serialized.initialize_op])
    }
    needed = _graph_defs.in_order(nodes, serialized.results)
    users: dict[str, list[Any]] = {
        node.name: [] for node in needed if node.op == 'VarHandleOp'
    }
    for node in needed:
      if node.name not in initial:
        for source in set(_graph_defs.sources_of(node)) & users.keys():
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
      for source in map(_graph_defs.node_of, node.input):
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
        if writer.op in _graph_defs.CALL_OPS
    }
    if not calls:
      return
    inliner = _graph_defs.Inliner(serialized.graph_def)
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
  """Orders reads of variables after assignments of received values, in place.

  A Keras layer may derive a tensor from a variable when it is built, as
  `tf.keras.layers.Normalization` does. In the graph of a computation, nothing
  orders that read and the assignment of the received weights, which is in a
  function. Initial values are assigned before both. A read and an assignment
  that are in the same function have an order already.

  Likewise, nothing may order a read and the loop that trains a variable. TFF's
  runtime then reads the value before the loop, which takes longer to start.
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


# What TFF adds to names when it joins graphs.
_TFF_SCOPES = re.compile(r'^(subcomputation(_\d+)?/)+')


class _Scope:
  """The nodes of a graph or a function, and what it takes of variables."""

  def __init__(
      self,
      nodes: Iterable[Any],
      variables: Mapping[str, str],
      values: Mapping[str, str],
  ):
    """Initializes the scope.

    Args:
      nodes: The nodes.
      variables: The names of variables, by those of their handles.
      values: The names of variables, by those of arguments that are values that
        they have had.
    """
    self.nodes = {node.name: node for node in nodes}
    self._variables = variables
    self._values = values

  def unchanged(self) -> set[str]:
    """Returns the variables to which only their own values are assigned."""
    own, others = set(), set()
    for node in self.nodes.values():
      data = _graph_defs.sources_of(node)
      used = {self._variables[name] for name in data if name in self._variables}
      if node.op == 'AssignVariableOp' and self._value_of(data[1]) in used:
        own |= used
      elif node.op != 'ReadVariableOp':
        others |= used
    return own - others

  def _value_of(self, name: str) -> Optional[str]:
    """Returns the variable of which a tensor is the value."""
    while name in self.nodes and self.nodes[name].op == 'Identity':
      name = _graph_defs.node_of(self.nodes[name].input[0])
    if name in self.nodes and self.nodes[name].op == 'ReadVariableOp':
      handle = _graph_defs.node_of(self.nodes[name].input[0])
      return self._variables.get(handle)
    return self._values.get(name)

  def called_by(self, node: Any, function: Any) -> '_Scope':
    """Returns the scope of a function that a node calls."""
    variables, values = {}, {}
    for source, argument in _graph_defs.arguments_of(node, function):
      if source in self._variables:
        variables[argument] = self._variables[source]
      elif value := self._value_of(source):
        values[argument] = value
    return _Scope(function.node_def, variables, values)

  def key(self, name: str) -> Any:
    """Returns what tells calls of the function `name` apart."""
    return (
        name,
        tuple(sorted(self._variables.items())),
        tuple(sorted(self._values.items())),
    )


def find_untrained(serialized: computations.Serialized) -> list[str]:
  """Returns the names of trainable variables that are not trained.

  TFF's client work assigns to each trainable variable what the optimizer
  returns for it. Without a gradient that is the variable's own value.

  Args:
    serialized: A client's work.
  """
  graph_def = serialized.graph_def
  functions = _graph_defs.functions_of(graph_def)
  handles = {n.name: n.name for n in graph_def.node if n.op == 'VarHandleOp'}
  waiting = [_Scope(graph_def.node, handles, {})] if handles else []
  seen, found = set(), set()
  while waiting:
    scope = waiting.pop()
    for node in scope.nodes.values():
      for name in _graph_defs.called_functions(node, functions):
        called = scope.called_by(node, functions[name])
        if called.key(name) not in seen:
          seen.add(called.key(name))
          waiting.append(called)
          found |= called.unchanged()
  # In the model's order.
  return [_TFF_SCOPES.sub('', name) for name in handles if name in found]
