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

import tempfile

from absl.testing import absltest
import pytest

from experiments import registry
from experiments.benchmark import comparisons
from experiments.benchmark import measurement
from experiments.benchmark import reports
from experiments.benchmark import workloads


class TaskMeasurementTest(absltest.TestCase):

  def _measure(self, name):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    return comparisons.measure_task(
        registry.ROWS[registry.TASK][name],
        [workloads.RUNTIMES['compiled']],
        measurement.Settings(1, plan='loop'),
        data_dir=None,
        synthetic_dir=folder.name,
    )

  @pytest.mark.slow
  def test_measures_a_task_as_its_protocol_says(self):
    (line,) = self._measure('digits')
    self.assertEqual(line['workload'], 'tasks/digits')
    self.assertEqual(line['variant'], 'real data')
    self.assertEqual(line['clients_per_round'], 10)
    self.assertEqual(line['rounds'], 1)
    self.assertBetween(line['wait_share'], 0, 1)
    self.assertIn('waiting', reports.format_table([line], []))

  @pytest.mark.slow
  def test_made_up_data_are_called_so(self):
    (line,) = self._measure('mnist')
    self.assertEqual(line['variant'], 'synthetic data')

  def test_what_is_capped_is_a_task(self):
    for name in comparisons.CAPS:
      self.assertIn(name, registry.ROWS[registry.TASK])
