# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replaces ops on datasets by ops on tensors.

A TFF TensorFlow computation takes a sequence as the variant tensor of a
`tf.data.Dataset`, and creating a dataset costs milliseconds for each client.
Here the variant holds tensors instead: the rows of all clients, and the indices
of the rows in each element of this client's sequence. It passes unchanged
through function calls; only the ops that read a dataset are replaced, together
with the ops that make the dataset from others: `for element in dataset` in a
`tf.function`, for example, reads a `ScanDataset`.

The variant is an optional (see `tf.experimental.Optional`) of

- the fields of a `PackedClients` of one client, with one tensor of rows for
  each component of an element;
- 1 if elements are batches of rows, 0 if each is one row without a batch axis.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple, Optional

import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.data import batching
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import plans
from tff_adaptive.runtime import sequences

# The dtype and shape of the fields of a variant other than rows.
_INDICES: tuple[tuple[tf.DType, list[Optional[int]]], ...] = (
    (tf.int64, [None]),
    (tf.int64, [None, 1]),
    (tf.int64, [None, 1]),
    (tf.int32, []),
    (tf.int32, []),
    (tf.int32, []),
)
# The name that `AnonymousIteratorV3` and TensorFlow's variables give to a
# resource that lives as long as its handle.
ANONYMOUS = 'cd2c89b7-88b7-44c8-ad83-06c2a9158347'

# Ops on iterators that are replaced.
_ITERATOR_OP = 'AnonymousIteratorV3'
_MAKE_ITERATOR_OP = 'MakeIterator'
_GET_NEXT_OP = 'IteratorGetNext'
_GET_OPTIONAL_OP = 'IteratorGetNextAsOptional'
# The names of outputs in function bodies, before and after the replacement.
_OUTPUT_NAMES = {
    _function_library.REDUCE_OP: ('components', 'output'),
    _GET_NEXT_OP: ('components', 'output'),
    _GET_OPTIONAL_OP: ('optional', 'output'),
    _ITERATOR_OP: ('handle', 'resource'),
}
_REPLACED_OPS = (*_OUTPUT_NAMES, _MAKE_ITERATOR_OP)
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
_DROPPING_OPS = ('FilterDataset', 'SkipDataset', 'TakeWhileDataset')
_COUNTING_OPS = {
    'RepeatDataset': sequences.Repeated,
    'SkipDataset': lambda source, count: source.skip(count),
    'TakeDataset': sequences.Taken,
}
# Ops that make a dataset and need none, if they are read in the same graph.
_DERIVING_OPS = frozenset(
    {
        *_SAME_OPS[1:],
        *_FUNCTION_OPS,
        *_COUNTING_OPS,
        'RangeDataset',
        'ZipDataset',
    }
)


def derives(node: Any) -> bool:
  """Returns whether a node makes a dataset that is read as others are."""
  return node.op in _SAME_OPS or node.op in _DERIVING_OPS


def to_variant(client: batching.PackedClients) -> tf.Tensor:
  """Returns the variant tensor for one client's sequence."""
  if not isinstance(client.order, tuple):
    return _to_variant(client, tf.ones([], tf.int32))
  order = tf.range(tf.shape(client.rows[0], tf.int64)[0])
  begins = order[:, tf.newaxis]
  ragged = client._replace(
      order=order, begins=begins, sizes=tf.ones_like(begins)
  )
  return _to_variant(ragged, tf.zeros([], tf.int32))


def _to_variant(
    client: batching.PackedClients, are_batches: tf.Tensor
) -> tf.Tensor:
  return tf.raw_ops.OptionalFromValue(
      components=[*client.rows, *client[1:], are_batches]
  )


class _Variant(NamedTuple):
  """The fields of a variant, see the module docstring."""

  client: batching.PackedClients
  are_batches: tf.Tensor

  def element(self, number: tf.Tensor) -> list[tf.Tensor]:
    """Returns an element, if only a tensor tells whether it is a batch."""
    size = tf.gather(self.client.sizes, number)
    picks = sequences.picks_of(self.client, number, size)
    batch_shape = tf.shape(picks)[: tf.cast(self.are_batches, tf.int32)]
    return [
        tf.reshape(
            tf.gather(rows, picks),
            tf.concat([batch_shape, tf.shape(rows)[1:]], 0),
        )
        for rows in self.client.rows
    ]


