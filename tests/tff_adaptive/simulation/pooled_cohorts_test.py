# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of cohorts from the pooled examples."""

import functools

from absl.testing import parameterized
import attrs
import numpy as np

from tests.tff_adaptive.simulation import task_testing
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.simulation import cohorts

_SIZES = (5, 0, 3, 1)


@functools.cache
def _task():
  """Returns a task of nine examples with unique labels, also in x."""
  task = task_testing.build_task(_SIZES)
  y = task.train_data.values['y']
  x = np.repeat(y[:, np.newaxis], 3, axis=1).astype(np.float32)
  return attrs.evolve(
      task,
      train_data=client_data.PackedClientArrays(
          {'x': x, 'y': y}, task.train_data.offsets, task.train_data.client_ids
      ),
  )


def _lazy(source, reads=None):
  """Returns the same clients, read one by one; what is read is noted."""

  def load(client_id):
    if reads is not None:
      reads.append(client_id)
    return source.examples(client_id)

  return client_data.LazyClientArrays(
      source.client_ids,
      load,
      source.element_spec,
      cache_bytes=0,
      client_sizes={
          name: source.num_examples(name) for name in source.client_ids
      },
  )


def _labels(cohort):
  return np.concatenate([batch['y'] for batch in cohort.batches(0)])


class PooledDataTest(parameterized.TestCase):

  def _build(self, *, is_lazy=False, seed=0, **changes):
    task = _task()
    options = {}
    if is_lazy:
      task = attrs.evolve(task, train_data=_lazy(task.train_data))
      options = {'shuffle_buffer': 4}
    protocol = task_testing.protocol(**changes)
    return cohorts.build_pooled_cohort_fn(
        attrs.evolve(task, protocol=protocol), seed, **options
    )

  @parameterized.parameters(False, True)
  def test_every_epoch_has_every_example_once(self, is_lazy):
    cohort_fn = self._build(is_lazy=is_lazy)
    # Nine rounds of ten examples are ten epochs.
    walk = np.concatenate([_labels(cohort_fn(i)) for i in range(9)])
    epochs = walk.reshape([10, 9])
    for epoch in epochs:
      self.assertCountEqual(epoch, range(9))
    self.assertGreater(len({tuple(epoch) for epoch in epochs}), 5)
    self.assertNotEqual(epochs[0].tolist(), list(range(9)))

  @parameterized.parameters(False, True)
  def test_round_depends_on_seed_and_number_alone(self, is_lazy):
    cohort_fn = self._build(is_lazy=is_lazy)
    cohort_fn(3)
    again = _labels(cohort_fn(7)).tolist()
    build = functools.partial(self._build, is_lazy=is_lazy)
    self.assertEqual(_labels(build()(7)).tolist(), again)
    self.assertNotEqual(_labels(build(seed=1)(7)).tolist(), again)

  def test_literal_order_so_that_no_release_changes_a_run(self):
    self.assertEqual(
        _labels(self._build()(1)).tolist(), [3, 8, 6, 2, 4, 1, 5, 7, 2, 5]
    )
    self.assertEqual(
        _labels(self._build(is_lazy=True)(1)).tolist(),
        [6, 5, 7, 2, 1, 3, 0, 4, 8, 0],
    )

  def test_all_batches_are_full_and_examples_whole(self):
    cohort_fn = self._build(client_batch_size=4)
    for round_num in range(4):
      cohort = cohort_fn(round_num)
      self.assertEqual(cohort.client_ids, (cohorts.POOL_ID,))
      for batch in cohort.batches(0):
        self.assertLen(batch['y'], 4)
        for column in batch['x'].T:
          self.assertEqual(column.tolist(), batch['y'].tolist())

  @parameterized.parameters(
      # 2 clients of 9/4 examples, twice: 9 examples.
      (dict(), 5),
      (dict(client_batch_size=3), 3),
      (dict(client_batch_size=4, clients_per_round=3), 3),
      (dict(clients_per_round=1, client_epochs=1, client_batch_size=9), 1),
      # Then a client has 2, 0, 2 and 1 examples.
      (dict(max_examples=2, client_batch_size=1), 5),
  )
  def test_round_has_the_examples_of_a_federated_one(self, changes, expected):
    self.assertEqual(self._build(**changes)(0).num_steps(0), expected)

  def test_max_examples_leaves_the_others_out(self):
    cohort_fn = self._build(max_examples=2, client_batch_size=1)
    self.assertCountEqual(_labels(cohort_fn(4)), [0, 1, 5, 6, 8])

  def test_cohort_is_one_for_the_runtimes(self):
    cohort = self._build()(2)
    datasets = list(cohort)
    self.assertLen(datasets, 1)
    labels = [batch['y'].numpy().tolist() for batch in datasets[0]]
    self.assertEqual(sum(labels, []), _labels(cohort).tolist())
    packed = cohort.fetch().pack()
    self.assertEqual(
        packed.rows['y'][packed.order].tolist(), _labels(cohort).tolist()
    )
    self.assertEqual(packed.sizes.ravel().tolist(), [2] * 5)

  def test_lazy_source_reads_only_what_a_round_needs(self):
    reads = []
    source = task_testing.clients(*[10] * 100)
    task = attrs.evolve(
        _task(),
        train_data=_lazy(source, reads),
        protocol=task_testing.protocol(client_epochs=1),
    )
    cohort_fn = cohorts.build_pooled_cohort_fn(task, 0, shuffle_buffer=50)
    self.assertEmpty(reads)
    # 20 examples of at most two stretches of five clients each.
    for round_num in range(3):
      reads.clear()
      cohort_fn(round_num).fetch()
      self.assertLen(set(reads), len(reads))
      self.assertBetween(len(reads), 2, 10)

  def test_augmentation_applies_anew_in_every_round(self):
    def shift(examples, generator):
      shifts = generator.random([len(examples['x']), 1], np.float32)
      return {'x': examples['x'] + shifts, 'y': examples['y']}

    task = attrs.evolve(
        _task(),
        augmentation=batching.Augmentation(
            shift, _task().train_data.element_spec
        ),
    )
    cohort_fn = cohorts.build_pooled_cohort_fn(task, 0)
    shifts = []
    for round_num in (0, 0, 1):
      batch = cohort_fn(round_num).batches(0)[0]
      shifts.append((batch['x'][:, 0] - batch['y']).tolist())
    self.assertBetween(min(shifts[0]), 0.0, 1.0)
    self.assertNotEqual(shifts[0], [0.0, 0.0])
    self.assertEqual(shifts[0], shifts[1])
    self.assertNotEqual(shifts[0], shifts[2])
