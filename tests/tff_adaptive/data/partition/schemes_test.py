# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of schemes."""

import functools

from absl.testing import parameterized
import numpy as np

from tests import case_testing
from tests.tff_adaptive.data.partition import partition_testing
from tff_adaptive.data import partition

_LABELS = np.arange(200) % 10
_COARSE = _LABELS // 5
_THREE = np.repeat([0, 1, 2], 4)
_lists = partition_testing.as_lists
_per_client = functools.partial(partition.dirichlet_per_client, _THREE, seed=1)


class LiteralTest(partition_testing.PartitionTestCase):

  @case_testing.named(
      iid=(partition.iid(7, 3, seed=1), [1, 5, 0], [6, 3], [2, 4]),
      shards=(
          partition.shards([2, 0, 1, 0, 2, 1, 0, 1], 2, 2, seed=1),
          [6, 7, 5, 2],
          [4, 1, 0, 3],
      ),
      per_client=(
          _per_client(num_clients=3, alpha=0.3),
          [3, 1, 0, 2],
          [7, 5, 11, 4],
          [6, 10, 9, 8],
      ),
      with_replacement=(
          _per_client(
              num_clients=2,
              alpha=0.3,
              with_replacement=True,
              examples_per_client=6,
          ),
          [1, 6, 3, 3, 4, 6],
          [7, 8, 8, 9, 4, 10],
      ),
      per_class=(
          partition.dirichlet_per_class(_THREE, 3, 0.5, seed=1),
          [4, 10],
          [7, 6, 11, 2, 1],
          [8, 3, 5, 0, 9],
      ),
      pachinko=(
          partition.pachinko_allocation(
              _THREE, np.repeat([0, 0, 1], 4), 3, seed=1
          ),
          [8, 9, 11, 10],
          [7, 6, 4, 3],
          [5, 0, 1, 2],
      ),
  )
  def test_no_release_changes_a_run(self, parts, *rows):
    ids = ['client_000', 'client_001', 'client_002']
    self.assertEqual(_lists(parts), dict(zip(ids, rows)))


class SchemesTest(partition_testing.PartitionTestCase):

  @case_testing.named(
      with_replacement=(
          'dirichlet_with_replacement',
          lambda: partition.dirichlet_per_client(
              _LABELS, 4, 0.3, 1, with_replacement=True
          ),
      ),
      without_replacement=(
          'dirichlet_without_replacement',
          lambda: partition.dirichlet_per_client(_LABELS, 4, 0.3, 1),
      ),
      per_class=(
          'dirichlet_per_class',
          lambda: partition.dirichlet_per_class(
              _LABELS, 4, 0.3, 1, min_size=9, cap=True
          ),
      ),
      shards=('shards', lambda: partition.shards(_LABELS, 4, 3, 1)),
      iid=('iid', lambda: partition.iid(200, 4, 1)),
      pachinko=(
          'pachinko',
          lambda: partition.pachinko_allocation(
              _LABELS, _COARSE, 4, 1, coarse_alpha=0.3, fine_alpha=2.0
          ),
      ),
  )
  def test_is_the_function_of_that_name(self, scheme, call):
    parts = partition.by_scheme(
        scheme,
        _LABELS,
        4,
        1,
        alpha=0.3,
        shards_per_client=3,
        min_size=9,
        cap=True,
        coarse_labels=_COARSE,
        fine_alpha=2.0,
    )
    self.assertEqual(_lists(parts), _lists(call()))

  def test_every_scheme_runs_by_default(self):
    for scheme in partition.SCHEMES:
      self.assertLen(partition.by_scheme(scheme, _LABELS, 4, 1), 4)
    for scheme in partition.COARSE_SCHEMES:
      parts = partition.by_scheme(scheme, _LABELS, 4, 1, coarse_labels=_COARSE)
      self.assertLen(parts, 4)

  @parameterized.parameters(*partition.SCHEMES)
  def test_seed_decides(self, scheme):
    self.assert_seed_decides(
        lambda seed: partition.by_scheme(scheme, _LABELS, 5, seed)
    )

  @parameterized.parameters(
      ('7', [7, 7, 7]), (7, [7, 7, 7]), ([1, 2, 3], [1, 2, 3])
  )
  def test_sizes(self, given, expected):
    for scheme in ('iid', 'dirichlet_without_replacement'):
      parts = partition.by_scheme(
          scheme, _LABELS, 3, 1, examples_per_client=given
      )
      self.assertEqual([len(rows) for rows in parts.values()], expected)

  def test_range_of_sizes(self):
    parts = partition.by_scheme(
        'iid', _LABELS, 3, 1, examples_per_client='10-50'
    )
    np.testing.assert_array_equal(
        [len(rows) for rows in parts.values()],
        partition.uniform_sizes(3, 10, 50, 1),
    )


