# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Products with constants that are zero, which are zero in TFF's runtime.

TFF folds constants so eagerly that zero times NaN is zero where the zero is a
constant, such as the share of a tensor without entries. Elsewhere, such as in
the step of a batch, the product is NaN there and here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tff_adaptive import _function_library

_DTYPES = frozenset(
    dtype.as_datatype_enum for dtype in (tf.float16, tf.float32, tf.float64)
)


def _is_pure(node: Any) -> bool:
  """Returns whether a node computes one tensor from others alone."""
  definition = tf.Graph().op_def_for_type(node.op)
  return (
      len(definition.output_arg) == 1
      and not definition.output_arg[0].number_attr
      and not definition.output_arg[0].type_list_attr
      and not definition.is_stateful
      and not any(name.startswith('^') for name in node.input)
      and not any(_function_library.functions_in(node))
  )


class _Constants:
  """The constants among the nodes of a graph or of a function."""

  def __init__(self, nodes: Sequence[Any], functions: Mapping[str, Any]):
    self._nodes = {node.name: node for node in nodes}
    self._functions = functions
    self._known: dict[str, bool] = {}

  def _is_constant(self, node: Any) -> bool:
    """Returns whether a node follows from constants; its inputs are known."""
    if node.op == 'Const':
      return not node.input
    sources = map(_function_library.node_of, node.input)
    return (
        bool(node.input)
        and all(self._known.get(source, False) for source in sources)
        and node.op not in self._functions
        and _is_pure(node)
    )

  def find(self, names: Iterable[str]) -> set[str]:
    """Returns the names that are constants, of nodes of these names."""
    names = list(names)
    for node in _function_library.in_order(self._nodes, names):
      if node.name not in self._known:
        self._known[node.name] = self._is_constant(node)
    return {name for name in names if self._known.get(name, False)}

  def find_zeros(self, names: Iterable[str]) -> set[str]:
    """Returns the names of constants all of whose entries are zero."""
    zeros, computed = set(), []
    for name in sorted(self.find(names)):
      if self._nodes[name].op != 'Const':
        computed.append(name)
      elif not tf.make_ndarray(self._nodes[name].attr['value'].tensor).any():
        zeros.add(name)
    if computed:
      values = zip(computed, self._compute(computed))
      zeros.update(name for name, value in values if not np.any(value))
    return zeros

  def _compute(self, names: Sequence[str]) -> list[Any]:
    """Returns the values of constants."""
    graph_def = tf.compat.v1.GraphDef(
        node=_function_library.in_order(self._nodes, names)
    )
    for node in graph_def.node:  # Functions have longer names of tensors.
      node.input[:] = map(_function_library.node_of, node.input)
    with tf.Graph().as_default() as graph, tf.device('/CPU:0'):
      tf.graph_util.import_graph_def(graph_def, name='')
      with tf.compat.v1.Session(graph=graph) as session:
        return session.run([f'{name}:0' for name in names])


def _scopes(graph_def: Any) -> Iterator[Sequence[Any]]:
  """Yields the nodes of the graph, and of each function that it calls."""
  functions = {f.signature.name: f for f in graph_def.library.function}
  yield graph_def.node
  waiting, seen = [graph_def.node], set()
  while waiting:
    for node in waiting.pop():
      if node.op not in _function_library.CALL_OPS:
        continue
      name = node.attr['f'].func.name
      if name in functions and name not in seen:
        seen.add(name)
        waiting.append(functions[name].node_def)
        yield functions[name].node_def


def make_zero(graph_def: Any) -> None:
  """Makes products with a constant zero zero, in place.

  Args:
    graph_def: The graph of a computation, with its functions.
  """
  functions = {f.signature.name: f for f in graph_def.library.function}
  for nodes in _scopes(graph_def):
    products = [
        node
        for node in nodes
        if node.op == 'Mul' and node.attr['T'].type in _DTYPES
    ]
    if not products:
      continue
    factors = {
        node.name: [
            _function_library.node_of(name)
            for name in _function_library.split_inputs(node)[0]
        ]
        for node in products
    }
    zeros = _Constants(nodes, functions).find_zeros(
        {name for names in factors.values() for name in names}
    )
    for node in products:
      first, second = factors[node.name]
      if first in zeros:
        node.input[0], node.input[1] = node.input[1], node.input[0]
      if first in zeros or second in zeros:
        node.op = 'MulNoNan'  # Its second factor may be zero.
