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
"""Tests of averages of weights."""

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tests.tff_adaptive.simulation import loop_testing
from tff_adaptive.simulation import callbacks

# The weights after ten rounds of `loop_testing.Process`.
_WEIGHTS = [0.1, 0.3, 0.6, 1.0, 1.5, 2.1, 2.8, 3.6, 4.5, 5.5]
_BFLOAT16 = tf.bfloat16.as_numpy_dtype


def _start(weights):
  return callbacks.TrainingStart(
      state=None, get_weights=lambda: weights, get_evaluation=lambda: None
  )


def _round_end(weights):
  return callbacks.RoundEnd(
      round_num=1,
      state=None,
      get_weights=lambda: weights,
      metrics={},
      evaluation=None,
  )


class AveragingTest(loop_testing.LoopTestCase):

  @parameterized.named_parameters(
      # ((0.1 * 0.5 + 0.3) * 0.5 + 0.6) / 1.75
      ('half', 0.5, 3, 0.775 / 1.75),
      ('current', 0.0, 10, 5.5),
      ('mean', 1.0, 10, 2.2),
      ('first', 0.9, 1, 0.1),
  )
  def test_moving_average(self, decay, total_rounds, expected):
    average = callbacks.WeightsMovingAverage(decay)
    self.run_loop(total_rounds=total_rounds, callbacks=[average])
    self.assertAlmostEqual(average.get_weights(), expected, places=6)

  def test_moving_average_is_that_of_its_definition(self):
    average = callbacks.WeightsMovingAverage(0.8)
    self.run_loop(callbacks=[average])
    shares = 0.8 ** np.arange(9, -1, -1)
    self.assertAlmostEqual(
        average.get_weights(), np.average(_WEIGHTS, weights=shares), places=6
    )

  @parameterized.parameters((1, 10, 5.5), (2, 10, 5.0), (4, 2, 0.2))
  def test_last_rounds(self, num_rounds, total_rounds, expected):
    average = callbacks.LastWeightsAverage(num_rounds)
    self.run_loop(total_rounds=total_rounds, callbacks=[average])
    self.assertAlmostEqual(average.get_weights(), expected, places=6)

  def test_is_evaluated_beside_the_current_weights(self):
    result = self.run_loop(
        callbacks=[
            callbacks.WeightsMovingAverage(1.0),
            callbacks.LastWeightsAverage(2, name='last_two'),
        ]
    )
    rows = [row.split(',') for row in self.rows()]
    self.assertEqual(
        rows[0][3:],
        [
            'evaluation/accuracy',
            'evaluation_average/accuracy',
            'evaluation_last_two/accuracy',
        ],
    )
    self.assertEqual(rows[1][3:], ['', '', ''])
    values = [float(value) for value in rows[10][3:]]
    np.testing.assert_allclose(values, [0.055, 0.022, 0.05], rtol=1e-6)
    # The training does not see it.
    self.run_loop('other')
    self.assertEqual(result.state, self.run_loop('other').state)

  def test_without_evaluation_there_are_no_columns(self):
    self.run_loop(
        callbacks=[callbacks.WeightsMovingAverage(0.5)], evaluate_fn=None
    )
    self.assertEqual(self.rows()[0], 'round_num,clients/loss,clients/num')

  def test_other_callbacks_can_watch_it(self):
    metric = 'evaluation_average/accuracy'
    result = self.run_loop(
        callbacks=[
            callbacks.WeightsMovingAverage(0.5),
            callbacks.EarlyStopping(metric, 1, mode='min'),
        ]
    )
    self.assertEqual(result.round_num, 8)
    with self.assertRaisesRegex(
        callbacks.UnknownMetricError, f"'{metric}'.*evaluation/accuracy"
    ):
      self.run_loop('other', callbacks=[callbacks.EarlyStopping(metric, 1)])

  @parameterized.product(
      make=[
          lambda _: [callbacks.WeightsMovingAverage(0.7)],
          lambda _: [callbacks.LastWeightsAverage(3)],
      ],
      killed_in=[1, 2, 4, 6, 7, 10],
  )
  def test_a_resumed_run_has_the_same_bytes(self, make, killed_in):
    average = make(None)
    self.run_loop('whole', callbacks=average)
    _, resumed = self.run_in_two_parts('parts', killed_in, make)
    self.assert_same_run('whole', 'parts')
    self.assertEqual(resumed[0].get_weights(), average[0].get_weights())

  @parameterized.parameters(
      lambda: callbacks.WeightsMovingAverage(1.0),
      lambda: callbacks.LastWeightsAverage(2),
  )
  def test_keeps_structure_and_dtypes(self, make):
    def weights(value, count):
      return tff.learning.models.ModelWeights(
          trainable=(
              np.full([2, 3], value, np.float32),
              np.full([2], value, np.float64),
          ),
          non_trainable=(np.full([2], value, _BFLOAT16), np.int64(count)),
      )

    average = make()
    average.on_training_start(_start(weights(5, 5)))
    tf.nest.map_structure(
        np.testing.assert_array_equal, average.get_weights(), weights(5, 5)
    )
    average.on_round_end(_round_end(weights(1, 1)))
    average.on_round_end(_round_end(weights(2, 2)))
    result = average.get_weights()
    self.assertIsInstance(result, tff.learning.models.ModelWeights)
    # Integers, such as counters, are not averaged.
    expected = weights(1.5, 2)
    tf.nest.map_structure(np.testing.assert_array_equal, result, expected)
    tf.nest.map_structure(
        lambda a, b: self.assertEqual(a.dtype, b.dtype), result, expected
    )

  @parameterized.named_parameters(
      ('negative', lambda: callbacks.WeightsMovingAverage(-0.1), 'decay.*-0.1'),
      (
          'large',
          lambda: callbacks.WeightsMovingAverage(1.1),
          'decay.*found 1.1',
      ),
      ('nan', lambda: callbacks.WeightsMovingAverage(np.nan), 'decay.*nan'),
      ('none', lambda: callbacks.LastWeightsAverage(0), 'num_rounds.*found 0'),
      ('name', lambda: callbacks.LastWeightsAverage(2, 'a/b'), "name.*'a/b'"),
  )
  def test_bad_arguments(self, make, message):
    with self.assertRaisesRegex(ValueError, f'`{message}'):
      make()


if __name__ == '__main__':
  absltest.main()
