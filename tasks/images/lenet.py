# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""LeNet-5 with ReLU and max pools, a common small model of simulators."""

import keras

from tasks import seeded_layers

_FILTERS = (6, 16)
_UNITS = (120, 84)


def build_lenet(
    input_shape: tuple[int, int, int], num_classes: int, seed: int
) -> keras.Model:
  """Builds LeNet-5 with ReLU.

  Two 5x5 convolutions without padding, of 6 and 16 channels, each with a 2x2
  max pool; dense layers of 120 and 84, and a dense layer to the classes. 62,006
  weights for 32x32 color images of ten classes.

  Args:
    input_shape: The height, width and channels of an image.
    num_classes: The number of classes.
    seed: The seed of the initial weights, a non-negative integer. Kernels and
      biases are uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)], as in
      PyTorch.

  Returns:
    A model from images to logits.

  Example:

    >>> build_lenet((32, 32, 3), 10, seed=1).count_params()
    62006

  References:
    LeCun et al., Gradient-Based Learning Applied to Document Recognition,
    Proceedings of the IEEE 1998, with the activations and pools of PyTorch's
    tutorial, https://pytorch.org/tutorials/beginner/blitz/cifar10_tutorial.html,
    which BlazeFL's benchmark trains.
  """
  inputs = keras.Input(input_shape)
  x = inputs
  for i, filters in enumerate(_FILTERS):
    x = seeded_layers.uniform_convolution(
        f'conv_{i + 1}', filters, 5, x.shape[-1], seed
    )(x)
    x = keras.layers.MaxPool2D(2)(keras.layers.ReLU()(x))
  x = keras.layers.Flatten()(x)
  for i, units in enumerate(_UNITS):
    x = seeded_layers.uniform_dense(f'dense_{i + 1}', units, x.shape[-1], seed)(
        x
    )
    x = keras.layers.ReLU()(x)
  logits = seeded_layers.uniform_dense('logits', num_classes, _UNITS[-1], seed)
  return keras.Model(inputs, logits(x))
