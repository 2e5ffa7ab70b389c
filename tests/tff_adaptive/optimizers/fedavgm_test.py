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
"""Tests of the server rule of FedAvgM."""

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import optimizers


class FedAvgMTest(tf.test.TestCase):

  def test_literal_numbers(self):
    # u = 1; then .9 + 1 = 1.9; then 1.71 - 1 = .71; x moves by .5 u.
    optimizer = optimizers.build_fedavgm(0.5)
    weights = tf.constant(0.0)
    state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    points = []
    for change in (1.0, 1.0, -1.0):
      state, weights = optimizer.next(state, weights, tf.constant(-change))
      points.append(float(weights))
    self.assertAllClose(points, [0.5, 1.45, 1.805])
    self.assertAllClose(-state['accumulator'], 0.71)

  def test_equals_tff(self):
    results = []
    for optimizer in (
        optimizers.build_fedavgm(0.3, 0.8),
        tff.learning.optimizers.build_sgdm(0.3, 0.8),
    ):
      weights = tf.constant([1.0, 2.0])
      state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
      for _ in range(3):
        state, weights = optimizer.next(state, weights, 0.5 * weights)
      results.append(weights)
    self.assertAllEqual(*results)


if __name__ == '__main__':
  tf.test.main()
