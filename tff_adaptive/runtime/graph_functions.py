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

- variables become anonymous, so that every call has its own and calls may run
  at the same time;
- random ops become stateless and take a seed;
- sequences are read from tensors where possible, see `sequences`.
"""

from collections.abc import Callable, Iterable, Mapping
import itertools
import threading
from typing import Any, Optional, Union

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _compat
from tff_adaptive import _function_library
from tff_adaptive import _random_ops
from tff_adaptive.runtime import flattening
from tff_adaptive.runtime import sequences
from tff_adaptive.runtime import values

# Functions of different graphs must not share a name.
_graph_numbers = itertools.count()
# Which kind of control flow TensorFlow builds is a switch of the process.
_building_lock = threading.Lock()
_SEED_NAME = f'{_random_ops.SEED_ARGUMENT}:0'


class UnsupportedComputationError(Exception):
  """A computation cannot be compiled; the text says why."""


@attrs.frozen(eq=False)
class _Serialized:
  """A computation as TFF keeps it: a graph and names in it."""

  graph_def: Any
  parameters: list[str]
  results: list[str]
  initialize_op: str


def binding_names(binding: Any) -> list[str]:
  """The tensor names of a binding, in the order of the type's leaves.

  Args:
    binding: The parameter or the result of serialized TensorFlow.

  Returns:
    The names; that of the variant tensor for a sequence.

  Raises:
    UnsupportedComputationError: If a sequence has no variant tensor.
  """
  kind = binding.WhichOneof('binding')
  if kind is None:
    return []
  if kind == 'struct':
    return [
        name
        for element in binding.struct.element
        for name in binding_names(element)
    ]
  if kind == 'tensor':
    return [binding.tensor.tensor_name]
  name = binding.sequence.variant_tensor_name
  if not name:
    raise UnsupportedComputationError(
        'a sequence is kept as a graph instead of a variant tensor'
    )
  return [name]


def _read(computation: tff.framework.ConcreteComputation) -> _Serialized:
  proto = tff.framework.serialize_computation(computation)
  if proto.WhichOneof('computation') != 'tensorflow':
    raise UnsupportedComputationError(
        f'{computation.type_signature} is not TensorFlow alone'
    )
  graph_def = tf.compat.v1.GraphDef()
  proto.tensorflow.graph_def.Unpack(graph_def)
  parameters: list[str] = []
  if proto.tensorflow.HasField('parameter'):
    parameters = binding_names(proto.tensorflow.parameter)
  return _Serialized(
      graph_def,
      parameters,
      binding_names(proto.tensorflow.result),
      proto.tensorflow.initialize_op,
  )


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


def _make_variables_anonymous(serialized: _Serialized) -> None:
  """Gives every run of the graph variables of its own, made at its start."""
  graph_def = serialized.graph_def
  handles = set()
  for node in _function_library.all_nodes(graph_def):
    if node.op in ('Variable', 'VariableV2'):
      raise UnsupportedComputationError(
          f'{node.name!r} is a variable of TensorFlow 1'
      )
    if node.op == 'VarHandleOp':
      node.attr['shared_name'].s = sequences.ANONYMOUS.encode()
      node.attr['container'].s = b''
      handles.add(node.name)
  if not serialized.initialize_op:
    return
  initialization = _ancestors(graph_def, serialized.initialize_op)
  for node in graph_def.node:
    uses_variable = any(
        _function_library.node_of(name) in handles for name in node.input
    )
    if uses_variable and node.name not in initialization:
      node.input.append(f'^{serialized.initialize_op}')


def _reads_sequences_only(graph_def: Any) -> bool:
  """Whether no op makes or changes a dataset: all are read as they come in."""
  return all(
      node.op in sequences.REPLACED_OPS
      for node in _function_library.all_nodes(graph_def)
      if 'Dataset' in node.op or 'Iterator' in node.op
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


# The name that a function body gives to the outputs of an op, before and after.
_OUTPUT_NAMES = {
    sequences.REDUCE_OP: ('components', 'output'),
    sequences.GET_NEXT_OP: ('optional', 'output'),
    sequences.ITERATOR_OP: ('handle', 'resource'),
}


def _rename_outputs(function: Any, renamed: dict[str, str]) -> None:
  """Renames outputs, given as 'node:output', wherever a function uses them."""

  def rename(tensor):
    node_and_output, separator, number = tensor.rpartition(':')
    return renamed.get(node_and_output, node_and_output) + separator + number

  for node in function.node_def:
    node.input[:] = [rename(name) for name in node.input]
  for name, tensor in function.ret.items():
    function.ret[name] = rename(tensor)


def _inline_reductions(serialized: _Serialized) -> None:
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
        or (
            node.op in flattening.CALL_OPS and reduces(node.attr['f'].func.name)
        )
        for node in functions[name].node_def
    )

  while True:
    call = next(
        (
            node
            for node in graph_def.node
            if node.op in flattening.CALL_OPS
            and reduces(node.attr['f'].func.name)
        ),
        None,
    )
    if call is None:
      return
    renamed = inliner.inline(call)
    serialized.results[:] = [
        renamed.get(name, name) for name in serialized.results
    ]


def _read_sequences_from_tensors(serialized: _Serialized) -> None:
  """Replaces all ops that read datasets, except reductions at the top."""
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


def _make_random_ops_stateless(graph_def: Any) -> bool:
  """Replaces random ops in place; returns whether there were any."""
  rewriter = _random_ops.RandomOpRewriter(graph_def, '_seeded')
  if not rewriter.draws(graph_def.node):
    return False
  try:
    nodes = rewriter.rewrite(graph_def.node, _SEED_NAME, ':0')
  except _random_ops.UnsupportedRandomOpError as e:
    raise UnsupportedComputationError(str(e)) from e
  seed = tf.compat.v1.NodeDef(name=_random_ops.SEED_ARGUMENT, op='Placeholder')
  seed.attr['dtype'].type = tf.int32.as_datatype_enum
  del graph_def.node[:]
  graph_def.node.extend([seed, *nodes])
  graph_def.library.function.extend(rewriter.changed_functions)
  return True


class _Import:
  """The changed graph, put into the current one piece by piece.

  Each reduction at the top of what reads sequences from tensors becomes a loop
  of the current graph; what it depends on is put there before, the rest after.
  """

  def __init__(
      self,
      graph_def: Any,
      arguments: dict[str, tf.Tensor],
      reads_tensors: bool,
      steps: Mapping[str, flattening.FlatBody],
      compiles_steps: bool,
  ):
    self._reads_tensors = reads_tensors
    self._steps = steps
    self._compiles_steps = compiles_steps
    # What is mapped to an argument needs no place in the graph.
    given = set(map(_function_library.node_of, arguments))
    self._nodes = {n.name: n for n in graph_def.node if n.name not in given}
    self._graph_def = graph_def
    self._tensors = {_with_index(name): t for name, t in arguments.items()}
    self._sequences = {
        name: value
        for name, value in self._tensors.items()
        if isinstance(value, sequences.Sequence)
    }
    self._waiting = set(self._nodes)

  def run(self, results: list[str]) -> list[tf.Tensor]:
    """Puts what the results depend on into the current graph."""
    for name in map(_function_library.node_of, results):
      self._add(name)
    return [self._tensors[_with_index(name)] for name in results]

  def _add(self, name: str) -> None:
    """Adds a node and what it depends on."""
    if name not in self._waiting:
      return
    functions = {
        f.signature.name: f.signature for f in self._graph_def.library.function
    }
    for node in self._reductions_before(name):
      self._add_nodes(self._needed(node.input))
      self._add_loop(node, functions)
    if name in self._waiting:
      self._add_nodes(self._needed([name]))

  def _reductions_before(self, name: str) -> list[Any]:
    """The reductions that a node depends on, or is, each after those before."""
    found: list[Any] = []
    if not self._reads_tensors:
      return found
    seen: set[str] = set()

    def visit(name):
      if name in self._waiting and name not in seen:
        seen.add(name)
        for source in self._nodes[name].input:
          visit(_function_library.node_of(source))
        if self._nodes[name].op == sequences.REDUCE_OP:
          found.append(self._nodes[name])

    visit(name)
    return found

  def _needed(self, names: Iterable[str]) -> list[Any]:
    """The nodes that are not there yet and that others depend on, in order."""
    found: list[Any] = []

    def visit(name):
      if name in self._waiting:
        self._waiting.discard(name)
        for source in self._nodes[name].input:
          visit(_function_library.node_of(source))
        found.append(self._nodes[name])

    for name in names:
      visit(_function_library.node_of(name))
    return found

  def _add_nodes(self, nodes: list[Any]) -> None:
    """Imports nodes; their tensors are known by their names from then on."""
    graph_def = tf.compat.v1.GraphDef(
        node=nodes,
        versions=self._graph_def.versions,
        library=self._graph_def.library,
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
        input_map={name: self._outside(name) for name in outside},
        return_elements=[node.name for node in nodes],
        name='computation',
    )
    for node, operation in zip(nodes, operations):
      for index, tensor in enumerate(operation.outputs):
        self._tensors[f'{node.name}:{index}'] = tensor
      self._tensors[f'^{node.name}'] = operation

  def _outside(self, name: str) -> tf.Tensor:
    """The tensor that stands for an input from outside of a piece."""
    if not name.startswith('^'):
      return self._tensor(_with_index(name))
    source = self._tensors.get(name)
    if source is None:  # An argument.
      return self._tensors[f'{name[1:]}:0']
    if isinstance(source, tf.Tensor):
      return source
    # Only tensors can be mapped to, also where only their op is meant.
    with tf.control_dependencies([source]):
      self._tensors[name] = tf.constant(0)
    return self._tensors[name]

  def _sequence(self, name: str) -> Union[tf.Tensor, sequences.Sequence]:
    """What a reduction reads: an argument, or else some variant tensor."""
    source = name
    while _with_index(source) not in self._sequences:
      node = self._nodes[_function_library.node_of(source)]
      if node.op != 'Identity':
        return self._outside(name)
      source = node.input[0]
    return self._sequences[_with_index(source)]

  def _tensor(self, name: str) -> tf.Tensor:
    """The tensor of a name; of a sequence its variant."""
    if isinstance(self._tensors[name], sequences.Sequence):
      self._tensors[name] = self._tensors[name].to_variant()
    return self._tensors[name]

  def _add_loop(self, node: Any, signatures: dict[str, Any]) -> None:
    self._waiting.discard(node.name)
    data = [name for name in node.input if not name.startswith('^')]
    control = [name for name in node.input if name.startswith('^')]
    name = node.attr['f'].func.name
    loop = sequences.build_reduction(
        node, signatures[name], self._steps.get(name), self._compiles_steps
    )
    with tf.control_dependencies(list(map(self._outside, control))):
      # Identities wait; what only reads variables in the loop does not.
      inputs = [tf.identity(self._outside(name)) for name in data[1:]]
    outputs = loop.function(self._sequence(data[0]), *inputs)
    for index, tensor in enumerate(outputs):
      self._tensors[f'{node.name}:{index}'] = tensor
    self._tensors[f'^{node.name}'] = tf.group(*outputs)


def _with_index(name: str) -> str:
  return name if ':' in name else f'{name}:0'


@attrs.frozen(eq=False)
class GraphFunction:
  """A TensorFlow computation of TFF as a function of flat tensors.

  Attributes:
    type_signature: The `tff.FunctionType` of the computation.
    reads_tensors: Whether its sequences are variants of `sequences`; if not,
      they are variants of datasets.
    takes_seed: Whether it draws random numbers.
  """

  type_signature: _compat.FunctionType
  reads_tensors: bool
  takes_seed: bool
  _serialized: _Serialized
  _steps: Mapping[str, flattening.FlatBody] = attrs.field(factory=dict)
  _compiles_steps: bool = False

  def __call__(
      self, *leaves: tf.Tensor, seed: Optional[tf.Tensor] = None
  ) -> list[tf.Tensor]:
    """Adds the computation to the graph that is being built, see `build`.

    Args:
      *leaves: The tensors of the parameter, in the order of `leaf_types`; for
        a sequence a `sequences.Sequence` if the function reads tensors, else
        the variant of a dataset.
      seed: An int32 tensor of shape [2]; needed if `takes_seed`.

    Returns:
      The tensors of the result.
    """
    arguments = dict(zip(self._serialized.parameters, leaves))
    if self.takes_seed:
      arguments[_SEED_NAME] = seed
    graph_def = self._serialized.graph_def
    to_import = _Import(
        graph_def,
        arguments,
        self.reads_tensors,
        self._steps,
        self._compiles_steps,
    )
    return to_import.run(self._serialized.results)

  def with_compiled_steps(self) -> Optional['GraphFunction']:
    """The same with XLA for what happens to each element of a sequence.

    Returns:
      The function, or None if XLA refuses placeholders in it, which Keras
      leaves in branches that are never taken.
    """
    library = self._serialized.graph_def.library
    if any(
        node.op == flattening.PLACEHOLDER_OP
        for function in library.function
        for node in function.node_def
    ):
      return None
    return attrs.evolve(self, compiles_steps=True)

  def flatten(self) -> Optional['GraphFunction']:
    """The same without calls and branches, or None if that cannot be."""
    serialized = self._serialized
    parameters = [*serialized.parameters, _SEED_NAME]
    flat = flattening.flatten_graph(
        serialized.graph_def, parameters, serialized.results
    )
    if flat is None:
      return None
    graph_def, results = flat
    steps = {}
    for node in graph_def.node:
      if node.op == sequences.REDUCE_OP:
        name = node.attr['f'].func.name
        step = flattening.flatten_function(name, graph_def.library)
        if step is None:
          return None
        steps[name] = step
    return attrs.evolve(
        self,
        serialized=attrs.evolve(
            serialized, graph_def=graph_def, results=results
        ),
        steps=steps,
    )


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
  with _building_lock:
    tf.compat.v1.disable_control_flow_v2()
    try:
      with graph.as_default():
        inputs = [tf.compat.v1.placeholder(s.dtype, s.shape) for s in specs]
        outputs = [tf.identity(tensor) for tensor in fn(*inputs)]
    finally:
      tf.compat.v1.enable_control_flow_v2()
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
  serialized = _read(computation)
  graph_def = serialized.graph_def
  signature = computation.type_signature
  if any(
      isinstance(leaf, _compat.SequenceType)
      for leaf in values.leaf_types(signature.result)
  ):
    raise UnsupportedComputationError('a result is a sequence')
  for node in _function_library.all_nodes(graph_def):
    # Constraints name nodes by their old places and break the import.
    node.attr.pop('_class', None)
  _function_library.rename_functions(graph_def, f'_{next(_graph_numbers)}')
  _make_variables_anonymous(serialized)
  takes_seed = _make_random_ops_stateless(graph_def)
  reads_tensors = tensor_sequences and _reads_sequences_only(graph_def)
  if reads_tensors:
    _read_sequences_from_tensors(serialized)
  return GraphFunction(signature, reads_tensors, takes_seed, serialized)
