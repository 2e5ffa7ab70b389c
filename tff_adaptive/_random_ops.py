# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replaces the random ops of a graph by stateless, seeded ones.

Models draw dropout masks, and aggregators draw noise, with stateful random ops,
which return new numbers at every call. This module replaces them, in a graph
and in the functions that it calls, by stateless ops keyed by (seed, position of
the op, iteration number if the op is in a loop).
"""

from collections.abc import Callable
import itertools
from typing import Any, Optional

import tensorflow as tf

from tff_adaptive import _graph_defs

# Maps each stateful op to the stateless op with the same distribution and
# outputs. Both take the shape first; the stateless op takes the seed second.
_STATELESS_OPS = {
    'RandomUniform': 'StatelessRandomUniform',
    'RandomUniformInt': 'StatelessRandomUniformInt',
    'RandomStandardNormal': 'StatelessRandomNormal',
    'TruncatedNormal': 'StatelessTruncatedNormal',
    'NonDeterministicInts': 'StatelessRandomUniformFullInt',
}
# Attributes of stateful ops that the stateless op calls otherwise.
_RENAMED_ATTRIBUTES = {
    'RandomUniformInt': ('Tout', 'dtype'),
    'NonDeterministicInts': ('shape_dtype', 'T'),
}
_UNSUPPORTED_OPS = frozenset(
    {
        'FixedUnigramCandidateSampler',
        'FractionalAvgPool',
        'FractionalMaxPool',
        'LearnedUnigramCandidateSampler',
        'LogUniformCandidateSampler',
        'Multinomial',
        'ParameterizedTruncatedNormal',
        'RandomCrop',
        'RandomGamma',
        'RandomPoisson',
        'RandomPoissonV2',
        'RandomShuffle',
        'SampleDistortedBoundingBox',
        'SampleDistortedBoundingBoxV2',
        'ThreadUnsafeUnigramCandidateSampler',
        'UniformCandidateSampler',
    }
)
# The attributes of call ops that name the called functions.
_CALL_OPS = {
    'PartitionedCall': ('f',),
    'StatefulPartitionedCall': ('f',),
    'If': ('then_branch', 'else_branch'),
    'StatelessIf': ('then_branch', 'else_branch'),
}
# Large factors spread small numbers over all bits, so that the positions of a
# call and of an op within it do not cancel out; odd ones keep all bits.
SPREADING_FACTORS = (0x2545F491, 0x1B873593)
_LOOP_OPS = frozenset({'While', 'StatelessWhile'})
# Their function maps states and an element to states, and other results.
_FOLDING_OPS = (_graph_defs.REDUCE_OP, 'ScanDataset')
SEED_ARGUMENT = 'stateless_random_seed'
_NEXT_SEED = 'next_stateless_random_seed'
# In functions, the seed is the last argument.
_AT_END = None
# Added to a seed after every loop iteration; odd, so that the seed takes on all
# values before it repeats.
_NEXT_ITERATION = (0x3C6EF373, 0x1FF34781)


def passes_seed(node: Any) -> bool:
  """Returns whether functions that a node calls may hold random ops."""
  return node.op in (*_CALL_OPS, *_LOOP_OPS, *_FOLDING_OPS)


class UnsupportedRandomOpError(ValueError):
  """A random op is in a place where it cannot be replaced."""

  def __init__(self, node: Any):
    super().__init__(f'random numbers are drawn in {node.op} ({node.name!r})')


class RandomOpRewriter:
  """Replaces the random ops of a graph and of its functions.

  Attributes:
    changed_functions: The functions that `rewrite` created.
  """

  def __init__(self, graph_def: Any, suffix: str):
    self._functions = _graph_defs.functions_of(graph_def)
    self._suffix = suffix
    self._drawing: dict[str, bool] = {}
    self._changed: dict[str, Any] = {}
    self._num_places = 0

  def draws(self, nodes: Any) -> bool:
    """Returns whether any of the nodes draws random numbers, also in calls."""
    return any(self._node_draws(node) for node in nodes)

  def _node_draws(self, node: Any) -> bool:
    if node.op in _STATELESS_OPS or node.op in _UNSUPPORTED_OPS:
      # Fractional pooling with a seed has the same regions in every call.
      return not _graph_defs.is_set(node, 'deterministic')
    return any(
        self._function_draws(name)
        for name in _graph_defs.called_functions(node, self._functions)
    )

  def _function_draws(self, name: str) -> bool:
    if name not in self._drawing:
      self._drawing[name] = self.draws(self._functions[name].node_def)
    return self._drawing[name]

  def rewrite(self, nodes: Any, seed: str, output_name: str) -> list[Any]:
    """Returns the nodes with random ops that depend on a seed.

    Args:
      nodes: The `NodeDef`s of a graph or of a function.
      seed: The name of the seed tensor.
      output_name: The suffix of an output after its node's name: ':0' in a
        graph, ':{name}:0' in a function.

    Returns:
      A list of `NodeDef`s.

    Raises:
      UnsupportedRandomOpError: If a random op is in a place where it cannot be
        replaced.
    """
    changed = []
    for node in nodes:
      node = type(node).FromString(node.SerializeToString())
      # Colocation constraints use the old node names and break the import.
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
    """Returns nodes that derive a seed for the op or the call `node`."""
    self._num_places += 1
    spread = [(self._num_places * f) % tf.int32.max for f in SPREADING_FACTORS]
    # An inlined function may have nodes `seed`, as those of a shuffle.
    name = f'{node.name}/{SEED_ARGUMENT}'
    place = _int32_constant(f'{name}/place', spread)
    keyed = tf.compat.v1.NodeDef(name=f'{name}/keyed', op='BitwiseXor')
    keyed.attr['T'].type = tf.int32.as_datatype_enum
    keyed.input.extend([seed, place.name + output_name.format('output')])
    return place, keyed

  def _replace(self, node: Any, seed: str, output_name: str) -> list[Any]:
    """Makes a random op stateless; returns the nodes that this needs."""
    place, keyed = self._seed_of_place(node, seed, output_name)
    if node.op in _RENAMED_ATTRIBUTES:
      old, new = _RENAMED_ATTRIBUTES[node.op]
      node.attr[new].CopyFrom(node.attr.pop(old))
    node.op = _STATELESS_OPS[node.op]
    data, control = _graph_defs.split_inputs(node)
    data.insert(1, keyed.name + output_name.format('z'))
    node.input[:] = data + control
    for name in ('seed', 'seed2'):
      node.attr.pop(name, None)
    node.attr['Tseed'].type = tf.int32.as_datatype_enum
    return [place, keyed]

  def _pass_seed(self, node: Any, seed: str, output_name: str) -> list[Any]:
    """Adds a seed to a call's arguments; returns the nodes that this needs."""
    place, keyed = self._seed_of_place(node, seed, output_name)
    data, control = _graph_defs.split_inputs(node)
    # Where the seed is inserted among the inputs of the node and its functions.
    position = len(data)
    if node.op in _CALL_OPS:
      self._rename(node, _CALL_OPS[node.op], _AT_END)
      types = [node.attr['Tin']]
    elif node.op in _LOOP_OPS:
      self._rename(node, ('cond',), _AT_END)
      self._rename(node, ('body',), _AT_END, returns_seed=True)
      types = [node.attr['T']]
      _append_shape(node)
    elif node.op in _FOLDING_OPS:
      # The seed is one more state; states follow the dataset.
      num_states = len(node.attr['Tstate'].list.type)
      position = 1 + num_states
      self._rename(node, ('f',), num_states, returns_seed=True)
      types = [node.attr['Tstate']]
      if node.op == _graph_defs.REDUCE_OP:
        types.append(node.attr['output_types'])
        _append_shape(node)
    else:
      raise UnsupportedRandomOpError(node)
    for attr in types:
      attr.list.type.append(tf.int32.as_datatype_enum)
    data.insert(position, keyed.name + output_name.format('z'))
    node.input[:] = data + control
    return [place, keyed]

  def _rename(
      self,
      node: Any,
      attrs: tuple[str, ...],
      position: Optional[int],
      returns_seed: bool = False,
  ) -> None:
    """Makes a node call the functions that take the seed."""
    for attr in attrs:
      node.attr[attr].func.name = self._rewritten_function(
          node.attr[attr].func.name, position, returns_seed
      )

  def _rewritten_function(
      self, name: str, position: Optional[int], returns_seed: bool
  ) -> str:
    """Returns the name of a copy of a function that takes the seed.

    The seed is the argument at `position`, None for last. The copy can also
    return the seed of the next iteration, as the body of a loop does.
    """
    form = '_body' * returns_seed
    form += '' if position is None else f'_{position}'
    new_name = name + self._suffix + form
    if new_name not in self._changed:
      old = self._functions[name]
      function = type(old).FromString(old.SerializeToString())
      function.signature.name = new_name
      arguments = list(function.signature.input_arg)
      seed = type(function.signature).ArgDef(
          name=SEED_ARGUMENT, type=tf.int32.as_datatype_enum
      )
      arguments.insert(len(arguments) if position is None else position, seed)
      del function.signature.input_arg[:]
      function.signature.input_arg.extend(arguments)
      function.arg_attr.clear()  # Its keys are argument positions.
      nodes = self.rewrite(old.node_def, SEED_ARGUMENT, ':{}:0')
      if returns_seed:
        results = list(function.signature.output_arg)
        seed = type(function.signature).ArgDef(
            name=_NEXT_SEED, type=tf.int32.as_datatype_enum
        )
        # After the other states, if results follow them.
        results.insert(len(results) if position is None else position, seed)
        del function.signature.output_arg[:]
        function.signature.output_arg.extend(results)
        function.ret[_NEXT_SEED] = f'{_NEXT_SEED}:z:0'
        nodes.extend(_next_seed_nodes())
      del function.node_def[:]
      function.node_def.extend(nodes)
      # The gradients have been taken, and the old shapes do not include the new
      # argument.
      function.attr.pop('forward_function_name', None)
      function.attr.pop('backward_function_name', None)
      self._changed[new_name] = function
    return new_name

  @property
  def changed_functions(self) -> list[Any]:
    return list(self._changed.values())


