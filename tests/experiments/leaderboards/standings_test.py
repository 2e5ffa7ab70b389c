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
"""Tests of verdicts against a margin."""

import math

from absl.testing import absltest

from experiments.leaderboards import standings

_Verdict = standings.Verdict
_INF = math.inf


class StandingsTest(absltest.TestCase):

  def test_ranks_by_mean_and_pairs_by_seed(self):
    # The seeds differ by 20 points, and the methods by 0.1 in each.
    found = standings.rank(
        {
            'a': {0: 70.0, 1: 80.0, 2: 90.0},
            'b': {0: 70.1, 1: 80.1, 2: 90.1},
            'c': {0: 60.0, 1: 70.1, 2: 79.9},
            'd': {0: 70.0, 1: -_INF, 2: 90.0},
        },
        margin=0.5,
    )
    self.assertEqual([s.method for s in found], ['b', 'a', 'c', 'd'])
    self.assertEqual(
        [s.verdict for s in found],
        [_Verdict.BEST, _Verdict.AS_GOOD, _Verdict.WORSE, _Verdict.DIVERGED],
    )
    self.assertAlmostEqual(found[1].mean, 80.0)
    self.assertAlmostEqual(found[1].std, 10.0)
    self.assertAlmostEqual(found[1].difference.low, -0.1)
    # Differences -10.1, -10.0, -10.2: error 0.1 / sqrt(3), t 4.3027.
    self.assertAlmostEqual(found[2].difference.high, -9.8516, places=4)
    self.assertIsNone(found[3].std)
    self.assertEqual(set(found[3].difference), {-_INF})

  def test_of_methods_that_diverged_none_is_the_best(self):
    found = standings.rank(
        {
            'a': {0: -_INF, 1: -_INF, 2: -_INF},
            'b': {0: -_INF, 1: 70.0, 2: 70.0},
            'c': {0: 80.0, 1: 80.0, 2: -_INF},
        },
        margin=0.5,
    )
    self.assertEqual([s.method for s in found], ['c', 'b', 'a'])
    self.assertEqual([s.num_diverged for s in found], [1, 1, 3])
    for standing in found:
      self.assertEqual(standing.verdict, _Verdict.DIVERGED)
      self.assertEqual(standing.mean, -_INF)
      self.assertEqual(set(standing.difference), {-_INF})

  def test_one_seed_decides_nothing(self):
    found = standings.rank({'a': {0: 70.0}, 'b': {0: 90.0}}, margin=0.5)
    self.assertEqual([s.mean for s in found], [90.0, 70.0])
    self.assertEqual([s.verdict for s in found], [_Verdict.BEST, _Verdict.OPEN])


if __name__ == '__main__':
  absltest.main()
