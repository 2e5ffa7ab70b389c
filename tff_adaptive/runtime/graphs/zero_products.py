# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Products with constants that are zero, which are zero in TFF's runtime.

TFF folds constants so eagerly that zero times NaN is zero where the zero is a
constant, such as the share of a tensor without entries. Elsewhere, such as in
the step of a batch, the product is NaN there and here.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tff_adaptive import _graph_defs

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
      and not any(_graph_defs.functions_in(node))
  )


def _find_zeros(
    nodes: Sequence[Any], names: Collection[str], functions: Collection[str]
) -> set[str]:
  """Returns the names of constants all of whose entries are zero.

  Args:
    nodes: The nodes of a graph or of a function.
    names: The names of some of them, and of others, which are no constants.
    functions: The names of the functions that a node may have as its op.
  """
  by_name = {node.name: node for node in nodes}
  constants: set[str] = set()
  for node in _graph_defs.in_order(by_name, names):
    follows = (
        node.input
        and constants.issuperset(map(_graph_defs.node_of, node.input))
        and node.op not in functions
        and _is_pure(node)
    )
    if follows or node.op == 'Const' and not node.input:
      constants.add(node.name)
  zeros, computed = set(), []
  for name in sorted(constants.intersection(names)):
    if by_name[name].op != 'Const':
      computed.append(name)
    elif not tf.make_ndarray(by_name[name].attr['value'].tensor).any():
      zeros.add(name)
  values = zip(computed, _compute(computed, by_name))
  return zeros | {name for name, value in values if not np.any(value)}


def _compute(names: Sequence[str], nodes: Mapping[str, Any]) -> list[Any]:
  """Returns the values of constants, given the nodes by name."""
  if not names:
    return []
  graph_def = tf.compat.v1.GraphDef(node=_graph_defs.in_order(nodes, names))
  for node in graph_def.node:  # Functions have longer names of tensors.
    node.input[:] = map(_graph_defs.node_of, node.input)
  with tf.Graph().as_default() as graph, tf.device('/CPU:0'):
    tf.graph_util.import_graph_def(graph_def, name='')
    with tf.compat.v1.Session(graph=graph) as session:
      return session.run([f'{name}:0' for name in names])


def make_zero(graph_def: Any) -> None:
  """Makes products with a constant zero zero, in place.

  Args:
    graph_def: The graph of a computation, with its functions.
  """
  functions = _graph_defs.functions_of(graph_def)
  called = _graph_defs.all_called(
      graph_def.node, functions, follows=_graph_defs.is_call
  )
  for nodes in [graph_def.node, *(function.node_def for function in called)]:
    products = [
        node
        for node in nodes
        if node.op == 'Mul' and node.attr['T'].type in _DTYPES
    ]
    if not products:
      continue
    factors = {node.name: _graph_defs.sources_of(node) for node in products}
    names = {name for found in factors.values() for name in found}
    zeros = _find_zeros(nodes, names, functions)
    for node in products:
      first, second = factors[node.name]
      if first in zeros:
        node.input[0], node.input[1] = node.input[1], node.input[0]
      if first in zeros or second in zeros:
        node.op = 'MulNoNan'  # Its second factor may be zero.
