# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the layers of the tasks' models."""

from absl.testing import absltest
from absl.testing import parameterized
import keras
import numpy as np
import tensorflow as tf

from tasks import seeded_layers
from tasks.images import batch_statistics
from tff_adaptive.layers import keras_3


def _kernel(name, task='shakespeare', seed=1):
  initializer = seeded_layers.SeededLayers(task, seed).glorot_uniform(name)
  return initializer([5, 7]).numpy()


class SeededLayersTest(absltest.TestCase):

  def test_seed_task_and_name_decide_the_weights(self):
    first = _kernel('logits')
    np.testing.assert_array_equal(first, _kernel('logits'))
    for other in (
        _kernel('dense'),
        _kernel('logits', task='stackoverflow_nwp'),
        _kernel('logits', seed=2),
    ):
      self.assertTrue(np.all(first != other))

  def test_weights_of_one_layer_share_no_numbers(self):
    layer = seeded_layers.SeededLayers('shakespeare', 1).lstm('lstm', 4)
    layer(tf.zeros([1, 1, 4]))
    kernel, recurrent_kernel, _ = layer.get_weights()
    self.assertTrue(np.all(kernel != recurrent_kernel))

  def test_layers_are_those_of_the_library_with_padding_skipped(self):
    maker = seeded_layers.SeededLayers('shakespeare', 1)
    embedding = maker.embedding('embedding', 5, 3)
    lstm = maker.lstm('lstm', 2, 'HeNormal')
    self.assertIsInstance(lstm, keras_3.LSTM)
    self.assertIsInstance(
        lstm.cell.kernel_initializer, keras.initializers.HeNormal
    )
    outputs = lstm(embedding(tf.constant([[1, 2, 0], [1, 2, 3]])))
    self.assertEqual(outputs.shape, (2, 3, 2))
    np.testing.assert_array_equal(outputs[0, 1], outputs[0, 2])
    self.assertTrue(np.all(outputs[1, 1] != outputs[1, 2]))
    self.assertEqual(maker.dense('logits', 6)(outputs).shape, (2, 3, 6))

  def test_bad_seed_raises(self):
    with self.assertRaisesRegex(ValueError, '`seed` must not be negative'):
      seeded_layers.SeededLayers('shakespeare', -1)


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
