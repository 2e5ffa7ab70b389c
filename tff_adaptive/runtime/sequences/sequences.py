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

SCALAR = tf.TensorShape([])
# The size of a sequence without an end.
ENDLESS = 2**62


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
    is_fixed: Whether each iteration has the same elements in the same order.
  """

  state: Tensors
  shapes: list[tf.TensorShape]
  is_exact = True
  is_fixed = True

  def begin(self) -> Tensors:
    """Returns the state before the first element of another iteration."""
    return self.state

  @abc.abstractmethod
  def more(self, state: Tensors) -> tf.Tensor:
    """Returns whether a visit may find an element; else it must not be made."""

  @abc.abstractmethod
  def visit(
      self, state: Tensors, carry: Tensors, step: CarryingStep
  ) -> tuple[Tensors, Tensors]:
    """Applies a step to the next element; returns the new state and carry."""

  def skip(self, count: tf.Tensor) -> Optional['Sequence']:
    """Returns the sequence from a place on, without reading what precedes it.

    Args:
      count: The place; a negative one is the end.

    Returns:
      The sequence; None if the elements have to be read.
    """
    del count
    return None

  def size(self) -> Optional[tf.Tensor]:
    """Returns the number of elements, int64; None if reading alone tells it.

    If there is a number, elements can be gathered.
    """
    return None

  def gather(self, state: Tensors, numbers: tf.Tensor) -> Tensors:
    """Returns a batch of elements.

    Args:
      state: The state before the first element.
      numbers: The numbers of the elements, int64 of shape [n].
    """
    raise NotImplementedError

  def single_rows(self) -> Optional['Sequence']:
    """Returns the rows of all elements, if these are batches of known rows."""
    return None


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
    return (*shaped(state, sequence.shapes), *shaped(carry, shapes))

  final = tf.while_loop(
      lambda *carried: sequence.more(list(carried[:num_states])),
      turn,
      (*sequence.state, *initial),
      shape_invariants=(*sequence.shapes, *shapes),
      parallel_iterations=num_parallel,
  )
  return list(final[num_states:])


def shaped(tensors: Tensors, shapes: ListOf[tf.TensorShape]) -> Tensors:
  """Returns tensors whose shapes a loop knows."""
  for tensor, shape in zip(tensors, shapes):
    tensor.set_shape(shape)
  return tensors


def when(
    condition: tf.Tensor, carry: Tensors, step: Callable[[Tensors], Tensors]
) -> Tensors:
  """Returns the carry after a step that is made if a condition holds."""
  condition.set_shape([])
  # A branch of a loop of TensorFlow 1 must not call functions, but a loop may.
  final = tf.while_loop(
      lambda again, *_: again,
      lambda _, *carried: (tf.constant(False), *step(list(carried))),
      (condition, *carry),
      shape_invariants=(SCALAR, *(tf.TensorShape(None) for _ in carry)),
  )
  return list(final[1:])


def check_alike(sizes: tf.Tensor) -> tf.Operation:
  """Returns an op that fails if elements of some sizes cannot be stacked."""
  return tf.debugging.Assert(
      tf.reduce_all(tf.equal(sizes, sizes[:1])),
      ['Cannot batch elements of different sizes:', sizes],
  )


class Rows(Sequence):
  """The elements of one client."""

  def __init__(
      self,
      client: batching.PackedClients,
      apply: Optional[Callable[[tf.Tensor, Step], Tensors]] = None,
      are_batches: Any = True,
  ):
    """Initializes the sequence.

    Args:
      client: The client.
      apply: Applies a step to an element by its number. Defaults to
        `on_element`.
      are_batches: Whether elements with an `order` are batches, not rows; may
        be a tensor.
    """
    self._client = client
    self._apply = apply or functools.partial(on_element, client)
    self._are_batches = are_batches
    self.state, self.shapes = [client.starts], [SCALAR]

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
    client = self._client._replace(starts=starts)
    return Rows(client, self._apply, self._are_batches)

  def size(self):
    return tf.cast(self._client.ends - self._client.starts, tf.int64)

  def gather(self, state, numbers):
    client = self._client
    numbers += tf.cast(client.starts, tf.int64)
    if isinstance(client.order, tuple):
      return [tf.gather(rows, numbers) for rows in client.rows]
    sizes = tf.gather(client.sizes, numbers)
    with tf.control_dependencies([check_alike(sizes)]):
      places = tf.gather(client.begins, numbers) + tf.range(sizes[0, 0])
    picks = tf.gather(client.order, places)
    rank = 1 + tf.cast(self._are_batches, tf.int32)
    return [
        tf.reshape(
            tf.gather(rows, picks),
            tf.concat([tf.shape(picks)[:rank], tf.shape(rows)[1:]], 0),
        )
        for rows in client.rows
    ]

  def single_rows(self):
    client = self._client
    if isinstance(client.order, tuple):
      shape = tf.shape(client.rows[0], tf.int32)
      bounds = client.starts * shape[1], client.ends * shape[1]
      return _SingleRows(
          [
              tf.reshape(rows, tf.concat([[-1], tf.shape(rows)[2:]], 0))
              for rows in client.rows
          ],
          tf.range(*bounds),
      )
    if self._are_batches is not True:
      return None
    # A client without batches may be the last one.
    bounds = tf.concat(
        [client.begins[:, 0], tf.shape(client.order, tf.int64)], 0
    )
    first = tf.gather(bounds, client.starts)
    end = tf.gather(bounds, client.ends)
    return _SingleRows(client.rows, client.order[first:end])


class _SingleRows(Sequence):
  """The rows of a client's batches."""

  def __init__(self, rows: ListOf[tf.Tensor], order: tf.Tensor):
    self._rows, self._order = rows, order
    self.state, self.shapes = [tf.zeros([], tf.int64)], [SCALAR]

  def more(self, state):
    return state[0] < self.size()

  def visit(self, state, carry, step):
    (number,) = state
    return [number + 1], step(carry, self.gather(state, number))

  def size(self):
    return tf.shape(self._order, tf.int64)[0]

  def gather(self, state, numbers):
    picks = tf.gather(self._order, numbers)
    return [tf.gather(rows, picks) for rows in self._rows]


class Range(Sequence):
  """Numbers at equal distances."""

  def __init__(
      self, start: tf.Tensor, stop: tf.Tensor, step: tf.Tensor, dtype: tf.DType
  ):
    self._stop, self._step, self._dtype = stop, step, dtype
    self.state, self.shapes = [start], [SCALAR]

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
    count = tf.minimum(last // tf.abs(self._step), ENDLESS - 1) + 1
    return tf.where(self.more(self.state), count, tf.zeros_like(count))

  def gather(self, state, numbers):
    (start,) = state
    return [tf.cast(start + numbers * self._step, self._dtype)]


class Derived(Sequence):
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
    own_shapes = [SCALAR] * len(own) if shapes is None else shapes
    self.shapes = [*own_shapes, *source.shapes]
    self.is_exact, self.is_fixed = source.is_exact, source.is_fixed

  def begin(self):
    return [*self.state[: self._num_own], *self._source.begin()]

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
