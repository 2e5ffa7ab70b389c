# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Clients' sequences as tensors inside a graph.

A TFF TensorFlow computation takes a sequence as the variant tensor of a
`tf.data.Dataset`, and creating a dataset costs milliseconds for each client.
Here the variant holds tensors instead: the rows of all clients, and the indices
of the rows in each element of this client's sequence. It passes unchanged
through function calls; only the ops that read a dataset are replaced, one for
one.

The variant is an optional (see `tf.experimental.Optional`) of

- the fields of a `PackedClients` of one client, with one tensor of rows for
  each component of an element;
- 1 if elements are batches of rows, 0 if each is one row without a batch axis.
"""

from collections.abc import Callable, Mapping
import functools
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.data import batching
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans

# The dtype and shape of the fields of a variant other than rows.
_INDICES: tuple[tuple[tf.DType, list[Optional[int]]], ...] = (
    (tf.int64, [None]),
    (tf.int64, [None, 1]),
    (tf.int64, [None, 1]),
    (tf.int32, []),
    (tf.int32, []),
    (tf.int32, []),
)
# The name that `AnonymousIteratorV3` and TensorFlow's variables give to a
# resource that lives as long as its handle.
ANONYMOUS = 'cd2c89b7-88b7-44c8-ad83-06c2a9158347'

# All ops on datasets and iterators that can be replaced.
_ITERATOR_OP = 'AnonymousIteratorV3'
_MAKE_ITERATOR_OP = 'MakeIterator'
_GET_NEXT_OP = 'IteratorGetNextAsOptional'
_REPLACED_OPS = (
    _function_library.REDUCE_OP,
    _ITERATOR_OP,
    _MAKE_ITERATOR_OP,
    _GET_NEXT_OP,
)


Step = Callable[[list[tf.Tensor]], list[tf.Tensor]]


def on_element(
    client: batching.PackedClients, number: tf.Tensor, step: Step
) -> list[tf.Tensor]:
  """Applies a step to the components of an element.

  If the graph holds the batch sizes as constants, each size gets its own branch
  with static shapes, as XLA requires.

  Args:
    client: One client's sequence.
    number: The index of the element among the elements of all clients.
    step: Maps components to tensors.
  """
  if isinstance(client.order, tuple):
    return step([tf.gather(rows, number) for rows in client.rows])
  known_sizes = tf.get_static_value(client.sizes)
  if known_sizes is None:
    picks = _picks(client, number, tf.gather(client.sizes, number))
    return step([tf.gather(rows, picks) for rows in client.rows])
  sizes, places = np.unique(known_sizes, return_inverse=True)

  def branch(size):
    picks = _picks(client, number, [size])
    return step([tf.gather(rows, picks) for rows in client.rows])

  if len(sizes) == 1:
    return branch(sizes[0])
  return tf.switch_case(
      tf.gather(tf.constant(places.ravel(), tf.int32), number),
      [functools.partial(branch, size) for size in sizes],
  )


def _picks(
    client: batching.PackedClients, number: tf.Tensor, size: Any
) -> tf.Tensor:
  """Returns the indices of the rows in an element."""
  return tf.slice(client.order, tf.gather(client.begins, number), size)


def to_variant(client: batching.PackedClients) -> tf.Tensor:
  """Returns the variant tensor for one client's sequence."""
  if not isinstance(client.order, tuple):
    return _to_variant(client, tf.ones([], tf.int32))
  order = tf.range(tf.shape(client.rows[0], tf.int64)[0])
  begins = order[:, tf.newaxis]
  ragged = client._replace(
      order=order, begins=begins, sizes=tf.ones_like(begins)
  )
  return _to_variant(ragged, tf.zeros([], tf.int32))


def _to_variant(
    client: batching.PackedClients, are_batches: tf.Tensor
) -> tf.Tensor:
  return tf.raw_ops.OptionalFromValue(
      components=[*client.rows, *client[1:], are_batches]
  )


class _Variant(NamedTuple):
  """The fields of a variant, see the module docstring."""

  client: batching.PackedClients
  are_batches: tf.Tensor

  def element(self, number: tf.Tensor) -> list[tf.Tensor]:
    """Returns an element, if only a tensor tells whether it is a batch."""
    picks = _picks(self.client, number, tf.gather(self.client.sizes, number))
    batch_shape = tf.shape(picks)[: tf.cast(self.are_batches, tf.int32)]
    return [
        tf.reshape(
            tf.gather(rows, picks),
            tf.concat([batch_shape, tf.shape(rows)[1:]], 0),
        )
        for rows in self.client.rows
    ]


