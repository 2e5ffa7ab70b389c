# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0

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
        measurement.Settings(1, num_parallel_clients=1),
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

  def test_capped_tasks_are_tasks(self):
    for name in comparisons.CAPS:
      self.assertIn(name, registry.ROWS[registry.TASK])
