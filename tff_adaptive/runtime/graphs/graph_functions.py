# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""TFF's TensorFlow computations as functions of this process.

TFF stores a computation as a graph with the names of its parameters and
results. This module turns the graph into one TensorFlow function of flat lists
of tensors, which larger functions can call. In doing so,

- variables and lookup tables become anonymous, so that every call has its own
  and calls may run concurrently;
- reads of variables come after the assignment of received values;
- random ops become stateless and take a seed;
- sequences are read from tensors where possible, see `dataset_ops`.
"""

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping
import contextlib
import functools
import itertools
import threading
from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _function_library
from tff_adaptive import _random_ops
from tff_adaptive.data import batching
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import values
from tff_adaptive.runtime.graphs import read_order
from tff_adaptive.runtime.graphs import sums
from tff_adaptive.runtime.graphs import zero_products
from tff_adaptive.runtime.sequences import dataset_chains
from tff_adaptive.runtime.sequences import dataset_ops
from tff_adaptive.runtime.sequences import sequence_reads
from tff_adaptive.runtime.sequences import sequence_variants
from tff_adaptive.runtime.sequences import shuffled_sequences


class _GraphImport:
  """Imports a modified graph into the current one, piece by piece.

  Each top-level reduction over a sequence of tensors becomes a loop of the
  current graph; its dependencies are imported before it, the rest after it.
  """

  def __init__(
      self,
      graph_def: Any,
      arguments: dict[str, tf.Tensor],
      reads_tensors: bool,
  ):
    """Initializes the import.

    Args:
      graph_def: The modified graph.
      arguments: Replacements of tensors by name; for a sequence, a
        `PackedClients` or the variant of a dataset.
      reads_tensors: Whether the graph reads sequences from tensors.
    """
    self._reads_tensors = reads_tensors
    # Nodes that are mapped to an argument are not imported.
    given = set(map(_function_library.node_of, arguments))
    self._nodes = {n.name: n for n in graph_def.node if n.name not in given}
    self._graph_def = graph_def
    self._tensors = {
        _function_library.with_index(name): t for name, t in arguments.items()
    }
    self._sequences = {
        name: value
        for name, value in self._tensors.items()
        if isinstance(value, batching.PackedClients)
    }
    self._functions = {f.signature.name: f for f in graph_def.library.function}
    # How often they were read so far.
    self._num_reads = collections.Counter[str]()
    self._shuffles: dict[str, list[tf.Tensor]] = {}

  def run(self, results: list[str]) -> list[tf.Tensor]:
    """Imports the named results and their dependencies; returns the results."""
    names = list(map(_function_library.node_of, results))
    needed = self._needed(names)
    # Imports are few because each takes time proportional to the size of the
    # functions, however few nodes there are.
    self._add_functions(needed)
    for node in needed:
      if self._reads_tensors and node.op == _function_library.REDUCE_OP:
        self._add_loop(node)
    self._add_nodes(self._needed(names))
    return [
        self._tensors[_function_library.with_index(name)] for name in results
    ]

  def _needed(self, names: Iterable[str]) -> list[Any]:
    """Returns nodes and dependencies to import, in topological order."""
    waiting = {
        name: node
        for name, node in self._nodes.items()
        if f'^{name}' not in self._tensors
    }
    return _function_library.in_order(waiting, names)

  def _add_functions(self, nodes: list[Any]) -> None:
    """Imports the functions that nodes call."""
    library = _function_library.select_called(nodes, self._graph_def.library)
    if library.function:
      tf.graph_util.import_graph_def(
          tf.compat.v1.GraphDef(
              library=library, versions=self._graph_def.versions
          ),
          name='',
      )

  def _add_nodes(self, nodes: list[Any]) -> None:
    """Imports nodes and registers their tensors by name."""
    if not nodes:
      return
    graph_def = tf.compat.v1.GraphDef(
        node=nodes, versions=self._graph_def.versions
    )
    added = {node.name for node in nodes}
    outside = {
        name
        for node in nodes
        for name in node.input
        if _function_library.node_of(name) not in added
    }
    operations = tf.graph_util.import_graph_def(
        graph_def,
        input_map={
            name: _function_library.captured(self._outside(name))
            for name in outside
        },
        return_elements=[node.name for node in nodes],
        name=_function_library.scope('computation'),
    )
    for node, operation in zip(nodes, operations):
      for index, tensor in enumerate(operation.outputs):
        self._tensors[f'{node.name}:{index}'] = tensor
      self._tensors[f'^{node.name}'] = operation

  def _outside(self, name: str) -> tf.Tensor:
    """Returns the tensor for an input from outside of a piece."""
    if not name.startswith('^'):
      return self._tensor(_function_library.with_index(name))
    source = self._tensors.get(name)
    if source is None:  # An argument.
      return self._tensors[f'{name[1:]}:0']
    if isinstance(source, tf.Tensor):
      return source
    # Only tensors can be mapped, even where only a control edge is needed.
    with tf.control_dependencies([source]):
      self._tensors[name] = tf.constant(0)
    return self._tensors[name]

  def _read(self, name: str) -> Optional[batching.PackedClients]:
    """Returns the argument that is a sequence; None for any other tensor.

    Its reads are in topological order. If they differ, this is the next one.
    """
    while _function_library.with_index(name) not in self._sequences:
      node = self._nodes.get(_function_library.node_of(name))
      if node is None or node.op != 'Identity':
        return None
      name = node.input[0]
    name = _function_library.with_index(name)
    self._num_reads[name] += 1
    return _of_read(self._sequences[name], self._num_reads[name] - 1)

  def _tensor(self, name: str) -> tf.Tensor:
    """Returns the tensor with a name; for a sequence, its variant."""
    found = self._tensors[name]
    if isinstance(found, batching.PackedClients):
      found = sequence_variants.to_variant(_of_read(found, 0))
      self._tensors[name] = found
    return found

  def _add_loop(self, node: Any) -> None:
    """Adds the loop that replaces a reduction."""
    _, control = _function_library.split_inputs(node)
    loop = dataset_chains.build_reduction(
        node,
        self._nodes,
        self._functions,
        set(map(_function_library.node_of, self._sequences)),
        self._shuffles,
    )
    control = [*control, *loop.control]
    inputs: list[Any] = [None] * len(loop.inputs)
    for place in loop.datasets:
      inputs[place] = self._read(loop.inputs[place])
    tensors = [n for n, found in zip(loop.inputs, inputs) if found is None]
    self._add_nodes(self._needed([*tensors, *control]))
    with tf.control_dependencies(list(map(self._outside, control))):
      # Identities wait for control inputs; variable reads in the loop do not.
      for place, name in enumerate(loop.inputs):
        if inputs[place] is None:
          inputs[place] = tf.identity(self._outside(name))
    outputs = loop.function(*inputs)
    for index, tensor in enumerate(outputs):
      self._tensors[f'{node.name}:{index}'] = tensor
    self._tensors[f'^{node.name}'] = tf.group(*outputs)


def _of_read(
    client: batching.PackedClients, number: int
) -> batching.PackedClients:
  """Returns a client's sequence as it is in a read, if its reads differ."""
  if not client.starts.shape.rank:
    return client
  return client._replace(starts=client.starts[number], ends=client.ends[number])


