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
"""Tests of the server rule of FedAvg."""

import tensorflow as tf

from tff_adaptive.optimizers import fedavg


class FedAvgTest(tf.test.TestCase):

  def test_moves_by_the_rate_times_the_mean_change(self):
    optimizer = fedavg.build_fedavg(0.5)
    state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
    change = tf.constant([0.25, -1.0])
    _, weights = optimizer.next(state, tf.constant([1.0, 2.0]), -change)
    self.assertAllClose(weights, [1.125, 1.5])

  def test_default_takes_the_mean_of_the_clients(self):
    optimizer = fedavg.build_fedavg()
    state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    _, weights = optimizer.next(state, tf.constant(3.0), tf.constant(2.0))
    self.assertAllEqual(weights, 1.0)


if __name__ == '__main__':
  tf.test.main()