def seed_placeholder() -> Any:
  """Returns the placeholder node of the seed, named `SEED_ARGUMENT`."""
  node = tf.compat.v1.NodeDef(name=SEED_ARGUMENT, op='Placeholder')
  node.attr['dtype'].type = tf.int32.as_datatype_enum
  return node


def _append_shape(node: Any) -> None:
  """Adds the seed to a node's output shapes, if it lists them."""
  shapes = node.attr['output_shapes'].list.shape
  if shapes:
    shapes.add().dim.add(size=2)


def _int32_constant(name: str, value: Any) -> Any:
  node = tf.compat.v1.NodeDef(name=name, op='Const')
  node.attr['dtype'].type = tf.int32.as_datatype_enum
  node.attr['value'].tensor.CopyFrom(tf.make_tensor_proto(value, tf.int32))
  return node


def _next_seed_nodes() -> list[Any]:
  """Returns the nodes of a loop body that compute the next iteration's seed."""
  step = _int32_constant(f'{_NEXT_SEED}/step', _NEXT_ITERATION)
  add = tf.compat.v1.NodeDef(name=_NEXT_SEED, op='AddV2')
  add.attr['T'].type = tf.int32.as_datatype_enum
  add.input.extend([SEED_ARGUMENT, f'{step.name}:output:0'])
  return [step, add]


