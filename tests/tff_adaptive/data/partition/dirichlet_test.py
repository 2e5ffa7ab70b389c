# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the partitions by a Dirichlet distribution."""

from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive.data.partition import partition_testing
from tff_adaptive.data import partition
from tff_adaptive.data import random_streams

_LABELS = np.repeat(np.arange(10, dtype=np.int32), 100)
_lists = partition_testing.as_lists


def _class_counts(rows):
  return np.bincount(_LABELS[rows], minlength=10)


class DirichletTest(parameterized.TestCase):

  @parameterized.parameters(
      'dirichlet_with_replacement',
      'dirichlet_without_replacement',
      'dirichlet_per_class',
  )
  def test_rows_of_a_client_are_not_sorted_by_class(self, scheme):
    parts = partition.by_scheme(scheme, _LABELS, 2, 1, alpha=1e3)
    labels = _LABELS[parts['client_000']]
    self.assertGreater(np.count_nonzero(np.diff(labels)), 300)


class DirichletPerClientTest(partition_testing.PartitionTestCase):

  @parameterized.product(
      num_clients=[1, 7, 1000], alpha=[1e-4, 0.01, 0.1, 1.0, 1e4]
  )
  def test_without_replacement_every_example_is_in_exactly_one_client(
      self, num_clients, alpha
  ):
    parts = partition.dirichlet_per_client(_LABELS, num_clients, alpha, seed=3)
    self.assert_divides(parts, 1000)
    self.assert_sizes_differ_by_at_most(parts, 1)

  def test_without_replacement_rows_may_be_left_over_but_not_shared(self):
    parts = partition.dirichlet_per_client(
        _LABELS, 3, 0.1, seed=3, examples_per_client=[200, 1, 30]
    )
    self.assertEqual([len(rows) for rows in parts.values()], [200, 1, 30])
    self.assertLen(set(np.concatenate(list(parts.values()))), 231)

  @parameterized.parameters(True, False)
  def test_small_alpha_gives_few_classes_and_large_alpha_all(self, replace):
    def mean_classes(alpha):
      parts = partition.dirichlet_per_client(
          _LABELS,
          20,
          alpha,
          seed=1,
          examples_per_client=50,
          with_replacement=replace,
      )
      return np.mean([(_class_counts(r) > 0).sum() for r in parts.values()])

    self.assertLess(mean_classes(0.01), 2.0)
    self.assertBetween(mean_classes(1.0), 4.0, 9.0)
    self.assertGreater(mean_classes(1e4), 9.3)

  def test_mixes_have_the_variance_of_the_dirichlet(self):
    parts = partition.dirichlet_per_client(
        _LABELS,
        400,
        0.5,
        seed=1,
        examples_per_client=1000,
        with_replacement=True,
    )
    mixes = np.stack([_class_counts(r) / len(r) for r in parts.values()])
    # A component of Dirichlet(0.5 * ones(10)) has variance .1 * .9 / (5 + 1).
    np.testing.assert_allclose(mixes.mean(), 0.1, atol=1e-3)
    np.testing.assert_allclose(mixes.var(), 0.015, rtol=0.1)

  def test_with_replacement_counts_are_rounded_and_the_last_takes_the_rest(
      self,
  ):
    parts = partition.dirichlet_per_client(
        _LABELS, 50, 1.0, seed=5, examples_per_client=500, with_replacement=True
    )
    for i, rows in enumerate(parts.values()):
      mix = random_streams.stream(
          5, random_streams.PARTITION, 'dirichlet_per_client', i
      ).dirichlet(np.ones(10))
      counts = _class_counts(rows)
      np.testing.assert_array_equal(counts[:9], np.round(500 * mix)[:9])
      self.assertEqual(counts[9], max(500 - counts[:9].sum(), 0))
      self.assertBetween(len(rows), 500, 504)

  def test_with_replacement_rows_occur_twice_and_clients_are_independent(self):
    def draw(num_clients):
      return _lists(
          partition.dirichlet_per_client(
              _LABELS,
              num_clients,
              0.01,
              seed=5,
              examples_per_client=500,
              with_replacement=True,
          )
      )

    few, many = draw(3), draw(8)
    for client_id, rows in few.items():
      self.assertEqual(rows, many[client_id])
      self.assertLess(len(set(rows)), 500)

  def test_classes_are_the_values_that_occur(self):
    parts = partition.dirichlet_per_client([3, 3, 900, -1], 2, 1.0, seed=1)
    self.assertCountEqual(np.concatenate(list(parts.values())), range(4))

  def test_ids_are_numbered_so_that_they_sort_and_rows_are_int64(self):
    self.assertEqual(list(partition.iid(3, 2, 1)), ['client_000', 'client_001'])
    many = partition.dirichlet_per_client(np.zeros(1001, int), 1001, 1.0, 1)
    self.assertEqual(list(many), sorted(many))
    self.assertEqual(list(many)[-1], 'client_1000')
    self.assertEqual({rows.dtype for rows in many.values()}, {np.dtype('i8')})


