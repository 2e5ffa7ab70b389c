# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rewrites a graph that works on tables into one that works on some rows.

A table is a weight with many rows, of which a client's data name a few, such as
an embedding or the kernel of `layers.BagOfWordsDense`. The rewritten graph
takes the named rows in place of the table, and the ids of rows are renumbered:

```
GatherV2(table, ids)             GatherV2(rows, positions[ids])
TensorScatterSub(table, ids, u)  TensorScatterSub(rows, positions[ids], u)
table - rate * gradient          rows - rate * gradient
```

Each op on a table is known to treat every row alike, and the value of the rows
without a name is known throughout, see `row_rules`. So the results have the
bits of those of the original graph, whose other rows are zero. A table that
meets any other op has to stay whole.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from tff_adaptive import _function_library
from tff_adaptive.runtime import flat_graphs
from tff_adaptive.runtime import row_rules

# None for a tensor that is no rows.
_Rows = Optional[row_rules.Rows]

_SCATTER_OPS = ('TensorScatterSub', 'TensorScatterAdd', 'TensorScatterUpdate')
_SUM_OP = 'UnsortedSegmentSum'
_IF_OPS = ('If', 'StatelessIf')
_BRANCHES = ('then_branch', 'else_branch')


class Naming(NamedTuple):
  """The ids of rows that the elements of a sequence name.

  Attributes:
    sequence: The place of the sequence among the graph's parameters.
    graph_def: A graph from the components of an element to ids.
    components: The names of the components.
    ids: The names of the tensors of ids by table.
  """

  sequence: int
  graph_def: Any
  components: list[str]
  ids: dict[int, list[str]]


class NotByRowError(Exception):
  """An op does not treat every row of a table alike.

  Attributes:
    tables: The tables that it reads.
  """

  tables: frozenset[int] = frozenset()


class _MustBeRowsError(Exception):
  """A parameter of a function has to be rows of a table."""

  def __init__(self, place: int, table: int):
    super().__init__(place, table)
    self.place = place
    self.table = table


class Context(NamedTuple):
  """The common part of the rewritings of a graph and of its functions.

  Attributes:
    shapes: The shapes of the tables.
    library: The functions, to which rewritten ones are added.
    namings: The ids of rows that sequences name.
  """

  shapes: Mapping[int, tuple[int, ...]]
  library: Any
  namings: list[Naming]


