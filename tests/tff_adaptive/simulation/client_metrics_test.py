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
"""Tests of the metrics of clients and their summary."""

import math

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

from tff_adaptive.simulation import client_metrics


def _metrics(values, num_examples=None, metric='accuracy'):
  return client_metrics.ClientMetrics(
      [f'c{i}' for i in range(len(values))],
      num_examples or [1] * len(values),
      {metric: values},
  )


class ClientMetricsTest(parameterized.TestCase):

  def test_summary_equals_hand_calculation(self):
    found = _metrics([0.5, 1.0, 0.0, 0.9], [1, 2, 3, 4]).summarize('clients/')
    self.assertEqual(
        found,
        {
            'clients/accuracy_mean': 0.6,
            'clients/accuracy_weighted_mean': 0.61,
            'clients/accuracy_median': 0.7,
            'clients/accuracy_worst_decile': 0.0,
        },
    )

  @parameterized.parameters((1, 1), (9, 1), (10, 1), (19, 1), (20, 2), (35, 3))
  def test_worst_decile_is_a_tenth_rounded_down_and_one_at_least(
      self, num_clients, num_worst
  ):
    values = np.random.default_rng(1).permutation(num_clients).astype(float)
    accuracy = _metrics(values).summarize()['accuracy_worst_decile']
    self.assertEqual(accuracy, np.arange(num_worst).mean())
    loss = _metrics(values, metric='loss').summarize()['loss_worst_decile']
    self.assertEqual(loss, num_clients - 1 - np.arange(num_worst).mean())

  def test_every_metric_is_summarized_in_order(self):
    metrics = client_metrics.ClientMetrics(
        ['a'], [2], {'loss': [0.5], 'accuracy': [1.0]}
    )
    self.assertEqual(
        [name.partition('_')[0] for name in metrics.summarize()],
        ['loss'] * 4 + ['accuracy'] * 4,
    )

  @parameterized.parameters(([],), ([1.0, math.nan],))
  def test_what_is_unknown_is_nan(self, values):
    summary = _metrics(values).summarize()
    self.assertLen(summary, 4)
    for name, value in summary.items():
      self.assertTrue(math.isnan(value), name)

  def test_arrays_of_another_length_are_refused(self):
    with self.assertRaisesRegex(ValueError, r'`accuracy`.*2 clients.*\(1,\)'):
      client_metrics.ClientMetrics(['a', 'b'], [1, 1], {'accuracy': [1.0]})
    with self.assertRaisesRegex(ValueError, '`num_examples`'):
      client_metrics.ClientMetrics(['a'], [1, 1], {'accuracy': [1.0]})


if __name__ == '__main__':
  absltest.main()