class DirichletPerClassTest(partition_testing.PartitionTestCase):

  @parameterized.product(
      num_clients=[1, 7, 300], alpha=[1e-3, 0.1, 1e4], cap=[True, False]
  )
  def test_every_row_is_in_exactly_one_client(self, num_clients, alpha, cap):
    parts = partition.dirichlet_per_class(
        _LABELS, num_clients, alpha, seed=3, cap=cap
    )
    self.assertLen(parts, num_clients)
    self.assert_divides(parts, 1000)

  def test_small_alpha_gives_a_class_to_few_clients_and_large_to_all(self):
    def counts(alpha):
      parts = partition.dirichlet_per_class(_LABELS, 20, alpha, seed=1)
      return np.stack([_class_counts(rows) for rows in parts.values()])

    holders = (counts(0.01) > 0).sum(axis=0)
    self.assertLess(holders.mean(), 4.0)
    np.testing.assert_allclose(counts(1e7), 5, atol=1)

  def test_counts_are_cut_at_the_cumulative_shares(self):
    parts = partition.dirichlet_per_class(_LABELS, 4, 1.0, seed=5)
    counts = np.stack([_class_counts(rows) for rows in parts.values()])
    generator = random_streams.stream(
        5, random_streams.PARTITION, 'dirichlet_per_class', 0
    )
    for i in range(10):
      shares = generator.dirichlet(np.ones(4))
      cuts = np.floor(100 * np.cumsum(shares)[:-1])
      np.testing.assert_array_equal(np.cumsum(counts[:, i])[:-1], cuts)

  def test_min_size_holds_and_sizes_still_differ(self):
    sizes = [
        len(rows)
        for rows in partition.dirichlet_per_class(
            _LABELS, 20, 0.3, seed=2, min_size=10
        ).values()
    ]
    self.assertGreaterEqual(min(sizes), 10)
    self.assertGreater(max(sizes), 2 * min(sizes))

  def test_min_size_changes_nothing_where_it_holds_by_itself(self):
    first = partition.dirichlet_per_class(_LABELS, 5, 5.0, seed=2)
    again = partition.dirichlet_per_class(_LABELS, 5, 5.0, seed=2, min_size=5)
    self.assertEqual(_lists(first), _lists(again))

  def test_cap_gives_nothing_more_to_a_client_that_has_its_part(self):
    parts = partition.dirichlet_per_class(_LABELS, 5, 0.05, seed=4, cap=True)
    for rows in parts.values():
      before = np.cumsum(_class_counts(rows))[:-1]
      further = _class_counts(rows)[1:]
      self.assertEqual(further[before >= 200].sum(), 0)
    sizes = [len(rows) for rows in parts.values()]
    # The class that filled a client is its last: at most 100 beyond its part.
    self.assertLess(max(sizes), 300)
    uncapped = partition.dirichlet_per_class(_LABELS, 5, 0.05, seed=4)
    self.assertGreater(max(len(rows) for rows in uncapped.values()), 300)
