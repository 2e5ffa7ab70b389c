# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The ops of `tf.data` that choose elements, computed on their numbers.

`shuffle`, `repeat`, `take` or `batch` do not look at elements. Here they act on
the numbers of a source's elements, without the cost of a pipeline. Seeded
shuffles give TensorFlow's order; others draw from a given stream, with the law
of TensorFlow's buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
import functools
import itertools
import threading
from typing import Any, NamedTuple, Optional, Protocol

import attrs
import numpy as np
import tensorflow as tf

from tff_adaptive.runtime import round_keys

# No limit to the number of elements.
UNLIMITED = 2**62
# The longest orders that are kept for other clients.
_MAX_KEPT_LENGTH = 10_000
# TensorFlow's seeds of a shuffle that draws a new order in each run.
UNSEEDED = (0, 0)


class EndlessError(Exception):
  """All elements are needed of a sequence without an end."""


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
  """Returns the numbers of ranges, one range after the other.

  Args:
    starts: The first number of each range, int64 of shape [n].
    lengths: The length of each range, in the same way.

  Returns:
    An int64 array of shape [sum of lengths].

  Example:

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
  """
  ends = np.cumsum(lengths)
  shifts = np.repeat(starts - (ends - lengths), lengths)
  return shifts + np.arange(len(shifts))


class Numbers(NamedTuple):
  """A sequence of elements of a source, or of batches of them.

  Attributes:
    order: The numbers of all elements, int64 of shape [num_numbers].
    sizes: The number of elements in each batch, int64 of shape [num_batches];
      None if they are not batched.
  """

  order: np.ndarray
  sizes: Optional[np.ndarray] = None

  @property
  def length(self) -> int:
    """The number of elements, or of batches."""
    return len(self.order if self.sizes is None else self.sizes)

  def pick(self, places: Any) -> Numbers:
    """Returns the elements or batches at places: a slice, or an array."""
    if self.sizes is None:
      return Numbers(self.order[places])
    starts = np.cumsum(self.sizes) - self.sizes
    sizes = self.sizes[places]
    return Numbers(self.order[ranges(starts[places], sizes)], sizes)

  def first(self, limit: int) -> Numbers:
    """Returns at most so many of the first ones."""
    return self if self.length <= limit else self.pick(slice(limit))


def _joined(parts: Sequence[Numbers]) -> Numbers:
  if len(parts) == 1:
    return parts[0]
  orders = np.concatenate([part.order for part in parts])
  if parts[0].sizes is None:
    return Numbers(orders)
  return Numbers(orders, np.concatenate([part.sizes for part in parts]))


# Begins an iteration: returns its first elements, up to a limit. Each call
# begins another one, which may have another order.
Iterate = Callable[[int], Numbers]


class Op(Protocol):
  """An op on numbers."""

  def start(
      self, below: Iterate, stream: Callable[[int], np.random.Generator]
  ) -> Iterate:
    """Returns the op on a sequence, at the start of a run of the pipeline.

    Args:
      below: The sequence.
      stream: Returns the random stream of an iteration, given its number.
    """


@attrs.frozen
class Take:
  """`take`; all elements if the count is negative."""

  count: int

  def start(self, below, stream):
    count = UNLIMITED if self.count < 0 else self.count
    return lambda limit: below(min(limit, count))


@attrs.frozen
class Skip:
  """`skip`; skips all elements if the count is negative."""

  count: int

  def start(self, below, stream):
    if self.count < 0:
      return lambda limit: below(0)
    return lambda limit: below(limit + self.count).pick(slice(self.count, None))


@attrs.frozen
class Shard:
  """`shard`."""

  num_shards: int
  index: int

  def start(self, below, stream):
    return lambda limit: below(limit * self.num_shards).pick(
        slice(self.index, None, self.num_shards)
    )


@attrs.frozen
class Repeat:
  """`repeat`.

  Attributes:
    count: The number of epochs; without an end if it is negative.
    is_joined: Whether TensorFlow joins it with the shuffle before it. Else it
      begins another epoch, of which it reads nothing, at its end.
  """

  count: int
  is_joined: bool = False

  def start(self, below, stream):

    def iterate(limit):
      if self.count < 0 and limit >= UNLIMITED:
        raise EndlessError('a dataset is infinite')
      parts, left = [], limit
      epochs = itertools.count() if self.count < 0 else range(self.count)
      for _ in epochs:
        part = below(left)
        parts.append(part)
        left -= part.length
        if left <= 0 or not part.length:
          break
      if left > 0 and self.count > 1 and not self.is_joined:
        below(0)
      return _joined(parts or [below(0)])

    return iterate


