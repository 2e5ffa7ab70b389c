# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models for the handwritten digits, with seeded initial weights.

Kernels are Glorot uniform and biases 0, Keras' defaults.
"""

import tensorflow as tf

from tasks import seeded_layers
from tasks.images import digits_data


def build_logistic(seed: int) -> tf.keras.Model:
  """Builds multinomial logistic regression, 650 weights."""
  return _build([tf.keras.layers.Flatten()], seed)


def build_cnn(seed: int) -> tf.keras.Model:
  """Builds two 3x3 convolutions and a dense layer, 23,946 weights."""
  convolutions = [
      tf.keras.layers.Conv2D(
          filters,
          3,
          activation='relu',
          padding=padding,
          kernel_initializer=_kernel(name, seed),
          name=name,
      )
      for name, filters, padding in (
          ('conv_1', 16, 'same'),
          ('conv_2', 32, 'valid'),
      )
  ]
  return _build(
      [
          *convolutions,
          tf.keras.layers.MaxPool2D(2),
          tf.keras.layers.Flatten(),
          tf.keras.layers.Dense(
              64,
              activation='relu',
              kernel_initializer=_kernel('dense', seed),
              name='dense',
          ),
      ],
      seed,
  )


def _build(layers: list[tf.keras.layers.Layer], seed: int) -> tf.keras.Model:
  logits = tf.keras.layers.Dense(
      digits_data.NUM_CLASSES,
      kernel_initializer=_kernel('logits', seed),
      name='logits',
  )
  return seeded_layers.chain(digits_data.IMAGE_SHAPE, [*layers, logits])


def _kernel(layer: str, seed: int) -> tf.keras.initializers.Initializer:
  return seeded_layers.glorot_uniform(seed, 'digits', layer)
