# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Graphs without calls, as they are read and rewritten node by node."""

from collections.abc import Sequence
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow as tf

# TensorFlow has no public reader of function bodies.
from tensorflow.python.framework import function_def_to_graph

from tff_adaptive import _function_library

# Ops that compute constants.
_CONSTANT_OPS = ('Const', 'Identity', 'Cast', 'StridedSlice')


def make_constant(node: Any, value: np.ndarray) -> None:
  """Turns a node into a constant."""
  node.op = 'Const'
  del node.input[:]
  node.attr.clear()
  tensor = tf.make_tensor_proto(value)
  node.attr['value'].tensor.CopyFrom(tensor)
  node.attr['dtype'].type = tensor.dtype


def _inline_calls(graph_def: Any, results: Sequence[str]) -> list[str]:
  """Inlines all calls unless XLA compiles them; returns the new results."""
  of_xla = {
      function.signature.name
      for function in graph_def.library.function
      if _function_library.is_set(function, '_XlaMustCompile')
  }

  def is_open(node):
    return (
        node.op in _function_library.CALL_OPS
        and not _function_library.is_set(node, '_XlaMustCompile')
        and node.attr['f'].func.name not in of_xla
    )

  return _function_library.Inliner(graph_def).inline_all(is_open, results)


@attrs.frozen(eq=False)
class FlatGraph:
  """A graph without calls, which may be changed.

  Attributes:
    nodes: The nodes by name.
    parameters: The names of the tensors that it takes.
    results: The names of the tensors that it returns.
    effects: The names of other nodes that have to run.
  """

  nodes: dict[str, Any]
  parameters: list[str]
  results: list[str]
  effects: list[str]
  _library: Any
  _static: tf.Graph

  @classmethod
  def build(
      cls,
      graph_def: Any,
      library: Any,
      *,
      parameters: Sequence[str],
      results: Sequence[str],
      effects: Sequence[str] = (),
  ) -> 'FlatGraph':
    """Builds the graph.

    Args:
      graph_def: A graph with calls, which is modified in place.
      library: The functions that the graph may call, now and later.
      parameters: The names of its parameters.
      results: The names of its results.
      effects: The names of other nodes that have to run.
    """
    results = _inline_calls(graph_def, results)
    for node in graph_def.node:
      # They may not hold after changes.
      node.attr.pop('_output_shapes', None)
    static = tf.Graph()
    with static.as_default():
      tf.graph_util.import_graph_def(graph_def, name='')
    return cls(
        {node.name: node for node in graph_def.node},
        list(map(_function_library.with_index, parameters)),
        results,
        list(effects),
        library,
        static,
    )

  @classmethod
  def of_function(
      cls, name: str, library: Any, shapes: Sequence[Optional[Any]]
  ) -> 'FlatGraph':
    """Builds the graph of a function.

    Args:
      name: The name of the function.
      library: A library that holds it.
      shapes: The shapes of its parameters, if they are known.
    """
    function = _function_library.find(library, name)
    called = _function_library.select_called(function.node_def, library)
    with tf.Graph().as_default():
      functions = tf.compat.v1.GraphDef(library=called)
      tf.graph_util.import_graph_def(functions, name='')
      body, names = function_def_to_graph.function_def_to_graph_def(
          function, list(shapes)
      )
    body.library.CopyFrom(called)
    signature = function.signature
    return cls.build(
        body,
        library,
        parameters=[arg.name for arg in signature.input_arg],
        results=[names[function.ret[arg.name]] for arg in signature.output_arg],
        effects=list(function.control_ret.values()),
    )

  def needed(self) -> list[Any]:
    """Returns the nodes that have to run, in topological order."""
    return _function_library.in_order(
        self.nodes, [*self.results, *self.effects]
    )

  def to_graph_def(self, names: Sequence[str]) -> Any:
    """Returns nodes, all of their dependencies, and the functions they call."""
    nodes = _function_library.in_order(self.nodes, names)
    library = _function_library.select_called(nodes, self._library)
    versions = self._static.graph_def_versions
    return tf.compat.v1.GraphDef(node=nodes, library=library, versions=versions)

  def add_to_library(self, specs: Sequence[tf.TensorSpec]) -> str:
    """Adds the graph to the library, as a function; returns its name.

    Args:
      specs: The specs of the parameters.
    """
    graph_def = self.to_graph_def([*self.results, *self.effects])
    _function_library.remove_nodes(graph_def, self.parameters)

    def run(*arguments):
      given = dict(zip(self.parameters, arguments))
      return _function_library.import_with(graph_def, given, self.results)

    call = _function_library.add_function(run, specs, self._library)
    return call.attr['f'].func.name

  def node(self, tensor: str) -> Any:
    """Returns the node of a tensor."""
    return self.nodes[_function_library.node_of(tensor)]

  def source(self, tensor: str) -> str:
    """Returns the tensor that an op passes on without a change."""
    node = self.node(tensor)
    if node.op != 'Identity' or tensor in self.parameters:
      return tensor
    return self.source(inputs_of(node)[0])

  def source_of_ids(self, tensor: str) -> str:
    """Returns the tensor with the same entries in another shape."""
    node = self.node(tensor)
    moves = node.op in ('Identity', 'Reshape', 'ExpandDims')
    if tensor in self.parameters or not (moves or self._adds_axes(node)):
      return tensor
    return self.source_of_ids(inputs_of(node)[0])

  def _adds_axes(self, node: Any) -> bool:
    """Returns whether a node only adds axes, like `x[:, tf.newaxis]`."""
    if node.op != 'StridedSlice':
      return False
    strides = self.constant(inputs_of(node)[3])
    begin, end, new, shrink = (
        node.attr[f'{name}_mask'].i
        for name in ('begin', 'end', 'new_axis', 'shrink_axis')
    )
    return (
        strides is not None
        and bool((strides == 1).all())
        and begin == end
        and shrink == 0
        and begin | new == 2 ** len(strides) - 1
    )

  def spec(self, tensor: str) -> tf.TensorSpec:
    """Returns the spec of a tensor of the graph before any change."""
    found = self._static.get_tensor_by_name(tensor)
    return tf.TensorSpec(found.shape, found.dtype)

  def constant(self, tensor: str) -> Optional[np.ndarray]:
    """Returns the value of a constant; None for any other tensor."""
    graph_def = self.to_graph_def([tensor])
    if any(node.op not in _CONSTANT_OPS for node in graph_def.node):
      return None
    with tf.Graph().as_default() as graph:
      tf.graph_util.import_graph_def(graph_def, name='')
      with tf.compat.v1.Session(graph=graph) as session:
        return session.run(tensor)

  def is_zero(self, tensor: str) -> bool:
    """Returns whether a tensor is a constant zero, of any shape."""
    node = self.node(tensor)
    if node.op == 'Fill':
      value = self.constant(inputs_of(node)[1])
      return value is not None and value == 0
    if node.op == 'Const':
      return not tf.make_ndarray(node.attr['value'].tensor).any()
    return node.op == 'ZerosLike'

  def add(self, op: str, inputs: Sequence[str], **dtypes: tf.DType) -> str:
    """Adds a node.

    Args:
      op: The op.
      inputs: The names of its inputs.
      **dtypes: Its attributes that are dtypes.

    Returns:
      The name of its output.
    """
    node = tf.compat.v1.NodeDef(
        op=op, name=f'added_{len(self.nodes)}', input=inputs
    )
    for name, dtype in dtypes.items():
      node.attr[name].type = dtype.as_datatype_enum
    self.nodes[node.name] = node
    return f'{node.name}:0'

  def add_copy(self, node: Any) -> Any:
    """Adds a copy of a node; returns the copy."""
    copy = self.node(self.add(node.op, node.input))
    for name, value in node.attr.items():
      copy.attr[name].CopyFrom(value)
    return copy

  def add_constant(self, value: np.ndarray) -> str:
    """Adds a constant; returns its name."""
    name = self.add('Const', [])
    make_constant(self.node(name), value)
    return name

  def add_gather(self, values: str, indices: str, dtype: tf.DType) -> str:
    """Adds the gathering of int32 values by indices of a dtype."""
    return self.add(
        'GatherV2',
        [values, indices, self.add_constant(np.int32(0))],
        Tparams=tf.int32,
        Tindices=dtype,
        Taxis=tf.int32,
    )


def inputs_of(node: Any) -> list[str]:
  """Returns the names of the tensors that a node reads."""
  data, _ = _function_library.split_inputs(node)
  return list(map(_function_library.with_index, data))
