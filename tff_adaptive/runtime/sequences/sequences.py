# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The sequences over which the clients' work loops, inside a graph.

A `Sequence` is read element after element: `visit` reads the next one, and a
state of tensors tells how far it was read. `Rows` are what a client has; the
others are made of sequences, as `tf.data.Dataset`s are made of datasets.

A TFF TensorFlow computation takes a sequence as the variant tensor of a
`tf.data.Dataset`, and creating a dataset costs milliseconds for each client.
The `Variant` of a client holds tensors instead: the rows of all clients, and
the indices of the rows in each element of this client's sequence. It passes
unchanged through function calls. It is an optional (see
`tf.experimental.Optional`) of

- the fields of a `PackedClients` of one client, with one tensor of rows for
  each component of an element;
- 1 if elements are batches of rows, 0 if each is one row without a batch axis.
"""

import abc
from collections.abc import Callable
from collections.abc import Sequence as ListOf
import functools
from typing import Any, NamedTuple, Optional

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

  Args:
    client: One client's sequence.
    number: The index of the element among the elements of all clients.
    step: Maps components to tensors.
  """
  if isinstance(client.order, tuple):
    return step([tf.gather(rows, number) for rows in client.rows])
  picks = picks_of(client, number, tf.gather(client.sizes, number))
  return step([tf.gather(rows, picks) for rows in client.rows])


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


def read(
    sequence: Sequence,
    state: Tensors,
    carry: Tensors,
    step: CarryingStep,
    *,
    shapes: ListOf[tf.TensorShape],
    num_parallel: int,
    wants_more: Optional[Callable[[Tensors], tf.Tensor]] = None,
) -> tuple[Tensors, Tensors]:
  """Adds a loop over elements of a sequence to the graph.

  Args:
    sequence: The sequence.
    state: The state before the first element to read.
    carry: The carried tensors before it.
    step: The step for each element.
    shapes: The shapes of the carried tensors.
    num_parallel: The number of steps that may run at once, as far as they do
      not need the result of the one before.
    wants_more: Returns whether to read on, given the carried tensors. None
      (the default) reads to the end.

  Returns:
    The state and the carried tensors after the last element.
  """
  size = len(state)

  def may_go_on(*carried):
    more = sequence.more(list(carried[:size]))
    return wants_more(list(carried[size:])) & more if wants_more else more

  def turn(*carried):
    state, carry = sequence.visit(
        list(carried[:size]), list(carried[size:]), step
    )
    return (*shaped(state, sequence.shapes), *shaped(carry, shapes))

  final = tf.while_loop(
      may_go_on,
      turn,
      (*state, *carry),
      shape_invariants=(*sequence.shapes, *shapes),
      parallel_iterations=num_parallel,
  )
  return list(final[:size]), list(final[size:])


def reduce(
    sequence: Sequence, initial: Tensors, step: CarryingStep, **options: Any
) -> Tensors:
  """Returns the carried tensors after `read` of a whole sequence."""
  return read(sequence, sequence.state, initial, step, **options)[1]


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


# The dtype and shape of the fields of a variant other than rows.
_INDICES: tuple[tuple[tf.DType, list[Optional[int]]], ...] = (
    (tf.int64, [None]),
    (tf.int64, [None, 1]),
    (tf.int64, [None, 1]),
    (tf.int32, []),
    (tf.int32, []),
    (tf.int32, []),
)


def to_variant(client: batching.PackedClients) -> tf.Tensor:
  """Returns the variant tensor for one client's sequence."""
  if not isinstance(client.order, tuple):
    return _pack(client, tf.ones([], tf.int32))
  order = tf.range(tf.shape(client.rows[0], tf.int64)[0])
  begins = order[:, tf.newaxis]
  ragged = client._replace(
      order=order, begins=begins, sizes=tf.ones_like(begins)
  )
  return _pack(ragged, tf.zeros([], tf.int32))


def _pack(client: batching.PackedClients, are_batches: tf.Tensor) -> tf.Tensor:
  return tf.raw_ops.OptionalFromValue(
      components=[*client.rows, *client[1:], are_batches]
  )


class Variant(NamedTuple):
  """The fields of a variant, see above."""

  client: batching.PackedClients
  are_batches: tf.Tensor

  def rest(self) -> tf.Tensor:
    """Returns the variant tensor of what follows the first element."""
    rest = self.client._replace(starts=self.client.starts + 1)
    return _pack(rest, self.are_batches)

  def element(self, number: tf.Tensor) -> list[tf.Tensor]:
    """Returns an element, if only a tensor tells whether it is a batch."""
    size = tf.gather(self.client.sizes, number)
    picks = picks_of(self.client, number, size)
    batch_shape = tf.shape(picks)[: tf.cast(self.are_batches, tf.int32)]
    return [
        tf.reshape(
            tf.gather(rows, picks),
            tf.concat([batch_shape, tf.shape(rows)[1:]], 0),
        )
        for rows in self.client.rows
    ]


def from_variant(variant: tf.Tensor, dtypes: list[tf.DType]) -> Variant:
  """Returns the fields of a variant tensor of `to_variant`."""
  components = tf.raw_ops.OptionalGetValue(
      optional=variant,
      output_types=[*dtypes, *(dtype for dtype, _ in _INDICES)],
      output_shapes=[
          *(tf.TensorShape(None) for _ in dtypes),
          *(shape for _, shape in _INDICES),
      ],
  )
  *indices, are_batches = components[len(dtypes) :]
  client = batching.PackedClients(tuple(components[: len(dtypes)]), *indices)
  return Variant(client, are_batches)
