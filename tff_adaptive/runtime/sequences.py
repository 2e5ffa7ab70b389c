# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sequences over which the clients' work loops, inside a graph.

A `Sequence` is read element after element: `visit` reads the next one, and a
state of tensors tells how far it was read. `Rows` are what a client has; the
others are made of sequences, as `tf.data.Dataset`s are made of datasets.
"""

import abc
from collections.abc import Callable
from collections.abc import Sequence as ListOf
import functools
from typing import Any, Optional

import numpy as np
import tensorflow as tf

from tff_adaptive.data import batching

Tensors = list[tf.Tensor]
Step = Callable[[Tensors], Tensors]
# Maps carried tensors and the components of an element to carried tensors.
CarryingStep = Callable[[Tensors, Tensors], Tensors]


class UnreadableError(Exception):
  """A dataset cannot be read as a plain loop; the text is a clause."""


def on_element(
    client: batching.PackedClients, number: tf.Tensor, step: Step
) -> Tensors:
  """Applies a step to the components of an element.

  If the graph holds the batch sizes as constants, each size gets its own branch
  with static shapes, as XLA requires.

  Args:
    client: One client's sequence.
    number: The index of the element among the elements of all clients.
    step: Maps components to tensors.
  """
  if isinstance(client.order, tuple):
    return step([tf.gather(rows, number) for rows in client.rows])
  known_sizes = tf.get_static_value(client.sizes)
  if known_sizes is None:
    picks = picks_of(client, number, tf.gather(client.sizes, number))
    return step([tf.gather(rows, picks) for rows in client.rows])
  sizes, places = np.unique(known_sizes, return_inverse=True)

  def branch(size):
    picks = picks_of(client, number, [size])
    return step([tf.gather(rows, picks) for rows in client.rows])

  if len(sizes) == 1:
    return branch(sizes[0])
  return tf.switch_case(
      tf.gather(tf.constant(places.ravel(), tf.int32), number),
      [functools.partial(branch, size) for size in sizes],
  )


def picks_of(
    client: batching.PackedClients, number: tf.Tensor, size: Any
) -> tf.Tensor:
  """Returns the indices of the rows in an element."""
  return tf.slice(client.order, tf.gather(client.begins, number), size)


class Sequence(abc.ABC):
  """A sequence of elements.

  Attributes:
    state: The state before the first element.
    shapes: The shapes of all states.
    is_exact: Whether each visit finds an element; a filter may find none.
  """

  state: Tensors
  shapes: list[tf.TensorShape]
  is_exact = True

  @abc.abstractmethod
  def more(self, state: Tensors) -> tf.Tensor:
    """Returns whether a visit may find an element; else it must not be made."""

  @abc.abstractmethod
  def visit(
      self, state: Tensors, carry: Tensors, step: CarryingStep
  ) -> tuple[Tensors, Tensors]:
    """Applies a step to the next element; returns the new state and carry."""

  def skip(self, count: tf.Tensor) -> 'Sequence':
    """Returns the sequence from a place on; its end if that is negative."""
    return _Skipped(self, count)


def reduce(
    sequence: Sequence,
    initial: Tensors,
    step: CarryingStep,
    *,
    shapes: ListOf[tf.TensorShape],
    num_parallel: int,
) -> Tensors:
  """Adds a loop over a sequence to the graph.

  Args:
    sequence: The sequence.
    initial: The carried tensors before the first element.
    step: The step for each element.
    shapes: The shapes of the carried tensors.
    num_parallel: The number of steps that may run at once, as far as they do
      not need the result of the one before.

  Returns:
    The carried tensors after the last element.
  """
  num_states = len(sequence.state)

  def turn(*carried):
    state, carry = sequence.visit(
        list(carried[:num_states]), list(carried[num_states:]), step
    )
    return (*_shaped(state, sequence.shapes), *_shaped(carry, shapes))

  final = tf.while_loop(
      lambda *carried: sequence.more(list(carried[:num_states])),
      turn,
      (*sequence.state, *initial),
      shape_invariants=(*sequence.shapes, *shapes),
      parallel_iterations=num_parallel,
  )
  return list(final[num_states:])


def _shaped(tensors: Tensors, shapes: ListOf[tf.TensorShape]) -> Tensors:
  """Returns tensors whose shapes a loop knows."""
  for tensor, shape in zip(tensors, shapes):
    tensor.set_shape(shape)
  return tensors


_SCALAR = tf.TensorShape([])


class Rows(Sequence):
  """The elements of one client."""

  def __init__(
      self,
      client: batching.PackedClients,
      apply: Optional[Callable[[tf.Tensor, Step], Tensors]] = None,
  ):
    """Initializes the sequence.

    Args:
      client: The client.
      apply: Applies a step to an element by its number. Defaults to
        `on_element`.
    """
    self._client = client
    self._apply = apply or functools.partial(on_element, client)
    self.state, self.shapes = [client.starts], [_SCALAR]

  def more(self, state):
    return state[0] < self._client.ends

  def visit(self, state, carry, step):
    (number,) = state
    carried = self._apply(number, lambda found: step(carry, found))
    return [number + 1], list(carried)

  def skip(self, count):
    starts, ends = self._client.starts, self._client.ends
    size = tf.cast(ends - starts, tf.int64)
    skipped = tf.where(count < 0, size, tf.minimum(count, size))
    starts += tf.cast(skipped, tf.int32)
    return Rows(self._client._replace(starts=starts), self._apply)


class Range(Sequence):
  """Numbers at equal distances."""

  def __init__(
      self, start: tf.Tensor, stop: tf.Tensor, step: tf.Tensor, dtype: tf.DType
  ):
    self._stop, self._step, self._dtype = stop, step, dtype
    self.state, self.shapes = [start], [_SCALAR]

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


class _Derived(Sequence):
  """A sequence that is read from another one, after states of its own."""

  def __init__(
      self,
      source: Sequence,
      own: ListOf[tf.Tensor] = (),
      shapes: Optional[ListOf[tf.TensorShape]] = None,
  ):
    self._source = source
    self._num_own = len(own)
    self.state = [*own, *source.state]
    own_shapes = [_SCALAR] * len(own) if shapes is None else shapes
    self.shapes = [*own_shapes, *source.shapes]
    self.is_exact = source.is_exact

  def more(self, state):
    return self._source.more(state[self._num_own :])

  def visit(self, state, carry, step):
    size = self._num_own
    source_state, carried = self._source.visit(
        state[size:],
        [*state[:size], *carry],
        lambda carried, found: self._step(
            carried[:size], carried[size:], found, step
        ),
    )
    return [*carried[:size], *source_state], carried[size:]

  def _step(
      self, own: Tensors, carry: Tensors, found: Tensors, step: CarryingStep
  ) -> Tensors:
    """Returns the new states of its own, and the carry, after an element."""
    raise NotImplementedError


class Mapped(_Derived):
  """The results of a function for each element."""

  def __init__(self, source: Sequence, fn: Callable[..., Tensors]):
    super().__init__(source)
    self._fn = fn

  def _step(self, own, carry, found, step):
    return step(carry, self._fn(*found))

  def skip(self, count):
    return Mapped(self._source.skip(count), self._fn)


class Scanned(_Derived):
  """The results of a function that also hands on a state."""

  def __init__(
      self,
      source: Sequence,
      initial: Tensors,
      fn: Callable[..., Tensors],
      shapes: ListOf[tf.TensorShape],
  ):
    super().__init__(source, initial, shapes)
    self._fn = fn

  def _step(self, own, carry, found, step):
    results = self._fn(*own, *found)
    new, found = results[: len(own)], results[len(own) :]
    return [*_shaped(new, self.shapes), *step(carry, found)]


class Filtered(_Derived):
  """The elements for which a predicate holds."""

  def __init__(self, source: Sequence, predicate: Callable[..., Tensors]):
    super().__init__(source)
    self._predicate = predicate
    self.is_exact = False

  def _step(self, own, carry, found, step):
    (holds,) = self._predicate(*found)
    return _when(holds, carry, lambda carry: step(carry, found))


class TakenWhile(_Derived):
  """The elements before the first one for which a predicate does not hold."""

  def __init__(self, source: Sequence, predicate: Callable[..., Tensors]):
    super().__init__(source, [tf.constant(True)])
    self._predicate = predicate
    self.is_exact = False

  def more(self, state):
    return state[0] & super().more(state)

  def _step(self, own, carry, found, step):
    (holds,) = self._predicate(*found)
    return [holds, *_when(holds, carry, lambda carry: step(carry, found))]


class Taken(_Derived):
  """The first elements; all if the count is negative."""

  def __init__(self, source: Sequence, count: tf.Tensor):
    super().__init__(source, [count])

  def more(self, state):
    # Tensors of a TensorFlow 1 graph compare by identity.
    return tf.not_equal(state[0], 0) & super().more(state)

  def _step(self, own, carry, found, step):
    return [own[0] - 1, *step(carry, found)]


class _Skipped(_Derived):
  """The elements after the first ones; none if the count is negative."""

  def __init__(self, source: Sequence, count: tf.Tensor):
    super().__init__(source, [count])
    self.is_exact = False

  def _step(self, own, carry, found, step):
    (left,) = own
    skips = tf.not_equal(left, 0)
    carry = _when(~skips, carry, lambda carry: step(carry, found))
    return [tf.where(left > 0, left - 1, left), *carry]


class Repeated(_Derived):
  """The same elements several times; endlessly if the count is negative."""

  def __init__(self, source: Sequence, count: tf.Tensor):
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
        lambda: list(map(tf.identity, self._source.state)),
    )
    left = tf.where(goes_on | (left < 0), left, left - 1)
    own, carry = self._source.visit(own, carry, step)
    return [left, *own], carry


class Zipped(Sequence):
  """The elements of several sequences, side by side."""

  def __init__(self, parts: ListOf[Sequence]):
    """Initializes the sequence.

    Raises:
      UnreadableError: If visits of several parts may find no element.
    """
    inexact = [part for part in parts if not part.is_exact]
    if len(inexact) > 1:
      raise UnreadableError('it zips several datasets that drop elements')
    # That part is visited first: the others only when it found an element.
    self._order = sorted(range(len(parts)), key=lambda i: parts[i].is_exact)
    self._parts = [parts[place] for place in self._order]
    self.state = [tensor for part in self._parts for tensor in part.state]
    self.shapes = [shape for part in self._parts for shape in part.shapes]
    self.is_exact = not inexact

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
      return super().skip(count)
    parts = sorted(zip(self._order, self._parts), key=lambda pair: pair[0])
    return Zipped([part.skip(count) for _, part in parts])


def _when(
    condition: tf.Tensor, carry: Tensors, step: Callable[[Tensors], Tensors]
) -> Tensors:
  """Returns the carry after a step that is made if a condition holds."""
  # A branch of a loop of TensorFlow 1 must not call functions, but a loop may.
  final = tf.while_loop(
      lambda again, *_: again,
      lambda _, *carried: (tf.constant(False), *step(list(carried))),
      (condition, *carry),
      shape_invariants=(_SCALAR, *(tf.TensorShape(None) for _ in carry)),
  )
  return list(final[1:])
