# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sequences that are made of others, element by element."""

from collections.abc import Callable
from collections.abc import Sequence as ListOf
import functools

import tensorflow as tf

from tff_adaptive.runtime.sequences import sequences


class Mapped(sequences.Derived):
  """The results of a function for each element.

  Attributes:
    source: The elements.
  """

  def __init__(
      self, source: sequences.Sequence, fn: Callable[..., sequences.Tensors]
  ):
    super().__init__(source)
    self.source, self._fn = source, fn

  def of(self, source: sequences.Sequence) -> 'Mapped':
    """Returns the results of the function for other elements."""
    return Mapped(source, self._fn)

  def _step(self, own, carry, found, step):
    return step(carry, self._fn(*found))

  def skip(self, count):
    return self.of(skip(self.source, count))


class Scanned(sequences.Derived):
  """The results of a function that also hands on a state."""

  def __init__(
      self,
      source: sequences.Sequence,
      initial: sequences.Tensors,
      fn: Callable[..., sequences.Tensors],
      shapes: ListOf[tf.TensorShape],
  ):
    super().__init__(source, initial, shapes)
    self._fn = fn

  def _step(self, own, carry, found, step):
    results = self._fn(*own, *found)
    new, found = results[: len(own)], results[len(own) :]
    return [*sequences.shaped(new, self.shapes), *step(carry, found)]


class Filtered(sequences.Derived):
  """The elements for which a predicate holds."""

  def __init__(
      self,
      source: sequences.Sequence,
      predicate: Callable[..., sequences.Tensors],
  ):
    super().__init__(source)
    self._predicate = predicate
    self.is_exact = False

  def _step(self, own, carry, found, step):
    (holds,) = self._predicate(*found)
    return sequences.when(holds, carry, lambda carry: step(carry, found))


class TakenWhile(sequences.Derived):
  """The elements before the first one for which a predicate does not hold."""

  def __init__(
      self,
      source: sequences.Sequence,
      predicate: Callable[..., sequences.Tensors],
  ):
    super().__init__(source, [tf.constant(True)])
    self._predicate = predicate
    self.is_exact = False

  def more(self, state):
    return state[0] & super().more(state)

  def _step(self, own, carry, found, step):
    (holds,) = self._predicate(*found)
    return [
        holds,
        *sequences.when(holds, carry, lambda carry: step(carry, found)),
    ]


class Taken(sequences.Derived):
  """The first elements; all if the count is negative."""

  def __init__(self, source: sequences.Sequence, count: tf.Tensor):
    super().__init__(source, [count])

  def more(self, state):
    # Tensors of a TensorFlow 1 graph compare by identity.
    return tf.not_equal(state[0], 0) & super().more(state)

  def _step(self, own, carry, found, step):
    return [own[0] - 1, *step(carry, found)]

  def size(self):
    size, count = self._source.size(), self.state[0]
    if size is None:
      return None
    return tf.where(count < 0, size, tf.minimum(count, size))

  def gather(self, state, numbers):
    return self._source.gather(state[1:], numbers)


def skip(source: sequences.Sequence, count: tf.Tensor) -> sequences.Sequence:
  """Returns a sequence from a place on; its end if that is negative."""
  return source.skip(count) or _Skipped(source, count)


class _Skipped(sequences.Derived):
  """The elements after the first ones; none if the count is negative."""

  def __init__(self, source: sequences.Sequence, count: tf.Tensor):
    super().__init__(source, [count])
    self.is_exact = False

  def _step(self, own, carry, found, step):
    (left,) = own
    skips = tf.not_equal(left, 0)
    carry = sequences.when(~skips, carry, lambda carry: step(carry, found))
    return [tf.where(left > 0, left - 1, left), *carry]

  def size(self):
    size, count = self._source.size(), self.state[0]
    if size is None:
      return None
    return tf.where(count < 0, tf.zeros_like(size), tf.maximum(size - count, 0))

  def gather(self, state, numbers):
    return self._source.gather(state[1:], numbers + state[0])


class Repeated(sequences.Derived):
  """The same elements several times; endlessly if the count is negative."""

  def __init__(self, source: sequences.Sequence, count: tf.Tensor):
    super().__init__(source, [tf.cast(count, tf.int64)])

  def more(self, state):
    left, own = state[0], state[1:]
    begins = tf.not_equal(left, 1) & self._source.more(self._source.state)
    return tf.not_equal(left, 0) & (self._source.more(own) | begins)

  def visit(self, state, carry, step):
    left, own = state[0], state[1:]
    goes_on = self._source.more(own)
    own = tf.cond(
        goes_on,
        lambda: list(map(tf.identity, own)),
        lambda: list(map(tf.identity, self._source.begin())),
    )
    left = tf.where(goes_on | (left < 0), left, left - 1)
    own, carry = self._source.visit(own, carry, step)
    return [left, *own], carry

  def size(self):
    size, count = self._source.size(), self.state[0]
    if size is None or not self._source.is_fixed:
      return None
    is_endless = (size >= sequences.ENDLESS) & (count > 0) | (size > 0) & (
        count < 0
    )
    return tf.where(
        is_endless,
        tf.constant(sequences.ENDLESS, tf.int64),
        size * tf.maximum(count, 0),
    )

  def gather(self, state, numbers):
    return self._source.gather(state[1:], numbers % self._source.size())


class Zipped(sequences.Sequence):
  """The elements of several sequences, side by side."""

  def __init__(self, parts: ListOf[sequences.Sequence]):
    """Initializes the sequence.

    Raises:
      UnreadableError: If visits of several parts may find no element.
    """
    inexact = [part for part in parts if not part.is_exact]
    if len(inexact) > 1:
      raise sequences.UnreadableError(
          'it zips several datasets that drop elements'
      )
    # That part is visited first: the others only when it found an element.
    self._order = sorted(range(len(parts)), key=lambda i: parts[i].is_exact)
    self._parts = [parts[place] for place in self._order]
    self.state = [tensor for part in self._parts for tensor in part.state]
    self.shapes = [shape for part in self._parts for shape in part.shapes]
    self.is_exact = not inexact
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