def _from_variant(variant: tf.Tensor, dtypes: list[tf.DType]) -> _Variant:
  """Returns the fields of a variant tensor of `to_variant`."""
  components = tf.raw_ops.OptionalGetValue(
      optional=variant,
      output_types=[*dtypes, *(dtype for dtype, _ in _INDICES)],
      output_shapes=[
          *(tf.TensorShape(None) for _ in dtypes),
          *(shape for _, shape in _INDICES),
      ],
  )
  *indices, are_batches = components[len(dtypes) :]
  client = batching.PackedClients(tuple(components[: len(dtypes)]), *indices)
  return _Variant(client, are_batches)


class _ReplacedOp(NamedTuple):
  """The replacement of an op.

  Attributes:
    function: Computes the op's outputs from its inputs.
    inputs: The names of its inputs.
    input_dtypes: Their dtypes.
    datasets: The places of those that may be `PackedClients`.
  """

  function: Callable[..., Any]
  inputs: list[str]
  input_dtypes: list[tf.DType]
  datasets: Collection[int] = ()


def _attr_dtypes(node: Any, name: str) -> list[tf.DType]:
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
    data, _ = _function_library.split_inputs(node)
    if node.op in _SAME_OPS:
      return self.read(data[0], dtypes)
    if node.op in _FUNCTION_OPS:
      return self._read_function_op(node, data)
    if node.op == 'RangeDataset':
      (dtype,) = _attr_dtypes(node, 'output_types')
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
    return self._read_zip(node, data)

  def _read_zip(self, node: Any, data: list[str]) -> _Builder:
    """Reads `ZipDataset`."""
    dtypes = _attr_dtypes(node, 'output_types')
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
    return lambda values: sequences.Zipped([b(values) for b in builds])

  def _num_components(self, name: str) -> Optional[int]:
    """Returns the number of components of a dataset, if an op tells it."""
    node = self._nodes.get(_function_library.node_of(name))
    if node is None or not derives(node):
      return None
    if node.op == 'Identity':
      return self._num_components(node.input[0])
    return len(_attr_dtypes(node, 'output_types'))

  def _drops(self, name: str) -> bool:
    """Returns whether a dataset drops elements of another one."""
    node = self._nodes.get(_function_library.node_of(name))
    if node is None or not derives(node):
      return False
    data, _ = _function_library.split_inputs(node)
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
    states = _attr_dtypes(node, 'Tstate')
    others = _attr_dtypes(node, 'Targuments')
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
        return sequences.Scanned(source, pick_states(values), call, shapes)
      if node.op == 'FilterDataset':
        return sequences.Filtered(source, call)
      if node.op == 'TakeWhileDataset':
        return sequences.TakenWhile(source, call)
      return sequences.Mapped(source, call)

    return derive


def _read_rows(
    value: Any, dtypes: Optional[list[tf.DType]]
) -> sequences.Sequence:
  """Returns the sequence of a `PackedClients` or of a variant."""
  if isinstance(value, batching.PackedClients):
    return sequences.Rows(value)
  assert dtypes is not None
  variant = _from_variant(value, dtypes)
  return sequences.Rows(
      variant.client, lambda number, step: step(variant.element(number))
  )


def build_reduction(
    node: Any,
    nodes: Mapping[str, Any],
    functions: Mapping[str, Any],
    arguments: Collection[str] = (),
) -> _ReplacedOp:
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
  states = _attr_dtypes(node, 'Tstate')
  others = _attr_dtypes(node, 'Targuments')
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

  return _ReplacedOp(reduce, chain.inputs, chain.input_dtypes, chain.datasets)


