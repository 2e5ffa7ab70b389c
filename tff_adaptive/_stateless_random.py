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
keyed by (seed, place of the op), also in the functions that it calls, and the
changed graph is called in its place.
"""

from collections.abc import Callable
import itertools
from typing import Any

import tensorflow as tf

# Stateful op to the stateless one with the same distribution and outputs. Both
# take the shape first; the stateless one takes the seed next.
_STATELESS_OPS = {
    'RandomUniform': 'StatelessRandomUniform',
    'RandomUniformInt': 'StatelessRandomUniformInt',
    'RandomStandardNormal': 'StatelessRandomNormal',
    'TruncatedNormal': 'StatelessTruncatedNormal',
}
_UNSUPPORTED_OPS = frozenset(
    {
        'Multinomial',
        'ParameterizedTruncatedNormal',
        'RandomGamma',
        'RandomPoissonV2',
        'RandomShuffle',
    }
)
_CALL_OPS = frozenset({'PartitionedCall', 'StatefulPartitionedCall'})
_BRANCH_OPS = {
    'If': ('then_branch', 'else_branch'),
    'StatelessIf': ('then_branch', 'else_branch'),
}
_SEED_ARGUMENT = 'stateless_random_seed'
# Functions of different traces must not share a name.
_trace_numbers = itertools.count()


def draw_seed() -> tf.Tensor:
  """Draws a new seed, an int32 tensor of shape [2]."""
  return tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)


class _Rewriter:
  """Replaces the random ops of one graph and of the functions in it."""

  def __init__(self, graph_def: Any, suffix: str):
    self._functions = {f.signature.name: f for f in graph_def.library.function}
    self._suffix = suffix
    self._drawing: dict[str, bool] = {}
    self._changed: dict[str, Any] = {}
    self._num_places = 0

  def draws(self, nodes: Any) -> bool:
    """Whether any of the nodes draws random numbers, also within a call."""
    return any(self._node_draws(node) for node in nodes)

  def _called(self, node: Any) -> list[str]:
    names = []
    for attr in node.attr.values():
      if attr.HasField('func'):
        names.append(attr.func.name)
      names.extend(func.name for func in attr.list.func)
    return [name for name in names if name in self._functions]

  def _node_draws(self, node: Any) -> bool:
    if node.op in _STATELESS_OPS or node.op in _UNSUPPORTED_OPS:
      return True
    called = self._called(node)
    if node.op in self._functions:
      called.append(node.op)
    return any(self._function_draws(name) for name in called)

  def _function_draws(self, name: str) -> bool:
    if name not in self._drawing:
      self._drawing[name] = self.draws(self._functions[name].node_def)
    return self._drawing[name]

  def rewrite(self, nodes: Any, seed: str, output_name: str) -> list[Any]:
    """The nodes, changed; the seed is the tensor called `seed`.

    Args:
      nodes: The `NodeDef`s of a graph or of a function.
      seed: The name of the seed's tensor.
      output_name: How an output is written behind its node's name: ':0' in a
        graph, ':{name}:0' in a function.

    Returns:
      A list of `NodeDef`s.

    Raises:
      ValueError: If a random op stands where it cannot be replaced.
    """
    changed = []
    for node in nodes:
      node = type(node).FromString(node.SerializeToString())
      # Constraints name nodes by their old places and break the import.
      node.attr.pop('_class', None)
      if self._node_draws(node):
        if node.op in _STATELESS_OPS:
          changed.extend(self._replace(node, seed, output_name))
        else:
          changed.extend(self._pass_seed(node, seed, output_name))
      changed.append(node)
    return changed

  def _seed_of_place(
      self, node: Any, seed: str, output_name: str
  ) -> tuple[Any, Any]:
    """The nodes of a seed of its own for the op or the call `node`."""
    self._num_places += 1
    # Large factors spread small numbers over all bits, so that the places of a
    # call and of an op within it do not cancel each other.
    spread = [
        (self._num_places * factor) % tf.int32.max
        for factor in (0x2545F491, 0x1B873593)
    ]
    place = tf.compat.v1.NodeDef(name=f'{node.name}/place', op='Const')
    place.attr['dtype'].type = tf.int32.as_datatype_enum
    place.attr['value'].tensor.CopyFrom(tf.make_tensor_proto(spread, tf.int32))
    keyed = tf.compat.v1.NodeDef(name=f'{node.name}/seed', op='BitwiseXor')
    keyed.attr['T'].type = tf.int32.as_datatype_enum
    keyed.input.extend([seed, place.name + output_name.format('output')])
    return place, keyed

  def _replace(self, node: Any, seed: str, output_name: str) -> list[Any]:
    """Turns a random op into a stateless one; returns the nodes it needs."""
    place, keyed = self._seed_of_place(node, seed, output_name)
    node.op = _STATELESS_OPS[node.op]
    control = [name for name in node.input if name.startswith('^')]
    data = [name for name in node.input if not name.startswith('^')]
    data.insert(1, keyed.name + output_name.format('z'))
    del node.input[:]
    node.input.extend(data + control)
    for name in ('seed', 'seed2'):
      node.attr.pop(name, None)
    node.attr['Tseed'].type = tf.int32.as_datatype_enum
    if node.op == 'StatelessRandomUniformInt':
      # The stateful op calls the dtype of its range 'Tout', the stateless one
      # 'dtype'.
      node.attr['dtype'].CopyFrom(node.attr.pop('Tout'))
    return [place, keyed]

  def _pass_seed(self, node: Any, seed: str, output_name: str) -> list[Any]:
    """Adds a seed to a call's arguments; returns the nodes it needs."""
    attrs: tuple[str, ...]
    if node.op in _CALL_OPS:
      attrs = ('f',)
    elif node.op in _BRANCH_OPS:
      attrs = _BRANCH_OPS[node.op]
    else:
      raise ValueError(
          f'The model draws random numbers in the op {node.op} '
          f'({node.name!r}), where they cannot be held fixed for a second '
          'evaluation of the batch. Take an optimizer that evaluates each '
          "batch once (Delta-SGD: `previous_gradient='reuse'`), or dropout in "
          'place of that op.'
      )
    for attr in attrs:
      node.attr[attr].func.name = self._rewritten_function(
          node.attr[attr].func.name
      )
    node.attr['Tin'].list.type.append(tf.int32.as_datatype_enum)
    data = [name for name in node.input if not name.startswith('^')]
    control = [name for name in node.input if name.startswith('^')]
    del node.input[:]
    place, keyed = self._seed_of_place(node, seed, output_name)
    node.input.extend(data + [keyed.name + output_name.format('z')] + control)
    return [place, keyed]

  def _rewritten_function(self, name: str) -> str:
    """The name of the function's form that takes the seed as last argument."""
    new_name = name + self._suffix
    if new_name not in self._changed:
      old = self._functions[name]
      function = type(old).FromString(old.SerializeToString())
      function.signature.name = new_name
      function.signature.input_arg.add(
          name=_SEED_ARGUMENT, type=tf.int32.as_datatype_enum
      )
      nodes = self.rewrite(old.node_def, _SEED_ARGUMENT, ':{}:0')
      del function.node_def[:]
      function.node_def.extend(nodes)
      # The gradients are taken already, and the shapes of the old form do not
      # know the new argument.
      function.attr.pop('forward_function_name', None)
      function.attr.pop('backward_function_name', None)
      self._changed[new_name] = function
    return new_name

  @property
  def changed_functions(self) -> list[Any]:
    """The functions that `rewrite` made."""
    return list(self._changed.values())


