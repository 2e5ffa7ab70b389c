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
"""TFF's TensorFlow computations as functions of this process.

TFF keeps a computation as a graph with the names of its parameters and results.
Here such a graph becomes one TensorFlow function of flat lists of tensors, that
larger functions can call. On the way

- variables and lookup tables become anonymous, so that every call has its own
  and calls may run at the same time;
- random ops become stateless and take a seed;
- sequences are read from tensors where possible, see `sequence_reading`.
"""

from collections.abc import Callable, Iterator
import contextlib
import itertools
import threading
from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _function_library
from tff_adaptive import _random_ops
from tff_adaptive.runtime import appended_rows
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import graph_import
from tff_adaptive.runtime import sequence_reading
from tff_adaptive.runtime import sequences
from tff_adaptive.runtime import values

# Functions of different graphs must not share a name.
_graph_numbers = itertools.count()
# Which kind of control flow TensorFlow builds is a switch of the process.
_building_lock = threading.Lock()
# Tables that are found by their names, and those that are not.
_ANONYMOUS_TABLES = {
    f'{kind}V2': f'Anonymous{kind}'
    for kind in (
        'HashTable',
        'MutableDenseHashTable',
        'MutableHashTable',
        'MutableHashTableOfTensors',
    )
}
_SEED_NAME = f'{_random_ops.SEED_ARGUMENT}:0'


def _ancestors(graph_def: Any, name: str) -> set[str]:
  """A node and all that it depends on."""
  nodes = {node.name: node for node in graph_def.node}
  found: set[str] = set()
  waiting = [name]
  while waiting:
    name = waiting.pop()
    if name not in found:
      found.add(name)
      waiting.extend(map(_function_library.node_of, nodes[name].input))
  return found


def _keeps_state(node: Any, registry: tf.Graph) -> bool:
  """Whether an op makes what later runs find by its name, as queues are."""
  attributes = {attr.name for attr in registry.op_def_for_type(node.op).attr}
  return {'container', 'shared_name'} <= attributes


def _make_resources_anonymous(serialized: computations.Serialized) -> None:
  """Gives every run of the graph resources of its own, made at its start."""
  graph_def = serialized.graph_def
  registry = tf.Graph()
  library = {f.signature.name for f in graph_def.library.function}
  handles = set()
  for node in _function_library.all_nodes(graph_def):
    if node.op in _ANONYMOUS_TABLES:
      node.op = _ANONYMOUS_TABLES[node.op]
      for name in ('container', 'shared_name', 'use_node_name_sharing'):
        node.attr.pop(name, None)
      handles.add(node.name)
    elif node.op == 'VarHandleOp':
      node.attr['shared_name'].s = sequences.ANONYMOUS.encode()
      node.attr['container'].s = b''
      handles.add(node.name)
    elif node.op not in library and _keeps_state(node, registry):
      raise computations.UnsupportedComputationError(
          f'{node.name!r} ({node.op}) would keep its state from run to run'
      )
  if not serialized.initialize_op:
    return
  initialization = _ancestors(graph_def, serialized.initialize_op)
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
    raise computations.UnsupportedComputationError(str(e)) from e
  seed = tf.compat.v1.NodeDef(name=_random_ops.SEED_ARGUMENT, op='Placeholder')
  seed.attr['dtype'].type = tf.int32.as_datatype_enum
  del graph_def.node[:]
  graph_def.node.extend([seed, *nodes])
  graph_def.library.function.extend(rewriter.changed_functions)
  return True


