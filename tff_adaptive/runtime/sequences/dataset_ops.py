# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replaces ops on datasets by ops on tensors.

Sequences are `sequences.Variant`s, or the rows that they hold. Only the ops
that read them are replaced, with the ops that make a dataset from others.
"""

from typing import Any, Optional

import tensorflow as tf

from tff_adaptive import _graph_defs
from tff_adaptive.runtime import computations
from tff_adaptive.runtime.sequences import dataset_chains
from tff_adaptive.runtime.sequences import dataset_nodes
from tff_adaptive.runtime.sequences import sequences

# The name that `AnonymousIteratorV3` and TensorFlow's variables give to a
# resource that lives as long as its handle.
ANONYMOUS = 'cd2c89b7-88b7-44c8-ad83-06c2a9158347'

# Ops on iterators that are replaced.
_ITERATOR_OP = 'AnonymousIteratorV3'
_MAKE_ITERATOR_OP = 'MakeIterator'
_GET_NEXT_OP = 'IteratorGetNext'
_GET_OPTIONAL_OP = 'IteratorGetNextAsOptional'
# The names of outputs in function bodies, before and after the replacement.
_OUTPUT_NAMES = {
    _graph_defs.REDUCE_OP: ('components', 'output'),
    _GET_NEXT_OP: ('components', 'output'),
    _GET_OPTIONAL_OP: ('optional', 'output'),
    _ITERATOR_OP: ('handle', 'resource'),
}
_REPLACED_OPS = (*_OUTPUT_NAMES, _MAKE_ITERATOR_OP)


def _build_get_next(node: Any) -> dataset_chains.ReplacedOp:
  """Returns the replacement of an op that reads an iterator's next element.

  It reads a variable that holds the variant of the remaining elements. Its
  result is the components, or an optional of them.
  """
  dtypes = dataset_nodes.attr_dtypes(node, 'output_types')

  def read(handle):
    variant = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.variant)
    variant = tf.ensure_shape(variant, [])
    return variant, sequences.from_variant(variant, dtypes)

  def advance(handle, variant, found):
    with tf.control_dependencies([variant]):
      tf.raw_ops.AssignVariableOp(resource=handle, value=found.rest())
    return found.element(found.client.starts)

  def get_optional(handle):
    variant, found = read(handle)

    def some():
      components = advance(handle, variant, found)
      return tf.raw_ops.OptionalFromValue(components=components)

    has_more = found.client.starts < found.client.ends
    return tf.cond(has_more, some, tf.raw_ops.OptionalNone)

  def get_next(handle):
    variant, found = read(handle)
    has_more = found.client.starts < found.client.ends
    check = tf.debugging.Assert(has_more, ['End of sequence'])
    with tf.control_dependencies([check]):
      return advance(handle, tf.identity(variant), found)

  is_optional = node.op == _GET_OPTIONAL_OP
  return dataset_chains.ReplacedOp(
      get_optional if is_optional else get_next,
      _graph_defs.split_inputs(node)[0],
      [tf.resource],
  )


def _deriving(nodes: Any) -> dict[str, str]:
  """Returns the ops of the nodes that derive datasets, by name."""
  return {n.name: n.op for n in nodes if n.op in dataset_nodes.DERIVING_OPS}


def _is_source(node: Any, place: int) -> bool:
  """Returns whether an op reads or derives its data input at a place."""
  if node.op == 'ZipDataset':
    return True
  reads = (
      node.op in dataset_nodes.DERIVING_OPS or node.op == _graph_defs.REDUCE_OP
  )
  return reads and place == 0


def _find_escape(nodes: Any, results: list[str]) -> Optional[str]:
  """Returns the type of an op whose dataset is more than read in its graph."""
  derived = _deriving(nodes)
  if not derived:
    return None
  is_changed = True
  while is_changed:  # An identity passes a dataset on.
    passed = {
        node.name: derived[_graph_defs.node_of(node.input[0])]
        for node in nodes
        if node.op == 'Identity'
        if _graph_defs.node_of(node.input[0]) in derived
    }
    is_changed = not passed.keys() <= derived.keys()
    derived |= passed
  used = list(results)
  for node in nodes:
    data, _ = _graph_defs.split_inputs(node)
    used += [
        name
        for place, name in enumerate(data)
        if node.name not in derived or node.op != 'Identity'
        if not _is_source(node, place)
    ]
  names = map(_graph_defs.node_of, used)
  return next((derived[name] for name in names if name in derived), None)


def why_no_loops(serialized: computations.Serialized) -> Optional[str]:
  """Explains why a computation needs datasets.

  Returns:
    A clause that follows 'because the work'; None if datasets are only read, so
    that `read_sequences_from_tensors` is applicable.
  """
  graph_def = serialized.graph_def
  for node in _graph_defs.all_nodes(graph_def):
    is_known = node.op in _REPLACED_OPS or node.op in dataset_nodes.DERIVING_OPS
    if ('Dataset' in node.op or 'Iterator' in node.op) and not is_known:
      return f'does more than read its dataset: it calls {node.op}'
  functions = _graph_defs.functions_of(graph_def)
  scopes: list[tuple[Any, list[str], list[str]]] = [
      (function.node_def, list(function.ret.values()), [])
      for function in functions.values()
  ]
  scopes.append((graph_def.node, serialized.results, serialized.parameters))
  for nodes, results, arguments in scopes:
    escaped = _find_escape(nodes, results)
    if escaped is not None:
      return (
          'does more than read its dataset: it calls '
          f'{escaped} and passes the result on, to an iterator or a function'
      )
    by_name = {node.name: node for node in nodes}
    is_graph = nodes is scopes[-1][0]
    for node in nodes:
      if node.op == _graph_defs.REDUCE_OP:
        names = set(map(_graph_defs.node_of, arguments))
        try:
          dataset_chains.build_reduction(
              node, by_name, functions, names, {} if is_graph else None
          )
        except sequences.UnreadableError as error:
          return f'does more than read its dataset: {error}'
  return None


def _add_call(
    node: Any, replaced: dataset_chains.ReplacedOp, library: Any
) -> None:
  """Turns a node into a call, and adds the called function to the library."""
  specs = [tf.TensorSpec(None, dtype) for dtype in replaced.input_dtypes]
  call = _graph_defs.add_function(replaced.function, specs, library)
  _, control = _graph_defs.split_inputs(node)
  node.op = call.op
  waits_for = dict.fromkeys([*control, *replaced.control])
  node.input[:] = [*replaced.inputs, *waits_for]
  node.attr.clear()
  for name in ('Tin', 'Tout', 'f'):
    node.attr[name].CopyFrom(call.attr[name])


def _replace_node(node: Any, nodes: Any, functions: Any, library: Any) -> None:
  """Replaces one op on a dataset or an iterator, in place."""
  if node.op == _graph_defs.REDUCE_OP:
    _add_call(
        node, dataset_chains.build_reduction(node, nodes, functions), library
    )
  elif node.op in (_GET_NEXT_OP, _GET_OPTIONAL_OP):
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


def inline_readers(serialized: computations.Serialized) -> None:
  """Inlines functions that read sequences, to make their loops top-level.

  A loop that is built into the calling graph costs a fraction of a call of a
  function that contains it.
  """
  graph_def = serialized.graph_def
  functions = _graph_defs.functions_of(graph_def)

  def reads(node):
    return node.op in _graph_defs.CALL_OPS and any(
        inner.op == _graph_defs.REDUCE_OP
        or inner.op in dataset_nodes.DERIVING_OPS
        or reads(inner)
        for inner in functions[node.attr['f'].func.name].node_def
    )

  inliner = _graph_defs.Inliner(graph_def)
  serialized.results[:] = inliner.inline_all(reads, serialized.results)
  library = _graph_defs.select_called(graph_def.node, graph_def.library)
  graph_def.library.CopyFrom(library)


def _forget_order(graph_def: Any) -> None:
  """Removes control edges from ops that derive datasets: they do nothing."""
  for nodes in _graph_defs.scopes(graph_def):
    deriving = {f'^{name}' for name in _deriving(nodes)}
    if deriving:
      for node in nodes:
        node.input[:] = [name for name in node.input if name not in deriving]
  for function in graph_def.library.function:
    _graph_defs.forget_controls(function, _deriving(function.node_def))


def _replace_in_function(function: Any, functions: Any, library: Any) -> None:
  """Replaces all ops on datasets of a function."""
  renamed = {}
  nodes = {node.name: node for node in function.node_def}
  for node in function.node_def:
    if node.op in _OUTPUT_NAMES:
      before, after = _OUTPUT_NAMES[node.op]
      renamed[f'{node.name}:{before}'] = f'{node.name}:{after}'
    _replace_node(node, nodes, functions, library)
  if renamed:
    _rename_outputs(function, renamed)
  _graph_defs.keep_nodes(
      function.node_def, lambda node: node.op not in dataset_nodes.DERIVING_OPS
  )


def read_sequences_from_tensors(serialized: computations.Serialized) -> None:
  """Replaces all ops on datasets, except those at the top level.

  Nothing may need datasets, see `why_no_loops`; the graph is modified in place.
  Its reductions become loops when the graph is imported.
  """
  graph_def = serialized.graph_def
  _forget_order(graph_def)
  functions = _graph_defs.functions_of(graph_def)
  added = tf.compat.v1.GraphDef().library
  for function in functions.values():
    _replace_in_function(function, functions, added)
  for node in graph_def.node:
    if node.op != _graph_defs.REDUCE_OP:
      _replace_node(node, {}, functions, added)
  graph_def.library.function.extend(added.function)
