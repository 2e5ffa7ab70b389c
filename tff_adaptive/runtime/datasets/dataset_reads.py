# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads clients' sequences into rows.

A dataset becomes rows that are read once and the order in which a round takes
them, where its graph can be split so. Else a fresh one is read: once, if all
reads give the same elements, or in every round.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import functools
from typing import Any, Optional, Union

from absl import logging
import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _dataset_elements
from tff_adaptive import _graph_defs
from tff_adaptive.runtime import computations
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime.datasets import dataset_graphs
from tff_adaptive.runtime.datasets import dataset_rows
from tff_adaptive.runtime.datasets import dataset_splits
from tff_adaptive.runtime.datasets import element_maps
from tff_adaptive.runtime.datasets import element_orders
from tff_adaptive.runtime.datasets import elements as elements_lib

# The largest client; a dataset with more elements may be infinite.
_MAX_CLIENT_BYTES = 4 * 1024**3
# The overhead of an array object.
_ARRAY_BYTES = 128
# The largest part that is put into a graph, which is copied in each round.
_MAX_KEPT_BYTES = 2**25
_READ_FILES = (
    "What clients' datasets read from files is kept in memory, within "
    '`max_cache_bytes`; a file that changes is read again if a dataset names '
    'it.'
)


@attrs.frozen(eq=False)
class FreshRows:
  """A dataset that is read anew in each round.

  Attributes:
    leaf_type: The type of the sequence.
    element_spec: The spec of the dataset's elements.
    graph: The graph of the dataset, in which what is the same in all rounds was
      read; None if it does not tell what the dataset reads.
    dataset: The dataset if there is no graph.
    calls_tensorflow: Whether `draw` runs outside of Python.
  """

  calls_tensorflow = True
  leaf_type: tff.SequenceType
  element_spec: Any
  graph: Optional[dataset_graphs.DatasetGraph] = None
  dataset: Optional[tf.data.Dataset] = None

  @property
  def num_bytes(self) -> int:
    """The size of what was read."""
    return 0 if self.graph is None else self.graph.graph_def.ByteSize()

  def draw(
      self, draw: round_keys.Draw, num_reads: int = 1
  ) -> list[dataset_rows.ClientRows]:
    """Reads the sequence as often as a round does, given its streams."""
    if self.graph is None:
      fresh = elements_lib.fresh(self.dataset, draw(0, 0))
    else:
      fresh = self.graph.seeded(draw(0, 0)).build(self.element_spec)
    alone = elements_lib.beside_others(fresh)
    reads = [_read_elements(alone, self.leaf_type) for _ in range(num_reads)]
    return [
        attrs.evolve(rows, are_fresh=True, reshuffles=True, is_seeded=True)
        for rows in reads
    ]


Source = Union[dataset_rows.ClientRows, dataset_rows.ShuffledRows, FreshRows]


def of_dataset(
    dataset: tf.data.Dataset, leaf_type: tff.SequenceType
) -> tuple[Source, Mapping[str, Any]]:
  """Reads a dataset as far as it is the same in all rounds.

  Returns:
    What is read, and the stamps of the files that are read, by path.

  Raises:
    NotRowsError: If it cannot be kept as rows.
    TypeError: If the elements do not match the type.
  """
  elements_lib.check_dataset(dataset, leaf_type)
  graph = dataset_graphs.DatasetGraph.of(dataset)
  if graph is None:
    return FreshRows(leaf_type, dataset.element_spec, dataset=dataset), {}
  # Before the files are read: they may change meanwhile.
  stamps = graph.file_stamps()
  if graph.reads_files:
    logging.log_first_n(logging.INFO, _READ_FILES, 1)
  for split in dataset_splits.splits(graph):
    found = _of_split(split, leaf_type)
    if found is not None:
      return found, stamps
  if graph.reads_outside:
    return FreshRows(leaf_type, dataset.element_spec, dataset=dataset), stamps
  if graph.differs:
    graph = keep_prefixes(graph)
    return FreshRows(leaf_type, dataset.element_spec, graph), stamps
  rows = _read_elements(graph.build(dataset.element_spec), leaf_type)
  # What a second read yields is not known.
  draws = graph.kinds[graph.root].draws
  return attrs.evolve(rows, reshuffles=draws, is_seeded=draws), stamps


