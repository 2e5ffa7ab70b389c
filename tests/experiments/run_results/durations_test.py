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
"""Tests of times in words."""

import math

from absl.testing import absltest
from absl.testing import parameterized

from experiments.run_results import durations


class DurationsTest(parameterized.TestCase):

  @parameterized.parameters(
      (0.2, '1 s'),
      (200, '3 min 20 s'),
      (7500, '2 h 5 min'),
      (59.5, '1 min 0 s'),
      (None, 'unknown'),
      (math.nan, 'unknown'),
      (math.inf, 'unknown'),
  )
  def test_times_in_words(self, seconds, text):
    self.assertEqual(durations.format_seconds(seconds), text)


if __name__ == '__main__':
  absltest.main()