def _build_get_next(node: Any) -> _ReplacedOp:
  """Returns the replacement of an op that reads an iterator's next element.

  It reads a variable that holds the variant of the remaining elements. Its
  result is the components, or an optional of them.
  """
  dtypes = _attr_dtypes(node, 'output_types')

  def read(handle):
    variant = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.variant)
    variant = tf.ensure_shape(variant, [])
    return variant, _from_variant(variant, dtypes)

  def advance(handle, variant, found):
    rest = found.client._replace(starts=found.client.starts + 1)
    with tf.control_dependencies([variant]):
      tf.raw_ops.AssignVariableOp(
          resource=handle, value=_to_variant(rest, found.are_batches)
      )
    return found.element(found.client.starts)

  def get_optional(handle):
    variant, found = read(handle)

    def some():
      components = advance(handle, variant, found)
      return tf.raw_ops.OptionalFromValue(components=components)

    has_more = found.client.starts < found.client.ends
    return tf.cond(has_more, some, tf.raw_ops.OptionalNone)

  def get_next(handle):
    variant, found = read(handle)
    has_more = found.client.starts < found.client.ends
    check = tf.debugging.Assert(has_more, ['End of sequence'])
    with tf.control_dependencies([check]):
      return advance(handle, tf.identity(variant), found)

  is_optional = node.op == _GET_OPTIONAL_OP
  return _ReplacedOp(
      get_optional if is_optional else get_next,
      _function_library.split_inputs(node)[0],
      [tf.resource],
  )


def _scopes(graph_def: Any) -> Iterator[tuple[Any, list[str]]]:
  """Yields the nodes of each function, and its results, and of the graph."""
  for function in graph_def.library.function:
    yield function.node_def, list(function.ret.values())
  yield graph_def.node, []


def _is_source(node: Any, place: int) -> bool:
  """Returns whether an op reads or derives its data input at a place."""
  if node.op == 'ZipDataset':
    return True
  reads = node.op in _DERIVING_OPS or node.op == _function_library.REDUCE_OP
  return reads and place == 0


def _find_escape(nodes: Any, results: list[str]) -> Optional[str]:
  """Returns the type of an op whose dataset is more than read in its graph."""
  derived = {node.name: node.op for node in nodes if node.op in _DERIVING_OPS}
  if not derived:
    return None
  is_changed = True
  while is_changed:  # An identity passes a dataset on.
    passed = {
        node.name: derived[_function_library.node_of(node.input[0])]
        for node in nodes
        if node.op == 'Identity'
        if _function_library.node_of(node.input[0]) in derived
    }
    is_changed = not passed.keys() <= derived.keys()
    derived |= passed
  used = list(results)
  for node in nodes:
    data, _ = _function_library.split_inputs(node)
    used += [
        name
        for place, name in enumerate(data)
        if node.name not in derived or node.op != 'Identity'
        if not _is_source(node, place)
    ]
  names = map(_function_library.node_of, used)
  return next((derived[name] for name in names if name in derived), None)


def why_no_loops(serialized: computations.Serialized) -> Optional[str]:
  """Explains why a computation needs datasets.

  Returns:
    A clause that follows 'because the work'; None if datasets are only read, so
    that `read_sequences_from_tensors` is applicable.
  """
  graph_def = serialized.graph_def
  for node in _function_library.all_nodes(graph_def):
    is_known = node.op in _REPLACED_OPS or node.op in _DERIVING_OPS
    if ('Dataset' in node.op or 'Iterator' in node.op) and not is_known:
      return f'does more than read its dataset: it calls {node.op}'
  functions = {f.signature.name: f for f in graph_def.library.function}
  scopes: list[tuple[Any, list[str], list[str]]] = [
      (*scope, []) for scope in _scopes(graph_def)
  ]
  scopes[-1] = (graph_def.node, serialized.results, serialized.parameters)
  for nodes, results, arguments in scopes:
    escaped = _find_escape(nodes, results)
    if escaped is not None:
      return (
          'does more than read its dataset: it calls '
          f'{escaped} and passes the result on, to an iterator or a function'
      )
    by_name = {node.name: node for node in nodes}
    for node in nodes:
      if node.op == _function_library.REDUCE_OP:
        names = set(map(_function_library.node_of, arguments))
        try:
          build_reduction(node, by_name, functions, names)
        except sequences.UnreadableError as error:
          return f'does more than read its dataset: {error}'
  return None


