# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tensors that a model derives from its variables while it is built.

`tf.keras.layers.Normalization` reads its mean in `build` and subtracts the
resulting tensor in `call`; layers of users do likewise. In the graph of a
client's work, such a tensor is computed once, before or after the variable
receives its value. Here each forward pass derives it anew, from the values that
the variables have at that time, as a functional model does.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive import _graph_defs

_VARIABLE_OP = 'VarHandleOp'
# Stateful ops that may run again. Functions, branches and loops that read
# variables are not among them: nothing orders their reads, nor those of their
# gradients, before later assignments.
_REPEATABLE = frozenset(
    {
        'Assert',
        'ReadVariableOp',
        'ResourceGather',
        'ResourceGatherNd',
        'VariableShape',
    }
)


def _find_ops(tensors: Iterable[tf.Tensor]) -> dict[str, tf.Operation]:
  """Returns the ops that tensors of one graph depend on, by name."""
  found: dict[str, tf.Operation] = {}
  waiting = [tensor.op for tensor in tensors]
  while waiting:
    op = waiting.pop()
    if op.name not in found:
      found[op.name] = op
      waiting.extend(tensor.op for tensor in op.inputs)
      waiting.extend(op.control_inputs)
  return found


def _is_derived(tensor: Any) -> bool:
  """Returns whether a captured tensor depends on a variable."""
  if not hasattr(tensor, 'graph') or tensor.dtype == tf.resource:
    return False  # An eager tensor, a function that returns one, or a handle.
  return any(op.type == _VARIABLE_OP for op in _find_ops([tensor]).values())


def _trace(
    model: tff.learning.models.VariableModel, batch: Any, training: bool
) -> Any:
  """Returns the concrete function of a forward pass, of the batch's tensors."""

  def run(*components):
    structure = tf.nest.pack_sequence_as(
        batch, components, expand_composites=True
    )
    return _autograph.call(model.forward_pass, structure, training=training)

  specs = [
      tf.TensorSpec(component.shape, component.dtype)
      for component in tf.nest.flatten(batch, expand_composites=True)
  ]
  return tf.function(run, autograph=False).get_concrete_function(*specs)


def exist(model: tff.learning.models.VariableModel) -> bool:
  """Returns whether the forward pass of a model uses derived tensors.

  Args:
    model: A model that was built in the current graph.
  """
  spec = model.input_spec
  if isinstance(spec, tff.Type):
    spec = tff.types.type_to_tf_tensor_specs(spec)
  return any(
      _is_derived(tensor)
      for training in (True, False)
      for tensor in _trace(model, spec, training).captured_inputs
  )


def call_forward(
    model: tff.learning.models.VariableModel, batch: Any, training: bool
) -> tff.learning.models.BatchOutput:
  """Calls the forward pass of a model, with derived tensors derived anew.

  Args:
    model: A model that was built in an outer graph.
    batch: A batch.
    training: Whether the model is trained.

  Returns:
    The result of the forward pass.

  Raises:
    ValueError: If a tensor was derived by an op that cannot run again.
  """
  concrete = _trace(model, batch, training)
  captured = concrete.captured_inputs
  derived = [tensor for tensor in captured if _is_derived(tensor)]
  if derived:
    variables = [
        *model.trainable_variables,
        *model.non_trainable_variables,
        *model.local_variables,
    ]
    anew = _derive(derived, variables)
    concrete.set_external_captures([anew.get(id(t), t) for t in captured])
  return concrete(*tf.nest.flatten(batch, expand_composites=True))


def _derive(
    tensors: list[tf.Tensor], variables: Iterable[tf.Variable]
) -> Mapping[int, tf.Tensor]:
  """Derives tensors from the values that variables have now.

  Args:
    tensors: The tensors.
    variables: The variables of the model.

  Returns:
    The new tensors, by the ids of the given ones.
  """
  ops = _find_ops(tensors)
  copied = _find_dependent(ops)
  # Ops can infer static shapes only from constants in the same graph.
  copied |= {name for name, op in ops.items() if op.type == 'Const'}
  graph_def = _copy_nodes(tensors[0].graph, copied)
  _check_repeatable(graph_def)
  given = {
      tensor.name: tensor
      for name in copied
      for tensor in ops[name].inputs
      if tensor.op.name not in copied
  }

  read = [v for v in variables if any(v.handle is t for t in given.values())]

  # Gradient tapes do not see imported ops, but the call of this function.
  @tf.function(autograph=False)
  def derive():
    for variable in read:
      variable.value()  # A function must read a variable to be watched.
    names = [tensor.name for tensor in tensors]
    return _graph_defs.import_with(graph_def, given, names)

  results = derive()
  for result, tensor in zip(results, tensors):
    result.set_shape(tensor.shape)
  return dict(zip(map(id, tensors), results))


def _find_dependent(ops: Mapping[str, tf.Operation]) -> set[str]:
  """Returns the names of the ops that depend on variables."""
  found: set[str] = set()
  waiting = [op for op in ops.values() if op.type == _VARIABLE_OP]
  while waiting:
    for tensor in waiting.pop().outputs:
      for op in tensor.consumers():
        if op.name in ops and op.name not in found:
          found.add(op.name)
          waiting.append(op)
  return found


def _copy_nodes(graph: tf.Graph, names: Iterable[str]) -> Any:
  """Returns a `GraphDef` of some ops, without control inputs from others."""
  whole = graph.as_graph_def()
  nodes = [node for node in whole.node if node.name in names]
  for node in nodes:
    data, control = _graph_defs.split_inputs(node)
    control = [name for name in control if name[1:] in names]
    node.input[:] = [*data, *control]
    node.attr.pop('_class', None)
  return tf.compat.v1.GraphDef(
      node=nodes,
      library=_graph_defs.select_called(nodes, whole.library),
      versions=whole.versions,
  )


def _check_repeatable(graph_def: Any) -> None:
  """Raises an error if an op cannot run again."""
  functions = {f.signature.name for f in graph_def.library.function}
  for node in _graph_defs.all_nodes(graph_def):
    if node.op in functions or node.op in _REPEATABLE:
      continue
    if _graph_defs.is_stateful(node.op):
      layer = node.name.rpartition('/')[0] or node.name
      raise ValueError(
          f'The layer {layer!r} derives a tensor from its weights when it is '
          f'built, with an op that cannot run again ({node.op}). Compute the '
          'tensor in `call`.'
      )