# Functions of different traces must not share a name.
_trace_numbers = itertools.count()


def draw_seed() -> tf.Tensor:
  """Draws a new seed, an int32 tensor of shape [2]."""
  return tf.random.uniform([2], maxval=tf.int32.max, dtype=tf.int32)


def call_with_seed(fn: Callable[..., Any], seed: tf.Tensor, *args: Any) -> Any:
  """Calls `fn(*args)` with random numbers that depend on `seed` alone.

  Call it while a graph is built. With the same seed, functions that draw in the
  same order draw the same numbers.

  Args:
    fn: A function of structures of tensors (other arguments are passed through)
      that returns a structure of tensors and `None`.
    seed: An int32 tensor of shape [2], see `draw_seed`.
    *args: The arguments of `fn`.

  Returns:
    The result of `fn`.

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
  rewriter = RandomOpRewriter(graph_def, f'_seeded_{next(_trace_numbers)}')
  if not rewriter.draws(graph_def.node):
    return fn(*args)
  try:
    return _import(concrete, graph_def, rewriter, tensors, seed)
  except UnsupportedRandomOpError as e:
    raise ValueError(
        f"The model's {e}, where they cannot be held fixed for a second "
        'evaluation of the batch. Use an optimizer that evaluates each batch '
        "once (Delta-SGD: `previous_gradient='reuse'`), or replace that op by "
        'dropout.'
    ) from e


def _import(
    concrete: Any,
    graph_def: Any,
    rewriter: RandomOpRewriter,
    tensors: list[tf.Tensor],
    seed: tf.Tensor,
) -> Any:
  """Imports the rewritten graph into the current one."""
  nodes = rewriter.rewrite(graph_def.node, f'{SEED_ARGUMENT}:0', ':0')
  changed = tf.compat.v1.GraphDef(
      node=nodes, library=graph_def.library, versions=graph_def.versions
  )
  changed.library.function.extend(rewriter.changed_functions)
  names = [tensor.name for tensor in concrete.inputs]
  given = dict(zip(names, [*tensors, *concrete.captured_inputs]))
  given[f'{SEED_ARGUMENT}:0'] = seed
  _graph_defs.remove_nodes(changed, given)
  _graph_defs.register_functions(changed.library)
  outputs = _graph_defs.import_with(
      changed, given, [tensor.name for tensor in concrete.outputs]
  )
  remaining = iter(outputs)
  structure = concrete.structured_outputs
  # The gradient of an embedding is a composite: `tf.IndexedSlices`.
  leaves = tf.nest.flatten(structure, expand_composites=True)
  return tf.nest.pack_sequence_as(
      structure,
      [None if leaf is None else next(remaining) for leaf in leaves],
      expand_composites=True,
  )