def _of_split(
    split: dataset_splits.Split, leaf_type: tff.SequenceType
) -> Optional[Source]:
  """Reads rows and the ops on them; None if TensorFlow has to run these."""
  maps_late = bool(split.row_maps or split.batch_maps)
  try:
    dataset, ops = split.rows()
    specs = tf.nest.flatten(dataset.element_spec)
    if any(spec.shape.rank is None for spec in specs):
      return None
    build = functools.partial(element_maps.ElementMap, split.graph)
    row_maps = [build(node, of_batches=False) for node in split.row_maps]
    batch_maps, are_batches = [], True
    for node in split.batch_maps:
      batch_maps.append(build(node, of_batches=are_batches))
      are_batches = batch_maps[-1].gives_batches
    if split.is_batched:
      rows = _read_batches(dataset, ())
      source = dataset_rows.ClientRows(rows, np.ones(len(rows[0]), np.int64))
    elif maps_late:
      source = _read_alike(dataset)
    else:
      source = _read_elements(dataset, leaf_type)
    shuffled = dataset_rows.ShuffledRows(source, ops, row_maps, batch_maps)
    # Finds out whether there is an end, too.
    (drawn,) = shuffled.draw(_draw_anything)
  except (
      dataset_rows.NotRowsError,
      element_orders.EndlessError,
      computations.UnsupportedComputationError,
      # A function may fail for a row that is not chosen.
      tf.errors.OpError,
  ):
    return None
  if not ops and not maps_late:
    return source
  is_fixed = not (drawn.reshuffles or shuffled.draws)
  return drawn if is_fixed else shuffled


def _draw_anything(place: int, number: int) -> np.random.Generator:
  """Returns a stream for a run of which the result is not used."""
  del place, number
  return np.random.default_rng(0)


def _read_elements(
    dataset: tf.data.Dataset, leaf_type: tff.SequenceType
) -> dataset_rows.ClientRows:
  """Reads all elements of a dataset."""
  if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
    raise dataset_rows.NotRowsError('a dataset is infinite')
  specs = tf.nest.flatten(dataset.element_spec)
  if elements_lib.are_alike(specs) and elements_lib.are_alike(
      elements_lib.component_specs(leaf_type)
  ):
    return _read_alike(dataset)
  elements = map(tf.nest.flatten, _dataset_elements.iterate(dataset))
  return of_elements(elements, leaf_type)


def _read_alike(dataset: tf.data.Dataset) -> dataset_rows.ClientRows:
  """Reads all elements of a dataset, which have one shape.

  Raises:
    NotRowsError: If they have not, or are too large to keep.
  """
  specs = tf.nest.flatten(dataset.element_spec)
  if not elements_lib.are_alike(specs):
    raise dataset_rows.NotRowsError('elements differ in shape')
  batches = dataset.batch(elements_lib.num_at_once(specs))
  rows = _read_batches(batches, specs)
  return dataset_rows.ClientRows(rows, np.ones(len(rows[0]), np.int64))


def _read_batches(
    dataset: tf.data.Dataset,
    specs: Sequence[tf.TensorSpec],
    max_bytes: Optional[int] = None,
) -> tuple[np.ndarray, ...]:
  """Reads a dataset of batches of rows.

  Args:
    dataset: The dataset.
    specs: The specs of rows; those of the dataset's batches by default.
    max_bytes: The largest size. Defaults to that of a client.
  """
  batches = tf.nest.flatten(dataset.element_spec)
  if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
    raise dataset_rows.NotRowsError('a dataset is infinite')
  specs = specs or [
      tf.TensorSpec(spec.shape[1:], spec.dtype) for spec in batches
  ]
  columns = [[elements_lib.empty_array(spec)[np.newaxis][:0]] for spec in specs]
  elements = map(tf.nest.flatten, _dataset_elements.iterate(dataset))
  for components in _limited(elements, max_bytes):
    for column, array in zip(columns, components):
      column.append(array)
  return dataset_rows.join_rows(columns)


def _limited(
    elements: Iterable[list[Any]], max_bytes: Optional[int] = None
) -> Iterator[list[Any]]:
  """Yields elements, given by their components, as long as there is room."""
  max_bytes, num_bytes = max_bytes or _MAX_CLIENT_BYTES, 0
  for components in elements:
    num_bytes += sum(array.nbytes + _ARRAY_BYTES for array in components)
    if num_bytes > max_bytes:
      raise dataset_rows.NotRowsError(
          f'a client holds more than {max_bytes} bytes'
      )
    yield components