# Functions of different graphs must not share a name.
_graph_numbers = itertools.count()
# The switch for TensorFlow's kind of control flow is global to the process.
_building_lock = threading.Lock()
# Named table ops and their anonymous counterparts.
_ANONYMOUS_TABLES = {
    f'{kind}V2': f'Anonymous{kind}'
    for kind in (
        'HashTable',
        'MutableDenseHashTable',
        'MutableHashTable',
        'MutableHashTableOfTensors',
    )
}
_PYTHON_OPS = ('EagerPyFunc', 'PyFunc', 'PyFuncStateless')
_SEED_NAME = f'{_random_ops.SEED_ARGUMENT}:0'


@functools.cache
def _keeps_state(op: str) -> bool:
  """Returns whether an op has named state that outlives a run, as queues do."""
  attributes = {attr.name for attr in tf.Graph().op_def_for_type(op).attr}
  return {'container', 'shared_name'} <= attributes


def _make_resources_anonymous(serialized: computations.Serialized) -> None:
  """Gives every run its own resources, created when it starts."""
  graph_def = serialized.graph_def
  library = {f.signature.name for f in graph_def.library.function}
  handles = set()
  for node in _function_library.all_nodes(graph_def):
    if node.op in _ANONYMOUS_TABLES:
      node.op = _ANONYMOUS_TABLES[node.op]
      for name in ('container', 'shared_name', 'use_node_name_sharing'):
        node.attr.pop(name, None)
      handles.add(node.name)
    elif node.op == 'VarHandleOp':
      node.attr['shared_name'].s = dataset_ops.ANONYMOUS.encode()
      node.attr['container'].s = b''
      handles.add(node.name)
    elif node.op not in library and _keeps_state(node.op):
      raise computations.UnsupportedComputationError(
          f'{node.name!r} ({node.op}) would keep its state between runs; pass '
          'the state as an argument and return it instead'
      )
  if not serialized.initialize_op:
    return
  nodes = {node.name: node for node in graph_def.node}
  needed = _function_library.in_order(nodes, [serialized.initialize_op])
  initialization = {node.name for node in needed}
  for node in graph_def.node:
    uses_resource = any(
        _function_library.node_of(name) in handles for name in node.input
    )
    if uses_resource and node.name not in initialization:
      node.input.append(f'^{serialized.initialize_op}')


