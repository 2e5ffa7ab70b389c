# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sequences that are made of others, element by element."""

from collections.abc import Sequence as ListOf
import functools
from typing import Any, Optional

import tensorflow as tf

from tff_adaptive.runtime.sequences import sequences


class Range(sequences.Sequence):
  """Numbers at equal distances."""

  def __init__(
      self, start: tf.Tensor, stop: tf.Tensor, step: tf.Tensor, dtype: tf.DType
  ):
    self._stop, self._step, self._dtype = stop, step, dtype
    self.state, self.shapes = [start], [sequences.SCALAR]

  def more(self, state):
    (number,) = state
    return tf.where(self._step > 0, number < self._stop, number > self._stop)

  def visit(self, state, carry, step):
    (number,) = state
    return [number + self._step], step(carry, [tf.cast(number, self._dtype)])

  def skip(self, count):
    (start,) = self.state
    start = tf.where(count < 0, self._stop, start + count * self._step)
    return Range(start, self._stop, self._step, self._dtype)

  def size(self):
    (start,) = self.state
    # From a negative number to the largest one are more than an int64 holds.
    last = tf.abs(self._stop - start) - 1
    count = tf.minimum(last // tf.abs(self._step), sequences.ENDLESS - 1) + 1
    return tf.where(self.more(self.state), count, tf.zeros_like(count))

  def gather(self, state, numbers):
    (start,) = state
    return [tf.cast(start + numbers * self._step, self._dtype)]


class Derived(sequences.Sequence):
  """A sequence that is read from another one, after states of its own.

  Attributes:
    drops: Whether an element of the other one may be none of this one.
    source: The other one.
  """

  drops = False

  def __init__(
      self,
      source: sequences.Sequence,
      fn: Any = None,
      own: ListOf[tf.Tensor] = (),
      shapes: Optional[ListOf[tf.TensorShape]] = None,
  ):
    """Initializes the sequence.

    Args:
      source: The other one.
      fn: A function of the components of an element, if it calls one.
      own: Its own states before the first element.
      shapes: Their shapes. Defaults to scalars.
    """
    self.source, self._fn = source, fn
    self._num_own = len(own)
    self.state = [*own, *source.state]
    own_shapes = [sequences.SCALAR] * len(own) if shapes is None else shapes
    self.shapes = [*own_shapes, *source.shapes]
    self.is_exact = source.is_exact and not self.drops
    self.is_fixed = source.is_fixed

  def begin(self):
    return [*self.state[: self._num_own], *self.source.begin()]

  def more(self, state):
    return self.source.more(state[self._num_own :])

  def visit(self, state, carry, step):
    size = self._num_own
    source_state, carried = self.source.visit(
        state[size:],
        [*state[:size], *carry],
        lambda carried, found: self._step(
            carried[:size], carried[size:], found, step
        ),
    )
    return [*carried[:size], *source_state], carried[size:]

  def _step(
      self,
      own: sequences.Tensors,
      carry: sequences.Tensors,
      found: sequences.Tensors,
      step: sequences.CarryingStep,
  ) -> sequences.Tensors:
    """Returns the new states of its own, and the carry, after an element."""
    raise NotImplementedError

  def size(self):
    size = self.source.size()
    return None if size is None else self._size(size)

  def _size(self, size: tf.Tensor) -> Optional[tf.Tensor]:
    """Returns `size`, given that of the other sequence."""
    del size
    return None

  def gather(self, state, numbers):
    numbers = self._places(state, numbers)
    return self.source.gather(state[self._num_own :], numbers)

  def _places(self, state: sequences.Tensors, numbers: tf.Tensor) -> tf.Tensor:
    """Returns the numbers of elements in the other sequence."""
    del state
    return numbers


class Mapped(Derived):
  """The results of a function for each element."""

  def of(self, source: sequences.Sequence) -> 'Mapped':
    """Returns the results of the function for other elements."""
    return Mapped(source, self._fn)

  def _step(self, own, carry, found, step):
    return step(carry, self._fn(*found))

  def skip(self, count):
    return self.of(skip(self.source, count))


class Scanned(Derived):
  """The results of a function that also hands on a state."""

  def _step(self, own, carry, found, step):
    results = self._fn(*own, *found)
    new, found = results[: len(own)], results[len(own) :]
    return [*sequences.shaped(new, self.shapes), *step(carry, found)]


class Filtered(Derived):
  """The elements for which a predicate holds."""

  drops = True

  def _step(self, own, carry, found, step):
    (holds,) = self._fn(*found)
    return sequences.when(holds, carry, lambda carry: step(carry, found))


class TakenWhile(Derived):
  """The elements before the first one for which a predicate does not hold."""

  drops = True

  def __init__(self, source: sequences.Sequence, fn: Any):
    super().__init__(source, fn, own=[tf.constant(True)])

  def more(self, state):
    return state[0] & super().more(state)

  def _step(self, own, carry, found, step):
    (holds,) = self._fn(*found)
    return [
        holds,
        *sequences.when(holds, carry, lambda carry: step(carry, found)),
    ]


class Taken(Derived):
  """The first elements; all if the count is negative."""

  def __init__(self, source: sequences.Sequence, count: tf.Tensor):
    super().__init__(source, own=[count])

  def more(self, state):
    # Tensors of a TensorFlow 1 graph compare by identity.
    return tf.not_equal(state[0], 0) & super().more(state)

  def _step(self, own, carry, found, step):
    return [own[0] - 1, *step(carry, found)]

  def _size(self, size):
    count = self.state[0]
    return tf.where(count < 0, size, tf.minimum(count, size))


def skip(source: sequences.Sequence, count: tf.Tensor) -> sequences.Sequence:
  """Returns a sequence from a place on; its end if that is negative."""
  return source.skip(count) or _Skipped(source, count)


class _Skipped(Derived):
  """The elements after the first ones; none if the count is negative."""

  drops = True

  def __init__(self, source: sequences.Sequence, count: tf.Tensor):
    super().__init__(source, own=[count])

  def _step(self, own, carry, found, step):
    (left,) = own
    skips = tf.not_equal(left, 0)
    carry = sequences.when(~skips, carry, lambda carry: step(carry, found))
    return [tf.where(left > 0, left - 1, left), *carry]

  def _size(self, size):
    count = self.state[0]
    return tf.where(count < 0, tf.zeros_like(size), tf.maximum(size - count, 0))

  def _places(self, state, numbers):
    return numbers + state[0]


class Repeated(Derived):
  """The same elements several times; endlessly if the count is negative."""

  def __init__(self, source: sequences.Sequence, count: tf.Tensor):
    # How often it is left, and whether this iteration has found an element.
    own = [tf.cast(count, tf.int64), tf.constant(False)]
    super().__init__(source, own=own)

  def more(self, state):
    left, found, *own = state
    # An iteration without an element is the last one of endlessly many.
    begins = tf.not_equal(left, 1) & (found | (left > 0))
    begins &= self.source.more(self.source.state)
    return tf.not_equal(left, 0) & (self.source.more(own) | begins)

  def visit(self, state, carry, step):
    left, found, *own = state
    goes_on = self.source.more(own)
    own = tf.cond(
        goes_on,
        lambda: list(map(tf.identity, own)),
        lambda: list(map(tf.identity, self.source.begin())),
    )
    left = tf.where(goes_on | (left < 0), left, left - 1)
    own, (found, *carry) = self.source.visit(
        own,
        [found & goes_on, *carry],
        lambda carried, element: [
            tf.constant(True),
            *step(carried[1:], element),
        ],
    )
    return [left, found, *own], carry

  def _size(self, size):
    if not self.source.is_fixed:
      return None
    count = self.state[0]
    is_endless = (size >= sequences.ENDLESS) & (count > 0) | (size > 0) & (
        count < 0
    )
    return tf.where(
        is_endless,
        tf.constant(sequences.ENDLESS, tf.int64),
        size * tf.maximum(count, 0),
    )

  def _places(self, state, numbers):
    return numbers % self.source.size()


def cached(source: sequences.Sequence) -> sequences.Sequence:
  """Returns a sequence whose iterations are all as the first one.

  Args:
    source: A sequence whose functions may be called again.
  """
  return source if source.is_fixed else _Cached(source)


class _Cached(Derived):
  """The elements in the order of the first iteration, read to the end."""

  def __init__(self, source: sequences.Sequence):
    super().__init__(source)
    self.is_fixed = True

  def begin(self):
    return self.state

  def _step(self, own, carry, found, step):
    return step(carry, found)

  def _size(self, size):
    return size


class Zipped(sequences.Sequence):
  """The elements of several sequences, side by side."""

  def __init__(self, parts: ListOf[sequences.Sequence]):
    # The part that may find no element, if there is one, is visited first: the
    # others only when it found an element.
    self._order = sorted(range(len(parts)), key=lambda i: parts[i].is_exact)
    self._parts = [parts[place] for place in self._order]
    self.state = [tensor for part in self._parts for tensor in part.state]
    self.shapes = [shape for part in self._parts for shape in part.shapes]
    self.is_exact = all(part.is_exact for part in parts)
    self.is_fixed = all(part.is_fixed for part in parts)

  def begin(self):
    return [tensor for part in self._parts for tensor in part.begin()]

  def more(self, state):
    tests, rest = [], state
    for part in self._parts:
      tests.append(part.more(rest[: len(part.state)]))
      rest = rest[len(part.state) :]
    return functools.reduce(tf.logical_and, tests)

  def visit(self, state, carry, step):
    def visit_from(rank, rest, found):
      if rank == len(self._parts):
        places = sorted(found)
        return step(rest, [tensor for p in places for tensor in found[p]])
      part = self._parts[rank]
      size = len(part.state)
      own, rest = part.visit(
          rest[:size],
          rest[size:],
          lambda rest, components: visit_from(
              rank + 1, rest, {**found, self._order[rank]: components}
          ),
      )
      return [*own, *rest]

    tensors = visit_from(0, [*state, *carry], {})
    return tensors[: len(state)], tensors[len(state) :]

  def skip(self, count):
    if not self.is_exact:
      return None
    parts = sorted(zip(self._order, self._parts), key=lambda pair: pair[0])
    return Zipped([skip(part, count) for _, part in parts])

  def size(self):
    sizes = [part.size() for part in self._parts]
    if any(size is None for size in sizes):
      return None
    return functools.reduce(tf.minimum, sizes)

  def gather(self, state, numbers):
    found = {}
    for place, part in zip(self._order, self._parts):
      found[place] = part.gather(state[: len(part.state)], numbers)
      state = state[len(part.state) :]
    return [tensor for place in sorted(found) for tensor in found[place]]
