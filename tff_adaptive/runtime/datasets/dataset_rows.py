# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A client's sequence as arrays of rows, and how they are read from a dataset.

A dataset becomes rows that are read once and the order in which a round takes
them, where its graph can be split so. Else a fresh one is read: once, if all
reads give the same elements, or in every round.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import functools
import itertools
from typing import Any, Optional, Union

from absl import logging
import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.data import batching
from tff_adaptive.data import feature_arrays
from tff_adaptive.runtime import computations
from tff_adaptive.runtime.datasets import dataset_graphs
from tff_adaptive.runtime.datasets import dataset_prefixes
from tff_adaptive.runtime.datasets import dataset_splits
from tff_adaptive.runtime.datasets import element_maps
from tff_adaptive.runtime.datasets import element_orders
from tff_adaptive.runtime.datasets import elements as elements_lib

# The largest client; a dataset with more elements may be infinite.
_MAX_CLIENT_BYTES = 4 * 1024**3
# The overhead of an array object.
_ARRAY_BYTES = 128
# Elements that are read at once, if they are small.
_READ_SIZE = 256
_READ_BYTES = 2**22
_READ_FILES = (
    "What clients' datasets read from files is kept in memory, within "
    '`max_cache_bytes`; a file that changes is read again if a dataset names '
    'it.'
)


class NotRowsError(Exception):
  """A sequence cannot be kept as rows; the text says why."""


@attrs.frozen(eq=False)
class ClientRows:
  """One client's sequence.

  Attributes:
    rows: An array of rows for each component of an element, in the order of
      `tf.nest`.
    lengths: The number of rows of each element, int64 of shape [num_elements].
    order: The row numbers of all elements, one element after the other; None
      if each row occurs once, in stored order.
    are_batched: Whether elements are batches of rows.
    are_fresh: Whether a dataset was read for this round only.
    reshuffles: Whether another read in the same round has another order.
    is_seeded: Whether seeds tell the order of each of these reads.
    calls_tensorflow: Whether `draw` runs outside of Python.
  """

  calls_tensorflow = False
  rows: tuple[np.ndarray, ...]
  lengths: np.ndarray
  order: Optional[np.ndarray] = None
  are_batched: bool = False
  are_fresh: bool = False
  reshuffles: bool = False
  is_seeded: bool = False

  @property
  def num_rows(self) -> int:
    """The number of rows, used or not."""
    return len(self.rows[0])

  @property
  def num_bytes(self) -> int:
    """The size of the arrays."""
    orders = [] if self.order is None else [self.order]
    arrays = [*self.rows, self.lengths, *orders]
    return sum(feature_arrays.num_bytes({'': array}) for array in arrays)

  def draw(
      self, draw: element_orders.Draw, num_reads: int = 1
  ) -> list['ClientRows']:
    """Returns the sequence in each read of a round, as far as it is known."""
    del draw
    return [self] * (1 if self.reshuffles else num_reads)

  def as_single_rows(self) -> 'ClientRows':
    """Returns the same elements, each a row of its own and in this order.

    The elements must have one length, as those of a type of one shape.
    """
    rows = self.rows
    if self.order is not None:
      rows = tuple(array[self.order] for array in rows)
    if self.are_batched:
      size = int(self.lengths[0]) if len(self.lengths) else 0
      rows = tuple(
          array.reshape([len(self.lengths), size, *array.shape[1:]])
          for array in rows
      )
    return ClientRows(rows, np.ones(len(self.lengths), np.int64))


