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
"""Tests of what callbacks watch."""

import math

from absl.testing import absltest
from absl.testing import parameterized

from tff_adaptive.simulation import callbacks
from tff_adaptive.simulation.callbacks import monitor as monitor_lib


def _round_end(evaluation=None, evaluate=lambda weights: {}, **metrics):
  return callbacks.RoundEnd(
      round_num=1,
      state=None,
      get_weights=lambda: None,
      metrics=metrics,
      evaluation=evaluation,
      evaluate=evaluate,
  )


def _start(evaluation):
  return callbacks.TrainingStart(
      state=None, get_weights=lambda: None, get_evaluation=lambda: evaluation
  )


class MonitorTest(parameterized.TestCase):

  @parameterized.parameters(
      ('max', 0.0, 0.2, 0.1, True),
      ('max', 0.0, 0.1, 0.1, False),
      ('max', 0.1, 0.625, 0.5, True),
      ('max', 0.125, 0.625, 0.5, False),
      ('min', 0.0, 0.1, 0.2, True),
      ('min', 0.0, 0.2, 0.1, False),
      ('min', 0.125, 0.5, 0.625, False),
      ('max', 0.0, math.nan, 0.1, False),
      ('min', 0.0, math.nan, 0.1, False),
      ('max', 0.0, -1e9, -math.inf, True),
      ('min', 0.0, 1e9, math.inf, True),
      ('min', 0.0, math.nan, math.inf, False),
      ('min', 0.0, math.inf, math.inf, False),
  )
  def test_is_better(self, mode, min_delta, value, best, expected):
    monitor = monitor_lib.Monitor('loss', mode, min_delta)
    self.assertEqual(monitor.is_better(value, best), expected)

  def test_reads_rows_that_have_the_metric(self):
    monitor = monitor_lib.Monitor('loss', 'min')
    self.assertEqual(monitor.read(_round_end(loss=2)), 2.0)
    self.assertIsNone(monitor.read(_round_end(other=2)))

  @parameterized.named_parameters(
      ('evaluated', {'evaluation': {'accuracy': 0.1}}),
      ('never_evaluated', {'evaluate': None}),
  )
  def test_a_row_that_lacks_the_metric_names_those_there_are(self, kwargs):
    monitor = monitor_lib.Monitor('los', 'min')
    with self.assertRaises(callbacks.UnknownMetricError) as caught:
      monitor.read(_round_end(loss=1, num=2, **kwargs))
    self.assertEqual(
        str(caught.exception),
        "there is no metric 'los' to watch; there are loss, num",
    )

  def test_a_metric_that_is_no_number_is_one_sentence(self):
    monitor = monitor_lib.Monitor('device', 'max')
    with self.assertRaisesRegex(
        callbacks.UnknownMetricError,
        "^the metric 'device' cannot be watched, .* found 'CPU:0'$",
    ):
      monitor.read(_round_end(device='CPU:0'))

  def test_metrics_of_the_evaluation_are_checked_before_the_first_round(self):
    evaluation = {'loss': 1.0, 'accuracy': 0.1}
    monitor_lib.Monitor('evaluation/accuracy', 'max').check(_start(evaluation))
    wrong = monitor_lib.Monitor('evaluation/acc', 'max')
    with self.assertRaisesRegex(
        callbacks.UnknownMetricError,
        "no metric 'evaluation/acc' to watch; there are evaluation/loss, "
        'evaluation/accuracy$',
    ):
      wrong.check(_start(evaluation))
    with self.assertRaisesRegex(
        callbacks.UnknownMetricError, 'there are none$'
    ):
      wrong.check(_start(None))

  def test_other_metrics_need_no_evaluation_of_the_initial_weights(self):
    def fail():
      raise AssertionError

    monitor_lib.Monitor('clients/loss', 'min').check(
        callbacks.TrainingStart(
            state=None, get_weights=fail, get_evaluation=fail
        )
    )

  @parameterized.named_parameters(
      ('metric', {'metric': ''}, "`metric`.*found ''"),
      ('mode', {'mode': 'best'}, "`mode`.*'max' or 'min', found 'best'"),
      ('min_delta', {'min_delta': -0.5}, '`min_delta`.*found -0.5'),
      ('nan', {'min_delta': math.nan}, '`min_delta`.*found nan'),
  )
  def test_bad_arguments(self, change, message):
    arguments = {'metric': 'loss', 'mode': 'min', **change}
    with self.assertRaisesRegex(ValueError, message):
      monitor_lib.Monitor(**arguments)


if __name__ == '__main__':
  absltest.main()