def _make_random_ops_stateless(graph_def: Any) -> bool:
  """Replaces random ops in place; returns whether there were any."""
  rewriter = _random_ops.RandomOpRewriter(graph_def, '_seeded')
  if not rewriter.draws(graph_def.node):
    return False
  try:
    nodes = rewriter.rewrite(graph_def.node, _SEED_NAME, ':0')
  except _random_ops.UnsupportedRandomOpError as e:
    raise computations.UnsupportedComputationError(
        f'{e}, which takes no seed; draw them by `tf.random.normal` or '
        '`tf.random.uniform` instead'
    ) from e
  del graph_def.node[:]
  graph_def.node.extend([_random_ops.seed_placeholder(), *nodes])
  graph_def.library.function.extend(rewriter.changed_functions)
  return True


@attrs.frozen(eq=False)
class GraphFunction:
  """A TFF TensorFlow computation as a function of flat tensors.

  Attributes:
    type_signature: The `tff.FunctionType` of the computation.
    reads_tensors: Whether its sequences are `PackedClients` of one client, or
      variants of datasets.
    takes_seed: Whether it draws random numbers.
    serialized: Its graph.
    needs_datasets: Why its sequences have to be datasets, as a clause that
      follows its name; None if it reads tensors, or was built not to.
    appends: The leaves of the result that are rows to append, see `appending`.
    reread: The parameters that are read more than once, by place.
  """

  type_signature: tff.FunctionType
  reads_tensors: bool
  takes_seed: bool
  serialized: computations.Serialized
  needs_datasets: Optional[str] = None
  appends: frozenset[int] = frozenset()
  reread: Mapping[int, sequence_reads.Reread] = attrs.field(factory=dict)

  def __call__(
      self, *leaves: tf.Tensor, seed: Optional[tf.Tensor] = None
  ) -> list[tf.Tensor]:
    """Adds the computation to the graph that is being built, see `build`.

    Args:
      *leaves: The tensors of the parameter, in the order of `leaf_types`; a
        sequence is a `PackedClients` if the function reads tensors, else the
        variant of a dataset.
      seed: An int32 tensor of shape [2]; needed if `takes_seed`.

    Returns:
      The tensors of the result.
    """
    arguments = dict(zip(self.serialized.parameters, leaves))
    if self.takes_seed:
      arguments[_SEED_NAME] = seed
    graph_def = self.serialized.graph_def
    to_import = _GraphImport(graph_def, arguments, self.reads_tensors)
    return to_import.run(self.serialized.results)

  def nodes(self) -> Iterator[Any]:
    """Yields the nodes of the graph and its functions, to read or change."""
    return _function_library.all_nodes(self.serialized.graph_def)

  def appending(self) -> 'GraphFunction':
    """Returns this function for sums whose row lists are kept elsewhere.

    TFF adds the clients one after another. If a sum is a concatenation, such as
    that of `aggregators.stack_at_server`, every client would copy the rows of
    all clients before it, at a cost quadratic in the cohort's size.

    Returns:
      The function, of a sum and another value: where it only appends rows to a
      leaf of the sum, it does not read the leaf and returns these rows.
    """
    appended = sums.find_appended(self.serialized)
    results = [
        appended.get(place, name)
        for place, name in enumerate(self.serialized.results)
    ]
    return attrs.evolve(
        self,
        serialized=attrs.evolve(self.serialized, results=results),
        appends=frozenset(appended),
    )


def _set_control_flow_v2(is_enabled: bool) -> None:
  if is_enabled:
    tf.compat.v1.enable_control_flow_v2()
  else:
    tf.compat.v1.disable_control_flow_v2()


@contextlib.contextmanager
def _control_flow_v2(is_enabled: bool) -> Iterator[None]:
  """Switches TensorFlow 2's control flow on or off, for the whole process.

  Threads that build functions (of `tf.function`, `tf.data`) are not affected;
  other threads that build graphs get an equivalent form.
  """
  with _building_lock:
    was_enabled = tf.compat.v1.control_flow_v2_enabled()
    _set_control_flow_v2(is_enabled)
    try:
      yield
    finally:
      _set_control_flow_v2(was_enabled)


