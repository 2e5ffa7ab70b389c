# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sequences of batches, and of the parts of batches."""

from collections.abc import Sequence as ListOf
from typing import Optional

import tensorflow as tf

# The list ops of TensorFlow's own loops.
from tensorflow.python.ops import list_ops

from tff_adaptive.runtime.sequences import derived_sequences
from tff_adaptive.runtime.sequences import sequences

_UNKNOWN = tf.TensorShape(None)


def batch(
    source: sequences.Sequence,
    num: tf.Tensor,
    drops_rest: Optional[tf.Tensor],
    dtypes: ListOf[tf.DType],
    num_parallel: int,
) -> sequences.Sequence:
  """Returns the batches of a sequence.

  Args:
    source: The sequence.
    num: The number of elements in a batch.
    drops_rest: Whether to drop a last batch of less elements; None for no.
    dtypes: The dtypes of the components.
    num_parallel: The number of elements that may be read at once.
  """
  size = source.size()
  if size is not None:
    return _Gathered(source, size, num, drops_rest)
  return _Collected(source, num, drops_rest, dtypes, num_parallel)


class _Gathered(derived_sequences.Derived):
  """Batches of elements that are gathered by their numbers."""

  def __init__(
      self,
      source: sequences.Sequence,
      size: tf.Tensor,
      num: tf.Tensor,
      drops_rest: Optional[tf.Tensor],
  ):
    super().__init__(source, own=[tf.zeros([], tf.int64)])
    self.is_exact = True
    self._num, self._end = num, size
    if drops_rest is not None:
      self._end = tf.where(drops_rest, size // num * num, size)

  def more(self, state):
    return state[0] < self._end

  def visit(self, state, carry, step):
    first, *source_state = state
    num = tf.minimum(self._num, self._end - first)
    found = self.source.gather(source_state, first + tf.range(num))
    return [first + num, *source_state], step(carry, found)

  def size(self):
    return (self._end + self._num - 1) // self._num

  def gather(self, state, numbers):
    firsts = numbers * self._num
    sizes = tf.minimum(self._num, self._end - firsts)
    with tf.control_dependencies([sequences.check_alike(sizes)]):
      places = firsts[:, tf.newaxis] + tf.range(sizes[0])
    found = self.source.gather(state[1:], tf.reshape(places, [-1]))
    return [
        tf.reshape(rows, tf.concat([tf.shape(places), tf.shape(rows)[1:]], 0))
        for rows in found
    ]


class _Collected(derived_sequences.Derived):
  """Batches of elements that are read one after another."""

  def __init__(
      self,
      source: sequences.Sequence,
      num: tf.Tensor,
      drops_rest: Optional[tf.Tensor],
      dtypes: ListOf[tf.DType],
      num_parallel: int,
  ):
    super().__init__(source)
    self.is_exact = source.is_exact and drops_rest is None
    self._num, self._drops_rest = num, drops_rest
    self._dtypes, self._num_parallel = dtypes, num_parallel

  def visit(self, state, carry, step):
    state, count, lists = self._collect(state)

    def use(carry):
      return step(
          carry,
          [
              list_ops.tensor_list_stack(one, dtype)
              for one, dtype in zip(lists, self._dtypes)
          ],
      )

    if self.is_exact:
      return state, use(carry)
    is_batch = count > 0
    if self._drops_rest is not None:
      is_batch &= tf.equal(count, self._num) | ~self._drops_rest
    return state, sequences.when(is_batch, carry, use)

  def _collect(self, state):
    """Reads a batch; returns the new state, its size and lists of elements."""

    def push(carried, found):
      count, *lists = carried
      pushed = map(list_ops.tensor_list_push_back, lists, found)
      return [count + 1, *pushed]

    lists = [list_ops.empty_tensor_list(_UNKNOWN, d) for d in self._dtypes]
    state, (count, *lists) = sequences.read(
        self.source,
        state,
        [tf.zeros([], tf.int64), *lists],
        push,
        shapes=[sequences.SCALAR] * (1 + len(lists)),
        num_parallel=self._num_parallel,
        wants_more=lambda carried: carried[0] < self._num,
    )
    return state, count, lists


def unbatch(
    source: sequences.Sequence, dtypes: ListOf[tf.DType]
) -> sequences.Sequence:
  """Returns the parts of all elements of a sequence.

  Args:
    source: The sequence.
    dtypes: The dtypes of the components.
  """
  rows = source.single_rows()
  return _Unbatched(source, dtypes) if rows is None else rows


class _Unbatched(derived_sequences.Derived):
  """The parts of elements, of which one is held."""

  drops = True

  def __init__(self, source: sequences.Sequence, dtypes: ListOf[tf.DType]):
    # TensorFlow 1 does not slice a tensor of unknown rank.
    nothing = [tf.zeros([0], dtype) for dtype in dtypes]
    super().__init__(
        source,
        own=[tf.zeros([], tf.int64), *nothing],
        shapes=[sequences.SCALAR, *([_UNKNOWN] * len(nothing))],
    )

  def _is_left(self, state):
    return state[0] < tf.shape(state[1], tf.int64)[0]

  def more(self, state):
    return self._is_left(state) | super().more(state)

  def visit(self, state, carry, step):
    size = self._num_own

    def hold(state):
      sequences.shaped(state, self.shapes)
      source_state, own = self.source.visit(
          state[size:],
          state[:size],
          lambda _, found: [tf.zeros([], tf.int64), *found],
      )
      return [*own, *source_state]

    state = sequences.when(~self._is_left(state), state, hold)
    sequences.shaped(state, self.shapes)
    place, *parts = state[:size]
    carry = sequences.when(
        self._is_left(state),
        carry,
        lambda carry: step(carry, [tf.gather(part, place) for part in parts]),
    )
    return [place + 1, *state[1:]], carry


class Sharded(derived_sequences.Derived):
  """Each so many elements, from a place on."""

  drops = True

  def __init__(
      self, source: sequences.Sequence, num_shards: tf.Tensor, index: tf.Tensor
  ):
    super().__init__(source, own=[tf.zeros([], tf.int64)])
    self._num_shards, self._index = num_shards, index

  def _step(self, own, carry, found, step):
    (number,) = own
    is_own = tf.equal(number % self._num_shards, self._index)
    carry = sequences.when(is_own, carry, lambda carry: step(carry, found))
    return [number + 1, *carry]

  def _size(self, size):
    return tf.maximum(size - self._index + self._num_shards - 1, 0) // (
        self._num_shards
    )

  def _places(self, state, numbers):
    return numbers * self._num_shards + self._index
