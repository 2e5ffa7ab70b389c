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
"""Tests of the proximal term."""

from absl.testing import parameterized
import tensorflow as tf

from tff_adaptive import client_works


class FedProxTest(tf.test.TestCase, parameterized.TestCase):

  @parameterized.parameters((0.0, 0.67232), (1.0, 0.554688), (3.0, 0.3875))
  def test_five_steps_on_a_quadratic(self, mu, expected):
    """w after five steps of 0.1 on (w-1)^2 from 0.

    w = 0.
    for _ in range(5): w -= .1 * (2 * (w - 1) + mu * w)
    """
    term = client_works.build_fedprox(mu)
    received = (tf.constant(0.0, tf.float64),)
    w = tf.constant(0.0, tf.float64)
    for _ in range(5):
      with tf.GradientTape() as tape:
        tape.watch(w)
        loss = (w - 1.0) ** 2 + term((w,), received, None)
      w -= 0.1 * tape.gradient(loss, w)
    reference = 0.0
    for _ in range(5):
      reference -= 0.1 * (2 * (reference - 1) + mu * reference)
    self.assertAllClose(w, reference)
    self.assertAllClose(w, expected, atol=5e-4)

  def test_is_zero_at_the_received_model(self):
    term = client_works.build_fedprox(5.0)
    weights = (tf.ones([2, 2]), tf.ones([3], tf.bfloat16))
    self.assertAllEqual(term(weights, weights, None), 0.0)

  def test_squares_of_half_precision_are_summed_in_float32(self):
    term = client_works.build_fedprox(2.0)
    weights = (tf.ones([100_000], tf.float16),)
    received = (tf.zeros([100_000], tf.float16),)
    with tf.GradientTape() as tape:
      tape.watch(weights)
      value = term(weights, received, None)
    self.assertAllClose(value, 100_000.0)
    self.assertAllClose(tape.gradient(value, weights)[0][:2], [2.0, 2.0])

  def test_small_squares_of_half_precision_count(self):
    term = client_works.build_fedprox(2.0)
    weights = (tf.constant([1e-4], tf.float16),)
    self.assertAllClose(
        term(weights, (tf.zeros([1], tf.float16),), None), 1e-8, rtol=1e-2
    )

  def test_negative_mu_raises(self):
    with self.assertRaisesRegex(ValueError, 'mu.*-1'):
      client_works.build_fedprox(-1.0)


if __name__ == '__main__':
  tf.test.main()
