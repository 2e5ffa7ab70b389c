# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""ResNets with normalization before every convolution, as in TFF."""

import keras

from tasks import seeded_layers

_STAGE_FILTERS = (64, 128, 256, 512)
_EXPANSION = 4
_L2 = 1e-4
_LOGITS_DEVIATION = 0.01


def build_resnet18_v2(
    input_shape: tuple[int, int, int], num_classes: int, seed: int
) -> keras.Model:
  """Builds the ResNet-18 of the FedOpt experiments, with basic blocks.

  A 7x7 convolution of 64 channels with stride 2, normalization, ReLU, and a 3x3
  max pool with stride 2; four stages of two blocks with 64, 128, 256 and 512
  channels, all with stride 1; normalization, ReLU, the mean over the image, a
  dense layer. A block adds two 3x3 convolutions, each after normalization and
  ReLU (except for the very first, whose input has had them), to its input, or
  to a normalized 1x1 convolution of the input if the channels change. Group
  normalization has 32 groups. All kernels and the last bias have the penalty
  1e-4 * sum of squares.

  Args:
    input_shape: The height, width and channels of an image.
    num_classes: The number of classes.
    seed: The seed of the initial weights, a non-negative integer. Kernels are
      He normal, that of the dense layer normal with deviation 0.01; biases are
      0.

  Returns:
    A model from images to logits; TFF's ends with a softmax.

  Example:

    >>> build_resnet18_v2((24, 24, 3), 100, seed=1).count_params()
    11227812

  References:
    He et al., Identity Mappings in Deep Residual Networks, ECCV 2016,
    https://arxiv.org/abs/1603.05027; Reddi et al., Adaptive Federated
    Optimization, ICLR 2021, https://arxiv.org/abs/2003.00295, Appendix C; in
    the form of `tff.simulation.models.resnet_models`, whose stages have no
    strides.
  """
  return _build(input_shape, num_classes, seed, (2, 2, 2, 2), ((3, 1),) * 2)


def build_resnet50_v2(
    input_shape: tuple[int, int, int], num_classes: int, seed: int
) -> keras.Model:
  """Builds the ResNet-50 of TFF's baselines, with bottleneck blocks.

  Like `build_resnet18_v2`, with 3, 4, 6 and 3 blocks of a 1x1, a 3x3 and a 1x1
  convolution, the last with four times as many channels. Takes the same
  arguments.

  Returns:
    A model from images to logits.

  Example:

    >>> model = build_resnet50_v2((24, 24, 3), 100, seed=1)
    >>> model.output_shape
    (None, 100)

  References: see `build_resnet18_v2`.
  """
  body = ((1, 1), (3, 1), (1, _EXPANSION))
  return _build(input_shape, num_classes, seed, (3, 4, 6, 3), body)


def _build(
    input_shape: tuple[int, int, int],
    num_classes: int,
    seed: int,
    num_blocks: tuple[int, ...],
    body: tuple[tuple[int, int], ...],
) -> keras.Model:
  """Returns the model; `body` lists the convolutions' (size, expansion)."""
  inputs = keras.Input(input_shape)
  x = _convolution('stem', _STAGE_FILTERS[0], 7, seed, strides=2)(inputs)
  x = _norm_relu(x, 'stem')
  x = keras.layers.MaxPool2D(3, strides=2, padding='same')(x)
  for stage, (filters, blocks) in enumerate(zip(_STAGE_FILTERS, num_blocks)):
    for i in range(blocks):
      name = f'stage_{stage + 1}_block_{i + 1}'
      residual = x
      for j, (kernel_size, expansion) in enumerate(body):
        part = f'{name}_conv_{j + 1}'
        if stage or i or j:
          residual = _norm_relu(residual, part)
        residual = _convolution(part, expansion * filters, kernel_size, seed)(
            residual
        )
      x = keras.layers.Add()([_shortcut(x, residual, name, seed), residual])
  x = keras.layers.GlobalAveragePooling2D()(_norm_relu(x, 'last'))
  return keras.Model(inputs, _logits(num_classes, seed)(x))


def _shortcut(x, residual, name, seed):
  if x.shape[-1] == residual.shape[-1]:
    return x
  x = _convolution(f'{name}_shortcut', residual.shape[-1], 1, seed)(x)
  return keras.layers.GroupNormalization(name=f'{name}_shortcut_norm')(x)


def _norm_relu(x, name):
  x = keras.layers.GroupNormalization(name=f'{name}_norm')(x)
  return keras.layers.ReLU()(x)


def _convolution(name, filters, kernel_size, seed, strides=1):
  return keras.layers.Conv2D(
      filters,
      kernel_size,
      strides=strides,
      padding='same',
      use_bias=False,
      kernel_initializer=keras.initializers.HeNormal(_seed(seed, name)),
      kernel_regularizer=keras.regularizers.L2(_L2),
      name=name,
  )


def _logits(num_classes, seed):
  return keras.layers.Dense(
      num_classes,
      kernel_initializer=keras.initializers.RandomNormal(
          stddev=_LOGITS_DEVIATION,
          seed=_seed(seed, 'logits'),
      ),
      kernel_regularizer=keras.regularizers.L2(_L2),
      bias_regularizer=keras.regularizers.L2(_L2),
      name='logits',
  )


def _seed(seed, layer):
  return seeded_layers.initializer_seed(
      seed, seeded_layers.CIFAR, layer, 'kernel'
  )
