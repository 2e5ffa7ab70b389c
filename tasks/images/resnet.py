# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""ResNets for small images, with normalization after every convolution."""

import keras

from tasks import seeded_layers
from tasks.images import batch_statistics

# PyTorch's epsilon of batch and group normalization.
_EPSILON = 1e-5
_GROUPS = 32
# One minus that of PyTorch.
_MOMENTUM = 0.9
_STAGE_FILTERS = (64, 128, 256, 512)
# The convolutions of a block: the size of the kernel, and the output channels
# as a multiple of the stage's. The last but one has the strides.
_Body = tuple[tuple[int, int], ...]
_BASIC: _Body = ((3, 1), (3, 1))
_BOTTLENECK: _Body = ((1, 1), (3, 1), (1, 4))


def build_resnet18(
    input_shape: tuple[int, int, int],
    num_classes: int,
    seed: int,
    *,
    norm: str = 'group',
) -> keras.Model:
  """Builds the ResNet-18 for CIFAR, with basic blocks.

  A 3x3 convolution of 64 channels without max pool; four stages of two blocks
  with 64, 128, 256 and 512 channels and the strides 1, 2, 2 and 2; the mean
  over the image; a dense layer. A block applies ReLU to the sum of two 3x3
  convolutions and its input, or a 1x1 convolution of the input if the shape
  changes. Padding is one pixel on all sides, as in PyTorch; Keras' 'same' is
  asymmetric at stride 2. 11,173,962 weights for ten classes.

  Args:
    input_shape: The height, width and channels of an image.
    num_classes: The number of classes.
    seed: The seed of the initial weights, a non-negative integer. Kernels and
      biases are uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)], as in
      PyTorch.
    norm: 'group' (the default) for `keras.layers.GroupNormalization` with 32
      groups; 'batch' for batch normalization without moving averages, see
      `batch_statistics`; 'batch_moving' for Keras' with momentum 0.9;
      'batch_delta_sgd' for the latter where the code of Delta-SGD has it, here
      in the stem and the shortcuts, and the former elsewhere.

  Returns:
    A model from images to logits.

  Example:

    >>> build_resnet18((32, 32, 3), 10, seed=1).count_params()
    11173962

  References:
    He et al., Deep Residual Learning for Image Recognition, CVPR 2016,
    https://arxiv.org/abs/1512.03385; in the form of
    https://github.com/kuangliu/pytorch-cifar, which Kim et al., Adaptive
    Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, train, with 'batch_delta_sgd'. Groups: Wu
    and He, Group Normalization, ECCV 2018, https://arxiv.org/abs/1803.08494.
  """
  network = _Network(seed, norm)
  return network.build(input_shape, num_classes, (2, 2, 2, 2), _BASIC)


def build_resnet50(
    input_shape: tuple[int, int, int],
    num_classes: int,
    seed: int,
    *,
    norm: str = 'group',
) -> keras.Model:
  """Builds the ResNet-50 for CIFAR, with bottleneck blocks.

  Like `build_resnet18`, with 3, 4, 6 and 3 blocks of a 1x1 convolution, a 3x3
  convolution with the stride, and a 1x1 convolution with four times as many
  channels. 23,520,842 weights for ten classes. Takes the same arguments; here
  'batch_delta_sgd' is 'batch_moving', since in the code of Delta-SGD only basic
  blocks are without moving averages.

  Returns:
    A model from images to logits.

  Example:

    >>> build_resnet50((32, 32, 3), 10, seed=1).count_params()
    23520842

  References: see `build_resnet18`.
  """
  if norm == 'batch_delta_sgd':
    norm = 'batch_moving'
  network = _Network(seed, norm)
  return network.build(input_shape, num_classes, (3, 4, 6, 3), _BOTTLENECK)


class _Network:
  """Adds layers to a graph of Keras tensors, seeded by their names."""

  def __init__(self, seed: int, norm: str):
    self._seed = seed
    self._norm = norm

  def build(
      self,
      input_shape: tuple[int, int, int],
      num_classes: int,
      num_blocks: tuple[int, ...],
      body: _Body,
  ) -> keras.Model:
    """Returns the model."""
    inputs = keras.Input(input_shape)
    x = self._convolution(inputs, 'stem', _STAGE_FILTERS[0], 3)
    x = keras.layers.ReLU()(x)
    for stage, (filters, blocks) in enumerate(zip(_STAGE_FILTERS, num_blocks)):
      for i in range(blocks):
        name = f'stage_{stage + 1}_block_{i + 1}'
        strides = 2 if stage and not i else 1
        residual = x
        for j, (kernel_size, multiple) in enumerate(body):
          residual = self._convolution(
              keras.layers.ReLU()(residual) if j else residual,
              f'{name}_conv_{j + 1}',
              multiple * filters,
              kernel_size,
              strides if j == len(body) - 2 else 1,
          )
        x = self._shortcut(x, name, residual.shape[-1], strides)
        x = keras.layers.ReLU()(keras.layers.Add()([residual, x]))
    x = keras.layers.GlobalAveragePooling2D()(x)
    logits = seeded_layers.uniform_dense(
        'logits', num_classes, x.shape[-1], self._seed
    )
    return keras.Model(inputs, logits(x))

  def _shortcut(self, x, name, filters, strides):
    if strides == 1 and x.shape[-1] == filters:
      return x
    return self._convolution(x, f'{name}_shortcut', filters, 1, strides)

  def _convolution(self, x, name, filters, kernel_size, strides=1):
    """Adds a convolution without bias, and its normalization."""
    convolution = seeded_layers.uniform_convolution(
        name,
        filters,
        kernel_size,
        x.shape[-1],
        self._seed,
        use_bias=False,
        strides=strides,
        padding='valid' if strides > 1 else 'same',
    )
    if strides > 1 and kernel_size > 1:
      x = keras.layers.ZeroPadding2D(kernel_size // 2)(x)
    return self._normalization(f'{name}_norm')(convolution(x))

  def _normalization(self, name):
    norm = self._norm
    if norm == 'batch_delta_sgd':
      has_averages = name.startswith('stem') or 'shortcut' in name
      norm = 'batch_moving' if has_averages else 'batch'
    if norm == 'batch':
      return batch_statistics.BatchStatisticsNormalization(_EPSILON, name=name)
    if norm == 'batch_moving':
      return keras.layers.BatchNormalization(
          momentum=_MOMENTUM, epsilon=_EPSILON, name=name
      )
    if norm == 'group':
      return keras.layers.GroupNormalization(
          _GROUPS, epsilon=_EPSILON, name=name
      )
    raise ValueError(
        "`norm` must be 'group', 'batch', 'batch_moving' or "
        f"'batch_delta_sgd', found {norm!r}."
    )
