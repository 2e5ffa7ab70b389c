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
"""Tests of the aggregator that skips rounds without a healthy client."""

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import aggregators

_VALUE = tff.to_type((np.float32, (np.float32, (2,))))
_WEIGHT = tff.TensorType(np.float32)


def _value(scale):
  return (np.float32(scale), scale * np.ones(2, np.float32))


@pytest.mark.usefixtures('native_runtime')
class HealthyRoundsTest(tf.test.TestCase):

  def test_is_the_inner_aggregator_in_a_healthy_round(self):
    process = aggregators.HealthyRoundsFactory(
        tff.aggregators.MeanFactory()
    ).create(_VALUE, _WEIGHT)
    output = process.next(
        process.initialize(), [_value(1.0), _value(4.0)], [1.0, 2.0]
    )
    self.assertAllClose(output.result[0], 3.0)
    self.assertAllClose(output.result[1], [3.0, 3.0])

  def test_state_stays_and_result_is_nan_without_weight(self):
    # The clipping norm of the robust aggregator follows what it sees.
    factory = tff.learning.robust_aggregator(zeroing=False)
    process = aggregators.HealthyRoundsFactory(factory).create(_VALUE, _WEIGHT)
    state = process.next(
        process.initialize(), [_value(9.0)] * 2, [1.0, 1.0]
    ).state
    moved = process.next(state, [_value(0.1)] * 2, [1.0, 1.0]).state
    self.assertNotAllClose(*(tf.nest.flatten(s)[0] for s in (state, moved)))
    output = process.next(state, [_value(0.0)] * 2, [0.0, 0.0])
    for before, after in zip(
        tf.nest.flatten(state), tf.nest.flatten(output.state)
    ):
      self.assertAllEqual(before, after)
    self.assertAllEqual(np.isnan(output.result[1]), [True, True])


if __name__ == '__main__':
  tf.test.main()