def _from_variant(variant: tf.Tensor, dtypes: list[tf.DType]) -> _Variant:
  """Returns the fields of a variant tensor of `to_variant`."""
  components = tf.raw_ops.OptionalGetValue(
      optional=variant,
      output_types=[*dtypes, *(dtype for dtype, _ in _INDICES)],
      output_shapes=[
          *(tf.TensorShape(None) for _ in dtypes),
          *(shape for _, shape in _INDICES),
      ],
  )
  *indices, are_batches = components[len(dtypes) :]
  client = batching.PackedClients(tuple(components[: len(dtypes)]), *indices)
  return _Variant(client, are_batches)


class _ReplacedOp(NamedTuple):
  """The replacement of an op.

  Attributes:
    function: Computes the op's outputs from its inputs.
    input_dtypes: The dtypes of its inputs.
  """

  function: Any
  input_dtypes: list[tf.DType]


def _attr_dtypes(node: Any, name: str) -> list[tf.DType]:
  return [tf.as_dtype(t) for t in node.attr[name].list.type]


def build_reduction(node: Any, functions: Mapping[str, Any]) -> _ReplacedOp:
  """Returns the loop over a sequence that replaces `ReduceDataset`.

  Args:
    node: The `NodeDef` of the op. It names a function of (state, element, other
      arguments).
    functions: All functions of the graph by name.

  Returns:
    A function from (sequence or its variant, state, other arguments) to the
    final state.
  """
  name = node.attr['f'].func.name
  signature = functions[name].signature
  # A call by the name that is registered with the runtime.
  call = (
      tf.raw_ops.StatefulPartitionedCall
      if signature.is_stateful
      else tf.raw_ops.PartitionedCall
  )
  states = _attr_dtypes(node, 'Tstate')
  others = _attr_dtypes(node, 'Targuments')
  arguments = [tf.as_dtype(arg.type) for arg in signature.input_arg]
  elements = arguments[len(states) : len(arguments) - len(others)]
  shapes = [
      tf.TensorShape(shape) for shape in node.attr['output_shapes'].list.shape
  ]

  def reduce(sequence, *arguments):
    client, apply = sequence, functools.partial(on_element, sequence)
    if not isinstance(sequence, batching.PackedClients):
      client, _ = variant = _from_variant(sequence, elements)
      apply = lambda number, step: step(variant.element(number))
    initial = arguments[: len(states)]
    captured = arguments[len(states) :]

    def step(number, *state):
      new_state = apply(
          number,
          lambda components: call(
              args=[*state, *components, *captured], Tout=states, f=name
          ),
      )
      for tensor, shape in zip(new_state, shapes):
        tensor.set_shape(shape)
      return (number + 1, *new_state)

    _, *final = tf.while_loop(
        lambda number, *_: number < client.ends,
        step,
        (client.starts, *initial),
        shape_invariants=(tf.TensorShape([]), *shapes),
        # Without effects, such as those on variables, a step may start before
        # the previous one has ended: batches are evaluated on several cores.
        parallel_iterations=(
            1
            if _function_library.has_effects(name, functions)
            else plans.num_cores()
        ),
    )
    return final

  return _ReplacedOp(reduce, [tf.variant, *states, *others])


def _build_get_next(node: Any) -> _ReplacedOp:
  """Returns the replacement of `IteratorGetNextAsOptional`.

  It maps the handle of a variable, which holds the variant of the remaining
  elements, to an optional with the next element.
  """
  dtypes = _attr_dtypes(node, 'output_types')

  def get_next(handle):
    variant = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.variant)
    variant = tf.ensure_shape(variant, [])
    found = _from_variant(variant, dtypes)
    client = found.client

    def some():
      rest = client._replace(starts=client.starts + 1)
      with tf.control_dependencies([variant]):
        tf.raw_ops.AssignVariableOp(
            resource=handle, value=_to_variant(rest, found.are_batches)
        )
      return tf.raw_ops.OptionalFromValue(
          components=found.element(client.starts)
      )

    return tf.cond(client.starts < client.ends, some, tf.raw_ops.OptionalNone)

  return _ReplacedOp(get_next, [tf.resource])


