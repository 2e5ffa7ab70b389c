# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads datasets that are made inside the clients' work as loops.

`for element in dataset` in a `tf.function`, for example, reduces a
`ScanDataset`. Its reduction, with the chain of ops that make the dataset from
those of a client, is one loop over `sequences`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.data import batching
from tff_adaptive.runtime import batched_sequences
from tff_adaptive.runtime import derived_sequences
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import sequence_variants
from tff_adaptive.runtime import sequences

# Ops whose elements are those of their first input.
_SAME_OPS = (
    'Identity',
    'ModelDataset',
    'OptionsDataset',
    'PrefetchDataset',
    'RewriteDataset',
)
# Ops that call a function for each element, and its attribute.
_FUNCTION_OPS = {
    'FilterDataset': 'predicate',
    'MapDataset': 'f',
    'ParallelMapDataset': 'f',
    'ParallelMapDatasetV2': 'f',
    'ScanDataset': 'f',
    'TakeWhileDataset': 'predicate',
}
_DROPPING_OPS = (
    'FilterDataset',
    'ShardDataset',
    'SkipDataset',
    'TakeWhileDataset',
    'UnbatchDataset',
)
_COUNTING_OPS = {
    'RepeatDataset': derived_sequences.Repeated,
    'SkipDataset': derived_sequences.skip,
    'TakeDataset': derived_sequences.Taken,
}
_BATCH_OPS = ('BatchDatasetV2', 'ParallelBatchDataset')
_CACHE_OPS = ('CacheDataset', 'CacheDatasetV2')
# Ops that make a dataset and need none, if they are read in the same graph.
DERIVING_OPS = frozenset(
    {
        *_SAME_OPS[1:],
        *_FUNCTION_OPS,
        *_COUNTING_OPS,
        *_BATCH_OPS,
        *_CACHE_OPS,
        'RangeDataset',
        'ShardDataset',
        'UnbatchDataset',
        'ZipDataset',
    }
)


def derives(node: Any) -> bool:
  """Returns whether a node makes a dataset that is read as others are."""
  return node.op in _SAME_OPS or node.op in DERIVING_OPS


class ReplacedOp(NamedTuple):
  """The replacement of an op.

  Attributes:
    function: Computes the op's outputs from its inputs.
    inputs: The names of its inputs.
    input_dtypes: Their dtypes.
    datasets: The places of those that may be `PackedClients`.
    control: The control inputs of what it replaces besides the op.
  """

  function: Callable[..., Any]
  inputs: list[str]
  input_dtypes: list[tf.DType]
  datasets: Collection[int] = ()
  control: Sequence[str] = ()


def attr_dtypes(node: Any, name: str) -> list[tf.DType]:
  """Returns the dtypes that an attribute of a node lists."""
  return [tf.as_dtype(t) for t in node.attr[name].list.type]


class _Function:
  """A function that is called for each element.

  Attributes:
    input_dtypes: The dtypes of its arguments.
    has_effects: Whether the order of its calls may matter.
  """

  def __init__(self, name: str, functions: Mapping[str, Any]):
    self._name = name
    self._function = functions[name]
    signature = self._function.signature
    self.input_dtypes = [tf.as_dtype(arg.type) for arg in signature.input_arg]
    self.has_effects = _function_library.has_effects(name, functions)

  def __call__(self, *arguments: tf.Tensor) -> list[tf.Tensor]:
    """Adds a call, by the name that is registered with the runtime."""
    signature = self._function.signature
    call = (
        tf.raw_ops.StatefulPartitionedCall
        if signature.is_stateful
        else tf.raw_ops.PartitionedCall
    )
    dtypes = [arg.type for arg in signature.output_arg]
    return list(call(args=list(arguments), Tout=dtypes, f=self._name))

  def shapes(self, count: int) -> list[tf.TensorShape]:
    """Returns what is known of the shapes of the first arguments."""
    found = []
    for place in range(count):
      shapes = None
      if place in self._function.arg_attr:
        attrs = self._function.arg_attr[place].attr
        if '_output_shapes' in attrs:
          shapes = attrs['_output_shapes'].list.shape
      found.append(tf.TensorShape(shapes[0] if shapes else None))
    return found


# Builds a sequence from the values of all inputs of a chain of ops.
_Builder = Callable[[list[Any]], sequences.Sequence]


