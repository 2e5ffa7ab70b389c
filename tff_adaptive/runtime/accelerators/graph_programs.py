# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's graphs as functions of JAX: node after node, by the lowerings.

Evaluating a graph while JAX traces gives the same program without TensorFlow:
one that can be compiled for any device of XLA, mapped over clients and
differentiated.
"""

from collections.abc import Iterator, Mapping, Sequence
import functools
from typing import Any

import tensorflow as tf

# TensorFlow has no public reader of function bodies.
from tensorflow.python.framework import function_def_to_graph

from tff_adaptive import _graph_defs
from tff_adaptive.runtime.accelerators import array_lowerings as _array
from tff_adaptive.runtime.accelerators import client_rows as _rows
from tff_adaptive.runtime.accelerators import control_lowerings
from tff_adaptive.runtime.accelerators import kept_rows
from tff_adaptive.runtime.accelerators import list_lowerings as _list
from tff_adaptive.runtime.accelerators import lowerings
from tff_adaptive.runtime.accelerators import math_lowerings as _math
from tff_adaptive.runtime.accelerators import network_lowerings as _network
from tff_adaptive.runtime.accelerators import padded_array_lowerings
from tff_adaptive.runtime.accelerators import padded_list_lowerings
from tff_adaptive.runtime.accelerators import padded_row_lowerings
from tff_adaptive.runtime.accelerators import padded_rules
from tff_adaptive.runtime.accelerators import padded_sum_lowerings
from tff_adaptive.runtime.accelerators import random_lowerings as _random
from tff_adaptive.runtime.accelerators import tokens
from tff_adaptive.runtime.accelerators import variable_lowerings as _variable

del (
    _rows,
    _array,
    _list,
    _math,
    _network,
    padded_array_lowerings,
    padded_list_lowerings,
    padded_row_lowerings,
    padded_sum_lowerings,
    _random,
    _variable,
)  # They register ops.


# Before the name of the innermost node of an error.
_AT = ' (at '


class Scope:
  """The nodes of a graph or of a function, in the order of evaluation."""

  def __init__(
      self,
      nodes: Sequence[Any],
      given: Sequence[str],
      results: Sequence[str],
      effects: Sequence[str] = (),
  ):
    """Sorts the nodes.

    Args:
      nodes: The `NodeDef`s.
      given: The names of the tensors that are given.
      results: The names of the tensors to compute.
      effects: The names of nodes that have to run, besides. Defaults to none.
    """
    placeholders = set(map(_graph_defs.node_of, given))
    by_name = {n.name: n for n in nodes if n.name not in placeholders}
    self._given = list(map(_graph_defs.with_index, given))
    self._nodes = [
        (lowerings.Node(node), list(map(_graph_defs.with_index, data)))
        for node in _graph_defs.in_order(by_name, [*results, *effects])
        for data, _ in [_graph_defs.split_inputs(node)]
    ]
    self._results = list(map(_graph_defs.with_index, results))

  def ops(self) -> Iterator[str]:
    """Yields the ops of the nodes."""
    for node, _ in self._nodes:
      yield node.op

  def evaluate(
      self, functions: control_lowerings.Functions, arguments: Sequence[Any]
  ) -> list[Any]:
    """Returns the results.

    Args:
      functions: The functions that nodes call, by name.
      arguments: The values of the tensors that are given.
    """
    known = dict(zip(self._given, arguments))
    for node, names in self._nodes:
      inputs = [known[name] for name in names]
      outputs = _evaluate(node, functions, inputs)
      if not isinstance(outputs, tuple):
        outputs = (outputs,)
      for place, output in enumerate(outputs):
        known[f'{node.name}:{place}'] = output
    return [known[name] for name in self._results]


def _evaluate(
    node: lowerings.Node,
    functions: control_lowerings.Functions,
    inputs: Sequence[Any],
) -> Any:
  """Returns the outputs of a node."""
  calling = control_lowerings.CALLING.get(node.op)
  try:
    if calling is not None:
      return calling(node, functions, *inputs)
    if node.op in functions:
      return tuple(functions[node.op](*inputs))
    tokens.check_not_used(node)
    if padded_rules.concerns(inputs):
      return padded_rules.lower(node, inputs)
    if node.op != 'Identity':
      kept_rows.check_not_used(node, inputs)
    return lowerings.find(node.op)(node, *inputs)
  except (TypeError, ValueError) as error:
    # JAX's, of a value that a lowering expected to be known while tracing, or
    # of a shape that it does not take.
    reason = str(error).partition('\n')[0]
    raise lowerings.NoLoweringError(
        f'{node.op} has no form here ({reason}){_AT}{node.name!r})'
    ) from error
  except lowerings.NoLoweringError as error:
    if _AT in str(error):
      raise
    raise type(error)(f'{error}{_AT}{node.name!r})') from error


class GraphProgram:
  """A graph with its functions."""

  def __init__(
      self, graph_def: Any, parameters: Sequence[str], results: Sequence[str]
  ):
    """Reads a graph; nothing is evaluated yet.

    Args:
      graph_def: The `GraphDef`.
      parameters: The names of the tensors that are given.
      results: The names of the tensors to compute.
    """
    self._definitions = _graph_defs.functions_of(graph_def)
    self._library = graph_def.library
    self._nodes = graph_def.node
    self._scope = Scope(graph_def.node, parameters, results)
    self._functions = _Functions(self)

  def __call__(self, *arguments: Any) -> list[Any]:
    """Evaluates the graph; call it while JAX traces.

    Args:
      *arguments: A value for each parameter: an array, or a sequence of
        `sequence_lowerings`.

    Returns:
      The results.

    Raises:
      NoLoweringError: If there is none for an op.
    """
    return self._scope.evaluate(self._functions, arguments)

  def ops(self) -> set[str]:
    """Returns the ops of the graph and of the functions that it calls."""
    functions = _graph_defs.all_called(self._nodes, self._definitions)
    return {
        node.op
        for function in functions
        for node in function.node_def
        if node.op not in self._definitions
    } | set(self._scope.ops())

  @functools.cached_property
  def _scratch(self) -> tf.Graph:
    """A graph with the functions, in which their bodies are read."""
    graph = tf.Graph()
    with graph.as_default():
      library = tf.compat.v1.GraphDef(library=self._library)
      tf.graph_util.import_graph_def(library, name='')
    return graph

  def names(self) -> set[str]:
    """Returns the names of the functions."""
    return set(self._definitions)

  def read_function(self, name: str) -> control_lowerings.Function:
    """Returns one of the functions."""
    definition = self._definitions[name]
    with self._scratch.as_default():
      body, names = function_def_to_graph.function_def_to_graph_def(definition)
    signature = definition.signature
    scope = Scope(
        body.node,
        [f'{argument.name}:0' for argument in signature.input_arg],
        [names[definition.ret[result.name]] for result in signature.output_arg],
        list(definition.control_ret.values()),
    )

    def call(*arguments):
      return scope.evaluate(self._functions, arguments)

    return call


class _Functions(Mapping[str, control_lowerings.Function]):
  """The functions of a graph, read when they are first called."""

  def __init__(self, program: GraphProgram):
    self._names = program.names()
    self._read = functools.cache(program.read_function)

  def __getitem__(self, name):
    return self._read(name)

  def __contains__(self, name):
    return name in self._names

  def __iter__(self):
    return iter(self._names)

  def __len__(self):
    return len(self._names)