@attrs.frozen(eq=False)
class ShuffledRows:
  """Rows, and the ops that choose some of them anew in each round or read.

  Attributes:
    source: The elements on which the ops act.
    ops: The ops.
    row_maps: Functions that are called for the rows that were chosen.
    batch_maps: Likewise for their batches.
    kept: The first reads, if they are the same in all rounds.
  """

  source: ClientRows
  ops: Sequence[element_orders.Op]
  row_maps: Sequence[element_maps.ElementMap] = ()
  batch_maps: Sequence[element_maps.ElementMap] = ()
  kept: list[ClientRows] = attrs.field(factory=list)

  @property
  def num_bytes(self) -> int:
    """The size of the arrays."""
    return (self.kept or [self.source])[0].num_bytes

  @property
  def calls_tensorflow(self) -> bool:
    """Whether `draw` runs outside of Python."""
    return bool(self.row_maps or self.batch_maps)

  @property
  def draws(self) -> bool:
    """Whether rounds differ."""
    return self._maps_differ or any(map(element_orders.draws, self.ops))

  @property
  def _maps_differ(self) -> bool:
    return any(one.differs for one in [*self.row_maps, *self.batch_maps])

  def draw(
      self, draw: element_orders.Draw, num_reads: int = 1
  ) -> list[ClientRows]:
    """Returns the sequence in each read of a round, given its streams."""
    if len(self.kept) >= num_reads:
      return self.kept[:num_reads]
    iterations = element_orders.iterations(
        self.ops, len(self.source.lengths), draw
    )
    reads = [
        self._map(self._choose(numbers), draw, number)
        for number, numbers in enumerate(
            itertools.islice(iterations, num_reads)
        )
    ]
    if not self.draws:
      self.kept[:] = reads
    return reads

  def _map(
      self, chosen: ClientRows, draw: element_orders.Draw, number: int
  ) -> ClientRows:
    """Calls the functions for what was chosen in the read of a number."""
    streams = (draw(place, number) for place in itertools.count(len(self.ops)))
    mapped = chosen
    for one in self.row_maps:
      # Batches are put together afterwards.
      count = mapped.num_rows if mapped.order is None else len(mapped.order)
      rows = attrs.evolve(mapped, lengths=np.ones(count, np.int64))
      mapped = attrs.evolve(
          _call(one, rows, next(streams)),
          lengths=chosen.lengths,
          are_batched=chosen.are_batched,
      )
    for one in self.batch_maps:
      mapped = _call(one, mapped, next(streams))
    shuffles = element_orders.reshuffling(self.ops)
    return attrs.evolve(
        mapped,
        reshuffles=self._maps_differ or bool(shuffles),
        is_seeded=any(not element_orders.draws(op) for op in shuffles),
    )

  def _choose(self, numbers: element_orders.Numbers) -> ClientRows:
    """Returns the elements of the source with some numbers."""
    rows, lengths = self.source.rows, self.source.lengths
    if numbers.sizes is not None:
      return ClientRows(rows, numbers.sizes, numbers.order, True)
    starts = batching.offsets(lengths)[numbers.order]
    lengths = lengths[numbers.order]
    order = element_orders.ranges(starts, lengths)
    return ClientRows(rows, lengths, order, self.source.are_batched)


def _call(
    one: element_maps.ElementMap,
    elements: ClientRows,
    generator: np.random.Generator,
) -> ClientRows:
  """Returns what a function gives for each element."""
  order = elements.order
  if order is None:
    order = np.arange(elements.num_rows)
  seed = generator.integers(2**31, size=2)
  rows, lengths = one(elements.rows, order, elements.lengths, seed)
  return ClientRows(rows, lengths, are_batched=one.gives_batches)


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
      self, draw: element_orders.Draw, num_reads: int = 1
  ) -> list[ClientRows]:
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


Source = Union[ClientRows, ShuffledRows, FreshRows]


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
  split = dataset_splits.split(graph)
  if split is not None:
    found = _of_split(split, leaf_type)
    if found is not None:
      return found, stamps
  if graph.reads_outside:
    return FreshRows(leaf_type, dataset.element_spec, dataset=dataset), stamps
  if graph.differs:
    graph = dataset_prefixes.keep(graph, _read_arrays)
    return FreshRows(leaf_type, dataset.element_spec, graph), stamps
  rows = _read_elements(graph.build(dataset.element_spec), leaf_type)
  # What a second read yields is not known.
  draws = graph.kinds[graph.root].draws
  return attrs.evolve(rows, reshuffles=draws, is_seeded=draws), stamps


