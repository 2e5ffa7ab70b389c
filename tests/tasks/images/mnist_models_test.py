# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `mnist_models`."""

from absl.testing import parameterized
import numpy as np

from tasks import mnist


class MnistModelsTest(parameterized.TestCase):

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