def of_elements(
    elements: Iterable[list[Any]], leaf_type: tff.SequenceType
) -> dataset_rows.ClientRows:
  """Joins the rows of all elements, given by their components.

  Raises:
    NotRowsError: If they have no common shape or are too large to keep.
    TypeError: If they do not match the type.
  """
  specs = elements_lib.component_specs(leaf_type)
  are_batches = not elements_lib.are_alike(specs)
  columns: list[list[np.ndarray]] = [[] for _ in specs]
  lengths = []
  checked = (elements_lib.to_arrays(e, specs, leaf_type) for e in elements)
  for arrays in _limited(checked):
    if not are_batches:
      arrays = [array[np.newaxis] for array in arrays]
    sizes = {len(array) if array.ndim else None for array in arrays}
    if len(sizes) != 1 or None in sizes:
      raise dataset_rows.NotRowsError(
          'the components of an element differ in length'
      )
    lengths.append(sizes.pop())
    for column, array in zip(columns, arrays):
      # A view, as the caller may change the array and give it again: rows that
      # are the same objects count as the same.
      column.append(array[:])
  if not lengths:
    columns = [[rows] for rows in dataset_rows.no_rows(specs)]
  return dataset_rows.ClientRows(
      dataset_rows.join_rows(columns),
      np.asarray(lengths, np.int64),
      are_batched=are_batches,
  )


def keep_prefixes(
    graph: dataset_graphs.DatasetGraph,
) -> dataset_graphs.DatasetGraph:
  """Returns a graph with elements in place of what is the same in all rounds.

  Below an op that draws anew in each round, a dataset may read files or call
  functions that give the same each time.
  """
  nodes = dict(graph.nodes)
  nodes.update({node.name: node for node in _alike(graph, graph.root)})
  return graph.ending_at(graph.root, nodes)


def _alike(graph: dataset_graphs.DatasetGraph, name: str) -> Iterator[Any]:
  """Yields nodes to put in place of those below a node, and new ones."""
  for source in map(_graph_defs.node_of, graph.nodes[name].input):
    node = graph.nodes[source]
    if 'Dataset' not in node.op:
      continue
    below = _graph_defs.in_order(graph.nodes, [source])
    if not any(map(_takes_time, below)):
      continue
    kept = None
    if not graph.kinds[source].draws:
      kept = _keep(graph, node)
    yield from _alike(graph, source) if kept is None else kept


def _takes_time(node: Any) -> bool:
  """Returns whether a node reads files or calls functions."""
  return dataset_graphs.reads_files(node) or any(
      True for _ in _graph_defs.functions_in(node)
  )


def _keep(graph: dataset_graphs.DatasetGraph, node: Any) -> Optional[list[Any]]:
  """Returns nodes with the elements of a node; None if they are not kept."""
  specs = dataset_graphs.specs_of(node)
  if not all(
      spec.shape.is_fully_defined() and spec.dtype.is_numpy_compatible
      for spec in specs
  ):
    return None
  below = graph.ending_at(node.name, graph.nodes)
  dataset = below.build(tuple(specs)).batch(elements_lib.num_at_once(specs))
  try:
    arrays = _read_batches(dataset, specs, _MAX_KEPT_BYTES)
  # A function may fail for an element that is not read.
  except (dataset_rows.NotRowsError, tf.errors.OpError):
    return None
  constants = []
  for place, (array, spec) in enumerate(zip(arrays, specs)):
    constant = type(node)(name=f'{node.name}/kept/{place}', op='Const')
    constant.attr['dtype'].type = spec.dtype.as_datatype_enum
    constant.attr['value'].tensor.CopyFrom(
        tf.make_tensor_proto(array, spec.dtype)
    )
    constants.append(constant)
  kept = type(node)(
      name=node.name,
      op='TensorSliceDataset',
      input=[constant.name for constant in constants],
  )
  kept.attr['Toutput_types'].list.type.extend(
      spec.dtype.as_datatype_enum for spec in specs
  )
  kept.attr['output_shapes'].list.shape.extend(
      spec.shape.as_proto() for spec in specs
  )
  return [*constants, kept]
