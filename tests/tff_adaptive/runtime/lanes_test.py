# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of lanes."""

import threading

import numpy as np
import tensorflow as tf

from tff_adaptive.runtime import graph_functions
from tff_adaptive.runtime import lanes

# If a piece has to wait longer for another one, they do not run at once.
_MAX_SECONDS = 60


def _run(work, costs, num_lanes):
  """Returns the results of all pieces, concatenated in the order of pieces."""

  def run(costs):
    results = lanes.compute(work, costs, num_lanes)
    number, last = tf.zeros([], tf.int32), tf.size(costs)
    _, joined = tf.while_loop(
        lambda number, _: number < last,
        lambda number, joined: (
            number + 1,
            tf.concat([joined, *results(number)], 0),
        ),
        (number, tf.zeros([0], tf.int32)),
        shape_invariants=(number.shape, tf.TensorShape([None])),
    )
    return [joined]

  function = graph_functions.build(run, [tf.TensorSpec([None], tf.int32)])
  (joined,) = function(tf.constant(costs, tf.int32))
  return joined.numpy().tolist()


def _call(fn, piece):
  """Calls a Python function in the graph; returns the piece as a row."""
  called = tf.numpy_function(fn, [piece], tf.int32)
  called.set_shape([])
  return [called[tf.newaxis]]


class LanesTest(tf.test.TestCase):

  def test_the_longest_piece_comes_first(self):
    pieces = []

    def note(piece):
      pieces.append(int(piece))
      return piece

    found = _run(lambda piece: _call(note, piece), [3, 9, 1, 9, 4], 1)
    self.assertEqual(pieces, [1, 3, 4, 0, 2])
    self.assertEqual(found, [0, 1, 2, 3, 4])

  def test_a_free_lane_takes_the_next_piece(self):
    others = threading.Semaphore(0)

    def wait_for_others(piece):
      if piece == 0:
        for _ in range(3):
          assert others.acquire(timeout=_MAX_SECONDS)
      else:
        others.release()
      return piece

    found = _run(lambda piece: _call(wait_for_others, piece), [9, 1, 1, 1], 2)
    self.assertEqual(found, [0, 1, 2, 3])

  def test_results_may_differ_in_their_number_of_rows(self):
    found = _run(lambda piece: [tf.range(piece)], [1, 2, 0, 5], 2)
    self.assertEqual(found, [0, 0, 1, 0, 1, 2])

  def test_there_may_be_fewer_pieces_than_lanes(self):
    work = lambda piece: [tf.fill([2], piece)]
    self.assertEqual(_run(work, [7], 4), [0, 0])
    self.assertEqual(_run(work, [], 4), [])

  def test_every_call_starts_anew(self):
    def run(costs):
      results = lanes.compute(lambda piece: [piece + 1], costs, 2)
      return results(tf.constant(2))

    function = graph_functions.build(run, [tf.TensorSpec([None], tf.int32)])
    for costs in ([1, 2, 3], [3, 2, 1, 0]):
      self.assertAllEqual(function(tf.constant(costs)), [3])

  def test_a_piece_that_fails_ends_the_call(self):
    def work(piece):
      with tf.control_dependencies(
          [tf.debugging.assert_less(piece, 3, 'too large')]
      ):
        return [tf.identity(piece)[tf.newaxis]]

    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, 'too large'):
      _run(work, np.arange(6), 2)
