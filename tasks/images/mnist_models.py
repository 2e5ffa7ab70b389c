# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models for MNIST and data sets in its form.

Kernels and biases are uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)], as in
PyTorch; they depend only on the seed.

References:
  CNNMnist of the published code of Kim et al., Adaptive Federated Learning with
  Auto-Tuned Clients, ICLR 2024, https://arxiv.org/abs/2306.11201. Zhou et al.,
  FedCAda: Adaptive Client-Side Optimization for Accelerated and Stable
  Federated Learning, 2024, https://arxiv.org/abs/2405.11811, for the MLP.
  FedAvgCNN of Zhang et al., PFLlib: A Beginner-Friendly and Comprehensive
  Personalized Federated Learning Library and Benchmark, JMLR 26, 2025,
  https://arxiv.org/abs/2312.04992, after McMahan et al.,
  Communication-Efficient Learning of Deep Networks from Decentralized Data,
  AISTATS 2017, https://arxiv.org/abs/1602.05629.
"""

import functools

import keras

from tasks import seeded_layers
from tasks.images import mnist_data

_DROPOUT_RATE = 0.5
_NUM_PIXELS = 784
_MLP_UNITS = (200, 100)

_convolution = functools.partial(
    seeded_layers.uniform_convolution, family='mnist'
)
_dense = functools.partial(seeded_layers.uniform_dense, family='mnist')


def build_logistic(seed: int) -> keras.Model:
  """Builds multinomial logistic regression, 7,850 weights."""
  return _build([keras.layers.Flatten()], _NUM_PIXELS, seed)


def build_mlp(seed: int) -> keras.Model:
  """Builds three dense layers with ReLU between them, 178,110 weights.

  The FedCAda paper gives no sizes; they are 200, 100 and 10 here.

  Args:
    seed: The seed of the initial weights, a non-negative integer.

  Returns:
    A model from images of shape [batch, 28, 28, 1] to logits.
  """
  layers = [keras.layers.Flatten()]
  num_inputs = _NUM_PIXELS
  for i, units in enumerate(_MLP_UNITS, start=1):
    layers.append(_dense(f'dense_{i}', units, num_inputs, seed))
    layers.append(keras.layers.ReLU())
    num_inputs = units
  return _build(layers, num_inputs, seed)


def build_cnn(seed: int) -> keras.Model:
  """Builds the CNN of the Delta-SGD experiments, 21,840 weights.

  Two 5x5 convolutions of 10 and 20 channels without padding, each with a 2x2
  max pool and ReLU, and dense layers of 50 and 10; dropout of 0.5 on whole
  channels after the second convolution and on units before the last layer.

  Args:
    seed: The seed of the initial weights, a non-negative integer.

  Returns:
    A model from images of shape [batch, 28, 28, 1] to logits.
  """
  return _build(
      [
          _convolution('conv_1', 10, 5, 1, seed),
          keras.layers.MaxPool2D(2),
          keras.layers.ReLU(),
          _convolution('conv_2', 20, 5, 10, seed),
          keras.layers.SpatialDropout2D(_DROPOUT_RATE),
          keras.layers.MaxPool2D(2),
          keras.layers.ReLU(),
          keras.layers.Flatten(),
          _dense('dense', 50, 320, seed),
          keras.layers.ReLU(),
          keras.layers.Dropout(_DROPOUT_RATE),
      ],
      50,
      seed,
  )


def build_fedavg_cnn(seed: int) -> keras.Model:
  """Builds the CNN of FedAvg without padding, as in PFLlib, 582,026 weights.

  Two 5x5 convolutions of 32 and 64 channels, each with ReLU and a 2x2 max pool,
  and dense layers of 512 with ReLU and 10.

  Args:
    seed: The seed of the initial weights, a non-negative integer.

  Returns:
    A model from images of shape [batch, 28, 28, 1] to logits.
  """
  return _build(
      [
          _convolution('conv_1', 32, 5, 1, seed),
          keras.layers.ReLU(),
          keras.layers.MaxPool2D(2),
          _convolution('conv_2', 64, 5, 32, seed),
          keras.layers.ReLU(),
          keras.layers.MaxPool2D(2),
          keras.layers.Flatten(),
          _dense('dense', 512, 1024, seed),
          keras.layers.ReLU(),
      ],
      512,
      seed,
  )


def _build(
    layers: list[keras.layers.Layer], num_features: int, seed: int
) -> keras.Model:
  logits = _dense('logits', mnist_data.NUM_CLASSES, num_features, seed)
  return seeded_layers.chain(mnist_data.IMAGE_SHAPE, [*layers, logits])
