# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `cohort`."""

import collections
from collections.abc import Sequence

from absl.testing import absltest
from absl.testing import parameterized
import attrs
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.data import client_arrays_testing
from tests.tff_adaptive.runtime import sequence_testing
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort

_PLAN = batching.BatchPlan(2, num_epochs=2)
_IN_ORDER = batching.BatchPlan(2, shuffle=False)


def _examples(values):
  values = np.array(values, np.float32)
  return {'x': values, 'y': values.astype(np.int32)}


def _source():
  return client_data.PackedClientArrays.from_clients(
      {
          'ann': _examples([1, 2, 3]),
          'bob': _examples([]),
          'cid': _examples([10, 20, 30, 40, 50, 60]),
      }
  )


def _lazy(rows):
  """Returns clients of vectors, whose spec leaves their size open."""
  clients = {name: {'x': x} for name, x in rows.items()}
  spec = {'x': tf.TensorSpec([None], tf.float64)}
  return client_arrays_testing.lazy(clients, spec=spec)


def _shift(examples, generator):
  # An example's share depends on the number of examples.
  shifts = generator.permutation(len(examples['x'])).astype(np.float32)
  return {'x': examples['x'] + shifts, 'y': examples['y']}


_SHIFT = batching.Augmentation(_shift, _source().element_spec)


def _cohort(
    client_ids=('ann', 'bob', 'cid'), round_num=0, seed=0, plan=_PLAN, **options
):
  return cohort.Cohort(_source(), client_ids, round_num, seed, plan, **options)


def _values(batches):
  return [np.asarray(batch['x']).tolist() for batch in batches]