def _of_split(
    split: dataset_splits.Split, leaf_type: tff.SequenceType
) -> Optional[Source]:
  """Reads rows and the ops on them; None if TensorFlow has to run these."""
  dataset, ops = split.rows()
  specs = tf.nest.flatten(dataset.element_spec)
  if any(spec.shape.rank is None for spec in specs):
    return None
  maps_late = bool(split.row_maps or split.batch_maps)
  try:
    build = functools.partial(element_maps.ElementMap, split.graph)
    row_maps = [build(node, of_batches=False) for node in split.row_maps]
    batch_maps, are_batches = [], True
    for node in split.batch_maps:
      batch_maps.append(build(node, of_batches=are_batches))
      are_batches = batch_maps[-1].gives_batches
    if split.is_batched:
      rows = _read_batches(dataset, ())
      source = ClientRows(rows, np.ones(len(rows[0]), np.int64))
    elif maps_late:
      source = _read_alike(dataset)
    else:
      source = _read_elements(dataset, leaf_type)
    shuffled = ShuffledRows(source, ops, row_maps, batch_maps)
    # Finds out whether there is an end, too.
    (drawn,) = shuffled.draw(_draw_anything)
  except (
      NotRowsError,
      element_orders.EndlessError,
      computations.UnsupportedComputationError,
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
) -> ClientRows:
  """Reads all elements of a dataset."""
  if dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
    raise NotRowsError('a dataset is infinite')
  specs = tf.nest.flatten(dataset.element_spec)
  if elements_lib.are_alike(specs) and elements_lib.are_alike(
      elements_lib.component_specs(leaf_type)
  ):
    return _read_alike(dataset)
  elements = map(tf.nest.flatten, dataset.as_numpy_iterator())
  return of_elements(elements, leaf_type)


def _read_alike(dataset: tf.data.Dataset) -> ClientRows:
  """Reads all elements of a dataset, which have one shape.

  Raises:
    NotRowsError: If they have not, or are too large to keep.
  """
  specs = tf.nest.flatten(dataset.element_spec)
  if not elements_lib.are_alike(specs):
    raise NotRowsError('elements differ in shape')
  size = sum(spec.shape.num_elements() * spec.dtype.size for spec in specs)
  num_read = max(1, min(_READ_SIZE, _READ_BYTES // max(1, size)))
  rows = _read_batches(dataset.batch(num_read), specs)
  return ClientRows(rows, np.ones(len(rows[0]), np.int64))


def _read_arrays(
    dataset: tf.data.Dataset, max_bytes: int
) -> Optional[tuple[np.ndarray, ...]]:
  """Returns all elements of one shape, stacked; None if they are too large."""
  specs = tf.nest.flatten(dataset.element_spec)
  try:
    return _read_batches(dataset.batch(_READ_SIZE), specs, max_bytes)
  except NotRowsError:
    return None


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
    raise NotRowsError('a dataset is infinite')
  specs = specs or [
      tf.TensorSpec(spec.shape[1:], spec.dtype) for spec in batches
  ]
  columns = [[elements_lib.empty_array(spec)[np.newaxis][:0]] for spec in specs]
  elements = map(tf.nest.flatten, dataset.as_numpy_iterator())
  for components in _limited(elements, max_bytes):
    for column, array in zip(columns, components):
      column.append(array)
  return join_rows(columns)


def _limited(
    elements: Iterable[list[Any]], max_bytes: Optional[int] = None
) -> Iterator[list[Any]]:
  """Yields elements, given by their components, as long as there is room."""
  max_bytes, num_bytes = max_bytes or _MAX_CLIENT_BYTES, 0
  for components in elements:
    num_bytes += sum(array.nbytes + _ARRAY_BYTES for array in components)
    if num_bytes > max_bytes:
      raise NotRowsError(f'a client holds more than {max_bytes} bytes')
    yield components


def of_elements(
    elements: Iterable[list[Any]], leaf_type: tff.SequenceType
) -> ClientRows:
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
      raise NotRowsError('the components of an element differ in length')
    lengths.append(sizes.pop())
    for column, array in zip(columns, arrays):
      column.append(array)
  if not lengths:
    columns = [[rows] for rows in no_rows(specs)]
  return ClientRows(
      join_rows(columns),
      np.asarray(lengths, np.int64),
      are_batched=are_batches,
  )


def no_rows(specs: list[tf.TensorSpec]) -> list[np.ndarray]:
  """Returns zero rows of each component."""
  are_batches = not elements_lib.are_alike(specs)
  empty = map(elements_lib.empty_array, specs)
  return [rows if are_batches else rows[np.newaxis][:0] for rows in empty]


def join_rows(columns: Iterable[list[np.ndarray]]) -> tuple[np.ndarray, ...]:
  """Concatenates lists of arrays of rows, component by component.

  Raises:
    NotRowsError: If the rows of a component differ in shape.
  """
  joined = []
  for column in columns:
    # Empty arrays do not determine the shape of rows.
    column = [array for array in column if len(array)] or column[:1]
    shapes = sorted({array.shape[1:] for array in column})
    if len(shapes) != 1:
      raise NotRowsError(f'rows differ in shape: {shapes[0]} and {shapes[1]}')
    joined.append(column[0] if len(column) == 1 else np.concatenate(column))
  return tuple(joined)
