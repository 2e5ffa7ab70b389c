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
from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import functools
import itertools
import threading
from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _graph_defs
from tff_adaptive import _random_ops
from tff_adaptive.data import batching
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import values
from tff_adaptive.runtime.graphs import graph_imports
from tff_adaptive.runtime.graphs import variables
from tff_adaptive.runtime.graphs import zero_products
from tff_adaptive.runtime.sequences import dataset_ops
from tff_adaptive.runtime.sequences import sequence_reads
from tff_adaptive.runtime.sequences import shuffled_sequences

# Functions of different graphs must not share a name.
_graph_numbers = itertools.count()
# The switch for TensorFlow's kind of control flow is global to the process.
_building_lock = threading.Lock()
_PYTHON_OPS = ('EagerPyFunc', 'PyFunc', 'PyFuncStateless')
SEED_NAME = f'{_random_ops.SEED_ARGUMENT}:0'


def _make_random_ops_stateless(graph_def: Any) -> bool:
  """Replaces random ops in place; returns whether there were any."""
  rewriter = _random_ops.RandomOpRewriter(graph_def, '_seeded')
  if not rewriter.draws(graph_def.node):
    return False
  try:
    nodes = rewriter.rewrite(graph_def.node, SEED_NAME, ':0')
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
    on_datasets: Returns the function that takes all sequences as datasets.
  """

  type_signature: tff.FunctionType
  reads_tensors: bool
  takes_seed: bool
  serialized: computations.Serialized
  needs_datasets: Optional[str] = None
  appends: frozenset[int] = frozenset()
  reread: Mapping[int, sequence_reads.Reread] = attrs.field(factory=dict)
  on_datasets: Optional[Callable[[], 'GraphFunction']] = None

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
      arguments[SEED_NAME] = seed
    graph_def = self.serialized.graph_def
    to_import = graph_imports.GraphImport(
        graph_def, arguments, self.reads_tensors
    )
    return to_import.run(self.serialized.results)

  def for_leaves(self, leaves: Sequence[Any]) -> 'GraphFunction':
    """Returns the function in the form for its leaves, or for their layouts."""
    if not self.reads_tensors or not holds_datasets(leaves):
      return self
    assert self.on_datasets is not None
    return self.on_datasets()

  def nodes(self) -> Iterator[Any]:
    """Yields the nodes of the graph and its functions, to read or change."""
    return _graph_defs.all_nodes(self.serialized.graph_def)

  def appending(self) -> 'GraphFunction':
    """Returns this function for sums whose row lists are kept elsewhere.

    TFF adds the clients one after another. If a sum is a concatenation, such as
    that of `aggregators.stack_at_server`, every client would copy the rows of
    all clients before it, at a cost quadratic in the cohort's size.

    Returns:
      The function, of a sum and another value: where it only appends rows to a
      leaf of the sum, it does not read the leaf and returns these rows.
    """
    appended = _find_appended(self.serialized)
    results = [
        appended.get(place, name)
        for place, name in enumerate(self.serialized.results)
    ]
    return attrs.evolve(
        self,
        serialized=attrs.evolve(self.serialized, results=results),
        appends=self.appends.union(appended),
    )


def holds_datasets(leaves: Sequence[Any]) -> bool:
  """Returns whether sequences, as leaves or layouts, are datasets."""
  return any(
      not isinstance(leaf, batching.PackedClients) and leaf.dtype == tf.variant
      for leaf in leaves
  )


def _find_appended(serialized: computations.Serialized) -> dict[int, str]:
  """Finds the leaves of a sum to which a part of a round only appends rows.

  The part maps a sum and another value to the next sum. Returns the names of
  the appended tensors, by the position of the leaf.
  """
  nodes = {node.name: node for node in serialized.graph_def.node}

  def source(tensor):
    node = nodes[_graph_defs.node_of(tensor)]
    return source(node.input[0]) if passes_on(node) else node

  def passes_on(node):
    return node.op == 'Identity' and len(node.input) == 1

  def is_zero(node):
    return (
        node.op == 'Const'
        and not tf.make_ndarray(node.attr['value'].tensor).any()
    )

  inputs = [node.input for node in nodes.values() if not passes_on(node)]
  used = itertools.chain(serialized.results, *inputs)
  uses = collections.Counter(source(tensor).name for tensor in used)
  appended = {}
  for place, result in enumerate(serialized.results):
    parameter = source(serialized.parameters[place])
    concat = source(result)
    if (
        concat.op == 'ConcatV2'
        and len(concat.input) == 3
        and is_zero(source(concat.input[2]))
        and source(concat.input[0]) is parameter
        and uses[parameter.name] == uses[concat.name] == 1
    ):
      appended[place] = concat.input[1]
  return appended


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
    fn: Callable[..., list[tf.Tensor]], specs: list[tf.TensorSpec]
) -> Callable[..., list[tf.Tensor]]:
  """Builds a function of flat tensors from `GraphFunction`s.

  It is built in a TensorFlow 1 graph: TensorFlow 2's loops and branches are
  functions, which are slower to call and copy through all values they read.

  Args:
    fn: Maps tensors to tensors; called while a graph is built.
    specs: The specs of its arguments.

  Returns:
    A function of tensors.
  """
  graph = tf.Graph()
  with _control_flow_v2(False), graph.as_default():
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
  nodes = _graph_defs.all_nodes(graph_def)
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
  # A program must not keep the computation alive of which it is one.
  copy = tff.framework.ConcreteComputation.with_type(computation, signature)

  def build_form(tensor_sequences):
    return of_graph(
        computations.read(copy),
        signature,
        tensor_sequences=tensor_sequences,
        seeds_shuffles=seeds_shuffles,
    )

  return attrs.evolve(
      build_form(tensor_sequences),
      on_datasets=functools.cache(lambda: build_form(False)),
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
  for node in _graph_defs.all_nodes(graph_def):
    # Colocation constraints use the old node names and break the import.
    node.attr.pop('_class', None)
  _graph_defs.remove_unfed(
      graph_def,
      set(map(_graph_defs.node_of, serialized.parameters)),
      serialized.results,
  )
  _check_is_tensorflow(graph_def)
  zero_products.make_zero(graph_def)
  suffix = f'_{next(_graph_numbers)}'
  _graph_defs.rename_functions(graph_def, lambda name: name + suffix)
  variables.make_anonymous(serialized)
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
  variables.read_assigned_values(serialized)
  serialized.results[:] = _graph_defs.pass_identities_by(
      graph_def, serialized.results
  )
  return GraphFunction(
      signature,
      reads_tensors,
      takes_seed,
      serialized,
      needs_datasets,
      reread=reread,
  )