class CohortTest(parameterized.TestCase):

  def test_is_a_sequence_of_datasets_of_batches(self):
    clients = _cohort(plan=_IN_ORDER)
    self.assertIsInstance(clients, Sequence)
    self.assertLen(clients, 3)
    self.assertEqual(
        [_values(batches) for batches in clients],
        [[[1, 2], [3]], [], [[10, 20], [30, 40], [50, 60]]],
    )
    for dataset in clients:
      self.assertIsInstance(dataset, tf.data.Dataset)
      self.assertEqual(
          dataset.element_spec,
          {
              'x': tf.TensorSpec([None], tf.float32),
              'y': tf.TensorSpec([None], tf.int32),
          },
      )
    self.assertEqual(_values(clients[-1]), _values(clients[2]))
    with self.assertRaises(IndexError):
      clients[3]  # pylint: disable=pointless-statement

  @parameterized.product(
      num_epochs=[1, 3], batch_size=[1, 4, 10], drop_remainder=[False, True]
  )
  def test_datasets_and_arrays_are_the_same_batches(
      self, num_epochs, batch_size, drop_remainder
  ):
    plan = batching.BatchPlan(
        batch_size, num_epochs, drop_remainder=drop_remainder
    )
    clients = _cohort(seed=3, round_num=5, plan=plan)
    for i, dataset in enumerate(clients):
      batches = clients.batches(i)
      self.assertIsInstance(batches, list)
      self.assertLen(batches, clients.num_steps(i))
      self.assertEqual(_values(dataset), _values(batches))
    self.assertEqual([clients.num_examples(i) for i in range(3)], [3, 0, 6])

  @parameterized.product(
      limit=[0, 1, 3, 4, 100],
      drop_remainder=[False, True],
      augmented_by=[None, _SHIFT],
      is_fetched=[False, True],
  )
  def test_limited_client_has_its_first_batches_in_every_form(
      self, limit, drop_remainder, augmented_by, is_fetched
  ):
    plan = batching.BatchPlan(4, num_epochs=2, drop_remainder=drop_remainder)
    plain = _cohort(round_num=2, plan=plan, augmentation=augmented_by)
    limited = attrs.evolve(plain, step_limits={'cid': limit})
    if is_fetched:
      limited = limited.fetch()
    expected = _values(plain.batches(2))[:limit]
    self.assertEqual(_values(limited.batches(2)), expected)
    self.assertEqual(_values(limited[2]), expected)
    self.assertEqual(limited.num_steps(2), len(expected))
    self.assertEqual(_values(limited.batches(0)), _values(plain.batches(0)))
    self.assertEqual(limited.num_examples(2), 6)
    packed = limited.pack()
    places = slice(packed.starts[2], packed.ends[2])
    self.assertEqual(
        [
            packed.rows['x'][packed.order[begin : begin + size]].tolist()
            for begin, size in zip(
                packed.begins[places].ravel(), packed.sizes[places].ravel()
            )
        ],
        expected,
    )

  def test_slice_and_states_keep_limits(self):
    limited = attrs.evolve(_cohort(plan=_IN_ORDER), step_limits={'cid': 1})
    self.assertEqual(_values(limited[2:][0]), [[10, 20]])
    states = cohort.StatefulCohort.of(
        limited, {}, tf.TensorSpec([], tf.float32)
    )
    self.assertEqual(_values(states[2]['data']), [[10, 20]])

  def test_batches_are_ordered_features_with_their_types(self):
    batch = _cohort().batches(0)[0]
    self.assertIsInstance(batch, collections.OrderedDict)
    self.assertEqual(list(batch), ['x', 'y'])
    self.assertEqual(batch['y'].dtype, np.int32)

  def test_slice_is_a_cohort_of_those_clients(self):
    part = _cohort()[1:]
    self.assertIsInstance(part, cohort.Cohort)
    self.assertEqual(part.client_ids, ('bob', 'cid'))
    self.assertEqual(_values(part[1]), _values(_cohort()[2]))

  def test_shuffling_depends_on_seed_round_and_client_only(self):
    expected = _values(_cohort(round_num=4, seed=2)[2])
    same = _cohort(['cid', 'ann'], round_num=4, seed=2)
    self.assertEqual(_values(same[0]), expected)
    self.assertNotEqual(_values(_cohort(round_num=5, seed=2)[2]), expected)
    self.assertNotEqual(_values(_cohort(round_num=4, seed=3)[2]), expected)

  def test_literal_batches_so_that_no_release_changes_a_run(self):
    self.assertEqual(
        _values(_cohort(round_num=4, seed=2)[0]),
        [[3.0, 2.0], [1.0], [2.0, 1.0], [3.0]],
    )

  def test_clients_with_equal_data_are_shuffled_differently(self):
    source = client_data.PackedClientArrays.from_partition(
        {'x': np.arange(50)}, {'a': np.arange(50), 'b': np.arange(50)}
    )
    clients = cohort.Cohort(source, ['a', 'b'], 0, 0, batching.BatchPlan(50))
    self.assertNotEqual(_values(clients[0]), _values(clients[1]))

  def test_client_may_occur_twice_with_the_same_batches(self):
    clients = _cohort(['ann', 'ann'])
    self.assertEqual(_values(clients[0]), _values(clients[1]))

  def test_empty_clients_do_not_fix_a_size_that_the_spec_leaves_open(self):
    clients = {
        'ann': np.ones([3, 7]),
        'bob': np.ones([0, 0]),
        'cid': np.ones([2, 7]),
    }
    source = _lazy(clients)
    packed = cohort.Cohort(source, source.client_ids, 0, 0, _IN_ORDER).pack()
    self.assertEqual(packed.rows['x'].shape, (5, 7))
    self.assertEqual(packed.sizes.ravel().tolist(), [2, 1, 2])

  def test_clients_of_different_shapes_raise(self):
    source = _lazy({'a': np.ones([1, 2]), 'b': np.ones([1, 3])})
    round_4 = cohort.Cohort(source, 'ab', 4, 0, batching.BatchPlan(1))
    with self.assertRaisesRegex(
        ValueError, r"round 4 .*'x', \[\(2,\), \(3,\)\]"
    ):
      round_4.pack()

  def test_an_index_error_of_reading_a_client_is_not_the_end(self):
    source = client_data.LazyClientArrays(
        ['a'], lambda unused_id: [][0], {'x': tf.TensorSpec([], tf.float32)}
    )
    with self.assertRaisesRegex(IndexError, 'list index'):
      list(cohort.Cohort(source, ['a'], 0, 0, _PLAN))

  def test_empty_cohort(self):
    self.assertEmpty(list(_cohort([])))


@pytest.mark.usefixtures('native_runtime')
class NativeRuntimeTest(absltest.TestCase):

  def test_native_runtime_takes_the_list_of_a_cohort(self):
    spec = {
        'x': tf.TensorSpec([None], tf.float32),
        'y': tf.TensorSpec([None], tf.int32),
    }
    total = sequence_testing.over_clients(
        lambda batches: batches.reduce(
            (0.0, 0),
            lambda state, b: (state[0] + tf.reduce_sum(b['x']), state[1] + 1),
        ),
        tff.SequenceType(tff.types.tensorflow_to_type(spec)),
    )
    value, num_batches = total(list(_cohort()))
    self.assertEqual(value, 2 * (1 + 2 + 3) + 2 * (10 + 20 + 30 + 40 + 50 + 60))
    self.assertEqual(num_batches, 4 + 0 + 6)
