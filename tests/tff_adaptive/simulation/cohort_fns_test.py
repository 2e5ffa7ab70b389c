# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of cohorts that are pools, and of faults."""

import collections
import functools

from absl.testing import parameterized
import attrs
import numpy as np

from tests.tff_adaptive.simulation import loop_testing
from tests.tff_adaptive.simulation import task_testing
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort
from tff_adaptive.simulation import cohort_fns

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
    return cohort_fns.build_pooled_cohort_fn(
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
      self.assertEqual(cohort.client_ids, (cohort_fns.POOL_ID,))
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
    cohort_fn = cohort_fns.build_pooled_cohort_fn(task, 0, shuffle_buffer=50)
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
    cohort_fn = cohort_fns.build_pooled_cohort_fn(task, 0)
    shifts = []
    for round_num in (0, 0, 1):
      batch = cohort_fn(round_num).batches(0)[0]
      shifts.append((batch['x'][:, 0] - batch['y']).tolist())
    self.assertBetween(min(shifts[0]), 0.0, 1.0)
    self.assertNotEqual(shifts[0], [0.0, 0.0])
    self.assertEqual(shifts[0], shifts[1])
    self.assertNotEqual(shifts[0], shifts[2])

  def test_no_example_raises(self):
    empty = client_data.PackedClientArrays(
        {'x': np.zeros([0, 3], np.float32), 'y': np.zeros([0], np.int32)},
        [0, 0, 0],
        ['a', 'b'],
    )
    task = attrs.evolve(_task(), train_data=empty)
    with self.assertRaisesRegex(ValueError, "task 'toy' have no training"):
      cohort_fns.build_pooled_cohort_fn(task, 0)

  def test_batch_larger_than_the_pool_raises(self):
    with self.assertRaisesRegex(
        ValueError, "at most 9, .* of task 'toy', found 10"
    ):
      self._build(client_batch_size=10)

  @parameterized.parameters(
      (-1, 10, ValueError, '`seed`'),
      (0, 0, ValueError, '`shuffle_buffer` must be positive, found 0'),
      (0, 1.5, TypeError, '`shuffle_buffer` must be an integer, found 1.5'),
  )
  def test_bad_argument_raises(self, seed, shuffle_buffer, error, message):
    with self.assertRaisesRegex(error, message):
      cohort_fns.build_pooled_cohort_fn(
          _task(), seed, shuffle_buffer=shuffle_buffer
      )


# Clients with different numbers of batches in two epochs.
_SOURCE = client_data.PackedClientArrays.from_clients(
    {
        name: task_testing.examples(size)
        for name, size in dict(ann=4, bob=0, dot=3, eve=20).items()
    }
)
_PLAN = batching.BatchPlan(2, num_epochs=2)


def _cohort_fn(client_ids=('ann', 'bob', 'dot', 'eve'), plan=_PLAN, seed=0):
  def cohort_fn(round_index):
    return cohort.Cohort(_SOURCE, client_ids, round_index, seed, plan)

  return cohort_fn


def _many(**probabilities):
  """Returns rounds of a thousand clients with one example each."""
  ids = [f'client_{i}' for i in range(1000)]
  source = client_data.PackedClientArrays.from_partition(
      task_testing.examples(3), {name: np.arange(3) for name in ids}
  )

  def cohort_fn(round_index):
    plan = batching.BatchPlan(1)
    return cohort.Cohort(source, ids, round_index, 0, plan)

  return cohort_fns.inject_faults(cohort_fn, **probabilities)


def _faulty_labels(batches):
  return [np.asarray(batch['y']).tolist() for batch in batches]


class DropClientsTest(parameterized.TestCase):

  def test_without_a_probability_nothing_happens(self):
    plain, same = _cohort_fn()(3), cohort_fns.inject_faults(_cohort_fn())(3)
    self.assertEqual(same.client_ids, plain.client_ids)
    self.assertEmpty(same.dropped_out)
    self.assertEmpty(same.step_limits)

  def test_every_client_drops_out_with_the_probability(self):
    found = _many(drop_clients=0.3)(0)
    # Within four standard deviations.
    self.assertBetween(len(found.dropped_out), 242, 358)
    self.assertLen(found, 1000 - len(found.dropped_out))
    self.assertCountEqual(
        [*found.client_ids, *found.dropped_out], _many()(0).client_ids
    )

  def test_depends_on_seed_round_and_client_alone(self):
    cohort_fn = _many(drop_clients=0.5)
    first = cohort_fn(4)
    self.assertEqual(cohort_fn(4).client_ids, first.client_ids)
    self.assertNotEqual(cohort_fn(5).client_ids, first.client_ids)
    more = set(_many(drop_clients=0.6)(4).dropped_out)
    self.assertContainsSubset(first.dropped_out, more)

  def test_literal_drop_outs_so_that_no_release_changes_a_run(self):
    cohort_fn = cohort_fns.inject_faults(_cohort_fn(seed=1), drop_clients=0.5)
    self.assertEqual(
        [cohort_fn(round_index).client_ids for round_index in range(3)],
        [('eve',), ('bob',), ('bob', 'dot', 'eve')],
    )

  def test_changes_nothing_of_the_other_clients(self):
    plain = _cohort_fn()(2)
    found = cohort_fns.inject_faults(_cohort_fn(), drop_clients=0.5)(2)
    self.assertNotEmpty(found.dropped_out)
    for place, client_id in enumerate(found.client_ids):
      twin = plain.client_ids.index(client_id)
      self.assertEqual(
          _faulty_labels(found.batches(place)),
          _faulty_labels(plain.batches(twin)),
      )

  def test_cohort_may_be_empty(self):
    found = cohort_fns.inject_faults(_cohort_fn(), drop_clients=1.0)(0)
    self.assertEmpty(found)
    self.assertLen(found.dropped_out, 4)
    self.assertEmpty(list(found))
    self.assertEmpty(found.fetch().pack().starts)


class StragglersTest(parameterized.TestCase):

  def test_finish_any_number_of_steps_but_all(self):
    found = _many(straggler_fraction=0.4)(0)
    self.assertBetween(len(found.step_limits), 338, 462)
    counts = collections.Counter(found.step_limits.values())
    # They take one or two of three steps; half of them one.
    self.assertEqual(counts.keys(), {1, 2})
    self.assertBetween(counts[1] / sum(counts.values()), 0.4, 0.6)

  def test_train_on_their_first_batches(self):
    plain = _cohort_fn()(0)
    found = cohort_fns.inject_faults(_cohort_fn(), straggler_fraction=1.0)(0)
    self.assertEqual(found.step_limits.keys(), {'ann', 'dot', 'eve'})
    for place, client_id in enumerate(found.client_ids):
      batches = _faulty_labels(found.batches(place))
      self.assertEqual(
          batches, _faulty_labels(plain.batches(place))[: len(batches)]
      )
      self.assertLen(batches, found.step_limits.get(client_id, 0))
      self.assertLess(len(batches), plain.num_steps(place) or 1)

  def test_a_fetched_cohort_trains_as_another(self):
    faults = dict(drop_clients=0.3, straggler_fraction=0.6)

    def fetched(round_index):
      return _cohort_fn()(round_index).fetch()

    for round_index in range(3):
      packed, expected = (
          cohort_fns.inject_faults(fn, **faults)(round_index).fetch().pack()
          for fn in (fetched, _cohort_fn())
      )
      self.assertEqual(packed.starts.tolist(), expected.starts.tolist())
      for place in range(len(expected.starts)):
        np.testing.assert_array_equal(
            batching.examples_of(packed, place)['x'],
            batching.examples_of(expected, place)['x'],
        )

  def test_of_one_batch_drop_out(self):
    plan = batching.BatchPlan(4)
    found = cohort_fns.inject_faults(
        _cohort_fn(plan=plan), straggler_fraction=1.0
    )(0)
    self.assertEqual(found.client_ids, ('bob', 'eve'))
    self.assertEqual(found.dropped_out, ('ann', 'dot'))
    self.assertEqual(found.step_limits.keys(), {'eve'})

  def test_are_others_than_those_that_drop_out(self):
    both = _many(drop_clients=0.5, straggler_fraction=0.5)(0)
    slow = _many(straggler_fraction=0.5)(0).step_limits
    self.assertEqual(
        both.step_limits,
        {name: slow[name] for name in both.client_ids if name in slow},
    )
    self.assertBetween(len(both.step_limits), 180, 320)


class FaultsTest(parameterized.TestCase):

  def test_counts(self):
    found = cohort_fns.inject_faults(
        _cohort_fn(['ann', 'dot', 'eve', 'ann']), straggler_fraction=1.0
    )(0)
    round_end = loop_testing.round_end(cohort=found)
    self.assertEqual(
        cohort_fns.FaultCounts().measure(round_end),
        {'clients/num_dropped_out': 0, 'clients/num_stragglers': 4},
    )

  def test_counts_need_a_cohort(self):
    with self.assertRaisesRegex(TypeError, 'returns `Cohort`s, found list'):
      cohort_fns.FaultCounts().measure(loop_testing.round_end(cohort=[]))

  @parameterized.product(
      name=['drop_clients', 'straggler_fraction'],
      value=[-0.1, 1.1, float('nan')],
  )
  def test_no_probability_raises(self, name, value):
    with self.assertRaisesRegex(ValueError, rf'`{name}` must be in \[0, 1\]'):
      cohort_fns.inject_faults(_cohort_fn(), **{name: value})