@attrs.frozen(eq=False)
class GraphFunction:
  """A TensorFlow computation of TFF as a function of flat tensors.

  Attributes:
    type_signature: The `tff.FunctionType` of the computation.
    reads_tensors: Whether its sequences are `PackedClients` of one client; if
      not, they are variants of datasets.
    takes_seed: Whether it draws random numbers.
    dataset_op: The kind of an op that needs datasets; None if there is none.
    appends: The leaves of the result that are rows to append, see `appending`.
  """

  type_signature: tff.FunctionType
  reads_tensors: bool
  takes_seed: bool
  _serialized: computations.Serialized
  dataset_op: Optional[str] = None
  appends: frozenset[int] = frozenset()

  def __call__(
      self, *leaves: tf.Tensor, seed: Optional[tf.Tensor] = None
  ) -> list[tf.Tensor]:
    """Adds the computation to the graph that is being built, see `build`.

    Args:
      *leaves: The tensors of the parameter, in the order of `leaf_types`; for
        a sequence a `PackedClients` if the function reads tensors, else
        the variant of a dataset.
      seed: An int32 tensor of shape [2]; needed if `takes_seed`.

    Returns:
      The tensors of the result.
    """
    arguments = dict(zip(self._serialized.parameters, leaves))
    if self.takes_seed:
      arguments[_SEED_NAME] = seed
    graph_def = self._serialized.graph_def
    to_import = graph_import.GraphImport(
        graph_def, arguments, self.reads_tensors
    )
    return to_import.run(self._serialized.results)

  def appending(self) -> 'GraphFunction':
    """The same for a sum that keeps lists of rows, see `appended_rows`.

    Returns:
      The function, of a sum and something else: where it only appends rows to a
      leaf of the sum, it does not read the leaf and returns these rows.
    """
    appended = appended_rows.find_appended(self._serialized)
    results = [
        appended.get(place, name)
        for place, name in enumerate(self._serialized.results)
    ]
    return attrs.evolve(
        self,
        serialized=attrs.evolve(self._serialized, results=results),
        appends=frozenset(appended),
    )


@contextlib.contextmanager
def _control_flow_v1() -> Iterator[None]:
  """Turns TensorFlow 2's loops and branches off, which is for the process.

  Threads that build functions (of `tf.function`, `tf.data`) do not notice, and
  those that build graphs get the other form of the same.
  """
  with _building_lock:
    was_enabled = tf.compat.v1.control_flow_v2_enabled()
    tf.compat.v1.disable_control_flow_v2()
    try:
      yield
    finally:
      if was_enabled:
        tf.compat.v1.enable_control_flow_v2()


def build(
    fn: Callable[..., list[tf.Tensor]], specs: list[tf.TensorSpec]
) -> Callable[..., list[tf.Tensor]]:
  """Builds a function of flat tensors out of `GraphFunction`s.

  It is built in a graph of TensorFlow 1: loops and branches of TensorFlow 2 are
  functions, which are slower to call and hand on all that they only read.

  Args:
    fn: Maps tensors to tensors, when called while a graph is built.
    specs: The specs of its arguments.

  Returns:
    A function of tensors.
  """
  graph = tf.Graph()
  with _control_flow_v1(), graph.as_default():
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


def build_graph_function(
    computation: tff.framework.ConcreteComputation,
    *,
    tensor_sequences: bool = True,
) -> GraphFunction:
  """Builds the function of a computation.

  Args:
    computation: A computation of TensorFlow alone.
    tensor_sequences: Whether to read sequences from tensors if the computation
      allows it: it must only loop over them.

  Returns:
    The function.

  Raises:
    UnsupportedComputationError: If the graph holds what cannot be changed.
  """
  serialized = computations.read(computation)
  graph_def = serialized.graph_def
  signature = computation.type_signature
  if any(
      isinstance(leaf, tff.SequenceType)
      for leaf in values.leaf_types(signature.result)
  ):
    raise computations.UnsupportedComputationError('a result is a sequence')
  for node in _function_library.all_nodes(graph_def):
    # Constraints name nodes by their old places and break the import.
    node.attr.pop('_class', None)
  _function_library.rename_functions(graph_def, f'_{next(_graph_numbers)}')
  _make_resources_anonymous(serialized)
  takes_seed = _make_random_ops_stateless(graph_def)
  dataset_op = sequence_reading.find_dataset_op(graph_def)
  reads_tensors = tensor_sequences and dataset_op is None
  if reads_tensors:
    sequence_reading.read_sequences_from_tensors(serialized)
  return GraphFunction(
      signature, reads_tensors, takes_seed, serialized, dataset_op
  )
