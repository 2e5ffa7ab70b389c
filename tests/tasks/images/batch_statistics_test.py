# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `batch_statistics`."""

from absl.testing import parameterized
import keras
import numpy as np
import tensorflow as tf

from tasks.images import batch_statistics


def _images(num_images=4):
  generator = np.random.default_rng(1)
  return generator.normal(3.0, 2.0, [num_images, 5, 6, 2]).astype(np.float32)


class BatchStatisticsNormalizationTest(parameterized.TestCase):

  def test_normalizes_by_the_batch_in_training_and_evaluation(self):
    layer = batch_statistics.BatchStatisticsNormalization(epsilon=0.5)
    x = _images()
    layer.build(x.shape)
    layer.set_weights([np.array([2.0, -1.0]), np.array([0.5, 3.0])])
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    expected = [2.0, -1.0] * (x - mean) / np.sqrt(variance + 0.5) + [0.5, 3.0]
    for training in (True, False):
      np.testing.assert_allclose(
          layer(x, training=training), expected, atol=1e-5
      )

  def test_all_weights_are_trained(self):
    layer = batch_statistics.BatchStatisticsNormalization()
    layer.build([None, 5, 6, 2])
    self.assertLen(layer.trainable_weights, 2)
    self.assertEmpty(layer.non_trainable_weights)

  def test_gradients_are_those_of_the_formula(self):
    layer = batch_statistics.BatchStatisticsNormalization()
    x = tf.constant(_images())
    layer.build(x.shape)
    weights = np.random.default_rng(2).normal(size=x.shape).astype(np.float32)

    def gradients(normalize):
      with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(weights * normalize(x))
      return tape.gradient(total, [x, layer.gamma, layer.beta])

    def formula(x):
      mean, variance = tf.nn.moments(x, [0, 1, 2])
      return tf.nn.batch_normalization(
          x, mean, variance, layer.beta, layer.gamma, 1e-5
      )

    for found, expected in zip(gradients(layer), gradients(formula)):
      np.testing.assert_allclose(found, expected, atol=1e-4)

  def test_survives_cloning(self):
    model = keras.Sequential(
        [
            keras.Input([5, 6, 2]),
            batch_statistics.BatchStatisticsNormalization(epsilon=0.5),
        ]
    )
    clone = keras.models.clone_model(model)
    np.testing.assert_array_equal(clone(_images()), model(_images()))
    self.assertEqual(clone.layers[0].get_config()['epsilon'], 0.5)
