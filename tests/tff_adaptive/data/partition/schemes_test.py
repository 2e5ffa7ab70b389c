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
"""Tests of the partitions by name."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tff_adaptive.data import partition

_LABELS = np.arange(200) % 10
_COARSE = _LABELS // 5


def _lists(parts):
  return {client_id: rows.tolist() for client_id, rows in parts.items()}


class SchemesTest(parameterized.TestCase):

  @parameterized.named_parameters(
      (
          'with_replacement',
          'dirichlet_with_replacement',
          lambda: partition.dirichlet_per_client(
              _LABELS, 4, 0.3, 1, with_replacement=True
          ),
      ),
      (
          'without_replacement',
          'dirichlet_without_replacement',
          lambda: partition.dirichlet_per_client(_LABELS, 4, 0.3, 1),
      ),
      (
          'per_class',
          'dirichlet_per_class',
          lambda: partition.dirichlet_per_class(
              _LABELS, 4, 0.3, 1, min_size=9, cap=True
          ),
      ),
      ('shards', 'shards', lambda: partition.shards(_LABELS, 4, 3, 1)),
      ('iid', 'iid', lambda: partition.iid(200, 4, 1)),
      (
          'pachinko',
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

  def test_every_scheme_has_a_test_and_runs_by_default(self):
    for scheme in partition.SCHEMES:
      self.assertLen(partition.by_scheme(scheme, _LABELS, 4, 1), 4)
    for scheme in partition.COARSE_SCHEMES:
      parts = partition.by_scheme(scheme, _LABELS, 4, 1, coarse_labels=_COARSE)
      self.assertLen(parts, 4)

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

  @parameterized.named_parameters(
      ('scheme', dict(scheme='random'), "`partition`.*iid, found 'random'"),
      ('coarse', dict(scheme='pachinko'), "`partition`.*iid, found 'pachinko'"),
      ('words', dict(examples_per_client='many'), "'100-500', found 'many'"),
      ('open', dict(examples_per_client='5-'), "'100-500', found '5-'"),
      ('zero', dict(examples_per_client='0'), '`examples_per_client`.* 0'),
      ('reversed', dict(examples_per_client='9-5'), '`high`.*9, found 5'),
      (
          'sizes_of_shards',
          dict(scheme='shards', examples_per_client='5'),
          "`examples_per_client` cannot .*'shards', which divides all rows",
      ),
      (
          'sizes_of_classes',
          dict(scheme='dirichlet_per_class', examples_per_client='5'),
          "cannot be given for `partition`='dirichlet_per_class'",
      ),
  )
  def test_bad_argument_raises(self, change, message):
    arguments = dict(scheme='iid', labels=_LABELS, num_clients=2, seed=1)
    with self.assertRaisesRegex(ValueError, message):
      partition.by_scheme(**{**arguments, **change})


if __name__ == '__main__':
  absltest.main()
