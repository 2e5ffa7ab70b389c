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
"""Tests of how many trials run at once; whole runs are in searches_test."""

import pathlib
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized

from experiments.sweeps import running
from experiments.sweeps import scheduling
from tests.experiments.sweeps import sweep_testing


class DefaultJobsTest(parameterized.TestCase):

  @parameterized.named_parameters(
      ('one_a_core', '/nowhere', {}, 5, 4),
      ('few_trials', '/nowhere', {}, 3, 3),
      ('gpu', '/', {}, 5, 1),
      ('gpu_left_alone', '/', {'devices': 'CPU'}, 5, 4),
      ('gpu_asked_for', '/', {'devices': 'GPU:1'}, 5, 1),
  )
  def test_jobs(self, gpus, given, num_trials, expected):
    rates = tuple(str(n) for n in range(1, num_trials + 1))
    trials = sweep_testing.build_trials('out', rates, **given)
    with (
        mock.patch.object(running, '_GPUS', pathlib.Path(gpus)),
        mock.patch.object(
            scheduling, 'available_cores', return_value=[0, 1, 2, 3]
        ),
    ):
      self.assertEqual(running.default_jobs(trials), expected)


if __name__ == '__main__':
  absltest.main()
