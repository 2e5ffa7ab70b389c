# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The clients' work on the rows of large tables that their data name.

A round of a model with an embedding of 10,000 rows, of which a client's batches
name 300, spends its time on copies, differences and sums of rows that do not
change. Here a client takes the named rows alone, and its update, which is
`tf.IndexedSlices`, is added to the sum row by row. The bits are those of the
work on whole tables, see `row_graphs`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _function_library
from tff_adaptive.data import batching
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import flat_graphs
from tff_adaptive.runtime import graph_functions
from tff_adaptive.runtime import row_graphs
from tff_adaptive.runtime import row_rules
from tff_adaptive.runtime import sequences
from tff_adaptive.runtime import values

# Smaller tables stay in a core's cache, where passes cost little; of short ones
# a client names most rows.
_MIN_ELEMENTS = 65_536
_MIN_ROWS = 1_000

# The shapes of tables, by their places among the leaves of the argument.
Tables = Mapping[int, tuple[int, ...]]


@attrs.frozen(eq=False)
class RowWork:
  """The work of a client on named rows, called as the work itself.

  Attributes:
    takes_seed: Whether it draws random numbers.
    results: The places of the results that are `tf.IndexedSlices`.
  """

  _work: graph_functions.GraphFunction
  _tables: Tables
  _rows: dict[int, int]
  _namings: list[row_graphs.Naming]

  @property
  def takes_seed(self) -> bool:
    return self._work.takes_seed

  @property
  def results(self) -> frozenset[int]:
    return frozenset(self._rows)

  def always_named(self, leaves: Sequence[Any]) -> dict[int, tf.Tensor]:
    """Returns which rows of the tables count as named by all clients.

    These are rows that are not finite, see `row_rules`, and the first, since
    there has to be one.

    Args:
      leaves: The leaves of the argument; those of the clients are not read.
    """
    masks = {}
    for place, shape in self._tables.items():
      axes = list(range(1, len(shape)))
      # Faster than a look at each entry; a sum may overflow, too.
      is_finite = tf.math.is_finite(tf.reduce_sum(leaves[place], axes))
      masks[place] = ~is_finite | (tf.range(shape[0]) == 0)
    return masks

  def __call__(
      self,
      *leaves: Any,
      always_named: dict[int, tf.Tensor],
      seed: Optional[tf.Tensor] = None,
  ) -> list[Any]:
    """Adds the work to the graph that is being built.

    Args:
      *leaves: The leaves of the argument, see `GraphFunction`.
      always_named: The result of `always_named`.
      seed: See `GraphFunction`.

    Returns:
      The leaves of the result.
    """
    given, positions, shapes, named = list(leaves), [], [], {}
    masks = always_named
    for naming in self._namings:
      masks = _add_names(leaves[naming.sequence], naming, masks)
    for place in self._tables:
      mask = masks[place]
      ids = tf.where(mask)[:, 0]
      given[place] = tf.gather(leaves[place], ids)
      positions.append(tf.cumsum(tf.cast(mask, tf.int32)) - 1)
      shapes.append(tf.shape(given[place]))
      named[place] = ids
    results = self._work(*given, *positions, *shapes, seed=seed)
    for place, table in self._rows.items():
      results[place] = tf.IndexedSlices(
          results[place], named[table], tf.constant(self._tables[table])
      )
    return results


