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
"""Calling a TensorFlow function with its random numbers fixed by a seed.

Models draw dropout masks with stateful random ops, which draw anew at every
call. A rule that evaluates a batch at two points must see one mask at both, so
the function is traced, its stateful random ops are replaced by stateless ones
keyed by the seed, and the changed graph is called in its place.
"""

from collections.abc import Callable
import itertools
from typing import Any

import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive import _random_ops

# Functions of different traces must not share a name.
_trace_numbers = itertools.count()


def draw_seed() -> tf.Tensor:
  """Draws a new seed, an int32 tensor of shape [2]."""
  return tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)


def call_with_seed(fn: Callable[..., Any], seed: tf.Tensor, *args: Any) -> Any:
  """Calls `fn(*args)` with random numbers that depend on `seed` alone.

  Called while a graph is built. With the same seed, functions that draw in the
  same order draw the same numbers.

  Args:
    fn: A function of structures of tensors (other arguments are handed on as
      they are) that returns a structure of tensors and `None`.
    seed: An int32 tensor of shape [2], see `draw_seed`.
    *args: The arguments of `fn`.

  Returns:
    What `fn` returns.

  Raises:
    ValueError: If `fn` draws with an op other than uniform, normal and
      truncated normal.
  """
  leaves = tf.nest.flatten(args)
  tensors = [leaf for leaf in leaves if tf.is_tensor(leaf)]

  def flat_fn(*tensor_args):
    remaining = iter(tensor_args)
    filled = [
        next(remaining) if tf.is_tensor(leaf) else leaf for leaf in leaves
    ]
    return fn(*tf.nest.pack_sequence_as(args, filled))

  concrete = tf.function(flat_fn).get_concrete_function(
      *(tf.TensorSpec(t.shape, t.dtype) for t in tensors)
  )
  graph_def = concrete.graph.as_graph_def()
  rewriter = _random_ops.RandomOpRewriter(
      graph_def, f'_seeded_{next(_trace_numbers)}'
  )
  if not rewriter.draws(graph_def.node):
    return fn(*args)
  try:
    return _import(concrete, graph_def, rewriter, tensors, seed)
  except _random_ops.UnsupportedRandomOpError as e:
    raise ValueError(
        f"The model's {e}, where they cannot be held fixed for a second "
        'evaluation of the batch. Take an optimizer that evaluates each batch '
        "once (Delta-SGD: `previous_gradient='reuse'`), or dropout in place of "
        'that op.'
    ) from e


def _capture(tensor: tf.Tensor) -> tf.Tensor:
  """The tensor as the current graph sees it."""
  graph = tf.compat.v1.get_default_graph()
  # Only the graph of a function has outer graphs to capture from.
  return graph.capture(tensor) if hasattr(graph, 'capture') else tensor


def _import(
    concrete: Any,
    graph_def: Any,
    rewriter: _random_ops.RandomOpRewriter,
    tensors: list[tf.Tensor],
    seed: tf.Tensor,
) -> Any:
  """Puts the rewritten graph into the current one."""
  seed_node = tf.compat.v1.NodeDef(
      name=_random_ops.SEED_ARGUMENT, op='Placeholder'
  )
  seed_node.attr['dtype'].type = tf.int32.as_datatype_enum
  nodes = rewriter.rewrite(
      graph_def.node, f'{_random_ops.SEED_ARGUMENT}:0', ':0'
  )
  changed = tf.compat.v1.GraphDef(versions=graph_def.versions)
  changed.library.CopyFrom(graph_def.library)
  changed.library.function.extend(rewriter.changed_functions)
  changed.node.extend([seed_node, *nodes])

  _function_library.register_functions(changed.library)
  inputs = tensors + list(concrete.captured_inputs)
  input_map = {
      inner.name: _capture(tensor)
      for inner, tensor in zip(concrete.inputs, inputs)
  }
  outputs = tf.graph_util.import_graph_def(
      changed,
      input_map={**input_map, f'{_random_ops.SEED_ARGUMENT}:0': _capture(seed)},
      return_elements=[output.name for output in concrete.outputs],
      name='seeded',
  )
  remaining = iter(outputs)
  structure = concrete.structured_outputs
  # The gradient of an embedding is several tensors, `tf.IndexedSlices`.
  leaves = tf.nest.flatten(structure, expand_composites=True)
  return tf.nest.pack_sequence_as(
      structure,
      [None if leaf is None else next(remaining) for leaf in leaves],
      expand_composites=True,
  )