class _Chain:
  """The ops that make a dataset, from those that stay tensors to its reader.

  Attributes:
    inputs: The names of the tensors that the ops need.
    input_dtypes: Their dtypes.
    datasets: The places of those that are datasets to read.
    control: The control inputs of the ops.
    has_effects: Whether the order of calls for elements may matter.
  """

  def __init__(
      self,
      nodes: Mapping[str, Any],
      functions: Mapping[str, Any],
      arguments: Collection[str] = (),
  ):
    """Initializes the chain.

    Args:
      nodes: The nodes of a graph or of a function by name.
      functions: All functions of the graph by name.
      arguments: The names of nodes whose values may be `PackedClients`.
    """
    self._nodes = nodes
    self._functions = functions
    self._arguments = arguments
    self.inputs: list[str] = []
    self.input_dtypes: list[tf.DType] = []
    self.datasets: list[int] = []
    self.control: list[str] = []
    self.has_effects = False

  def add_inputs(
      self, names: list[str], dtypes: list[tf.DType]
  ) -> Callable[[list[Any]], list[Any]]:
    """Adds inputs; returns a function that picks their values among all."""
    places = slice(len(self.inputs), len(self.inputs) + len(names))
    self.inputs += names
    self.input_dtypes += dtypes
    return lambda values: values[places]

  def add_function(self, name: str) -> _Function:
    """Adds a function that is called for each element."""
    function = _Function(name, self._functions)
    self.has_effects |= function.has_effects
    return function

  def read(self, name: str, dtypes: Optional[list[tf.DType]]) -> _Builder:
    """Reads the ops that make a dataset.

    Args:
      name: The name of the dataset.
      dtypes: The dtypes of its components; None if they are not known.

    Returns:
      A function from the values of `inputs` to the sequence.
    """
    node = self._nodes.get(_function_library.node_of(name))
    if node is None or not derives(node):
      if dtypes is None and not self._is_argument(name):
        raise sequences.UnreadableError('it zips datasets of unknown elements')
      self.datasets.append(len(self.inputs))
      pick = self.add_inputs([name], [tf.variant])
      return lambda values: _read_rows(pick(values)[0], dtypes)
    data, control = _function_library.split_inputs(node)
    self.control += control
    if node.op in _SAME_OPS:
      return self.read(data[0], dtypes)
    if node.op in _FUNCTION_OPS:
      return self._read_function_op(node, data)
    if node.op == 'RangeDataset':
      (dtype,) = attr_dtypes(node, 'output_types')
      pick = self.add_inputs(data, [tf.int64] * 3)

      def count(values):
        start, stop, step = pick(values)
        return sequences.Range(start, stop, step, dtype)

      return count
    if node.op in _COUNTING_OPS:
      build = self.read(data[0], dtypes)
      pick = self.add_inputs(data[1:], [tf.int64])
      derive = _COUNTING_OPS[node.op]
      return lambda values: derive(build(values), *pick(values))
    if node.op == 'ZipDataset':
      return self._read_zip(node, data)
    return self._read_batching_op(node, data)

  def _read_batching_op(self, node: Any, data: list[str]) -> _Builder:
    """Reads `batch`, `unbatch`, `shard` or `cache`."""
    has_effects, self.has_effects = self.has_effects, False
    dtypes = attr_dtypes(node, 'output_types')
    build = self.read(data[0], dtypes)
    may_read_again = not self.has_effects
    self.has_effects |= has_effects
    if node.op in _CACHE_OPS:
      if not may_read_again:
        raise sequences.UnreadableError(
            'it caches a dataset whose functions have effects'
        )
      if self._constant(data[1]) != b'':
        raise sequences.UnreadableError('it caches a dataset in a file')
      return build
    if node.op == 'UnbatchDataset':
      return lambda values: batched_sequences.unbatch(build(values), dtypes)
    if node.op == 'ShardDataset':
      pick = self.add_inputs(data[1:], [tf.int64] * 2)
      return lambda values: batched_sequences.Sharded(
          build(values), *pick(values)
      )
    if tf.variant in dtypes:
      raise sequences.UnreadableError('it batches datasets or sparse tensors')
    pick = self.add_inputs([data[1], data[-1]], [tf.int64, tf.bool])
    drops = self._constant(data[-1]) is not False

    def batch(values):
      source, (size, drop) = build(values), pick(values)
      num_parallel = 1 if self.has_effects else plans.num_cores()
      return batched_sequences.batch(
          source, size, drop if drops else None, dtypes, num_parallel
      )

    return batch

  def _constant(self, name: str) -> Any:
    """Returns the value of a constant scalar; None of another tensor."""
    node = self._nodes.get(_function_library.node_of(name))
    while node is not None and node.op == 'Identity':
      node = self._nodes.get(_function_library.node_of(node.input[0]))
    if node is None or node.op != 'Const':
      return None
    return tf.make_ndarray(node.attr['value'].tensor).item()

  def _read_zip(self, node: Any, data: list[str]) -> _Builder:
    """Reads `ZipDataset`."""
    dtypes = attr_dtypes(node, 'output_types')
    sizes = list(map(self._num_components, data))
    if sizes.count(None) == 1:
      sizes[sizes.index(None)] = len(dtypes) - sum(filter(None, sizes))
    if sum(map(self._drops, data)) > 1:
      raise sequences.UnreadableError(
          'it zips several datasets that drop elements'
      )
    builds = []
    for name, size in zip(data, sizes):
      known = None if None in sizes else dtypes[:size]
      dtypes = dtypes[size:]
      builds.append(self.read(name, known))
    return lambda values: derived_sequences.Zipped([b(values) for b in builds])

  def _num_components(self, name: str) -> Optional[int]:
    """Returns the number of components of a dataset, if an op tells it."""
    node = self._nodes.get(_function_library.node_of(name))
    if node is None or not derives(node):
      return None
    if node.op == 'Identity':
      return self._num_components(node.input[0])
    return len(attr_dtypes(node, 'output_types'))

  def _drops(self, name: str) -> bool:
    """Returns whether a dataset drops elements of another one."""
    node = self._nodes.get(_function_library.node_of(name))
    if node is None or not derives(node):
      return False
    data, _ = _function_library.split_inputs(node)
    if node.op in _BATCH_OPS and self._constant(data[-1]) is not False:
      return True
    is_zip = node.op == 'ZipDataset'
    return node.op in _DROPPING_OPS or (
        node.op != 'RangeDataset'
        and any(map(self._drops, data if is_zip else data[:1]))
    )

  def _is_argument(self, name: str) -> bool:
    """Returns whether a name is that of a client's sequence."""
    return _function_library.node_of(name) in self._arguments

  def _read_function_op(self, node: Any, data: list[str]) -> _Builder:
    """Reads an op that calls a function for each element."""
    function = self.add_function(node.attr[_FUNCTION_OPS[node.op]].func.name)
    states = attr_dtypes(node, 'Tstate')
    others = attr_dtypes(node, 'Targuments')
    arguments = function.input_dtypes
    build = self.read(
        data[0], arguments[len(states) : len(arguments) - len(others)]
    )
    pick_states = self.add_inputs(data[1 : 1 + len(states)], states)
    first = 1 + len(states)
    pick_others = self.add_inputs(data[first : first + len(others)], others)

    def derive(values):
      source, captured = build(values), pick_others(values)
      call = lambda *given: function(*given, *captured)
      if node.op == 'ScanDataset':
        shapes = function.shapes(len(states))
        return derived_sequences.Scanned(
            source, pick_states(values), call, shapes
        )
      if node.op == 'FilterDataset':
        return derived_sequences.Filtered(source, call)
      if node.op == 'TakeWhileDataset':
        return derived_sequences.TakenWhile(source, call)
      return derived_sequences.Mapped(source, call)

    return derive