# Output names in function bodies, before and after the replacement.
_OUTPUT_NAMES = {
    _function_library.REDUCE_OP: ('components', 'output'),
    _GET_NEXT_OP: ('optional', 'output'),
    _ITERATOR_OP: ('handle', 'resource'),
}


def find_dataset_op(graph_def: Any) -> Optional[str]:
  """Finds an op that creates, changes or inspects a dataset.

  Returns its type; None if datasets are only iterated, so that
  `read_sequences_from_tensors` is applicable.
  """
  return next(
      (
          node.op
          for node in _function_library.all_nodes(graph_def)
          if 'Dataset' in node.op or 'Iterator' in node.op
          if node.op not in _REPLACED_OPS
      ),
      None,
  )


def _add_call(node: Any, replaced: _ReplacedOp, library: Any) -> None:
  """Turns a node into a call, and adds the called function to the library."""
  specs = [tf.TensorSpec(None, dtype) for dtype in replaced.input_dtypes]
  call = _function_library.add_function(replaced.function, specs, library)
  node.op = call.op
  node.attr.clear()
  for name in ('Tin', 'Tout', 'f'):
    node.attr[name].CopyFrom(call.attr[name])


def _replace_node(node: Any, functions: Any, library: Any) -> None:
  """Replaces one op on a dataset or an iterator, in place."""
  if node.op == _function_library.REDUCE_OP:
    _add_call(node, build_reduction(node, functions), library)
  elif node.op == _GET_NEXT_OP:
    _add_call(node, _build_get_next(node), library)
  elif node.op == _ITERATOR_OP:
    node.op = 'VarHandleOp'
    node.attr.clear()
    node.attr['dtype'].type = tf.variant.as_datatype_enum
    node.attr['shape'].shape.SetInParent()
    node.attr['shared_name'].s = ANONYMOUS.encode()
  elif node.op == _MAKE_ITERATOR_OP:
    dataset, iterator, *control = node.input
    node.input[:] = [iterator, dataset, *control]
    node.op = 'AssignVariableOp'
    node.attr.clear()
    node.attr['dtype'].type = tf.variant.as_datatype_enum


def _rename_outputs(function: Any, renamed: dict[str, str]) -> None:
  """Renames outputs, given as 'node:output', wherever a function uses them."""

  def rename(tensor):
    node_and_output, separator, number = tensor.rpartition(':')
    return renamed.get(node_and_output, node_and_output) + separator + number

  for node in function.node_def:
    node.input[:] = [rename(name) for name in node.input]
  for name, tensor in function.ret.items():
    function.ret[name] = rename(tensor)


def _inline_reductions(serialized: computations.Serialized) -> None:
  """Inlines functions that loop over sequences, to make the loops top-level.

  A loop that is built into the calling graph costs a fraction of a call of a
  function that contains it.
  """
  graph_def = serialized.graph_def
  functions = {f.signature.name: f for f in graph_def.library.function}

  def reduces(node):
    return node.op in _function_library.CALL_OPS and any(
        inner.op == _function_library.REDUCE_OP or reduces(inner)
        for inner in functions[node.attr['f'].func.name].node_def
    )

  inliner = _function_library.Inliner(graph_def)
  serialized.results[:] = inliner.inline_all(reduces, serialized.results)


def read_sequences_from_tensors(serialized: computations.Serialized) -> None:
  """Replaces all ops that read datasets, except top-level reductions.

  The computation must only iterate sequences; its graph is modified in place.
  Reductions become loops when the graph is imported.
  """
  _inline_reductions(serialized)
  graph_def = serialized.graph_def
  functions = {f.signature.name: f for f in graph_def.library.function}
  added = tf.compat.v1.GraphDef().library
  for function in functions.values():
    renamed = {}
    for node in function.node_def:
      if node.op in _OUTPUT_NAMES:
        before, after = _OUTPUT_NAMES[node.op]
        renamed[f'{node.name}:{before}'] = f'{node.name}:{after}'
      _replace_node(node, functions, added)
    if renamed:
      _rename_outputs(function, renamed)
  for node in graph_def.node:
    if node.op != _function_library.REDUCE_OP:
      _replace_node(node, functions, added)
  graph_def.library.function.extend(added.function)
