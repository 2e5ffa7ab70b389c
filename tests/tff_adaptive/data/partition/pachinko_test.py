# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of Pachinko allocation."""

from absl.testing import parameterized
import numpy as np

from tests.tff_adaptive.data.partition import partition_testing
from tff_adaptive.data import partition

# Like CIFAR-100: class c belongs to coarse class c % 20.
_LABELS = np.repeat(np.arange(100, dtype=np.int32), 20)
_COARSE = _LABELS % 20


def _pachinko(num_clients=20, seed=1, **kwargs):
  return partition.pachinko_allocation(
      _LABELS, _COARSE, num_clients, seed, **kwargs
  )


class PachinkoTest(partition_testing.PartitionTestCase):

  @parameterized.product(
      num_clients=[1, 7, 200],
      coarse_alpha=[1e-4, 0.1, 1e4],
      fine_alpha=[1e-4, 10.0],
  )
  def test_every_example_is_in_exactly_one_client(
      self, num_clients, coarse_alpha, fine_alpha
  ):
    parts = _pachinko(
        num_clients, coarse_alpha=coarse_alpha, fine_alpha=fine_alpha
    )
    self.assert_divides(parts, 2000)
    self.assert_sizes_differ_by_at_most(parts, 1)

  def test_rows_may_be_left_over_but_not_shared(self):
    parts = _pachinko(3, examples_per_client=[800, 1, 30])
    self.assertEqual([len(r) for r in parts.values()], [800, 1, 30])
    self.assertLen(set(np.concatenate(list(parts.values()))), 831)

  def test_mixes_have_the_variances_of_the_dirichlet(self):
    # So many rows that no class runs out.
    labels = np.repeat(np.arange(8), 1000)
    first_clients = [
        partition.pachinko_allocation(
            labels,
            labels // 4,
            1,
            seed,
            coarse_alpha=0.5,
            fine_alpha=2.0,
            examples_per_client=1000,
        )['client_000']
        for seed in range(300)
    ]
    counts = np.stack(
        [np.bincount(labels[rows], minlength=8) for rows in first_clients]
    )
    coarse = counts.reshape(-1, 2, 4).sum(axis=2)
    # Of a component of Dirichlet(a * ones(k)): (k - 1) / k^2 / (k * a + 1).
    np.testing.assert_allclose((coarse / 1000).var(), 0.125, rtol=0.1)
    is_many = coarse[:, 0] > 300
    fine = counts[is_many, :4] / coarse[is_many, :1]
    np.testing.assert_allclose(fine.var(), 3 / 16 / 9, rtol=0.15)

  def test_concentrations_say_how_many_classes_a_client_has(self):
    def mean_classes(**kwargs):
      parts = _pachinko(20, examples_per_client=100, **kwargs)
      return (
          np.mean([len(set(_COARSE[rows])) for rows in parts.values()]),
          np.mean([len(set(_LABELS[rows])) for rows in parts.values()]),
      )

    few_coarse, some_fine = mean_classes()
    self.assertBetween(few_coarse, 2.0, 7.0)
    self.assertGreater(some_fine, 3 * few_coarse)
    few_coarse, few_fine = mean_classes(coarse_alpha=1e-3, fine_alpha=1e-3)
    self.assertBetween(few_coarse, 1.0, 1.5)
    # A class has 20 rows and the client 100.
    self.assertBetween(few_fine, 5.0, 8.0)
    self.assertGreater(mean_classes(coarse_alpha=1e4)[0], 19.0)

  def test_an_empty_class_is_replaced_by_one_of_its_coarse_class(self):
    # One coarse class at a time: 30 rows are one whole coarse class each.
    labels = np.repeat(np.arange(6), 10)
    parts = partition.pachinko_allocation(
        labels, labels // 3, 2, 3, coarse_alpha=1e-4
    )
    for rows in parts.values():
      self.assertLen(set(labels[rows] // 3), 1)
      np.testing.assert_array_equal(np.bincount(labels[rows] % 3), [10] * 3)

  def test_is_a_function_of_the_seed(self):
    self.assert_seed_decides(lambda seed: _pachinko(seed=seed))
    # The number of the clients after it does not change a client.
    many = _pachinko(100, examples_per_client=[100] + [10] * 99)
    np.testing.assert_array_equal(many['client_000'], _pachinko()['client_000'])
