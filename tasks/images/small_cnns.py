# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small convolutional networks for CIFAR.

Each takes the height, width and channels of an image, the number of classes and
a seed, a non-negative integer, and gives a model from images to logits. Kernels
and biases are uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)], as in PyTorch.
"""

from collections.abc import Mapping, Sequence

import keras

from tasks import seeded_layers

_NUM_POOLS = 2


def build_lenet(
    input_shape: tuple[int, int, int], num_classes: int, seed: int
) -> keras.Model:
  """Builds LeNet-5 with ReLU.

  Two 5x5 convolutions without padding, of 6 and 16 channels, each with a 2x2
  max pool; dense layers of 120 and 84, and a dense layer to the classes. 62,006
  weights for 32x32 color images of ten classes.

  Example:

    >>> build_lenet((32, 32, 3), 10, seed=1).count_params()
    62006

  References:
    LeCun et al., Gradient-Based Learning Applied to Document Recognition,
    Proceedings of the IEEE 1998, with the activations and pools of PyTorch's
    tutorial, https://pytorch.org/tutorials/beginner/blitz/cifar10_tutorial.html,
    which BlazeFL's benchmark trains.
  """
  units = {'dense_1': 120, 'dense_2': 84, 'logits': num_classes}
  return _build(input_shape, 5, (6, 16), units, seed)


def build_simple_cnn(
    input_shape: tuple[int, int, int], num_classes: int, seed: int
) -> keras.Model:
  """Builds the small network of the FedCAda experiments.

  Three 3x3 convolutions with ReLU and without padding, of 32, 64 and 64
  channels, a 2x2 max pool after the first two; a dense layer of 64 with ReLU,
  and a dense layer to the classes. 122,570 weights for 32x32 images of ten
  classes.

  Example:

    >>> build_simple_cnn((32, 32, 3), 10, seed=1).count_params()
    122570

  References:
    Zhou et al., FedCAda: Adaptive Client-Side Optimization for Accelerated and
    Stable Federated Learning, 2024, https://arxiv.org/abs/2405.11811. It gives
    only the number of layers; the sizes are those of TensorFlow's tutorial,
    https://www.tensorflow.org/tutorials/images/cnn.
  """
  units = {'dense': 64, 'logits': num_classes}
  return _build(input_shape, 3, (32, 64, 64), units, seed)


def _build(
    input_shape: tuple[int, int, int],
    kernel_size: int,
    filters: Sequence[int],
    units: Mapping[str, int],
    seed: int,
) -> keras.Model:
  """Builds convolutions, of which the first two are pooled, and dense layers.

  Args:
    input_shape: The height, width and channels of an image.
    kernel_size: The height and the width of the kernels.
    filters: The output channels of each convolution.
    units: The outputs of each dense layer, by its name; all but the last one
      have a ReLU.
    seed: The seed of the initial weights.
  """
  inputs = keras.Input(input_shape)
  x = inputs
  for i, channels in enumerate(filters):
    x = seeded_layers.uniform_convolution(
        f'conv_{i + 1}', channels, kernel_size, x.shape[-1], seed
    )(x)
    x = keras.layers.ReLU()(x)
    if i < _NUM_POOLS:
      x = keras.layers.MaxPool2D(2)(x)
  x = keras.layers.Flatten()(x)
  for i, (name, size) in enumerate(units.items()):
    if i:
      x = keras.layers.ReLU()(x)
    x = seeded_layers.uniform_dense(name, size, x.shape[-1], seed)(x)
  return keras.Model(inputs, x)
