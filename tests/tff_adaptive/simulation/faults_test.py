# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of faults of clients."""

import collections

from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive.simulation import loop_testing
from tests.tff_adaptive.simulation import task_testing
from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort
from tff_adaptive.simulation import cohorts

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

  return cohorts.inject_faults(cohort_fn, **probabilities)


def _faulty_labels(batches):
  return [np.asarray(batch['y']).tolist() for batch in batches]


class DropClientsTest(parameterized.TestCase):

  def test_without_a_probability_nothing_happens(self):
    plain, same = _cohort_fn()(3), cohorts.inject_faults(_cohort_fn())(3)
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
    cohort_fn = cohorts.inject_faults(_cohort_fn(seed=1), drop_clients=0.5)
    self.assertEqual(
        [cohort_fn(round_index).client_ids for round_index in range(3)],
        [('eve',), ('bob',), ('bob', 'dot', 'eve')],
    )

  def test_changes_nothing_of_the_other_clients(self):
    plain = _cohort_fn()(2)
    found = cohorts.inject_faults(_cohort_fn(), drop_clients=0.5)(2)
    self.assertNotEmpty(found.dropped_out)
    for place, client_id in enumerate(found.client_ids):
      twin = plain.client_ids.index(client_id)
      self.assertEqual(
          _faulty_labels(found.batches(place)),
          _faulty_labels(plain.batches(twin)),
      )

  def test_cohort_may_be_empty(self):
    found = cohorts.inject_faults(_cohort_fn(), drop_clients=1.0)(0)
    self.assertEmpty(found)
    self.assertLen(found.dropped_out, 4)
    self.assertEmpty(list(found))
    self.assertEmpty(found.fetch().pack().starts)

  def test_clients_without_ids_are_refused(self):
    cohort_fn = cohorts.inject_faults(lambda _: [[]], drop_clients=0.1)
    with self.assertRaisesRegex(TypeError, '`inject_faults`.*found list'):
      cohort_fn(0)


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
    found = cohorts.inject_faults(_cohort_fn(), straggler_fraction=1.0)(0)
    self.assertEqual(found.step_limits.keys(), {'ann', 'dot', 'eve'})
    for place, client_id in enumerate(found.client_ids):
      batches = _faulty_labels(found.batches(place))
      self.assertEqual(
          batches, _faulty_labels(plain.batches(place))[: len(batches)]
      )
      self.assertLen(batches, found.step_limits.get(client_id, 0))
      self.assertLess(len(batches), plain.num_steps(place) or 1)

  def test_a_fetched_cohort_trains_as_another(self):
    shares = dict(drop_clients=0.3, straggler_fraction=0.6)

    def fetched(round_index):
      return _cohort_fn()(round_index).fetch()

    for round_index in range(3):
      packed, expected = (
          cohorts.inject_faults(fn, **shares)(round_index).fetch().pack()
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
    found = cohorts.inject_faults(
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
    found = cohorts.inject_faults(
        _cohort_fn(['ann', 'dot', 'eve', 'ann']), straggler_fraction=1.0
    )(0)
    round_end = loop_testing.round_end(cohort=found)
    self.assertEqual(
        cohorts.FaultCounts().measure(round_end),
        {'clients/num_dropped_out': 0, 'clients/num_stragglers': 4},
    )
