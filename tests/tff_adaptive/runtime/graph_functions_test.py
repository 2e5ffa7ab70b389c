# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of graphs as functions: switches they leave, rows they append."""

import collections
import threading

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests import case_testing
from tests.tff_adaptive.runtime import equality_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive.runtime.graphs import graph_functions

_SPECS = [tf.TensorSpec([], tf.int32)]


def _count_to(number):
  return [tf.while_loop(lambda i: i < number, lambda i: [i + 1], [0])[0]]


class ControlFlowTest(tf.test.TestCase, parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.assertTrue(tf.compat.v1.control_flow_v2_enabled())
    self.addCleanup(tf.compat.v1.enable_control_flow_v2)

  def test_loops_are_of_tensorflow_1(self):
    count = graph_functions.build(_count_to, _SPECS)
    self.assertEqual(count(tf.constant(5))[0], 5)
    kinds = {operation.type for operation in count.graph.get_operations()}
    self.assertIn('NextIteration', kinds)

  @parameterized.parameters(True, False)
  def test_switch_is_as_it_was_also_after_an_error(self, is_enabled):
    if not is_enabled:
      tf.compat.v1.disable_control_flow_v2()

    def fail(number):
      del number  # Unused.
      self.assertFalse(tf.compat.v1.control_flow_v2_enabled())
      raise ZeroDivisionError

    graph_functions.build(_count_to, _SPECS)
    self.assertEqual(tf.compat.v1.control_flow_v2_enabled(), is_enabled)
    with self.assertRaises(ZeroDivisionError):
      graph_functions.build(fail, _SPECS)
    self.assertEqual(tf.compat.v1.control_flow_v2_enabled(), is_enabled)

  def test_threads_that_build_at_once_leave_it_on(self):
    barrier = threading.Barrier(4)
    found = []

    def build_often():
      barrier.wait()
      for _ in range(10):
        count = graph_functions.build(_count_to, _SPECS)
        found.append(int(count(tf.constant(3))[0]))

    threads = [threading.Thread(target=build_often) for _ in range(4)]
    for thread in threads:
      thread.start()
    for thread in threads:
      thread.join()
    self.assertEqual(found, [3] * 40)
    self.assertTrue(tf.compat.v1.control_flow_v2_enabled())

  def test_functions_of_other_threads_keep_their_loops(self):
    kinds = []

    def trace():
      counted = tf.function(lambda number: _count_to(number)[0])
      graph = counted.get_concrete_function(*_SPECS).graph
      kinds.extend(operation.type for operation in graph.get_operations())

    def build(number):
      thread = threading.Thread(target=trace)
      thread.start()
      thread.join()
      return [number]

    graph_functions.build(build, _SPECS)
    self.assertNotIn('NextIteration', kinds)
    self.assertTrue({'While', 'StatelessWhile'} & set(kinds))


_Dict = collections.OrderedDict
# More than there are chunks, so that chunks have several clients.
_NUM_CLIENTS = 40
_ROW_TYPE = tff.TensorType(np.float32, [1, 2])
_SUM_TYPE = tff.to_type(
    _Dict(rows=tff.TensorType(np.float32, [None, 2]), size=np.float32)
)


def _append(total, rows):
  return tf.concat([total, rows], axis=0)


def _grow(rows, total):
  return _append(total['rows'], rows), 1.0


def _grow_in_front(rows, total):
  return tf.concat([rows, total['rows']], axis=0), 1.0


def _grow_and_look(rows, total):
  size = tf.cast(tf.shape(total['rows'])[0], tf.float32)
  return _append(total['rows'], rows), size


def _grow_and_look_in_a_function(rows, total):
  count = tf.function(lambda t: tf.cast(tf.shape(t)[0], tf.float32))
  return _append(total['rows'], rows), count(total['rows'])


def _grow_and_count(rows, total):
  grown = _append(total['rows'], rows)
  size = tf.cast(tf.shape(tf.identity(grown))[0], tf.float32)
  return tf.identity(grown), size - total['size']


def _grow_and_wait(rows, total):
  grown = _append(total['rows'], rows)
  with tf.control_dependencies([tf.identity(grown)]):
    return grown, tf.constant(1.0)


def _grow_and_check(rows, total):
  grown = _append(total['rows'], rows)
  is_small = tf.reduce_all(rows <= _NUM_CLIENTS)
  with tf.control_dependencies([tf.debugging.Assert(is_small, ['large'])]):
    return tf.identity(grown), 1.0


def _grow_if_small(rows, total):
  grow = lambda: _append(total['rows'], rows)
  return tf.cond(rows[0, 0] <= 9, grow, lambda: total['rows']), 1.0


def _grow_by_the_other(first, second, rows):
  grown = _append(second, rows)
  return _append(first, grown), grown


def _grow_by_itself(rows, total):
  del rows
  return tf.concat([total['rows'], total['rows'][:1] + 1], axis=0), 1.0


def _grow_by_two(rows, total):
  return tf.concat([total['rows'], rows, 2 * rows], axis=0), 1.0


def _grow_by_half(rows, total):
  return tf.concat([total['rows'], rows[:, :1] @ [[1.0, 2.0]]], axis=0), 1.0


def _grow_sideways(rows, total):
  wide = tf.concat([total['rows'], tf.ones_like(total['rows'])], axis=1)
  return wide[:, :2] + rows, 1.0


def _keep(rows, total):
  del rows
  return total['rows'], 1.0


def _add(fn, total, rows):
  """Returns a sum that is grown by a client's rows."""
  grown, size = fn(rows, total)
  return _Dict(rows=grown, size=total['size'] + size)


def _aggregate(fn):
  """Returns a computation that adds up clients."""
  return sequence_testing.aggregate(
      _ROW_TYPE,
      lambda: _Dict(rows=tf.zeros([0, 2]), size=0.0),
      lambda total, rows: _add(fn, total, rows),
      lambda left, right: _Dict(
          rows=tf.concat([left['rows'], right['rows']], axis=0),
          size=left['size'] + right['size'],
      ),
      _SUM_TYPE,
  )


def _clients(num_clients):
  return [
      np.full([1, 2], place, np.float32) for place in range(1, num_clients + 1)
  ]


@pytest.mark.usefixtures('native_runtime')
class AppendedRowsTest(equality_testing.TestCase):

  @case_testing.named(
      rows=(_grow, True),
      what_is_made_of_rows=(_grow_by_half, True),
      in_front=(_grow_in_front, False),
      and_the_sum_is_read=(_grow_and_look, False),
      and_the_sum_is_read_in_a_function=(_grow_and_look_in_a_function, False),
      and_the_grown_rows_are_read=(_grow_and_count, False),
      and_the_grown_rows_are_waited_for=(_grow_and_wait, False),
      and_waits_for_an_assertion=(_grow_and_check, False),
      in_a_branch=(_grow_if_small, False),
      the_sum_itself=(_grow_by_itself, False),
      twice=(_grow_by_two, False),
      sideways=(_grow_sideways, False),
      nothing=(_keep, False),
  )
  def test_finds_what_appends(self, fn, appends):
    add = tff.tensorflow.computation(
        lambda total, rows: _add(fn, total, rows), _SUM_TYPE, _ROW_TYPE
    )
    part = graph_functions.build_graph_function(add).appending()
    self.assertEqual(part.appends, {0} if appends else set())

  @case_testing.named(
      each=(lambda a, b, rows: (_append(a, rows), _append(b, rows)), {0, 1}),
      one=(lambda a, b, rows: (a, _append(b, rows)), {1}),
      one_for_both=(lambda a, b, rows: 2 * [_append(a, rows)], set()),
      crosswise=(
          lambda a, b, rows: (_append(b, rows), _append(a, rows)),
          set(),
      ),
      one_by_the_other=(_grow_by_the_other, {0}),
  )
  def test_finds_which_of_two_are_appended_to(self, fn, places):
    rows_type = _SUM_TYPE['rows']
    add = tff.tensorflow.computation(
        lambda total, rows: fn(*total, rows), (rows_type, rows_type), _ROW_TYPE
    )
    part = graph_functions.build_graph_function(add)
    self.assertEqual(part.appending().appends, places)

  def test_strings_are_rows_too(self):
    add = tff.tensorflow.computation(
        _append, tff.TensorType(np.str_, [None]), tff.TensorType(np.str_, [1])
    )
    part = graph_functions.build_graph_function(add).appending()
    self.assertEqual(part.appends, {0})

  @case_testing.named(
      rows=_grow,
      what_is_made_of_rows=_grow_by_half,
      and_the_grown_rows_are_read=_grow_and_count,
      and_waits_for_an_assertion=_grow_and_check,
      twice=_grow_by_two,
      nothing=_keep,
  )
  @pytest.mark.sample(3)
  def test_adds_up_as_the_native_runtime(self, fn):
    for num_clients in (0, 1, _NUM_CLIENTS):
      found = self.assert_equals(_aggregate(fn), _clients(num_clients))
      self.assertEqual(found['size'], num_clients)

  def test_failed_assertions_are_not_lost(self):
    with equality_testing.compiled():
      with self.assertRaisesRegex(ValueError, 'large'):
        _aggregate(_grow_and_check)(_clients(_NUM_CLIENTS + 1))

  @case_testing.named(matrices=[None, None], tensors_of_any_rank=None)
  def test_rows_of_unknown_shape(self, shape):
    zero = lambda: tf.compat.v1.placeholder_with_default(
        tf.zeros([0, 2]), shape
    )
    rows_type = tff.TensorType(np.float32, shape)
    aggregate = sequence_testing.aggregate(rows_type, zero, _append)
    self.assert_equals(aggregate, _clients(_NUM_CLIENTS))