def build(
    fn: Callable[..., list[tf.Tensor]],
    specs: list[tf.TensorSpec],
    *,
    for_xla: bool = False,
) -> Callable[..., list[tf.Tensor]]:
  """Builds a function of flat tensors from `GraphFunction`s.

  It is built in a TensorFlow 1 graph: TensorFlow 2's loops and branches are
  functions, which are slower to call and copy through all values they read,
  but the only ones that XLA compiles.

  Args:
    fn: Maps tensors to tensors; called while a graph is built.
    specs: The specs of its arguments.
    for_xla: Whether loops and branches are functions. Defaults to False.

  Returns:
    A function of tensors.
  """
  graph = tf.Graph()
  with _control_flow_v2(for_xla), graph.as_default():
    inputs = [tf.compat.v1.placeholder(s.dtype, s.shape) for s in specs]
    outputs = [tf.identity(tensor) for tensor in fn(*inputs)]
  graph_def = graph.as_graph_def()

  def imported(*arguments):
    return tf.graph_util.import_graph_def(
        graph_def,
        input_map={
            placeholder.name: argument
            for placeholder, argument in zip(inputs, arguments)
            if placeholder.consumers()
        },
        return_elements=[tensor.name for tensor in outputs],
        name='',
    )

  return tf.compat.v1.wrap_function(imported, specs)


def _check_is_tensorflow(graph_def: Any) -> None:
  """Raises an error if a computation calls Python."""
  nodes = _function_library.all_nodes(graph_def)
  found = [node for node in nodes if node.op in _PYTHON_OPS]
  if found:
    node = min(found, key=lambda node: len(node.name))  # Not a gradient's.
    raise ValueError(
        f'The computation calls Python code in {node.name!r} ({node.op}), '
        'which TFF does not store with a computation: replace '
        '`tf.py_function` or `tf.numpy_function` there by TensorFlow ops.'
    )


def build_graph_function(
    computation: tff.framework.ConcreteComputation,
    *,
    tensor_sequences: bool = True,
    may_return_sequences: bool = False,
    seeds_shuffles: bool = True,
) -> GraphFunction:
  """Builds the function of a pure TensorFlow computation.

  Args:
    computation: A pure TensorFlow computation.
    tensor_sequences: Whether to read sequences from tensors, if the computation
      only loops over them.
    may_return_sequences: Whether results may be sequences, as variants of
      datasets.
    seeds_shuffles: Whether shuffles without a seed take that of the function.

  Returns:
    The function.

  Raises:
    UnsupportedComputationError: If the graph holds unsupported ops.
    ValueError: If it calls Python code.
  """
  signature = computation.type_signature
  if not may_return_sequences and any(
      isinstance(leaf, tff.SequenceType)
      for leaf in values.leaf_types(signature.result)
  ):
    raise computations.UnsupportedComputationError('a result is a sequence')
  return of_graph(
      computations.read(computation),
      signature,
      tensor_sequences=tensor_sequences,
      seeds_shuffles=seeds_shuffles,
  )


def of_graph(
    serialized: computations.Serialized,
    signature: tff.FunctionType,
    *,
    tensor_sequences: bool,
    seeds_shuffles: bool = True,
) -> GraphFunction:
  """Builds the function of a graph, which it changes.

  Args:
    serialized: The graph.
    signature: The type of the function.
    tensor_sequences: See `build_graph_function`, also for errors.
    seeds_shuffles: Likewise.

  Returns:
    The function.
  """
  graph_def = serialized.graph_def
  for node in _function_library.all_nodes(graph_def):
    # Colocation constraints use the old node names and break the import.
    node.attr.pop('_class', None)
  _function_library.remove_unfed(
      graph_def,
      set(map(_function_library.node_of, serialized.parameters)),
      serialized.results,
  )
  _check_is_tensorflow(graph_def)
  zero_products.make_zero(graph_def)
  suffix = f'_{next(_graph_numbers)}'
  _function_library.rename_functions(graph_def, lambda name: name + suffix)
  _make_resources_anonymous(serialized)
  if seeds_shuffles:
    shuffled_sequences.draw_seeds(graph_def)
  takes_seed = _make_random_ops_stateless(graph_def)
  needs_datasets = None
  if tensor_sequences:
    dataset_ops.inline_readers(serialized)
    needs_datasets = dataset_ops.why_no_loops(serialized)
  reads_tensors = tensor_sequences and needs_datasets is None
  reread: Mapping[int, sequence_reads.Reread] = {}
  if reads_tensors:
    reread = sequence_reads.find_reread(serialized)
    dataset_ops.read_sequences_from_tensors(serialized)
  read_order.read_assigned_values(serialized)
  return GraphFunction(
      signature,
      reads_tensors,
      takes_seed,
      serialized,
      needs_datasets,
      reread=reread,
  )
