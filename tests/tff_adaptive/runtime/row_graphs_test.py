# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The graphs that can be rewritten to rows, and their results."""

from unittest import mock

from absl.testing import parameterized
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import runtime
from tff_adaptive.runtime import row_work

_SHAPE = [1_000, 70]
_TABLE = tff.TensorType(np.float32, _SHAPE)
# The second column holds numbers that are no rows.
_BATCHES = tff.SequenceType(tff.TensorType(np.int32, [None, 2]))
_CLIENTS = [
    [np.array([[3, 5_000], [7, 5_000], [3, 5_000]], np.int32)] * 2,
    [np.array([[999, -1]], np.int32)],
    [],
]


def _loop(step):
  """Work that changes a table with each batch and returns the difference."""

  def work(batches, table):
    return table - batches.reduce(table, lambda t, batch: step(t, batch[:, 0]))

  return work


def _add(table, ids, rows):
  return tf.tensor_scatter_nd_add(table, ids[:, tf.newaxis], rows)


def _double(table, ids):
  return _add(table, ids, tf.gather(table, ids))


def _overwrite(table, ids):
  rows = 0.5 * tf.gather(table, ids)
  return tf.tensor_scatter_nd_update(table, tf.expand_dims(ids, 1), rows)


def _descend(table, ids):
  with tf.GradientTape() as tape:
    tape.watch(table)
    loss = tf.reduce_sum(tf.square(tf.gather(table, ids)))
  return table - 0.1 * tf.convert_to_tensor(tape.gradient(loss, table))


def _zero_unless_finite(batches, table):
  update = _loop(_double)(batches, table)
  return tf.cond(
      tf.reduce_all(tf.math.is_finite(update)),
      lambda: 2.0 * update,
      lambda: tf.zeros_like(update),
  )


def _with_momentum(batches, table):
  def step(state, batch):
    table, momentum = state
    ids = batch[:, 0]
    gradient = tf.math.unsorted_segment_sum(
        tf.gather(table, ids), ids, _SHAPE[0]
    )
    momentum = 0.9 * momentum + gradient
    return table - 0.1 * momentum, momentum

  state = (table, tf.zeros(_SHAPE))
  return table - batches.reduce(state, step)[0]


_BY_ROW = (
    ('scatter_add', _loop(_double)),
    ('scatter_update', _loop(_overwrite)),
    ('gradient', _loop(_descend)),
    ('condition', _zero_unless_finite),
    ('momentum', _with_momentum),
)
_WHOLE = (
    ('columns', _loop(lambda t, ids: t - tf.gather(t, ids[:1] % 70, axis=1))),
    (
        'entries',
        _loop(
            lambda t, ids: tf.tensor_scatter_nd_add(
                t, [[ids[0], 0]], tf.gather(t, ids[:1])[:, 0]
            )
        ),
    ),
    (
        'rows_of_weights',
        _loop(lambda t, _: _double(t, tf.argmax(t, output_type=tf.int32)[:2])),
    ),
    ('all_rows_move', _loop(lambda t, ids: _double(t, ids) + 1.0)),
    ('all_rows_shrink', _loop(lambda t, ids: 0.9 * _double(t, ids))),
    (
        'norm',
        lambda batches, table: tf.math.l2_normalize(
            _loop(_double)(batches, table)
        ),
    ),
    (
        'trained',
        lambda batches, table: table - _loop(_double)(batches, table),
    ),
    (
        'branch_that_gathers',
        _loop(
            lambda t, ids: tf.cond(
                ids[0] > 0, lambda: _double(t, ids), lambda: t
            )
        ),
    ),
    ('no_batch', lambda batches, table: table - _double(table, tf.range(3))),
)


def _build(work, factor=1.0):
  """Builds the sum of the clients' results, times a factor."""
  client_work = tff.tensorflow.computation(work, (_BATCHES, _TABLE))
  zero = tff.tensorflow.computation(lambda: tf.zeros(_SHAPE))
  accumulate = tff.tensorflow.computation(
      lambda total, value: total + factor * value, (_TABLE, _TABLE)
  )
  merge = tff.tensorflow.computation(lambda a, b: a + b, (_TABLE, _TABLE))
  report = tff.tensorflow.computation(lambda total: total, _TABLE)

  @tff.federated_computation(
      tff.FederatedType(_TABLE, tff.SERVER),
      tff.FederatedType(_BATCHES, tff.CLIENTS),
  )
  def run(table, clients):
    results = tff.federated_map(
        client_work, (clients, tff.federated_broadcast(table))
    )
    if factor == 1.0:
      return tff.federated_sum(results)
    return tff.federated_aggregate(results, zero(), accumulate, merge, report)

  return run


class RowGraphsTest(parameterized.TestCase, tf.test.TestCase):

  def _check(self, computation, num_clients, is_by_row):
    """Checks the bits of the result, and whether clients train on rows."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=_SHAPE).astype(np.float32)
    clients = [_CLIENTS[number % 3] for number in range(num_clients)]
    works, results = [], []
    build = row_work.build
    for replacement in (
        lambda *_: None,
        lambda *arguments: works.append(build(*arguments)) or works[0],
    ):
      with mock.patch.object(row_work, 'build', replacement):
        with runtime.compiled_context(strict=True):
          results.append(computation(table, clients))
    self.assertEqual([work is not None for work in works], [is_by_row])
    np.testing.assert_array_equal(*results)

  @parameterized.named_parameters(*_BY_ROW)
  @pytest.mark.sample(3)
  def test_ops_by_row(self, work):
    self._check(_build(work), 5, True)

  @parameterized.named_parameters(*_WHOLE)
  @pytest.mark.sample(4)
  def test_other_ops_take_whole_tables(self, work):
    self._check(_build(work), 3, False)

  @parameterized.parameters(5, 20)
  def test_sums_that_do_more_than_add(self, num_clients):
    self._check(_build(_loop(_double), 2.0), num_clients, True)
