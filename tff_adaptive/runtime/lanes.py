# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loops in a graph that share pieces of work, the longest piece first.

A loop of TensorFlow that runs k iterations at once starts iteration n + k when
iteration n is over. A long client then holds up the cores that have finished
the short ones after it. Here each core has a lane: a loop of its own, which
takes the next piece as soon as it is free.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tff_adaptive.runtime import sequences


def compute(
    work: Callable[[tf.Tensor], Any], costs: tf.Tensor, num_lanes: int
) -> Callable[[tf.Tensor], Any]:
  """Adds the lanes to the TensorFlow 1 graph that is being built.

  Args:
    work: Maps the number of a piece to its result, a structure of tensors.
    costs: The expected cost of each piece, in any unit, [num_pieces].
    num_lanes: The number of lanes.

  Returns:
    A function that maps the number of a piece to its result, once for each
    piece. All results are kept in memory until then.
  """
  order = tf.argsort(costs, direction='DESCENDING', stable=True)
  num_pieces = tf.size(costs)
  take = _build_counter()
  results = _Results(num_pieces)

  def turn(place):
    piece = tf.gather(order, place)
    return [take(results.write(piece, work(piece)))]

  def lane(number, is_over):
    (last,) = tf.while_loop(
        lambda place: place < num_pieces,
        turn,
        [take([number])],
        parallel_iterations=1,
    )
    # The number does not wait for the lane, so that all lanes start at once.
    return number + 1, is_over + 0 * last

  _, is_over = tf.while_loop(
      lambda number, _: number < num_lanes,
      lane,
      (tf.zeros([], tf.int32), tf.zeros([], tf.int32)),
      parallel_iterations=num_lanes,
  )
  return results.reader(after=is_over)


def _build_counter() -> Callable[[Sequence[tf.Tensor]], tf.Tensor]:
  """Returns a function that counts from 0, in any lane, after some tensors."""
  with tf.device('/device:CPU:0'):
    handle = tf.raw_ops.VarHandleOp(
        dtype=tf.int32, shape=[], shared_name=sequences.ANONYMOUS
    )
    is_zero = tf.raw_ops.AssignVariableOp(resource=handle, value=0)
    with tf.control_dependencies([is_zero]):
      counter = tf.identity(handle)

  def take(after):
    with tf.control_dependencies(after), tf.device('/device:CPU:0'):
      return tf.raw_ops.ResourceCountUpTo(
          resource=counter, limit=tf.int32.max, T=tf.int32
      )

  return take


class _Results:
  """The results of pieces, written in any order."""

  def __init__(self, num_pieces: tf.Tensor):
    self._num_pieces = num_pieces
    self._structure: Any = None
    # One for each tensor of a result: its handle and a token, its flow.
    self._arrays: list[tuple[tf.Tensor, tf.Tensor]] = []

  def write(self, piece: tf.Tensor, result: Any) -> list[tf.Tensor]:
    """Keeps the result of a piece; returns tokens. Called for one op only."""
    tensors = tf.nest.flatten(result, expand_composites=True)
    self._structure = result
    with tf.control_dependencies(None):  # Outside of the lane's loop.
      self._arrays = [
          tf.raw_ops.TensorArrayV3(size=self._num_pieces, dtype=tensor.dtype)
          for tensor in tensors
      ]
    return [
        tf.raw_ops.TensorArrayWriteV3(
            handle=handle, index=piece, value=tensor, flow_in=flow
        )
        for (handle, flow), tensor in zip(self._arrays, tensors)
    ]

  def reader(self, after: tf.Tensor) -> Callable[[tf.Tensor], Any]:
    """Returns a function that reads the result of a piece after a token."""
    with tf.control_dependencies([after]):
      arrays = [(handle, tf.identity(flow)) for handle, flow in self._arrays]
    written = tf.nest.flatten(self._structure, expand_composites=True)

    def read(piece):
      tensors = []
      for (handle, flow), tensor in zip(arrays, written):
        kept = tf.raw_ops.TensorArrayReadV3(
            handle=handle, index=piece, flow_in=flow, dtype=tensor.dtype
        )
        kept.set_shape(tensor.shape)
        tensors.append(kept)
      return tf.nest.pack_sequence_as(
          self._structure, tensors, expand_composites=True
      )

    return read
