# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `mnist_models`."""

from absl.testing import parameterized
import numpy as np

from tasks import mnist

_IDS = ('cnn', 'logistic', 'mlp')
_FAN_INS = {
    'cnn': (25, 250, 320, 50),
    'logistic': (784,),
    'mlp': (784, 200, 100),
}


class MnistModelsTest(parameterized.TestCase):

  @parameterized.parameters(('cnn', 21840), ('logistic', 7850), ('mlp', 178110))
  def test_number_of_weights_and_shape_of_logits(self, model_id, num_weights):
    model = mnist.MNIST.build_keras_model(model_id, seed=1)
    self.assertEqual(model.count_params(), num_weights)
    self.assertEqual(model(np.zeros([3, 28, 28, 1], np.float32)).shape, (3, 10))

  def test_cnn_drops_channels_and_units(self):
    model = mnist.MNIST.build_keras_model('cnn', seed=1)
    self.assertEqual(
        [
            (type(layer).__name__, layer.output.shape[1:], layer.rate)
            for layer in model.layers
            if hasattr(layer, 'rate')
        ],
        [('SpatialDropout2D', (8, 8, 20), 0.5), ('Dropout', (50,), 0.5)],
    )

  def test_mlp_has_three_layers_with_relu_between(self):
    model = mnist.MNIST.build_keras_model('mlp', seed=3)
    self.assertEqual(
        [weight.shape for weight in model.get_weights()],
        [(784, 200), (200,), (200, 100), (100,), (100, 10), (10,)],
    )
    images = np.random.default_rng(1).normal(size=[2, 28, 28, 1])
    images = images.astype(np.float32)
    kernel_1, bias_1, kernel_2, bias_2, last, bias_3 = model.get_weights()
    x = np.maximum(images.reshape(2, -1) @ kernel_1 + bias_1, 0)
    x = np.maximum(x @ kernel_2 + bias_2, 0)
    np.testing.assert_allclose(model(images), x @ last + bias_3, atol=1e-5)

  def test_cnn_matches_a_plain_rendering(self):
    model = mnist.MNIST.build_keras_model('cnn', seed=3)
    images = np.random.default_rng(1).normal(size=[2, 28, 28, 1])
    images = images.astype(np.float32)
    kernel_1, bias_1, kernel_2, bias_2, dense, bias_3, last, bias_4 = (
        model.get_weights()
    )

    def convolve(x, kernel, bias):
      windows = np.lib.stride_tricks.sliding_window_view(x, (5, 5), (1, 2))
      return np.einsum('bijchw,hwco->bijo', windows, kernel) + bias

    def pool_and_relu(x):
      batch, height, width, channels = x.shape
      x = x.reshape(batch, height // 2, 2, width // 2, 2, channels)
      return np.maximum(x.max(axis=(2, 4)), 0)

    x = pool_and_relu(convolve(images, kernel_1, bias_1))
    x = pool_and_relu(convolve(x, kernel_2, bias_2))
    x = np.maximum(x.reshape(2, -1) @ dense + bias_3, 0)
    np.testing.assert_allclose(model(images), x @ last + bias_4, atol=1e-5)

  @parameterized.parameters(*_IDS)
  def test_initial_weights_are_uniform_within_the_fan_in(self, model_id):
    weights = mnist.MNIST.build_keras_model(model_id, seed=2).get_weights()
    for i, fan_in in enumerate(_FAN_INS[model_id]):
      limit = 1 / np.sqrt(fan_in)
      kernel, bias = weights[2 * i : 2 * i + 2]
      for weight in (kernel, bias):
        self.assertLessEqual(np.abs(weight).max(), limit)
        self.assertGreater(np.abs(weight).max(), 0.6 * limit)
      self.assertAlmostEqual(kernel.mean() / limit, 0, delta=0.12)
      np.testing.assert_allclose(kernel.std(), limit / np.sqrt(3), rtol=0.1)

  @parameterized.parameters(*_IDS)
  def test_seeds_differ_and_no_two_weights_share_numbers(self, model_id):
    first = mnist.MNIST.build_keras_model(model_id, seed=1).get_weights()
    other = mnist.MNIST.build_keras_model(model_id, seed=2).get_weights()
    for a, b in zip(first, other):
      self.assertTrue(np.all(a != b))
    scaled = [weight.ravel()[:10] / np.abs(weight).max() for weight in first]
    for i, weight in enumerate(scaled):
      for later in scaled[i + 1 :]:
        self.assertGreater(np.abs(weight - later).max(), 0.1)

  def test_literal_weights_so_that_no_release_changes_a_run(self):
    weights = mnist.MNIST.build_keras_model('cnn', 1).get_weights()
    np.testing.assert_allclose(weights[0][0, 0, 0, 0], -0.06529255, rtol=1e-5)
    np.testing.assert_allclose(weights[7][0], -0.1049663, rtol=1e-5)
