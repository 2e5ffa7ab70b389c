# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small convolutional network for CIFAR."""

import keras

from tasks import seeded_layers

_FILTERS = (32, 64, 64)
_UNITS = 64


def build_simple_cnn(
    input_shape: tuple[int, int, int], num_classes: int, seed: int
) -> keras.Model:
  """Builds the small network of the FedCAda experiments.

  Three 3x3 convolutions with ReLU and without padding, of 32, 64 and 64
  channels, a 2x2 max pool after the first two; a dense layer of 64 with ReLU,
  and a dense layer to the classes. 122,570 weights for 32x32 images of ten
  classes.

  Args:
    input_shape: The height, width and channels of an image.
    num_classes: The number of classes.
    seed: The seed of the initial weights, a non-negative integer. Kernels and
      biases are uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)], as in
      PyTorch.

  Returns:
    A model from images to logits.

  Example:

    >>> build_simple_cnn((32, 32, 3), 10, seed=1).count_params()
    122570

  References:
    Zhou et al., FedCAda: Adaptive Client-Side Optimization for Accelerated and
    Stable Federated Learning, 2024, https://arxiv.org/abs/2405.11811. It gives
    only the number of layers; the sizes are those of TensorFlow's tutorial,
    https://www.tensorflow.org/tutorials/images/cnn.
  """
  inputs = keras.Input(input_shape)
  x = inputs
  for i, filters in enumerate(_FILTERS):
    if i:
      x = keras.layers.MaxPool2D(2)(x)
    x = seeded_layers.uniform_convolution(
        f'conv_{i + 1}', filters, 3, x.shape[-1], seed
    )(x)
    x = keras.layers.ReLU()(x)
  x = keras.layers.Flatten()(x)
  x = seeded_layers.uniform_dense('dense', _UNITS, x.shape[-1], seed)(x)
  x = keras.layers.ReLU()(x)
  logits = seeded_layers.uniform_dense('logits', num_classes, _UNITS, seed)
  return keras.Model(inputs, logits(x))
