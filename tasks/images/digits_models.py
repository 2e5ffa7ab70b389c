# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models for the handwritten digits, with seeded initial weights.

Kernels are Glorot uniform and biases 0, Keras' defaults.
"""

import functools

import keras

from tasks import seeded_layers
from tasks.images import digits_data

_convolution = functools.partial(
    seeded_layers.glorot_convolution, family='digits'
)
_dense = functools.partial(seeded_layers.glorot_dense, family='digits')


def build_logistic(seed: int) -> keras.Model:
  """Builds multinomial logistic regression, 650 weights."""
  return _build([keras.layers.Flatten()], seed)


def build_cnn(seed: int) -> keras.Model:
  """Builds two 3x3 convolutions and a dense layer, 23,946 weights."""
  return _build(
      [
          _convolution('conv_1', 16, 3, seed, padding='same'),
          _convolution('conv_2', 32, 3, seed),
          keras.layers.MaxPool2D(2),
          keras.layers.Flatten(),
          _dense('dense', 64, seed),
      ],
      seed,
  )


def _build(layers: list[keras.layers.Layer], seed: int) -> keras.Model:
  logits = _dense('logits', digits_data.NUM_CLASSES, seed, activation=None)
  return seeded_layers.chain(digits_data.IMAGE_SHAPE, [*layers, logits])