@attrs.frozen
class Cache:
  """`cache` in memory: the first whole iteration is kept for the others."""

  def start(self, below, stream):
    kept: list[Numbers] = []

    def iterate(limit):
      if kept:
        return kept[0].first(limit)
      part = below(limit)
      if part.length < limit:
        kept.append(part)
      return part

    return iterate


@attrs.frozen(eq=False)
class Filter:
  """`filter`, by what it says of each element of the source: bool, [n]."""

  keeps: np.ndarray

  def start(self, below, stream):

    def iterate(limit):
      # How many elements are dropped is known only afterwards.
      part = below(UNLIMITED)
      return part.pick(np.flatnonzero(self.keeps[part.order])).first(limit)

    return iterate


@attrs.frozen
class Batch:
  """`batch`."""

  size: int
  drop_remainder: bool

  def start(self, below, stream):

    def iterate(limit):
      order = below(limit * self.size).order
      num_full, rest = divmod(len(order), self.size)
      sizes = np.full(num_full + bool(rest), self.size, np.int64)
      if rest:
        sizes[-1] = rest
      if rest and self.drop_remainder:
        return Numbers(order[: num_full * self.size], sizes[:-1])
      return Numbers(order, sizes)

    return iterate


@attrs.frozen
class Unbatch:
  """`unbatch`."""

  def start(self, below, stream):
    return lambda limit: Numbers(below(limit).order[:limit])


@attrs.frozen
class Shuffle:
  """`shuffle`.

  Attributes:
    buffer_size: The size of the buffer.
    seeds: TensorFlow's two seeds; `UNSEEDED` for another order in each run.
    reshuffles: Whether each iteration of a run has another order.
  """

  buffer_size: int
  seeds: tuple[int, int] = UNSEEDED
  reshuffles: bool = True

  def start(self, below, stream):
    numbers = itertools.count()
    # By the number of elements: a filter may keep others in each iteration.
    seeded: dict[int, _SeededOrders] = {}

    def iterate(limit):
      number = next(numbers) if self.reshuffles else 0
      if not limit:
        return below(0)
      # Elements beyond do not change the first ones.
      part = below(limit + self.buffer_size)
      if self.seeds == UNSEEDED:
        order = shuffled(part.length, self.buffer_size, stream(number))
      elif not part.length:
        return part
      else:
        if part.length not in seeded:
          seeded[part.length] = _seeded_orders(self, part.length)
        order = seeded[part.length][number]
      return part.pick(order[:limit])

    return iterate


def draws(op: Op) -> bool:
  """Returns whether an op gives another result in each run."""
  return isinstance(op, Shuffle) and op.seeds == UNSEEDED


def reshuffling(ops: Sequence[Op]) -> list[Shuffle]:
  """Returns the ops that give another iteration of a run another order."""
  found: list[Shuffle] = []
  for op in ops:
    if isinstance(op, Cache):
      found.clear()
    elif isinstance(op, Shuffle) and op.reshuffles:
      found.append(op)
  return found


def shuffled(
    num_elements: int, buffer_size: int, generator: np.random.Generator
) -> np.ndarray:
  """Returns an order with the law of TensorFlow's buffer.

  The buffer holds the first elements. Each draw takes one of them, all equally
  likely, and puts the next element in its place, as long as there is one. With
  a buffer of all elements, each order is equally likely.

  Args:
    num_elements: The number of elements.
    buffer_size: The size of the buffer.
    generator: The source of random numbers.

  Returns:
    The elements' numbers, int64 of shape [num_elements].

  Example:

    >>> order = shuffled(5, 2, np.random.default_rng(0))
    >>> bool(order[0] in (0, 1)), sorted(order.tolist())
    (True, [0, 1, 2, 3, 4])
  """
  if buffer_size >= num_elements:
    return generator.permutation(num_elements)
  num_replaced = num_elements - buffer_size
  picks = generator.integers(buffer_size, size=num_replaced).tolist()
  buffer = list(range(buffer_size))
  order = []
  for coming, pick in enumerate(picks, start=buffer_size):
    order.append(buffer[pick])
    buffer[pick] = coming
  rest = np.asarray(buffer)[generator.permutation(buffer_size)]
  return np.concatenate([np.asarray(order, np.int64), rest])


