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
"""Tests of how chunks are shared among workers."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tff_adaptive.runtime.scale_out import sharing


class ShareTest(parameterized.TestCase):

  def test_every_chunk_is_given_away_once(self):
    generator = np.random.default_rng(0)
    for _ in range(50):
      loads = generator.exponential(size=generator.integers(1, 30)).tolist()
      speeds = generator.uniform(0.1, 3.0, generator.integers(1, 6)).tolist()
      shares = sharing.share(loads, speeds)
      self.assertLen(shares, len(speeds))
      self.assertCountEqual(sum(shares, []), range(len(loads)))

  def test_no_worker_waits_longer_than_for_one_chunk(self):
    generator = np.random.default_rng(1)
    for _ in range(50):
      loads = generator.exponential(size=40)
      shares = sharing.share(loads.tolist(), [1.0, 1.0, 1.0])
      totals = [loads[share].sum() for share in shares]
      self.assertLessEqual(max(totals) - min(totals), loads.max())

  def test_a_slow_worker_takes_fewer(self):
    slow, fast = sharing.share([1.0] * 12, [1.0, 3.0])
    self.assertLen(slow, 3)
    self.assertLen(fast, 9)

  def test_numbers_ascend(self):
    for share in sharing.share([1.0, 5.0, 2.0, 4.0, 3.0], [1.0, 1.0]):
      self.assertEqual(share, sorted(share))

  @parameterized.parameters(([],), ([0.0, 0.0],))
  def test_no_load(self, loads):
    shares = sharing.share(loads, [1.0, 1.0])
    self.assertCountEqual(sum(shares, []), range(len(loads)))

  def test_no_worker_is_an_error(self):
    with self.assertRaisesRegex(ValueError, 'speeds'):
      sharing.share([1.0], [])


if __name__ == '__main__':
  absltest.main()
