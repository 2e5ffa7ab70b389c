# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds trainable variables that a client's work does not train.

TFF's client work assigns to each trainable variable what the optimizer returns
for it. Without a gradient that is the variable's own value.
"""

from collections.abc import Iterable, Mapping
import re
from typing import Any, Optional

from tff_adaptive import _function_library
from tff_adaptive.runtime import computations

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
      data = list(map(_function_library.node_of, node.input))
      used = {self._variables[name] for name in data if name in self._variables}
      if node.op == 'AssignVariableOp' and self._value_of(data[1]) in used:
        own |= used
      elif node.op != 'ReadVariableOp':
        others |= used
    return own - others

  def _value_of(self, name: str) -> Optional[str]:
    """Returns the variable of which a tensor is the value."""
    while name in self.nodes and self.nodes[name].op == 'Identity':
      name = _function_library.node_of(self.nodes[name].input[0])
    if name in self.nodes and self.nodes[name].op == 'ReadVariableOp':
      handle = _function_library.node_of(self.nodes[name].input[0])
      return self._variables.get(handle)
    return self._values.get(name)

  def called_by(self, node: Any, function: Any) -> '_Scope':
    """Returns the scope of a function that a node calls."""
    data, _ = _function_library.split_inputs(node)
    variables, values = {}, {}
    # The last inputs of a node are the last arguments of its functions.
    for source, argument in zip(
        reversed(data), reversed(function.signature.input_arg)
    ):
      source = _function_library.node_of(source)
      if source in self._variables:
        variables[argument.name] = self._variables[source]
      elif value := self._value_of(source):
        values[argument.name] = value
    return _Scope(function.node_def, variables, values)

  def key(self, name: str) -> Any:
    """Returns what tells calls of the function `name` apart."""
    return (
        name,
        tuple(sorted(self._variables.items())),
        tuple(sorted(self._values.items())),
    )


def find(serialized: computations.Serialized) -> list[str]:
  """Returns the names of trainable variables that are not trained.

  Args:
    serialized: A client's work.
  """
  graph_def = serialized.graph_def
  functions = {f.signature.name: f for f in graph_def.library.function}
  handles = {n.name: n.name for n in graph_def.node if n.op == 'VarHandleOp'}
  waiting = [_Scope(graph_def.node, handles, {})] if handles else []
  seen, found = set(), set()
  while waiting:
    scope = waiting.pop()
    for node in scope.nodes.values():
      for name in _function_library.called_functions(node, functions):
        called = scope.called_by(node, functions[name])
        if called.key(name) not in seen:
          seen.add(called.key(name))
          waiting.append(called)
          found |= called.unchanged()
  # In the model's order.
  return [_TFF_SCOPES.sub('', name) for name in handles if name in found]
