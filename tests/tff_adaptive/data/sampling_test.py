# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of sampling."""

from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive.data import client_arrays_testing
from tff_adaptive.data import sampling

_IDS = ['a', 'b', 'c', 'd', 'e']
_BUILDERS = (
    sampling.build_client_sampling,
    sampling.build_poisson_client_sampling,
)


class SamplingTest(parameterized.TestCase):

  def test_literal_cohorts_so_that_no_release_changes_a_run(self):
    cohort_fn = sampling.build_client_sampling(_IDS, 3, seed=1)
    self.assertEqual(
        [cohort_fn(i) for i in range(3)],
        [('b', 'a', 'c'), ('b', 'e', 'a'), ('e', 'b', 'c')],
    )

  def test_without_replacement_no_client_occurs_twice(self):
    cohort_fn = sampling.build_client_sampling(_IDS, 5, seed=1)
    for round_num in range(20):
      self.assertCountEqual(cohort_fn(round_num), _IDS)

  def test_with_replacement_clients_occur_twice_and_cohorts_may_be_large(self):
    cohort_fn = sampling.build_client_sampling(_IDS, 12, seed=1, replace=True)
    cohort = cohort_fn(0)
    self.assertLen(cohort, 12)
    self.assertLess(len(set(cohort)), 12)
    self.assertContainsSubset(cohort, _IDS)

  def test_every_client_is_equally_likely_at_every_place(self):
    cohort_fn = sampling.build_client_sampling(_IDS, 2, seed=3)
    counts = np.zeros([2, 5])
    for round_num in range(2000):
      for place, client_id in enumerate(cohort_fn(round_num)):
        counts[place, _IDS.index(client_id)] += 1
    # Five standard deviations of a binomial count with mean 400.
    np.testing.assert_allclose(counts, 400, atol=90)


class PoissonSamplingTest(parameterized.TestCase):

  def test_size_is_binomial_and_clients_are_independent(self):
    cohort_fn = sampling.build_poisson_client_sampling(_IDS, 2, seed=3)
    taken = np.zeros([4000, 5])
    for round_num in range(4000):
      cohort = cohort_fn(round_num)
      self.assertLen(set(cohort), len(cohort))
      taken[round_num, [_IDS.index(name) for name in cohort]] = 1
    # Five standard deviations of each.
    sizes = taken.sum(axis=1)
    self.assertAlmostEqual(sizes.mean(), 2.0, delta=5 * np.sqrt(1.2 / 4000))
    self.assertAlmostEqual(sizes.var(), 1.2, delta=0.15)
    np.testing.assert_allclose(taken.mean(axis=0), 0.4, atol=0.04)
    others = np.corrcoef(taken.T)[~np.eye(5, dtype=bool)]
    np.testing.assert_allclose(others, 0, atol=5 / np.sqrt(4000))
    self.assertAlmostEqual(np.mean(sizes == 0), 0.6**5, delta=0.03)

  def test_every_place_is_equally_likely(self):
    cohort_fn = sampling.build_poisson_client_sampling(_IDS, 5, seed=3)
    firsts = [cohort_fn(round_num)[0] for round_num in range(1000)]
    counts = [firsts.count(name) for name in _IDS]
    np.testing.assert_allclose(counts, 200, atol=65)


class SamplingOfBothKindsTest(parameterized.TestCase):

  @parameterized.parameters(*_BUILDERS)
  def test_is_a_pure_function_of_seed_and_round(self, build):
    forwards, backwards, other = (build(_IDS, 3, seed) for seed in (4, 4, 5))
    expected = [forwards(i) for i in range(10)]
    self.assertEqual([backwards(i) for i in range(9, -1, -1)], expected[::-1])
    self.assertEqual(forwards(np.int64(2)), expected[2])
    self.assertNotEqual([other(i) for i in range(10)], expected)


def _lazy_clients(sizes, read):
  clients = {
      str(i): {'x': 100 * i + np.arange(size)} for i, size in enumerate(sizes)
  }
  return client_arrays_testing.lazy(clients, read)


