# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Tests of the sizes of clients."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tff_adaptive.data import partition


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

  def test_partitions_take_them(self):
    labels = np.zeros([1000], np.int32)
    for sizes in (
        partition.equal_sizes(10, 990),
        partition.uniform_sizes(10, 1, 100, seed=1),
        partition.skewed_sizes(10, 1000, seed=1),
    ):
      for parts in (
          partition.iid(1000, 10, 1, examples_per_client=sizes),
          partition.dirichlet_per_client(
              labels, 10, 0.1, 1, examples_per_client=sizes
          ),
      ):
        found = [len(rows) for rows in parts.values()]
        np.testing.assert_array_equal(found, sizes)

  @parameterized.named_parameters(
      ('equal', lambda: partition.equal_sizes(3, 2), '`total`.* 3 .*found 2'),
      (
          'clients',
          lambda: partition.uniform_sizes(0, 1, 2, 1),
          '`num_clients`.* 0',
      ),
      ('low', lambda: partition.uniform_sizes(3, 0, 2, 1), '`low`.* 0'),
      (
          'high',
          lambda: partition.uniform_sizes(3, 5, 2, 1),
          '`high` must be at least `low` = 5, found 2',
      ),
      (
          'skewed_total',
          lambda: partition.skewed_sizes(3, 20, 1, min_size=10),
          '`total` must be at least 30 for 3 clients, found 20',
      ),
      (
          'sigma',
          lambda: partition.skewed_sizes(3, 20, 1, sigma=-1.0),
          '`sigma`.* -1.0',
      ),
      ('seed', lambda: partition.skewed_sizes(3, 20, -1), '`seed`'),
  )
  def test_bad_number_raises(self, call, message):
    with self.assertRaisesRegex(ValueError, message):
      call()

  def test_float_raises(self):
    with self.assertRaisesRegex(TypeError, '`total`.*20.0'):
      partition.skewed_sizes(3, 20.0, 1)
    with self.assertRaisesRegex(TypeError, '`high`.*2.5'):
      partition.uniform_sizes(3, 1, 2.5, 1)


if __name__ == '__main__':
  absltest.main()
