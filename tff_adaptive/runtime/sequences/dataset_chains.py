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

from tff_adaptive import _graph_defs
from tff_adaptive.data import batching
from tff_adaptive.runtime import plans
from tff_adaptive.runtime.sequences import batched_sequences
from tff_adaptive.runtime.sequences import dataset_nodes
from tff_adaptive.runtime.sequences import derived_sequences
from tff_adaptive.runtime.sequences import sequences
from tff_adaptive.runtime.sequences import shuffled_sequences

_COUNTING_OPS = {
    'RepeatDataset': derived_sequences.Repeated,
    'SkipDataset': derived_sequences.skip,
    'TakeDataset': derived_sequences.Taken,
}


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
      shuffles: Optional[dict[str, list[Any]]] = None,
  ):
    """Initializes the chain.

    Args:
      nodes: The nodes of a graph or of a function by name.
      functions: All functions of the graph by name.
      arguments: The names of nodes whose values may be `PackedClients`.
      shuffles: See `build_reduction`.
    """
    self._nodes = dataset_nodes.DatasetNodes(nodes, functions, arguments)
    self._functions = functions
    self._shuffles = shuffles
    # Whether the dataset that is being read is repeated, and perhaps in parts.
    self._is_repeated = self._is_partial = False
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

  def add_function(self, name: str) -> dataset_nodes.Function:
    """Adds a function that is called for each element."""
    function = dataset_nodes.Function(name, self._functions)
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
    node = self._nodes.deriving(name)
    if node is None:
      if dtypes is None and not self._nodes.is_argument(name):
        raise sequences.UnreadableError('it zips datasets of unknown elements')
      self.datasets.append(len(self.inputs))
      pick = self.add_inputs([name], [tf.variant])
      return lambda values: _read_rows(pick(values)[0], dtypes)
    data, control = _graph_defs.split_inputs(node)
    self.control += control
    before = self._is_repeated, self._is_partial
    is_read_twice = sum(map(self._nodes.is_shuffled, data)) > 1
    if node.op in dataset_nodes.PARTIAL_OPS:
      self._is_partial |= self._is_repeated or is_read_twice
    self._is_repeated |= node.op == 'RepeatDataset'
    build = self._read_op(node, data, dtypes)
    self._is_repeated, self._is_partial = before
    return build

  def _read_op(
      self, node: Any, data: list[str], dtypes: Optional[list[tf.DType]]
  ) -> _Builder:
    """Reads an op that makes a dataset, see `read`."""
    if self._nodes.is_same(node):
      return self.read(data[0], dtypes)
    if node.op in dataset_nodes.FUNCTION_OPS:
      return self._read_function_op(node, data)
    if node.op == 'RangeDataset':
      (dtype,) = dataset_nodes.attr_dtypes(node, 'output_types')
      pick = self.add_inputs(data, [tf.int64] * 3)

      def count(values):
        start, stop, step = pick(values)
        return derived_sequences.Range(start, stop, step, dtype)

      return count
    if node.op in _COUNTING_OPS:
      if node.op == 'RepeatDataset' and self._nodes.counts_epochs(data[0]):
        raise sequences.UnreadableError(
            'it repeats a dataset whose shuffle has a seed, and reads it again'
        )
      build = self.read(data[0], dtypes)
      pick = self.add_inputs(data[1:], [tf.int64])
      derive = _COUNTING_OPS[node.op]
      return lambda values: derive(build(values), *pick(values))
    if node.op == 'ZipDataset':
      return self._read_zip(node, data)
    if node.op in _graph_defs.SHUFFLE_OPS:
      return self._read_shuffle(node, data)
    return self._read_batching_op(node, data)

  def _read_shuffle(self, node: Any, data: list[str]) -> _Builder:
    """Reads `shuffle`."""
    shuffles = self._shuffles
    if shuffles is None:
      raise sequences.UnreadableError(
          'it shuffles a dataset inside of a loop or a branch'
      )
    has_effects, self.has_effects = self.has_effects, False
    build = self.read(data[0], dataset_nodes.attr_dtypes(node, 'output_types'))
    if self.has_effects or not self._nodes.is_numbered(
        data[0], through_maps=True
    ):
      raise sequences.UnreadableError(
          'it shuffles what has to be read in order: move `shuffle` before '
          '`filter` and the like'
      )
    self.has_effects = has_effects
    pick = self.add_inputs(data[1:4], [tf.int64] * 3)

    def shuffle(values):
      source, known = build(values), shuffles.setdefault(node.name, [])
      numbers = shuffled_sequences.shuffle(source, node, *pick(values), known)
      # It begins when the op does that reads it: after others, perhaps.
      with tf.control_dependencies(list(filter(tf.is_tensor, values))):
        numbers = tf.identity(numbers)
      sequence = shuffled_sequences.shuffled(source, numbers)
      # The next one that reads it begins afterwards.
      with tf.control_dependencies(sequence.state):
        known[-1] = tf.identity(known[-1])
      return sequence

    return shuffle

  def _read_batching_op(self, node: Any, data: list[str]) -> _Builder:
    """Reads `batch`, `unbatch`, `shard` or `cache`."""
    is_partial = self._is_partial
    has_effects, self.has_effects = self.has_effects, False
    dtypes = dataset_nodes.attr_dtypes(node, 'output_types')
    build = self.read(data[0], dtypes)
    may_read_again = not self.has_effects
    self.has_effects |= has_effects
    if node.op in dataset_nodes.CACHE_OPS:
      if not may_read_again:
        raise sequences.UnreadableError(
            'it caches a dataset whose functions have effects'
        )
      if self._nodes.constant(data[1]) != b'':
        raise sequences.UnreadableError('it caches a dataset in a file')
      if self._nodes.is_shuffled(data[0]) and (
          is_partial or self._nodes.num_readers(node.name) > 1
      ):
        raise sequences.UnreadableError(
            'it caches a shuffled dataset, which it may not read to the end '
            'before it reads it again'
        )
      return lambda values: derived_sequences.cached(build(values))
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
    drops = self._nodes.constant(data[-1]) is not False

    def batch(values):
      source, (size, drop) = build(values), pick(values)
      num_parallel = 1 if self.has_effects else plans.num_cores()
      return batched_sequences.batch(
          source, size, drop if drops else None, dtypes, num_parallel
      )

    return batch

  def _read_zip(self, node: Any, data: list[str]) -> _Builder:
    """Reads `ZipDataset`."""
    dtypes = dataset_nodes.attr_dtypes(node, 'output_types')
    sizes = list(map(self._nodes.num_components, data))
    if sizes.count(None) == 1:
      sizes[sizes.index(None)] = len(dtypes) - sum(filter(None, sizes))
    if sum(map(self._nodes.drops, data)) > 1:
      raise sequences.UnreadableError(
          'it zips several datasets that drop elements'
      )
    builds = []
    for name, size in zip(data, sizes):
      known = None if None in sizes else dtypes[:size]
      dtypes = dtypes[size:]
      builds.append(self.read(name, known))
    return lambda values: derived_sequences.Zipped([b(values) for b in builds])

  def _read_function_op(self, node: Any, data: list[str]) -> _Builder:
    """Reads an op that calls a function for each element."""
    function = self.add_function(
        node.attr[dataset_nodes.FUNCTION_OPS[node.op]].func.name
    )
    states = dataset_nodes.attr_dtypes(node, 'Tstate')
    others = dataset_nodes.attr_dtypes(node, 'Targuments')
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
            source, call, pick_states(values), shapes
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
  variant = sequences.from_variant(value, dtypes)
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
    shuffles: Optional[dict[str, list[Any]]] = None,
) -> ReplacedOp:
  """Returns the loop over a sequence that replaces `ReduceDataset`.

  Args:
    node: The `NodeDef` of the op. It names a function of (state, element, other
      arguments).
    nodes: The nodes of the same graph or function by name.
    functions: All functions of the graph by name.
    arguments: The names of nodes whose values may be `PackedClients`.
    shuffles: The datasets of shuffled numbers in the current graph, by the
      names of the nodes that shuffle; filled in place. None if shuffles cannot
      be read.

  Returns:
    A function of its inputs to the final state; those that are sequences may be
    `PackedClients`.

  Raises:
    UnreadableError: If the dataset cannot be read as a loop.
  """
  chain = _Chain(nodes, functions, arguments, shuffles)
  function = chain.add_function(node.attr['f'].func.name)
  data, _ = _graph_defs.split_inputs(node)
  states = dataset_nodes.attr_dtypes(node, 'Tstate')
  others = dataset_nodes.attr_dtypes(node, 'Targuments')
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
