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
"""Tests of the partitions at random, by shards and by natural id."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tff_adaptive.data import partition


def _lists(parts):
  return {client_id: rows.tolist() for client_id, rows in parts.items()}


class IidTest(parameterized.TestCase):

  def test_literal_partition_so_that_no_release_changes_a_run(self):
    self.assertEqual(
        _lists(partition.iid(7, 3, seed=1)),
        {
            'client_000': [1, 5, 0],
            'client_001': [6, 3],
            'client_002': [2, 4],
        },
    )

  @parameterized.parameters((100, 7), (5, 5), (3, 1), (2, 4))
  def test_every_example_is_in_exactly_one_client(self, size, num_clients):
    parts = partition.iid(size, num_clients, seed=2)
    self.assertLen(parts, num_clients)
    np.testing.assert_array_equal(
        np.sort(np.concatenate(list(parts.values()))), np.arange(size)
    )
    sizes = [len(rows) for rows in parts.values()]
    self.assertLessEqual(max(sizes) - min(sizes), 1)

  def test_sizes_of_the_callers(self):
    parts = partition.iid(10, 3, seed=1, examples_per_client=[4, 1, 2])
    self.assertEqual([len(rows) for rows in parts.values()], [4, 1, 2])
    self.assertLen(set(np.concatenate(list(parts.values()))), 7)

  def test_too_many_examples_raises(self):
    with self.assertRaisesRegex(ValueError, 'need 12 examples.*found 10'):
      partition.iid(10, 3, seed=1, examples_per_client=4)

  def test_bad_number_raises(self):
    with self.assertRaisesRegex(ValueError, '`num_examples`.* 0'):
      partition.iid(0, 3, seed=1)
    with self.assertRaisesRegex(TypeError, '`num_clients`.*3.0'):
      partition.iid(10, 3.0, seed=1)


class ShardsTest(parameterized.TestCase):

  def test_literal_partition_so_that_no_release_changes_a_run(self):
    labels = [2, 0, 1, 0, 2, 1, 0, 1]
    self.assertEqual(
        _lists(partition.shards(labels, 2, 2, seed=1)),
        {'client_000': [6, 7, 5, 2], 'client_001': [4, 1, 0, 3]},
    )

  @parameterized.parameters((100, 2), (7, 3), (1, 1), (1000, 1), (1, 1000))
  def test_every_row_is_in_exactly_one_client(self, num_clients, each):
    labels = np.arange(1000) % 10
    parts = partition.shards(labels, num_clients, each, seed=3)
    self.assertLen(parts, num_clients)
    np.testing.assert_array_equal(
        np.sort(np.concatenate(list(parts.values()))), np.arange(1000)
    )
    sizes = [len(rows) for rows in parts.values()]
    self.assertLessEqual(max(sizes) - min(sizes), each)

  def test_two_shards_hold_two_classes_at_most(self):
    labels = np.random.default_rng(1).permutation(np.repeat(np.arange(10), 60))
    parts = partition.shards(labels, 100, 2, seed=1)
    classes = [len(set(labels[rows])) for rows in parts.values()]
    self.assertEqual(set(classes), {1, 2})
    self.assertEqual({len(rows) for rows in parts.values()}, {6})

  def test_seed_decides(self):
    labels = np.arange(50) % 10
    first, again, other = (
        _lists(partition.shards(labels, 5, 2, seed=seed)) for seed in (1, 1, 2)
    )
    self.assertEqual(first, again)
    self.assertNotEqual(first, other)

  @parameterized.named_parameters(
      ('labels', dict(labels=[0.5]), TypeError, '`labels`.*float64'),
      ('clients', dict(num_clients=0), ValueError, '`num_clients`.* 0'),
      (
          'shards',
          dict(shards_per_client=1.0),
          TypeError,
          '`shards_per_client`.*1.0',
      ),
      (
          'too_many',
          dict(shards_per_client=3),
          ValueError,
          r'`shards_per_client` must be at most 4, .* rows, found 6\.',
      ),
      ('seed', dict(seed=-1), ValueError, '`seed`'),
  )
  def test_bad_argument_raises(self, change, error, message):
    arguments = dict(labels=[0, 1, 0, 1], num_clients=2, shards_per_client=1)
    with self.assertRaisesRegex(error, message):
      partition.shards(**{'seed': 1, **arguments, **change})


class ByNaturalIdTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('strings', ['b', 'a', 'b'], {'a': [1], 'b': [0, 2]}),
      ('objects', np.array(['b', 'a'], object), {'a': [1], 'b': [0]}),
      ('integers', [10, 9, -1, 9], {'-1': [2], '9': [1, 3], '10': [0]}),
  )
  def test_groups_rows(self, ids, expected):
    parts = partition.by_natural_id(ids)
    self.assertEqual(list(parts), list(expected))
    self.assertEqual(_lists(parts), expected)
    self.assertEqual({rows.dtype for rows in parts.values()}, {np.dtype('i8')})

  def test_every_row_is_in_exactly_one_client(self):
    ids = np.random.default_rng(1).integers(0, 40, 1000)
    parts = partition.by_natural_id(ids)
    np.testing.assert_array_equal(
        np.sort(np.concatenate(list(parts.values()))), np.arange(1000)
    )
    for name, rows in parts.items():
      self.assertEqual(set(ids[rows]), {int(name)})
      self.assertTrue(np.all(np.diff(rows) > 0))

  @parameterized.named_parameters(
      ('floats', [1.0], TypeError, 'integers or strings, found float64'),
      ('mixed', np.array(['a', 1], object), TypeError, 'found object'),
      ('empty', [], ValueError, r'`ids` must be a vector.*\(0,\)'),
      ('matrix', [[1]], ValueError, r'`ids` must be a vector.*\(1, 1\)'),
  )
  def test_bad_ids_raise(self, ids, error, message):
    with self.assertRaisesRegex(error, message):
      partition.by_natural_id(ids)


if __name__ == '__main__':
  absltest.main()
