# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the models for CIFAR."""

import functools

from absl.testing import parameterized
import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_federated as tff

from tasks import cifar10
from tasks import cifar100
from tasks.images import resnet


@functools.lru_cache(maxsize=1)
def _model(model_id, num_classes, augmentation, norm='group', seed=1):
  """Returns a model, of which tests that follow each other share one."""
  task = cifar10.CIFAR10 if num_classes == 10 else cifar100.CIFAR100
  return task.build_keras_model(
      model_id, seed, augmentation=augmentation, norm=norm
  )


def _convolve(x, kernel, strides):
  """Returns a convolution with PyTorch's padding."""
  pad = kernel.shape[0] // 2
  x = np.pad(x, [(0, 0), (pad, pad), (pad, pad), (0, 0)])
  windows = np.lib.stride_tricks.sliding_window_view(
      x, kernel.shape[:2], (1, 2)
  )[:, ::strides, ::strides]
  return np.einsum('bijchw,hwco->bijo', windows, kernel)


def _normalize(x, norm):
  if norm == 'batch':
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) / np.sqrt(variance + 1e-5)
  batch, height, width, channels = x.shape
  groups = x.reshape(batch, height, width, 32, channels // 32)
  mean = groups.mean((1, 2, 4), keepdims=True)
  variance = groups.var((1, 2, 4), keepdims=True)
  return ((groups - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape)


def _plain_resnet18(model, x, norm):
  """Returns the published definition, with initial scales and shifts."""

  def convolve(x, name, strides=1):
    kernel = model.get_layer(name).kernel.numpy().astype(np.float64)
    return _normalize(_convolve(x, kernel, strides), norm)

  def relu(x):
    return np.maximum(x, 0)

  x = relu(convolve(x, 'stem'))
  for stage in range(1, 5):
    for block in (1, 2):
      name = f'stage_{stage}_block_{block}'
      strides = 2 if stage > 1 and block == 1 else 1
      y = relu(convolve(x, f'{name}_conv_1', strides))
      y = convolve(y, f'{name}_conv_2')
      if strides == 2:
        x = convolve(x, f'{name}_shortcut', strides)
      x = relu(x + y)
  logits = model.get_layer('logits')
  return x.mean((1, 2)) @ logits.kernel.numpy() + logits.bias.numpy()


class SimpleCnnTest(parameterized.TestCase):

  def test_layers(self):
    self.assertEqual(
        [
            (type(layer).__name__, layer.output.shape[1:])
            for layer in _model('simple_cnn', 10, 'none').layers[1:]
        ],
        [
            ('Conv2D', (30, 30, 32)),
            ('ReLU', (30, 30, 32)),
            ('MaxPooling2D', (15, 15, 32)),
            ('Conv2D', (13, 13, 64)),
            ('ReLU', (13, 13, 64)),
            ('MaxPooling2D', (6, 6, 64)),
            ('Conv2D', (4, 4, 64)),
            ('ReLU', (4, 4, 64)),
            ('Flatten', (1024,)),
            ('Dense', (64,)),
            ('ReLU', (64,)),
            ('Dense', (10,)),
        ],
    )


class ResNetTest(parameterized.TestCase):

  @parameterized.parameters('group', 'batch')
  @pytest.mark.slow
  def test_resnet18(self, norm):
    model = _model('resnet18', 10, 'delta_sgd', norm)
    self.assertEqual(model.count_params(), 11173962)
    self.assertEmpty(model.non_trainable_weights)
    kernel = model.get_layer('stage_2_block_1_conv_1').get_weights()[0]
    limit = 1 / np.sqrt(9 * 64)
    self.assertBetween(np.abs(kernel).max(), 0.99 * limit, limit)

  @parameterized.parameters(
      ('batch_moving', 1 + 16 + 3), ('batch_delta_sgd', 1 + 3)
  )
  @pytest.mark.slow
  def test_resnet18_with_moving_averages(self, norm, num_layers):
    model = resnet.build_resnet18((8, 8, 3), 10, seed=3, norm=norm)
    self.assertLen(model.trainable_weights, 3 * 20 + 2)
    self.assertLen(model.non_trainable_weights, 2 * num_layers)

  @pytest.mark.slow
  def test_resnet50_has_the_moving_averages_of_the_delta_sgd_code(self):
    model = resnet.build_resnet50((8, 8, 3), 10, 3, norm='batch_delta_sgd')
    self.assertLen(model.non_trainable_weights, 2 * (1 + 48 + 4))

  @parameterized.parameters('group', 'batch')
  @pytest.mark.slow
  def test_resnet18_matches_a_plain_rendering(self, norm):
    model = resnet.build_resnet18((8, 8, 3), 10, seed=3, norm=norm)
    images = np.random.default_rng(1).normal(size=[3, 8, 8, 3])
    np.testing.assert_allclose(
        model(images.astype(np.float32)),
        _plain_resnet18(model, images, norm),
        atol=2e-3,
    )

  @pytest.mark.slow
  def test_resnet50(self):
    model = _model('resnet50', 10, 'delta_sgd', 'batch')
    self.assertEqual(model.count_params(), 23520842)
    strides = {
        layer.name: layer.strides[0]
        for layer in model.layers
        if isinstance(layer, keras.layers.Conv2D) and layer.strides[0] > 1
    }
    self.assertEqual(
        strides,
        {
            f'stage_{stage}_block_1_{part}': 2
            for stage in (2, 3, 4)
            for part in ('conv_2', 'shortcut')
        },
    )


class ResNetV2Test(parameterized.TestCase):

  @parameterized.parameters(
      ('resnet18_v2', 'create_resnet18', 11227812),
      ('resnet50_v2', 'create_resnet50', 23712932),
  )
  @pytest.mark.slow
  def test_is_the_one_of_tff(self, model_id, create, num_weights):
    model = _model(model_id, 100, 'fedopt')
    self.assertEqual(model.count_params(), num_weights)
    published = getattr(tff.simulation.models.resnet_models, create)(
        (24, 24, 3), 100
    )
    published.set_weights(model.get_weights())
    images = np.random.default_rng(1).normal(size=[2, 24, 24, 3])
    images = images.astype(np.float32)
    np.testing.assert_allclose(
        tf.nn.softmax(model(images)), published(images), atol=1e-6
    )
    np.testing.assert_allclose(
        tf.add_n(model.losses), tf.add_n(published.losses), rtol=1e-6
    )

  @pytest.mark.slow
  def test_initial_weights(self):
    model = _model('resnet18_v2', 100, 'fedopt')
    expected = model.get_weights()
    again = cifar100.CIFAR100.build_keras_model('resnet18_v2', 1)
    tf.nest.map_structure(
        np.testing.assert_array_equal, again.get_weights(), expected
    )
    kernel = again.get_layer('stage_2_block_1_conv_1').get_weights()[0]
    np.testing.assert_allclose(kernel.std(), np.sqrt(2 / 576), rtol=0.02)
    logits, bias = again.get_layer('logits').get_weights()
    np.testing.assert_allclose(logits.std(), 0.01, rtol=0.02)
    np.testing.assert_array_equal(bias, 0)