class IidTest(partition_testing.PartitionTestCase):

  @parameterized.parameters((100, 7), (5, 5), (3, 1), (2, 4))
  def test_every_example_is_in_exactly_one_client(self, size, num_clients):
    parts = partition.iid(size, num_clients, seed=2)
    self.assertLen(parts, num_clients)
    self.assert_divides(parts, size)
    self.assert_sizes_differ_by_at_most(parts, 1)

  def test_sizes_of_the_callers(self):
    parts = partition.iid(10, 3, seed=1, examples_per_client=[4, 1, 2])
    self.assertEqual([len(rows) for rows in parts.values()], [4, 1, 2])
    self.assertLen(set(np.concatenate(list(parts.values()))), 7)


class ShardsTest(partition_testing.PartitionTestCase):

  @parameterized.parameters((100, 2), (7, 3), (1, 1), (1000, 1), (1, 1000))
  def test_every_row_is_in_exactly_one_client(self, num_clients, each):
    labels = np.arange(1000) % 10
    parts = partition.shards(labels, num_clients, each, seed=3)
    self.assertLen(parts, num_clients)
    self.assert_divides(parts, 1000)
    self.assert_sizes_differ_by_at_most(parts, each)

  def test_two_shards_hold_two_classes_at_most(self):
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), 60))
    parts = partition.shards(labels, 100, 2, seed=1)
    classes = [len(set(labels[rows])) for rows in parts.values()]
    self.assertEqual(set(classes), {1, 2})
    self.assertEqual({len(rows) for rows in parts.values()}, {6})


class ByNaturalIdTest(partition_testing.PartitionTestCase):

  @case_testing.named(
      strings=(['b', 'a', 'b'], {'a': [1], 'b': [0, 2]}),
      objects=(np.array(['b', 'a'], object), {'a': [1], 'b': [0]}),
      numpys_strings=(
          np.array(['b', 'a'], np.dtypes.StringDType()),
          {'a': [1], 'b': [0]},
      ),
      integers=([10, 9, -1, 9], {'-1': [2], '9': [1, 3], '10': [0]}),
  )
  def test_groups_rows(self, ids, expected):
    parts = partition.by_natural_id(ids)
    self.assertEqual(list(parts), list(expected))
    self.assertEqual(_lists(parts), expected)
    self.assertEqual({rows.dtype for rows in parts.values()}, {np.dtype('i8')})

  def test_every_row_is_in_exactly_one_client(self):
    ids = np.random.default_rng(1).integers(0, 40, 1000)
    parts = partition.by_natural_id(ids)
    self.assert_divides(parts, 1000)
    for name, rows in parts.items():
      self.assertEqual(set(ids[rows]), {int(name)})
      self.assertTrue(np.all(np.diff(rows) > 0))


class SizesTest(parameterized.TestCase):

  def test_literal_sizes_so_that_no_release_changes_a_run(self):
    self.assertEqual(partition.equal_sizes(4, 10).tolist(), [3, 3, 2, 2])
    self.assertEqual(
        partition.uniform_sizes(5, 100, 500, seed=1).tolist(),
        [386, 232, 407, 372, 202],
    )
    self.assertEqual(
        partition.skewed_sizes(5, 1000, seed=1).tolist(),
        [443, 60, 214, 245, 38],
    )

  def test_uniform_sizes_reach_both_ends_evenly(self):
    sizes = partition.uniform_sizes(3000, 2, 4, seed=1)
    np.testing.assert_allclose(np.bincount(sizes)[2:], 1000, atol=100)
    np.testing.assert_array_equal(partition.uniform_sizes(3, 7, 7, 1), [7] * 3)

  def test_uniform_sizes_do_not_depend_on_the_number_of_clients(self):
    few = partition.uniform_sizes(10, 100, 500, seed=1)
    many = partition.uniform_sizes(100, 100, 500, seed=1)
    np.testing.assert_array_equal(few, many[:10])

  @parameterized.product(
      num_clients=[1, 3, 1000], sigma=[0.0, 1.0, 30.0], min_size=[1, 7]
  )
  def test_skewed_sizes_add_up(self, num_clients, sigma, min_size):
    sizes = partition.skewed_sizes(
        num_clients, 7013, seed=2, sigma=sigma, min_size=min_size
    )
    self.assertEqual(sizes.sum(), 7013)
    self.assertEqual(sizes.dtype, np.int64)
    self.assertGreaterEqual(sizes.min(), min_size)

  def test_sigma_decides_how_unequal(self):
    even = partition.skewed_sizes(10, 105, seed=1, sigma=0.0)
    self.assertLessEqual(even.max() - even.min(), 1)
    mild, wild = (
        np.sort(partition.skewed_sizes(20_000, 10**7, seed=1, sigma=sigma))
        for sigma in (0.5, 1.0)
    )
    self.assertLess(mild[-2000:].sum(), wild[-2000:].sum())
    # The share of the largest tenth of a log-normal is Phi(sigma - z_0.9).
    self.assertAlmostEqual(wild[-2000:].sum() / 10**7, 0.389, delta=0.02)
