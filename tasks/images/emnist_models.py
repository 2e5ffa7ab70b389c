# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models that recognize or compress the characters of EMNIST.

Kernels are Glorot uniform and biases zero, Keras' defaults; they depend only on
the seed.

References:
  Reddi et al., Adaptive Federated Optimization, ICLR 2021,
  https://arxiv.org/abs/2003.00295, Appendix C. McMahan et al.,
  Communication-Efficient Learning of Deep Networks from Decentralized Data,
  AISTATS 2017, https://arxiv.org/abs/1602.05629. Zaheer et al., Adaptive
  Methods for Nonconvex Optimization, NeurIPS 2018, for the autoencoder.
  Deviation: the softmax is part of the loss, not of the model; apart from that,
  outputs are those of the models of `tff.simulation.baselines.emnist`.
"""

import functools

import keras

from tasks import seeded_layers
from tasks.images import emnist_data

_HIDDEN_UNITS = 200
_AUTOENCODER_UNITS = (1000, 500, 250, 30, 250, 500, 1000, 784)
_BOTTLENECK = 3

_convolution = functools.partial(
    seeded_layers.glorot_convolution, family='emnist_cr'
)
_dense = functools.partial(seeded_layers.glorot_dense, family='emnist_cr')


def build_cnn_dropout(
    num_classes: int,
    seed: int,
    input_shape: tuple[int, ...] = emnist_data.IMAGE_SHAPE,
) -> keras.Model:
  """Builds the CNN of the FedOpt experiments, 1,206,590 weights on EMNIST.

  Two 3x3 convolutions of 32 and 64 channels without padding, a 2x2 max pool and
  a dense layer of 128, all with ReLU, with dropout of 0.25 before that layer
  and 0.5 after it.

  Args:
    num_classes: The number of classes.
    seed: The seed of the initial weights, a non-negative integer.
    input_shape: The height, width and channels of an image. Default: EMNIST's.

  Returns:
    A model from images to logits.
  """
  return _build(
      [
          _convolution('conv_1', 32, 3, seed),
          _convolution('conv_2', 64, 3, seed),
          keras.layers.MaxPool2D(2),
          keras.layers.Dropout(0.25),
          keras.layers.Flatten(),
          _dense('dense', 128, seed),
          keras.layers.Dropout(0.5),
      ],
      num_classes,
      seed,
      input_shape,
  )


def build_cnn(num_classes: int, seed: int) -> keras.Model:
  """Builds the CNN of the FedAvg experiments, 1,690,046 weights.

  Two padded 5x5 convolutions of 32 and 64 channels, each with a 2x2 max pool,
  and a dense layer of 512.

  Args:
    num_classes: The number of classes.
    seed: The seed of the initial weights, a non-negative integer.

  Returns:
    A model from images of shape [batch, 28, 28, 1] to logits.
  """
  return _build(
      [
          _convolution('conv_1', 32, 5, seed, padding='same'),
          keras.layers.MaxPool2D(2),
          _convolution('conv_2', 64, 5, seed, padding='same'),
          keras.layers.MaxPool2D(2),
          keras.layers.Flatten(),
          _dense('dense', 512, seed),
      ],
      num_classes,
      seed,
  )


def build_two_layer_dnn(num_classes: int, seed: int) -> keras.Model:
  """Builds a network with two dense layers of 200 units, 209,662 weights."""
  return _build(
      [
          keras.layers.Flatten(),
          _dense('dense_1', _HIDDEN_UNITS, seed),
          _dense('dense_2', _HIDDEN_UNITS, seed),
      ],
      num_classes,
      seed,
  )


def build_autoencoder(seed: int) -> keras.Model:
  """Builds the autoencoder, 2,837,314 weights.

  Dense layers of 1000, 500, 250, 30, 250, 500, 1000 and 784 units; all have
  sigmoids, except for the linear layer of 30.

  Args:
    seed: The seed of the initial weights, a non-negative integer.

  Returns:
    A model from pixels of shape [batch, 784] to pixels.
  """
  layers = [
      _dense(
          f'dense_{i + 1}',
          units,
          seed,
          activation='linear' if i == _BOTTLENECK else 'sigmoid',
          family='emnist_ae',
      )
      for i, units in enumerate(_AUTOENCODER_UNITS)
  ]
  return seeded_layers.chain([emnist_data.NUM_PIXELS], layers)


def build_autoencoder_loss() -> keras.losses.Loss:
  """Builds the mean squared error of pixels."""
  return keras.losses.MeanSquaredError()


def build_autoencoder_metrics() -> list[keras.metrics.Metric]:
  """Builds the metrics of TFF's task."""
  return [
      keras.metrics.MeanSquaredError(),
      keras.metrics.MeanAbsoluteError(),
  ]


def _build(
    layers: list[keras.layers.Layer],
    num_classes: int,
    seed: int,
    input_shape: tuple[int, ...] = emnist_data.IMAGE_SHAPE,
) -> keras.Model:
  logits = _dense('logits', num_classes, seed, activation=None)
  return seeded_layers.chain(input_shape, [*layers, logits])
