# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models for the handwritten digits, with seeded initial weights.

Kernels are Glorot uniform and biases 0, Keras' defaults.
"""

import functools

import tensorflow as tf

from tasks import seeded_layers
from tasks.images import digits_data

_convolution = functools.partial(
    seeded_layers.glorot_convolution, family='digits'
)
_dense = functools.partial(seeded_layers.glorot_dense, family='digits')


def build_logistic(seed: int) -> tf.keras.Model:
  """Builds multinomial logistic regression, 650 weights."""
  return _build([tf.keras.layers.Flatten()], seed)


def build_cnn(seed: int) -> tf.keras.Model:
  """Builds two 3x3 convolutions and a dense layer, 23,946 weights."""
  return _build(
      [
          _convolution('conv_1', 16, 3, seed, padding='same'),
          _convolution('conv_2', 32, 3, seed),
          tf.keras.layers.MaxPool2D(2),
          tf.keras.layers.Flatten(),
          _dense('dense', 64, seed),
      ],
      seed,
  )


def _build(layers: list[tf.keras.layers.Layer], seed: int) -> tf.keras.Model:
  logits = _dense('logits', digits_data.NUM_CLASSES, seed, activation=None)
  return seeded_layers.chain(digits_data.IMAGE_SHAPE, [*layers, logits])
