# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A client's sequence as arrays of rows, and as ops that choose among them."""

from collections.abc import Iterable, Sequence
import itertools
from typing import Optional

import attrs
import numpy as np
import tensorflow as tf

from tff_adaptive.data import batching
from tff_adaptive.data import feature_arrays
from tff_adaptive.runtime import round_keys
from tff_adaptive.runtime.datasets import element_maps
from tff_adaptive.runtime.datasets import element_orders
from tff_adaptive.runtime.datasets import elements as elements_lib


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
      self, draw: round_keys.Draw, num_reads: int = 1
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

  def draw(self, draw: round_keys.Draw, num_reads: int = 1) -> list[ClientRows]:
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
      self, chosen: ClientRows, draw: round_keys.Draw, number: int
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