def _add_names(
    sequence: batching.PackedClients,
    naming: row_graphs.Naming,
    masks: dict[int, tf.Tensor],
) -> dict[int, tf.Tensor]:
  """Adds the rows that the elements of a sequence name."""

  def step(number, masks):
    def add(components):
      given = dict(zip(naming.components, components))
      marked = []
      for table, mask in masks.items():
        ids = _function_library.import_with(
            naming.graph_def, given, naming.ids.get(table, [])
        )
        for tensor in ids:
          # Faster than an update of the mask. Ids are not sorted or unique.
          mask |= tf.raw_ops.SparseToDense(
              sparse_indices=tf.cast(tf.reshape(tensor, [-1, 1]), tf.int64),
              output_shape=tf.shape(mask, tf.int64),
              sparse_values=True,
              default_value=False,
              validate_indices=False,
          )
        marked.append(mask)
      return marked

    marked = sequences.on_element(sequence, number, add)
    return number + 1, dict(zip(masks, marked))

  # Of a sequence with several reads, the first start and the last end.
  end = tf.reduce_max(sequence.ends)
  return tf.while_loop(
      lambda number, _: number < end,
      step,
      (tf.reduce_min(sequence.starts), masks),
      parallel_iterations=1,
  )[1]


def build(
    work: graph_functions.GraphFunction, clients_type: tff.Type
) -> Optional[RowWork]:
  """Builds the work on named rows, if there are tables of which it takes rows.

  Args:
    work: The work.
    clients_type: The type of the clients' part of its argument.

  Returns:
    The same work; None if it has to take all weights whole.
  """
  # A variable would hold a whole table.
  has_variables = bool(work.serialized.initialize_op)
  if has_variables or not work.reads_tensors:
    return None
  if not any(map(_gathers_rows, work.nodes())):
    return None
  num_at_clients = len(values.leaf_types(clients_type))
  leaves = values.leaf_types(work.type_signature.parameter)
  tables = {
      place: tuple(values.tensor_spec(leaf).shape)
      for place, leaf in enumerate(leaves)
      if place >= num_at_clients and _is_table(leaf)
  }
  while tables:
    on_rows, whole = _rewrite(work, tables)
    if not whole:
      return on_rows
    tables = {p: shape for p, shape in tables.items() if p not in whole}
  return None


def _gathers_rows(node: Any) -> bool:
  return (
      node.op == 'GatherV2'
      and tf.as_dtype(node.attr['Tparams'].type).is_floating
  )


def _is_table(leaf: tff.TensorType) -> bool:
  spec = values.tensor_spec(leaf)
  return (
      spec.dtype.is_floating
      and spec.shape.is_fully_defined()
      and spec.shape.rank > 1
      and spec.shape[0] >= _MIN_ROWS
      and spec.shape.num_elements() >= _MIN_ELEMENTS
  )


def _rewrite(
    work: graph_functions.GraphFunction, tables: Tables
) -> tuple[Optional[RowWork], frozenset[int]]:
  """Returns the work on named rows, or the tables that have to stay whole."""
  graph_def = tf.compat.v1.GraphDef()
  graph_def.CopyFrom(work.serialized.graph_def)
  library = type(graph_def.library)()
  library.CopyFrom(graph_def.library)
  graph = flat_graphs.FlatGraph.build(
      graph_def,
      library,
      parameters=work.serialized.parameters,
      results=work.serialized.results,
  )
  context = row_graphs.Context(tables, library, [])
  known = [
      row_rules.Rows(place) if place in tables else None
      for place in range(len(graph.parameters))
  ]
  rewriting = row_graphs.Rewriting(context, graph, known, is_function=False)
  try:
    results = rewriting.run()
  except row_graphs.NotByRowError as error:
    return None, error.tables
  rows = {place: found for place, found in enumerate(results) if found}
  named = {table for naming in context.namings for table in naming.ids}
  whole = {
      *(r.table for r in rows.values() if r.rest is not row_rules.Rest.ZERO),
      # Only sequences can name rows.
      *(table for table, ids in rewriting.ids.items() if ids),
      *set(tables).difference(named),
  }
  serialized = computations.Serialized(
      graph.to_graph_def([*graph.results, *graph.parameters]),
      graph.parameters,
      graph.results,
      initialize_op='',
  )
  on_rows = RowWork(
      attrs.evolve(work, serialized=serialized),
      tables,
      {place: found.table for place, found in rows.items()},
      context.namings,
  )
  return on_rows, frozenset(whole)