def _add_call(node: Any, replaced: _ReplacedOp, library: Any) -> None:
  """Turns a node into a call, and adds the called function to the library."""
  specs = [tf.TensorSpec(None, dtype) for dtype in replaced.input_dtypes]
  call = _function_library.add_function(replaced.function, specs, library)
  _, control = _function_library.split_inputs(node)
  node.op = call.op
  node.input[:] = [*replaced.inputs, *control]
  node.attr.clear()
  for name in ('Tin', 'Tout', 'f'):
    node.attr[name].CopyFrom(call.attr[name])


def _replace_node(node: Any, nodes: Any, functions: Any, library: Any) -> None:
  """Replaces one op on a dataset or an iterator, in place."""
  if node.op == _function_library.REDUCE_OP:
    _add_call(node, build_reduction(node, nodes, functions), library)
  elif node.op in (_GET_NEXT_OP, _GET_OPTIONAL_OP):
    _add_call(node, _build_get_next(node), library)
  elif node.op == _ITERATOR_OP:
    node.op = 'VarHandleOp'
    node.attr.clear()
    node.attr['dtype'].type = tf.variant.as_datatype_enum
    node.attr['shape'].shape.SetInParent()
    node.attr['shared_name'].s = ANONYMOUS.encode()
  elif node.op == _MAKE_ITERATOR_OP:
    dataset, iterator, *control = node.input
    node.input[:] = [iterator, dataset, *control]
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


def inline_readers(serialized: computations.Serialized) -> None:
  """Inlines functions that read sequences, to make their loops top-level.

  A loop that is built into the calling graph costs a fraction of a call of a
  function that contains it.
  """
  graph_def = serialized.graph_def
  functions = {f.signature.name: f for f in graph_def.library.function}

  def reads(node):
    return node.op in _function_library.CALL_OPS and any(
        inner.op == _function_library.REDUCE_OP
        or inner.op in _DERIVING_OPS
        or reads(inner)
        for inner in functions[node.attr['f'].func.name].node_def
    )

  inliner = _function_library.Inliner(graph_def)
  serialized.results[:] = inliner.inline_all(reads, serialized.results)
  library = _function_library.select_called(graph_def.node, graph_def.library)
  graph_def.library.CopyFrom(library)


def _forget_order(graph_def: Any) -> None:
  """Removes control edges from ops that derive datasets: they do nothing."""
  for nodes, _ in _scopes(graph_def):
    deriving = {f'^{node.name}' for node in nodes if node.op in _DERIVING_OPS}
    if deriving:
      for node in nodes:
        node.input[:] = [name for name in node.input if name not in deriving]
  for function in graph_def.library.function:
    deriving = {
        node.name for node in function.node_def if node.op in _DERIVING_OPS
    }
    for name, source in list(function.control_ret.items()):
      if source in deriving:
        del function.control_ret[name]
        function.signature.control_output.remove(name)


def _replace_in_function(function: Any, functions: Any, library: Any) -> None:
  """Replaces all ops on datasets of a function."""
  renamed = {}
  nodes = {node.name: node for node in function.node_def}
  for node in function.node_def:
    if node.op in _OUTPUT_NAMES:
      before, after = _OUTPUT_NAMES[node.op]
      renamed[f'{node.name}:{before}'] = f'{node.name}:{after}'
    _replace_node(node, nodes, functions, library)
  if renamed:
    _rename_outputs(function, renamed)
  kept = [node for node in function.node_def if node.op not in _DERIVING_OPS]
  if len(kept) < len(function.node_def):
    del function.node_def[:]
    function.node_def.extend(kept)


def read_sequences_from_tensors(serialized: computations.Serialized) -> None:
  """Replaces all ops on datasets, except those at the top level.

  Nothing may need datasets, see `why_no_loops`; the graph is modified in place.
  Its reductions become loops when the graph is imported.
  """
  graph_def = serialized.graph_def
  _forget_order(graph_def)
  functions = {f.signature.name: f for f in graph_def.library.function}
  added = tf.compat.v1.GraphDef().library
  for function in functions.values():
    _replace_in_function(function, functions, added)
  for node in graph_def.node:
    if node.op != _function_library.REDUCE_OP:
      _replace_node(node, {}, functions, added)
  graph_def.library.function.extend(added.function)