class SampleExamplesTest(parameterized.TestCase):

  def test_sample_is_seeded_and_keeps_rows_together(self):
    examples = {'x': np.arange(1000), 'y': 2 * np.arange(1000)}
    draws = [sampling.sample_examples(examples, 50, seed) for seed in (1, 1, 2)]
    for draw in draws:
      self.assertLen(set(draw['x'].tolist()), 50)
      self.assertEqual(draw['x'].tolist(), sorted(draw['x'].tolist()))
      np.testing.assert_array_equal(draw['y'], 2 * draw['x'])
    np.testing.assert_array_equal(draws[0]['x'], draws[1]['x'])
    self.assertNotEqual(draws[0]['x'].tolist(), draws[2]['x'].tolist())
    self.assertGreater(np.ptp(draws[0]['x']), 500)

  @parameterized.parameters(3, 4)
  def test_all_are_taken_if_there_are_not_more(self, num_examples):
    examples = {'x': np.arange(3)}
    found = sampling.sample_examples(examples, num_examples, seed=1)
    self.assertEqual(found['x'].tolist(), [0, 1, 2])

  def test_no_more_clients_are_read_than_needed(self):
    sizes = [5, 0, 4, 6, 5, 4]
    read = []
    source = _lazy_clients(sizes, read)
    found = sampling.sample_client_examples(source, 7, seed=3)
    used = [name for name in read if sizes[int(name)]]
    self.assertLen(used, 2)
    first = sizes[int(used[0])]
    expected = [
        *(100 * int(used[0]) + np.arange(first)),
        *(100 * int(used[1]) + np.arange(7 - first)),
    ]
    self.assertEqual(found['x'].tolist(), expected)
    again = sampling.sample_client_examples(source, 7, seed=3)
    self.assertEqual(again['x'].tolist(), expected)

  def test_clients_with_fewer_examples_give_all(self):
    source = _lazy_clients([2, 1], [])
    found = sampling.sample_client_examples(source, 9, seed=1)
    self.assertCountEqual(found['x'].tolist(), [0, 1, 100])

  def test_seed_decides_which_clients(self):
    source = _lazy_clients([1] * 50, [])
    first, second = (
        sampling.sample_client_examples(source, 10, seed)['x']
        for seed in (1, 2)
    )
    self.assertNotEqual(sorted(first), sorted(second))


def _numbered_clients(sizes):
  """Returns lazy clients with numbered examples, and a record of reads."""
  starts = dict(zip(sizes, np.cumsum([0, *sizes.values()])))
  clients = {
      name: {'x': starts[name] + np.arange(size)}
      for name, size in sizes.items()
  }
  was_read = []
  source = client_arrays_testing.lazy(clients, was_read, client_sizes=sizes)
  return source, was_read


class SampleExamplesEvenlyTest(parameterized.TestCase):

  def _sample(self, source, num_examples, seed=1, name='test'):
    return sampling.sample_examples_evenly(source, num_examples, seed, name)[
        'x'
    ]

  def test_few_clients_are_read_and_examples_come_from_many(self):
    source, was_read = _numbered_clients({str(i): 20 for i in range(5000)})
    sample = self._sample(source, 100)
    self.assertLen(set(sample), 100)
    # Fifty clients have ten times as many examples.
    self.assertBetween(len(was_read), 35, 50)
    self.assertLen(set(was_read), len(was_read))
    self.assertEqual({str(i) for i in sample // 20}, set(was_read))

  def test_all_examples_where_there_are_no_more(self):
    sizes = {'a': 3, 'none': 0, 'b': 4}
    for num_examples in (7, 8, 1000):
      source, _ = _numbered_clients(sizes)
      sample = self._sample(source, num_examples)
      np.testing.assert_array_equal(np.sort(sample), np.arange(7))
    self.assertEmpty(self._sample(_numbered_clients({'a': 0})[0], 3))

  def test_every_example_has_the_same_chance(self):
    sizes = {str(i): 1 + 9 * (i % 2) for i in range(30)}
    source, _ = _numbered_clients(sizes)
    num_draws, num_examples = 400, 4
    counts = np.zeros(source.total_examples)
    for seed in range(num_draws):
      counts[self._sample(source, num_examples, seed)] += 1
    expected = num_draws * num_examples / source.total_examples
    large = np.repeat([size > 1 for size in sizes.values()], [*sizes.values()])
    # Within three deviations of the mean of 15 small clients' examples.
    self.assertAlmostEqual(counts[large].mean(), expected, delta=0.6)
    self.assertAlmostEqual(counts[~large].mean(), expected, delta=2.5)

  def test_seed_and_keys_decide(self):
    source, _ = _numbered_clients({str(i): 5 for i in range(200)})
    first = self._sample(source, 50)
    np.testing.assert_array_equal(first, self._sample(source, 50))
    for other in (
        self._sample(source, 50, seed=2),
        self._sample(source, 50, name='validation'),
        self._sample(source, 50, name=3),
    ):
      self.assertLess(len(set(first) & set(other)), 25)
