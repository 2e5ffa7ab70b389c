# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `batching`."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from tests.tff_adaptive.data import client_arrays_testing
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort


def _indices(plan, num_examples, seed=0):
  order = batching.example_order(
      plan, num_examples, np.random.default_rng(seed)
  )
  ends = np.cumsum(batching.batch_sizes(plan, num_examples), dtype=np.int64)
  return [batch.tolist() for batch in np.split(order, ends)[:-1]]


class BatchingTest(parameterized.TestCase):

  @parameterized.product(
      num_examples=[0, 1, 7, 20, 21],
      batch_size=[1, 4, 7, 50],
      num_epochs=[1, 3],
      max_examples=[None, 5],
      drop_remainder=[False, True],
  )
  def test_agrees_with_tf_data(
      self, num_examples, batch_size, num_epochs, max_examples, drop_remainder
  ):
    plan = batching.BatchPlan(
        batch_size, num_epochs, max_examples, False, drop_remainder
    )
    dataset = tf.data.Dataset.range(num_examples)
    if max_examples is not None:
      dataset = dataset.take(max_examples)
    dataset = dataset.batch(batch_size, drop_remainder).repeat(num_epochs)
    expected = [batch.tolist() for batch in dataset.as_numpy_iterator()]
    self.assertEqual(_indices(plan, num_examples), expected)

  @parameterized.parameters((23, None), (23, 10), (4, 10))
  def test_every_epoch_holds_every_used_example_once(self, size, max_examples):
    plan = batching.BatchPlan(5, num_epochs=4, max_examples=max_examples)
    used = min(size, max_examples or size)
    order = np.concatenate(_indices(plan, size)).reshape(4, used)
    np.testing.assert_array_equal(np.sort(order), [np.arange(used)] * 4)

  def test_every_epoch_is_shuffled_anew(self):
    plan = batching.BatchPlan(20, num_epochs=3)
    first, second, third = _indices(plan, 20)
    self.assertNotEqual(first, second)
    self.assertNotEqual(second, third)
    self.assertNotEqual(first, sorted(first))

  def test_all_orders_of_a_small_client_occur(self):
    plan = batching.BatchPlan(3)
    orders = {tuple(_indices(plan, 3, seed)[0]) for seed in range(60)}
    self.assertLen(orders, 6)

  def test_indices_are_int64(self):
    for shuffle in (True, False):
      plan = batching.BatchPlan(2, shuffle=shuffle)
      order = batching.example_order(plan, 3, np.random.default_rng(0))
      self.assertEqual(order.dtype, np.int64)


_SPEC = {'x': tf.TensorSpec([2], tf.float32)}


def _add_noise(examples, generator):
  noise = generator.random((len(examples['raw']), 2), np.float32)
  return {'x': examples['raw'][:, np.newaxis] + noise}


def _cohort(source=None, round_num=0, seed=0):
  source = source or client_data.PackedClientArrays.from_clients(
      {
          'ann': {'raw': np.float32([10, 20, 30])},
          'bob': {'raw': np.float32([])},
          'cid': {'raw': np.float32([40, 50])},
      }
  )
  return cohort.Cohort(
      source,
      source.client_ids,
      round_num=round_num,
      seed=seed,
      plan=batching.BatchPlan(2, num_epochs=2),
      augmentation=batching.Augmentation(_add_noise, _SPEC),
  )


def _all_batches(clients):
  return [
      [batch['x'].tolist() for batch in clients.batches(i)]
      for i in range(len(clients))
  ]


def _packed_batches(clients):
  packed = clients.pack()
  batches = [
      packed.rows['x'][packed.order[begin : begin + size]].tolist()
      for begin, size in zip(packed.begins.ravel(), packed.sizes.ravel())
  ]
  return [batches[s:e] for s, e in zip(packed.starts, packed.ends)]


class AugmentationTest(absltest.TestCase):

  def test_checks_what_comes_out(self):
    examples = {'raw': np.float32([1, 2])}
    generator = np.random.default_rng(0)
    with self.assertRaisesRegex(ValueError, "2, but.* 'ann' has 1"):
      batching.Augmentation(
          lambda examples, _: {'x': np.zeros([1, 2], np.float32)}, _SPEC
      )(examples, generator, 'ann')
    with self.assertRaisesRegex(ValueError, "'ann'.*float64.*float32"):
      batching.Augmentation(lambda examples, _: {'x': np.zeros([2, 2])}, _SPEC)(
          examples, generator, 'ann'
      )
    evaluating = batching.Augmentation(
        lambda examples, _: examples, _SPEC, lambda examples: {'x': np.ones(2)}
    )
    with self.assertRaisesRegex(ValueError, '`evaluation_fn` has float64'):
      evaluating.for_evaluation(examples)


class AugmentedCohortTest(absltest.TestCase):

  def test_every_epoch_is_augmented_anew(self):
    batches = _all_batches(_cohort())
    self.assertEqual([len(part) for part in batches], [4, 0, 2])
    rows = [row for batch in batches[0] for row in batch]
    by_value = {}
    for row in rows:
      by_value.setdefault(int(row[0] // 10), set()).add(tuple(row))
    # Three examples, each twice, never the same.
    self.assertEqual(
        {k: len(v) for k, v in by_value.items()}, {1: 2, 2: 2, 3: 2}
    )

  def test_is_a_function_of_seed_and_round(self):
    reference = _all_batches(_cohort())
    self.assertEqual(_all_batches(_cohort()), reference)
    self.assertNotEqual(_all_batches(_cohort(round_num=1)), reference)
    self.assertNotEqual(_all_batches(_cohort(seed=1)), reference)

  def test_all_forms_are_the_same_batches(self):
    clients = _cohort()
    reference = _all_batches(clients)
    fetched = clients.fetch()
    self.assertEqual(_packed_batches(clients), reference)
    self.assertEqual(_packed_batches(fetched), reference)
    self.assertEqual(_all_batches(fetched), reference)
    for form in (clients, fetched):
      datasets = [[b['x'].numpy().tolist() for b in data] for data in form]
      self.assertEqual(datasets, reference)
      self.assertEqual(form[0].element_spec['x'].shape.as_list(), [None, 2])
    self.assertEqual(_all_batches(fetched[2:]), reference[2:])

  def test_states_are_added_to_a_cohort_that_was_read(self):
    fetched = _cohort().fetch()
    stateful = cohort.StatefulCohort.of(fetched, {}, {})
    self.assertIs(stateful.packed, fetched.packed)
    self.assertIs(stateful.augmentation, fetched.augmentation)

  def test_reading_ahead_reads_once(self):
    read = []
    clients = dict.fromkeys('ab', {'raw': np.float32([1, 2])})
    source = client_arrays_testing.lazy(
        clients, read, cache_bytes=0, client_sizes={'a': 2, 'b': 2}
    )
    fetched = _cohort(source).fetch()
    self.assertCountEqual(read, ['a', 'b'])
    _packed_batches(fetched)
    list(fetched[0])
    self.assertLen(read, 2)
