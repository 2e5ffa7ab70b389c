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
"""Tests of clipping and weight decay."""

import math

from absl.testing import parameterized
import tensorflow as tf

from tff_adaptive.client_works import local_training


class GradientOptionsTest(tf.test.TestCase, parameterized.TestCase):

  def test_off_by_default(self):
    given = (tf.constant([3.0]), None)
    options = local_training.GradientOptions()
    self.assertIs(options.apply((tf.ones([1]), tf.ones([1])), given), given)

  def test_clips_by_the_norm_over_all_tensors_then_decays(self):
    weights = (tf.constant([2.0]), tf.constant([10.0]), tf.constant(7.0))
    given = (tf.constant([3.0]), tf.constant([4.0]), None)
    options = local_training.GradientOptions(clip_norm=1.0, weight_decay=0.1)
    first, second, third = options.apply(weights, given)
    self.assertAllClose(first, [0.6 + 0.2])
    self.assertAllClose(second, [0.8 + 1.0])
    self.assertIsNone(third)

  @parameterized.parameters(0.0, 0.5)
  def test_small_gradients_are_not_scaled(self, size):
    (result,) = local_training.GradientOptions(clip_norm=1.0).apply(
        (tf.ones([1]),), (tf.constant([size]),)
    )
    self.assertAllClose(result, [size])

  def test_nan_stays_nan(self):
    (result,) = local_training.GradientOptions(clip_norm=1.0).apply(
        (tf.ones([2]),), (tf.constant([float('nan'), 1.0]),)
    )
    self.assertTrue(all(math.isnan(v) for v in result.numpy()))

  def test_indexed_slices_are_clipped(self):
    slices = tf.IndexedSlices(
        tf.constant([[6.0], [8.0]]), tf.constant([0, 2]), tf.constant([3, 1])
    )
    (result,) = local_training.GradientOptions(clip_norm=5.0).apply(
        (tf.zeros([3, 1]),), (slices,)
    )
    self.assertAllClose(result, [[3.0], [0.0], [4.0]])

  @parameterized.parameters(
      (dict(clip_norm=0.0), 'clip_norm'), (dict(weight_decay=-1.0), 'decay')
  )
  def test_bad_argument_raises_by_name(self, arguments, name):
    with self.assertRaisesRegex(ValueError, name):
      local_training.GradientOptions(**arguments)


if __name__ == '__main__':
  tf.test.main()
