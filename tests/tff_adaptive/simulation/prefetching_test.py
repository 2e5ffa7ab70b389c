# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of cohorts that are prepared while rounds run."""

import threading

from absl.testing import absltest
import numpy as np

from tff_adaptive.data import batching
from tff_adaptive.data import client_data
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.simulation import cohorts


class CohortPrefetcherTest(absltest.TestCase):

  def test_reads_one_round_ahead_in_another_thread(self):
    made = {}
    is_made = {i: threading.Event() for i in range(3)}

    def cohort_fn(round_index):
      made[round_index] = threading.current_thread()
      is_made[round_index].set()
      return f'cohort {round_index}'

    with cohorts.CohortPrefetcher(cohort_fn, total_rounds=3) as prefetcher:
      self.assertEmpty(made)
      self.assertEqual(prefetcher.get(0), 'cohort 0')
      self.assertTrue(is_made[1].wait(10))
      self.assertNotIn(2, made)
      self.assertEqual(prefetcher.get(1), 'cohort 1')
      self.assertEqual(prefetcher.get(2), 'cohort 2')
    self.assertCountEqual(made, [0, 1, 2])
    self.assertNotIn(threading.current_thread(), made.values())
    self.assertGreater(prefetcher.seconds_waited, 0)

  def test_nothing_is_read_beyond_the_last_round(self):
    made = []
    with cohorts.CohortPrefetcher(made.append, total_rounds=1) as one:
      one.get(0)
    self.assertEqual(made, [0])

  def test_starts_anywhere(self):
    with cohorts.CohortPrefetcher(lambda i: i, 10) as prefetcher:
      self.assertEqual([prefetcher.get(i) for i in (5, 6, 2)], [5, 6, 2])

  def test_an_error_comes_with_its_round(self):
    def cohort_fn(round_index):
      if round_index == 1:
        raise ValueError('no such client')
      return round_index

    with cohorts.CohortPrefetcher(cohort_fn, 3) as prefetcher:
      self.assertEqual(prefetcher.get(0), 0)
      with self.assertRaisesRegex(ValueError, 'no such client'):
        prefetcher.get(1)

  def test_no_thread_is_left(self):
    before = set(threading.enumerate())
    with cohorts.CohortPrefetcher(lambda i: i, 3) as prefetcher:
      prefetcher.get(0)
      new = set(threading.enumerate()) - before
      self.assertNotEmpty(new)
    self.assertFalse(any(thread.is_alive() for thread in new))

  def test_cohorts_have_been_read(self):
    source = client_data.PackedClientArrays.from_clients(
        {'a': {'x': np.arange(3.0)}}
    )

    def cohort_fn(round_index):
      return cohort_lib.Cohort(
          source, ['a'], round_index, 0, batching.BatchPlan(2)
      )

    with cohorts.CohortPrefetcher(cohort_fn, 1) as prefetcher:
      fetched = prefetcher.get(0)
    self.assertIsNotNone(fetched.packed)
    self.assertEqual(
        [batch['x'].tolist() for batch in fetched.batches(0)],
        [batch['x'].tolist() for batch in cohort_fn(0).batches(0)],
    )