class _SeededOrders:
  """TensorFlow's orders of so many elements, one for each iteration."""

  def __init__(self, op: Shuffle, length: int):
    self._orders: list[np.ndarray] = []
    self._to_come = _orders_of_tensorflow(op, length)
    self._lock = threading.Lock()

  def __getitem__(self, number: int) -> np.ndarray:
    with self._lock:
      while len(self._orders) <= number:
        self._orders.append(next(self._to_come))
      return self._orders[number]


# Many clients have the same number of elements.
_kept_orders = functools.lru_cache(maxsize=64)(_SeededOrders)


def _seeded_orders(op: Shuffle, length: int) -> _SeededOrders:
  if length > _MAX_KEPT_LENGTH:
    return _SeededOrders(op, length)
  return _kept_orders(op, length)


def untuned() -> tf.data.Options:
  """Returns options for one read, in which optimizing would take longest."""
  options = tf.data.Options()
  options.experimental_optimization.apply_default_optimizations = False
  options.autotune.enabled = False
  return options


def _orders_of_tensorflow(op: Shuffle, length: int) -> Iterator[np.ndarray]:
  """Returns the orders of the iterations of a seeded shuffle."""
  seed, seed2 = (tf.constant(number, tf.int64) for number in op.seeds)
  with tf.device('CPU:0'):
    shuffled_numbers = tf.raw_ops.ShuffleDatasetV3(
        input_dataset=tf.data.experimental.to_variant(
            tf.data.Dataset.range(length)
        ),
        buffer_size=tf.constant(min(op.buffer_size, length), tf.int64),
        seed=seed,
        seed2=seed2,
        seed_generator=tf.raw_ops.AnonymousSeedGenerator(
            seed=seed, seed2=seed2, reshuffle=op.reshuffles
        )[0],
        reshuffle_each_iteration=op.reshuffles,
        output_types=[tf.int64],
        output_shapes=[[]],
    )
    dataset = tf.data.experimental.from_variant(
        shuffled_numbers, tf.TensorSpec([], tf.int64)
    )
    dataset = dataset.repeat().batch(length).with_options(untuned())
    return dataset.as_numpy_iterator()


def run(
    ops: Sequence[Op], num_elements: int, draw: Optional[round_keys.Draw] = None
) -> Numbers:
  """Runs a pipeline on the numbers of a source's elements.

  Args:
    ops: See `iterations`.
    num_elements: See `iterations`.
    draw: See `iterations`.

  Returns:
    What the pipeline yields.

  Raises:
    EndlessError: If that has no end.

  Example:

    >>> run([Repeat(2), Batch(3, False)], num_elements=2)
    Numbers(order=array([0, 1, 0, 1]), sizes=array([3, 1]))
  """
  return next(iterations(ops, num_elements, draw))


def iterations(
    ops: Sequence[Op], num_elements: int, draw: Optional[round_keys.Draw] = None
) -> Iterator[Numbers]:
  """Yields what the iterations of one run of a pipeline yield.

  Args:
    ops: The ops, in the order of the pipeline.
    num_elements: The number of elements of the source.
    draw: Returns the random stream of an op, given its place among the ops and
      the number of the iteration. Needed if one shuffles without a seed.

  Raises:
    EndlessError: If an iteration has no end.

  Example:

    >>> seeded = [Shuffle(3, seeds=(1, 2))]
    >>> [n.order.tolist() for n in itertools.islice(iterations(seeded, 3), 2)]
    [[1, 2, 0], [1, 0, 2]]
  """

  def source(limit):
    return Numbers(np.arange(min(limit, num_elements)))

  iterate: Iterate = source
  for place, op in enumerate(ops):
    stream = None if draw is None else functools.partial(draw, place)
    iterate = op.start(iterate, stream)  # type: ignore[arg-type]
  while True:
    yield iterate(UNLIMITED)
