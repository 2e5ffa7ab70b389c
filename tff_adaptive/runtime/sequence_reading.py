# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Graphs changed to read their sequences from tensors instead of datasets.

What stands in for the ops on datasets and iterators is in `sequences`.
"""

from typing import Any, Optional

import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import sequences

_CALL_OPS = ('PartitionedCall', 'StatefulPartitionedCall')
# The name that a function body gives to the outputs of an op, before and after.
_OUTPUT_NAMES = {
    sequences.REDUCE_OP: ('components', 'output'),
    sequences.GET_NEXT_OP: ('optional', 'output'),
    sequences.ITERATOR_OP: ('handle', 'resource'),
}


def find_dataset_op(graph_def: Any) -> Optional[str]:
  """Returns an op that makes or changes a dataset, or tells more of it.

  Args:
    graph_def: A `GraphDef`.

  Returns:
    Its kind; None if datasets are only read as they come in, so that
    `read_sequences_from_tensors` may be applied.
  """
  return next(
      (
          node.op
          for node in _function_library.all_nodes(graph_def)
          if 'Dataset' in node.op or 'Iterator' in node.op
          if node.op not in sequences.REPLACED_OPS
      ),
      None,
  )


def _add_call(node: Any, replaced: sequences.ReplacedOp, library: Any) -> None:
  """Turns a node into a call; what it calls goes into the library."""
  concrete = tf.function(replaced.function, autograph=False)
  concrete = concrete.get_concrete_function(
      *(tf.TensorSpec(None, dtype) for dtype in replaced.input_dtypes)
  )
  graph = tf.Graph()
  with graph.as_default():
    concrete(*map(tf.compat.v1.placeholder, replaced.input_dtypes))
  graph_def = graph.as_graph_def()
  known = {function.signature.name for function in library.function}
  library.function.extend(
      function
      for function in graph_def.library.function
      if function.signature.name not in known
  )
  (call,) = [n for n in graph_def.node if 'PartitionedCall' in n.op]
  node.op = call.op
  node.attr.clear()
  for name in ('Tin', 'Tout', 'f'):
    node.attr[name].CopyFrom(call.attr[name])


def _replace_node(node: Any, functions: Any, library: Any) -> None:
  """Replaces one op on a dataset or an iterator, in place."""
  if node.op == sequences.REDUCE_OP:
    reduce_function = functions[node.attr['f'].func.name]
    _add_call(
        node,
        sequences.build_reduction(node, reduce_function.signature),
        library,
    )
  elif node.op == sequences.GET_NEXT_OP:
    _add_call(node, sequences.build_get_next(node), library)
  elif node.op == sequences.ITERATOR_OP:
    node.op = 'VarHandleOp'
    node.attr.clear()
    node.attr['dtype'].type = tf.variant.as_datatype_enum
    node.attr['shape'].shape.SetInParent()
    node.attr['shared_name'].s = sequences.ANONYMOUS.encode()
  elif node.op == sequences.MAKE_ITERATOR_OP:
    dataset, iterator, *control = node.input
    del node.input[:]
    node.input.extend([iterator, dataset, *control])
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
  """Brings loops over sequences to the top, out of the functions they are in.

  Built into the graph that calls them they cost a fraction of what a function
  with a loop in it costs.
  """
  graph_def = serialized.graph_def
  functions = {f.signature.name: f for f in graph_def.library.function}
  inliner = _function_library.Inliner(graph_def)

  def reduces(name):
    return any(
        node.op == sequences.REDUCE_OP
        or (node.op in _CALL_OPS and reduces(node.attr['f'].func.name))
        for node in functions[name].node_def
    )

  while True:
    call = next(
        (
            node
            for node in graph_def.node
            if node.op in _CALL_OPS and reduces(node.attr['f'].func.name)
        ),
        None,
    )
    if call is None:
      return
    renamed = inliner.inline(call)
    serialized.results[:] = [
        renamed.get(name, name) for name in serialized.results
    ]


def read_sequences_from_tensors(serialized: computations.Serialized) -> None:
  """Replaces all ops that read datasets, except reductions at the top.

  Args:
    serialized: A computation that only reads sequences; its graph is changed in
      place. The reductions become loops when the graph is imported.
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
    if node.op != sequences.REDUCE_OP:
      _replace_node(node, functions, added)
  graph_def.library.function.extend(added.function)