def _to_spec(tensor: tf.Tensor) -> tf.TensorSpec:
  return tf.TensorSpec(tensor.shape, tensor.dtype)


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
    ValueError: If `fn` draws where its random numbers cannot be held fixed: in
      a loop, or with an op other than uniform, normal and truncated normal.
  """
  leaves = tf.nest.flatten(args)
  is_tensor = [tf.is_tensor(leaf) for leaf in leaves]
  tensors = [leaf for leaf, flag in zip(leaves, is_tensor) if flag]

  def flat_fn(*tensor_args):
    remaining = iter(tensor_args)
    filled = [
        next(remaining) if flag else leaf
        for leaf, flag in zip(leaves, is_tensor)
    ]
    return fn(*tf.nest.pack_sequence_as(args, filled))

  concrete = tf.function(flat_fn).get_concrete_function(
      *(_to_spec(t) for t in tensors)
  )
  graph_def = concrete.graph.as_graph_def()
  rewriter = _Rewriter(graph_def, f'_seeded_{next(_trace_numbers)}')
  if not rewriter.draws(graph_def.node):
    return fn(*args)
  return _import(concrete, graph_def, rewriter, tensors, seed)


def _capture(tensor: tf.Tensor) -> tf.Tensor:
  """The tensor as the current graph sees it."""
  graph = tf.compat.v1.get_default_graph()
  # Only the graph of a function has outer graphs to capture from.
  return graph.capture(tensor) if hasattr(graph, 'capture') else tensor


def _register_functions(library: Any) -> None:
  """Makes functions known to the eager runtime.

  An import makes them known to the graph alone, but when that graph is a
  `tf.function` called eagerly, the runtime looks for them.
  """
  graph_def = tf.compat.v1.GraphDef(library=library)
  tf.compat.v1.wrap_function(
      lambda: tf.graph_util.import_graph_def(graph_def, name=''), []
  )


def _import(
    concrete: Any,
    graph_def: Any,
    rewriter: _Rewriter,
    tensors: list[tf.Tensor],
    seed: tf.Tensor,
) -> Any:
  """Puts the rewritten graph into the current one."""
  seed_node = tf.compat.v1.NodeDef(name=_SEED_ARGUMENT, op='Placeholder')
  seed_node.attr['dtype'].type = tf.int32.as_datatype_enum
  nodes = rewriter.rewrite(graph_def.node, f'{_SEED_ARGUMENT}:0', ':0')
  changed = tf.compat.v1.GraphDef(versions=graph_def.versions)
  changed.library.CopyFrom(graph_def.library)
  changed.library.function.extend(rewriter.changed_functions)
  changed.node.extend([seed_node, *nodes])

  _register_functions(changed.library)
  inputs = tensors + list(concrete.captured_inputs)
  input_map = {
      inner.name: _capture(tensor)
      for inner, tensor in zip(concrete.inputs, inputs)
  }
  outputs = tf.graph_util.import_graph_def(
      changed,
      input_map={**input_map, f'{_SEED_ARGUMENT}:0': _capture(seed)},
      return_elements=[output.name for output in concrete.outputs],
      name='seeded',
  )
  remaining = iter(outputs)
  structure = concrete.structured_outputs
  return tf.nest.pack_sequence_as(
      structure,
      [
          None if leaf is None else next(remaining)
          for leaf in tf.nest.flatten(structure)
      ],
  )
