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
"""Tests of arithmetic on the flat vector of all weights."""

import tensorflow as tf

from tff_adaptive.optimizers import vectors


class VectorsTest(tf.test.TestCase):

  def test_norm_is_over_all_tensors(self):
    tensors = [tf.constant([[3.0]]), tf.constant([0.0, 4.0])]
    self.assertAllClose(vectors.norm(tensors, tf.float32), 5.0)

  def test_norm_of_nothing_is_zero(self):
    self.assertAllEqual(vectors.norm([], tf.float64), 0.0)

  def test_norm_of_bfloat16_does_not_overflow_or_round_away(self):
    tensor = tf.fill([10000], tf.constant(1.0, tf.bfloat16))
    self.assertAllClose(vectors.norm([tensor], tf.float32), 100.0)

  def test_step_dtype(self):
    half = tf.TensorSpec([], tf.bfloat16)
    double = tf.TensorSpec([], tf.float64)
    self.assertEqual(vectors.step_dtype((half,)), tf.float32)
    self.assertEqual(vectors.step_dtype((half, double)), tf.float64)

  def test_descend_leaves_weights_without_gradient(self):
    weights = (tf.constant([1.0]), tf.constant([2.0]))
    moved = vectors.descend(weights, (None, tf.constant([4.0])), 0.5)
    self.assertAllEqual(moved[0], [1.0])
    self.assertAllEqual(moved[1], [0.0])

  def test_zeros_stand_for_gradients_that_are_not_there(self):
    weights = (tf.ones([2]), tf.ones([1]))
    filled = vectors.with_zeros(weights, (None, tf.constant([4.0])))
    self.assertAllEqual(filled[0], [0.0, 0.0])
    self.assertAllEqual(filled[1], [4.0])

  def test_moments_are_in_single_precision_at_least(self):
    specs = (
        tf.TensorSpec([2], tf.float16),
        tf.TensorSpec([], tf.bfloat16),
        tf.TensorSpec([1, 3], tf.float64),
    )
    moments = vectors.fill_moments(specs, 0.25)
    self.assertEqual(
        [m.dtype for m in moments], [tf.float32, tf.float32, tf.float64]
    )
    for spec, moment in zip(specs, moments):
      self.assertAllEqual(moment, tf.fill(spec.shape, 0.25))

  def test_negative_entries_become_zero(self):
    moments = (tf.constant([-1.0, 2.0]), tf.constant(-3.0, tf.float64))
    cut = vectors.non_negative(moments)
    self.assertAllEqual(cut[0], [0.0, 2.0])
    self.assertAllEqual(cut[1], 0.0)

  def test_all_finite_looks_at_every_floating_point_entry(self):
    finite = (tf.ones([2]), {'count': tf.constant(3)})
    self.assertTrue(vectors.all_finite(finite))
    self.assertTrue(vectors.all_finite(()))
    for bad in (float('nan'), float('-inf')):
      self.assertFalse(vectors.all_finite((*finite, tf.constant([0.0, bad]))))


if __name__ == '__main__':
  tf.test.main()