def _read_rows(
    value: Any, dtypes: Optional[list[tf.DType]]
) -> sequences.Sequence:
  """Returns the sequence of a `PackedClients` or of a variant."""
  if isinstance(value, batching.PackedClients):
    return sequences.Rows(value)
  assert dtypes is not None
  variant = sequence_variants.from_variant(value, dtypes)
  return sequences.Rows(
      variant.client,
      lambda number, step: step(variant.element(number)),
      variant.are_batches,
  )


def build_reduction(
    node: Any,
    nodes: Mapping[str, Any],
    functions: Mapping[str, Any],
    arguments: Collection[str] = (),
) -> ReplacedOp:
  """Returns the loop over a sequence that replaces `ReduceDataset`.

  Args:
    node: The `NodeDef` of the op. It names a function of (state, element, other
      arguments).
    nodes: The nodes of the same graph or function by name.
    functions: All functions of the graph by name.
    arguments: The names of nodes whose values may be `PackedClients`.

  Returns:
    A function of its inputs to the final state; those that are sequences may be
    `PackedClients`.

  Raises:
    UnreadableError: If the dataset cannot be read as a loop.
  """
  chain = _Chain(nodes, functions, arguments)
  function = chain.add_function(node.attr['f'].func.name)
  data, _ = _function_library.split_inputs(node)
  states = attr_dtypes(node, 'Tstate')
  others = attr_dtypes(node, 'Targuments')
  dtypes = function.input_dtypes
  build = chain.read(data[0], dtypes[len(states) : len(dtypes) - len(others)])
  pick_states = chain.add_inputs(data[1 : 1 + len(states)], states)
  pick_others = chain.add_inputs(data[1 + len(states) :], others)
  shapes = [
      tf.TensorShape(shape) for shape in node.attr['output_shapes'].list.shape
  ]

  def reduce(*values):
    captured = pick_others(list(values))
    return sequences.reduce(
        build(list(values)),
        pick_states(list(values)),
        lambda state, element: function(*state, *element, *captured),
        shapes=shapes,
        # Without effects, such as those on variables, a step may start before
        # the previous one has ended: batches are evaluated on several cores.
        num_parallel=1 if chain.has_effects else plans.num_cores(),
    )

  return ReplacedOp(
      reduce, chain.inputs, chain.input_dtypes, chain.datasets, chain.control
  )
