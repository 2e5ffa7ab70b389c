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
"""Tests of early stopping."""

from absl.testing import absltest
from absl.testing import parameterized

from tests.tff_adaptive.simulation import loop_testing
from tff_adaptive.simulation import callbacks


def _peaked(weights):
  """Best after round 4: the weights are 0.1, 0.3, 0.6, 1.0, 1.5 and so on."""
  return {'accuracy': 1 - abs(float(weights) - 1)}


class EarlyStoppingTest(loop_testing.LoopTestCase):

  @parameterized.named_parameters(
      ('one', {'patience': 1}, 5),
      ('three', {'patience': 3}, 7),
      ('never', {'patience': 7}, 10),
      # Differences are 0.2, 0.3, 0.4: the first value stays the best one.
      ('min_delta', {'patience': 3, 'min_delta': 2.0}, 4),
      ('min', {'patience': 2, 'mode': 'min'}, 3),
  )
  def test_stops_after_evaluations_without_improvement(self, kwargs, expected):
    stopping = callbacks.EarlyStopping(**kwargs)
    result = self.run_loop(
        callbacks=[stopping], evaluate_fn=_peaked, rounds_per_evaluation=1
    )
    self.assertEqual(result.round_num, expected)
    self.assertEqual(result.stopped, stopping.num_bad == kwargs['patience'])

  def test_rounds_without_evaluation_do_not_count(self):
    stopping = callbacks.EarlyStopping(patience=2)
    result = self.run_loop(
        callbacks=[stopping], evaluate_fn=_peaked, rounds_per_evaluation=2
    )
    self.assertEqual(result.round_num, 8)

  def test_a_metric_of_every_round(self):
    stopping = callbacks.EarlyStopping('clients/loss', 3, mode='max')
    self.assertEqual(self.run_loop(callbacks=[stopping]).round_num, 4)

  @parameterized.parameters(1, 3, 4, 6, 7)
  def test_a_resumed_run_stops_in_the_same_round(self, killed_in):
    def make(unused_folder):
      return [callbacks.EarlyStopping(patience=3)]

    kwargs = dict(evaluate_fn=_peaked, rounds_per_evaluation=1)
    whole = self.run_loop('whole', callbacks=make(None), **kwargs)
    result, _ = self.run_in_two_parts('parts', killed_in, make, **kwargs)
    self.assertEqual((result.round_num, result.stopped), (7, True))
    self.assertEqual(result.state, whole.state)
    self.assert_same_run('whole', 'parts')
    again = self.run_loop('parts', callbacks=make(None), **kwargs)
    self.assertEqual((again.num_new_rounds, again.stopped), (0, True))

  def test_an_unknown_metric_ends_the_run_before_the_first_round(self):
    with self.assertRaisesRegex(
        callbacks.UnknownMetricError, "'evaluation/acc'.*evaluation/accuracy"
    ):
      self.run_loop(callbacks=[callbacks.EarlyStopping('evaluation/acc')])
    self.assertFalse((self.folder / 'run' / 'metrics.csv').exists())

  @parameterized.named_parameters(
      ('patience', {'patience': 0}, '`patience` must be positive, found 0'),
      ('mode', {'mode': 'least'}, '`mode`'),
      ('min_delta', {'min_delta': -1.0}, '`min_delta`'),
  )
  def test_bad_arguments(self, kwargs, message):
    with self.assertRaisesRegex(ValueError, message):
      callbacks.EarlyStopping(**kwargs)


if __name__ == '__main__':
  absltest.main()