class Rewriting:
  """The rewriting of one graph.

  After its own parameters the graph takes two int32 vectors for each table: for
  all tables the positions of their rows among the named rows, then for all
  tables the shapes of the named rows.

  Attributes:
    graph: The graph, rewritten in place.
    ids: The tensors of ids by table.
  """

  def __init__(
      self,
      context: Context,
      graph: flat_graphs.FlatGraph,
      parameters: Sequence[_Rows],
      is_function: bool = True,
  ):
    self._context = context
    self._is_function = is_function
    self._places = {name: i for i, name in enumerate(graph.parameters)}
    self._rows = {
        name: rows for name, rows in zip(graph.parameters, parameters) if rows
    }
    self.graph = graph
    self.ids: dict[int, list[str]] = {table: [] for table in context.shapes}
    self._positions, self._shapes = (
        {
            table: graph.add('Placeholder', [], dtype=tf.int32)
            for table in context.shapes
        }
        for _ in range(2)
    )
    self._extras = [*self._positions.values(), *self._shapes.values()]
    graph.parameters.extend(self._extras)

  def run(self, wanted: Sequence[_Rows] = ()) -> list[_Rows]:
    """Rewrites the graph.

    Args:
      wanted: The results that have to be rows.

    Returns:
      The results that are rows.

    Raises:
      _MustBeRowsError: If a parameter has to be rows.
      NotByRowError: If a table has to stay whole.
    """
    for node in self.graph.needed():
      inputs = flat_graphs.inputs_of(node)
      found = filter(None, map(self._rows.get, inputs))
      tables = frozenset(rows.table for rows in found)
      try:
        if tables:
          self._rewrite(node, inputs, tables)
        elif node.op == _SUM_OP:
          self._rewrite_sum(node, inputs)
      except NotByRowError as error:
        error.tables = error.tables or tables
        raise
    results = self.graph.results
    for place, rows in enumerate(wanted):
      if rows and not self._rows.get(results[place]):
        results[place] = self._as_rows(results[place], rows.table)
    return list(map(self._rows.get, results))

  def _rewrite(
      self, node: Any, inputs: list[str], tables: frozenset[int]
  ) -> None:
    """Rewrites a node that reads rows."""
    if node.op == _function_library.REDUCE_OP:
      self._rewrite_reduction(node, inputs)
    elif node.op in _IF_OPS:
      self._rewrite_if(node, inputs)
    elif len(tables) > 1:
      raise NotByRowError(node.name)
    elif node.op in row_rules.ENTRYWISE:
      self._rewrite_entrywise(node, inputs, *tables)
    else:
      self._rewrite_reader(node, inputs, *tables)

  def _rewrite_entrywise(
      self, node: Any, inputs: list[str], table: int
  ) -> None:
    """Rewrites an op that treats every entry alike."""
    rests = []
    for place, name in enumerate(inputs):
      if not self._rows.get(name):
        rank = self.graph.spec(name).shape.rank
        if rank is not None and rank < len(self._context.shapes[table]):
          rests.append(row_rules.Rest.SHARED)
          continue
        name = node.input[place] = self._as_rows(name, table)
      rests.append(self._rows[name].rest)
    rest = row_rules.ENTRYWISE[node.op](*rests)
    if rest is None:
      raise NotByRowError(node.name)
    self._rows[f'{node.name}:0'] = row_rules.Rows(table, rest)

  def _rewrite_reader(self, node: Any, inputs: list[str], table: int) -> None:
    """Rewrites an op whose first input is rows, and no other."""
    rows = self._rows.get(inputs[0])
    if not rows or any(map(self._rows.get, inputs[1:])):
      raise NotByRowError(node.name)
    shape = self._context.shapes[table]
    if node.op == 'Shape':
      dtype = tf.as_dtype(node.attr['out_type'].type)
      flat_graphs.make_constant(node, np.array(shape, dtype.as_numpy_dtype))
    elif node.op == 'EnsureShape':
      node.op = 'Identity'
      node.attr.pop('shape')
      self._rows[f'{node.name}:0'] = rows
    elif node.op == 'GatherV2' and self._is_by_row(node, inputs):
      self._renumber(node, table)
    elif node.op in _SCATTER_OPS and self._scatters_rows(inputs):
      self._renumber(node, table)
      self._rows[f'{node.name}:0'] = rows
    elif not (node.op == 'All' and self._is_true_elsewhere(node, inputs)):
      raise NotByRowError(node.name)

  def _is_by_row(self, node: Any, inputs: list[str]) -> bool:
    """Returns whether a gathering is along the first axis."""
    has_batches = 'batch_dims' in node.attr and node.attr['batch_dims'].i
    return not has_batches and self.graph.constant(inputs[2]) == 0

  def _scatters_rows(self, inputs: list[str]) -> bool:
    """Returns whether indices of a scattering name whole rows."""
    shape = self.graph.spec(inputs[1]).shape
    return shape.rank is not None and shape[-1] == 1

  def _is_true_elsewhere(self, node: Any, inputs: list[str]) -> bool:
    """Returns whether a conjunction is over all entries, true elsewhere."""
    table, rest = self._rows[inputs[0]]
    axes = self.graph.constant(inputs[1])
    return (
        rest is row_rules.Rest.TRUE
        and axes is not None
        and len(set(axes.ravel())) == len(self._context.shapes[table])
        and not _function_library.is_set(node, 'keep_dims')
    )

  def _rewrite_sum(self, node: Any, inputs: list[str]) -> None:
    """Rewrites the sum of the slices of a table's gradient, if it is one."""
    _, ids, count = inputs
    for table, shape in self._context.shapes.items():
      if (
          self.graph.source_of_ids(ids) in self.ids[table]
          and self.graph.spec(f'{node.name}:0').shape == shape
          and self.graph.constant(count) == shape[0]
      ):
        first = self.graph.add_constant(np.int32(0))
        node.input[2] = self.graph.add_gather(
            self._shapes[table], first, tf.int32
        )
        node.attr['Tnumsegments'].type = tf.int32.as_datatype_enum
        self._renumber(node, table)
        rows = row_rules.Rows(table, row_rules.Rest.ZERO)
        self._rows[f'{node.name}:0'] = rows
        return

  def _renumber(self, node: Any, table: int) -> None:
    """Renumbers the ids that a node takes as its second input."""
    ids = flat_graphs.inputs_of(node)[1]
    node.input[1] = self.graph.add_gather(
        self._positions[table], ids, self.graph.spec(ids).dtype
    )
    node.attr['Tindices'].type = tf.int32.as_datatype_enum
    source = self.graph.source_of_ids(ids)
    if source not in self.ids[table]:
      self.ids[table].append(source)

  def _rewrite_reduction(self, node: Any, inputs: list[str]) -> None:
    """Rewrites a loop over a sequence and its body."""
    sequence, *given = inputs
    name = node.attr['f'].func.name
    shapes: list[Any] = list(node.attr['output_shapes'].list.shape)
    num_states = len(shapes)
    function = _function_library.find(self._context.library, name)
    num_components = len(function.signature.input_arg) - len(given)
    arguments: list[Optional[str]] = [*given]
    arguments[num_states:num_states] = [None] * num_components
    shapes += [None] * (len(arguments) - num_states)

    def rewrite(known):
      body = self._function(name, shapes, known)
      results = body.run(known[:num_states])
      for place, (before, after) in enumerate(zip(known, results)):
        if after and not before:
          raise _MustBeRowsError(place, after.table)
        if after != before:
          raise NotByRowError(node.name)
      return body, results

    arguments, (body, results) = self._with_rows(arguments, rewrite)
    place = self._places.get(self.graph.source(sequence))
    if place is None:
      raise NotByRowError(node.name)
    elements = slice(num_states, num_states + num_components)
    self._context.namings.append(
        body.to_naming(place, body.graph.parameters[elements])
    )
    node.attr['f'].func.name = body.add_to_library()
    self._set_inputs(node, 'Targuments', [sequence, *filter(None, arguments)])
    self._set_results(node, results)

  def _rewrite_if(self, node: Any, inputs: list[str]) -> None:
    """Rewrites a conditional and the functions of its branches."""
    condition, *arguments = inputs
    if self._rows.get(condition):
      raise NotByRowError(node.name)
    shapes = [self.graph.spec(name).shape.as_proto() for name in arguments]

    def rewrite(known):
      wanted = []
      while True:
        branches = [
            self._function(node.attr[key].func.name, shapes, known)
            for key in _BRANCHES
        ]
        then, otherwise = [branch.run(wanted) for branch in branches]
        if then == otherwise:
          return branches, then
        joined = [a or b for a, b in zip(then, otherwise)]
        if joined == wanted:
          raise NotByRowError(node.name)
        wanted = joined

    arguments, (branches, results) = self._with_rows(arguments, rewrite)
    for key, branch in zip(_BRANCHES, branches):
      if any(branch.ids.values()):
        raise NotByRowError(node.name)
      node.attr[key].func.name = branch.add_to_library()
    self._set_inputs(node, 'Tin', [condition, *arguments])
    self._set_results(node, results)

  def _function(
      self, name: str, shapes: Sequence[Any], known: Sequence[_Rows]
  ) -> 'Rewriting':
    graph = flat_graphs.FlatGraph.of_function(
        name, self._context.library, shapes
    )
    return Rewriting(self._context, graph, known)

  def _with_rows(
      self,
      arguments: Sequence[Optional[str]],
      rewrite: Callable[[list[_Rows]], Any],
  ) -> tuple[list[Any], Any]:
    """Rewrites functions, with rows for all arguments that have to be rows.

    Args:
      arguments: The names of the arguments; None for those of another kind.
      rewrite: Maps the rows of the arguments to a result.

    Returns:
      The arguments and the result.
    """
    arguments = [*arguments]
    while True:
      known = [self._rows.get(name) if name else None for name in arguments]
      try:
        return arguments, rewrite(known)
      except _MustBeRowsError as error:
        name = arguments[error.place]
        if name is None:
          raise NotByRowError('an element has to be rows') from error
        arguments[error.place] = self._as_rows(name, error.table)

  def _set_inputs(self, node: Any, dtypes: str, inputs: Sequence[str]) -> None:
    """Sets the inputs of a node that calls functions."""
    _, control = _function_library.split_inputs(node)
    node.input[:] = [*inputs, *self._extras, *control]
    node.attr[dtypes].list.type.extend(
        [tf.int32.as_datatype_enum] * len(self._extras)
    )

  def _set_results(self, node: Any, results: list[_Rows]) -> None:
    """Sets which outputs of a node that calls functions are rows."""
    for place, rows in enumerate(results):
      if rows:
        node.attr['output_shapes'].list.shape[place].dim[0].size = -1
        self._rows[f'{node.name}:{place}'] = rows

  def add_to_library(self) -> str:
    """Adds the rewritten graph to the library; returns its name."""
    specs = []
    for name in self.graph.parameters:
      spec = tf.TensorSpec(None, tf.int32)
      if name not in self._extras:
        spec = self.graph.spec(name)
      if self._rows.get(name):
        spec = tf.TensorSpec([None, *spec.shape[1:]], spec.dtype)
      specs.append(spec)
    return self.graph.add_to_library(specs)

  def to_naming(self, sequence: int, components: list[str]) -> Naming:
    """Returns the ids that the elements of a sequence name.

    Args:
      sequence: See `Naming`.
      components: See `Naming`.

    Raises:
      NotByRowError: If ids depend on anything else.
    """
    ids = {table: names for table, names in self.ids.items() if names}
    names = [name for tensors in ids.values() for name in tensors]
    graph_def = self.graph.to_graph_def(names)
    _function_library.remove_nodes(graph_def, components)
    for node in graph_def.node:
      calls = list(_function_library.functions_in(node))
      if (
          calls
          or node.op == 'Placeholder'
          or _function_library.is_stateful(node.op)
      ):
        raise NotByRowError(node.name)
    return Naming(sequence, graph_def, components, ids)

  def _as_rows(self, name: str, table: int) -> str:
    """Returns the rows of a tensor that is zero in all other rows.

    Raises:
      NotByRowError: If this is not known.
      _MustBeRowsError: If the tensor is a parameter.
    """
    graph = self.graph
    name = graph.source(name)
    spec = graph.spec(name)
    if spec.shape.rank is None or spec.shape != self._context.shapes[table]:
      raise NotByRowError(name)
    if self._is_function and name in self._places:
      raise _MustBeRowsError(self._places[name], table)
    node = graph.node(name)
    if graph.is_zero(name):
      zero = graph.add_constant(np.zeros([], spec.dtype.as_numpy_dtype))
      rows = graph.add(
          'Fill', [self._shapes[table], zero], T=spec.dtype, index_type=tf.int32
      )
      self._rows[rows] = row_rules.Rows(table, row_rules.Rest.ZERO)
    elif node.op in row_rules.ENTRYWISE:
      # A copy, since others read the node as it is.
      copy = graph.add_copy(node)
      rows = f'{copy.name}:0'
      self._rewrite_entrywise(copy, flat_graphs.inputs_of(node), table)
    else:
      raise NotByRowError(name)
    if self._rows[rows].rest is not row_rules.Rest.ZERO:
      raise NotByRowError(name)
    return rows
