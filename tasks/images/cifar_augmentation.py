# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Augmentation and scaling of CIFAR's images."""

import collections
from collections.abc import Mapping
from typing import Optional

import attrs
import numpy as np

from tasks import data
from tff_adaptive.data import batching
from tff_adaptive.data import feature_arrays

IMAGE_SIZE = 32
IMAGE_SHAPE = (IMAGE_SIZE, IMAGE_SIZE, 3)
# The names of augmentations.
FEDOPT = 'fedopt'
DELTA_SGD = 'delta_sgd'
NONE = 'none'
AUGMENTATIONS = (FEDOPT, DELTA_SGD, NONE)

_CROP_SIZE = 24
_PADDING = 4
_MAX_PIXEL = 255.0


@attrs.frozen
class ChannelStatistics:
  """The scaling of each channel, after division by 255.

  Attributes:
    mean: The value to subtract, for each of the three channels.
    deviation: The value to divide by, in the same way.
  """

  mean: tuple[float, float, float]
  deviation: tuple[float, float, float]


def crop_size(augmentation: str) -> int:
  """Returns the height and width of an augmentation's images.

  Args:
    augmentation: One of `AUGMENTATIONS`.

  Returns:
    24 for 'fedopt', else 32.

  Raises:
    ValueError: If there is no such augmentation.

  Example:

    >>> crop_size('fedopt')
    24
  """
  if augmentation not in AUGMENTATIONS:
    raise ValueError(
        f'`augmentation` must be one of {list(AUGMENTATIONS)}, found '
        f'{augmentation!r}.'
    )
  return _CROP_SIZE if augmentation == FEDOPT else IMAGE_SIZE


def to_model_inputs(
    examples: Mapping[str, np.ndarray],
    augmentation: str,
    statistics: ChannelStatistics,
    generator: Optional[np.random.Generator] = None,
) -> feature_arrays.Examples:
  """Crops, flips and scales images.

  ```
  fedopt:           x = (crop - mean(crop)) / max(std(crop), 1 / sqrt(1728))
  delta_sgd, none:  x = (pixel / 255 - mean of channel) / deviation of channel
  ```

  'fedopt' crops to 24x24 and standardizes each image, like
  `tf.image.per_image_standardization`; 'delta_sgd' pads by four black pixels on
  all sides and crops to 32x32. Both flip half of the images horizontally.
  Without a generator nothing is random: 'fedopt' crops the center, the others
  keep the whole image.

  Args:
    examples: 'x', uint8 of shape [n, 32, 32, 3], and 'y'.
    augmentation: One of `AUGMENTATIONS`.
    statistics: The statistics of the data set; unused by 'fedopt'.
    generator: The source of random numbers in training. None (the default) in
      evaluation.

  Returns:
    'x' as float32 of shape [n, size, size, 3], see `crop_size`, and 'y'.

  Example:

    >>> statistics = ChannelStatistics((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
    >>> black = {'x': np.zeros([1, 32, 32, 3], np.uint8), 'y': np.array([3])}
    >>> float(to_model_inputs(black, 'none', statistics)['x'].max())
    -2.0

  References:
    'fedopt': Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Appendix C, as in
    `tff.simulation.baselines.cifar100` with distorted training images.
    'delta_sgd': Kim et al., Adaptive Federated Learning with Auto-Tuned
    Clients, ICLR 2024, https://arxiv.org/abs/2306.11201, and its published
    code.
  """
  images = examples['x']
  size = crop_size(augmentation)
  if augmentation == NONE:
    generator = None
  if generator is not None:
    padding = _PADDING if augmentation == DELTA_SGD else 0
    images = _random_crops(images, size, padding, generator)
  elif size < IMAGE_SIZE:
    start = (IMAGE_SIZE - size) // 2
    images = images[:, start : start + size, start : start + size]
  if augmentation == FEDOPT:
    x = _standardize_images(images)
  else:
    x = _standardize_channels(images, statistics)
  return collections.OrderedDict(x=x, y=examples['y'])


def build_augmentation(
    augmentation: str, statistics: ChannelStatistics
) -> batching.Augmentation:
  """Builds the augmentation of clients' images for training.

  Args:
    augmentation: One of `AUGMENTATIONS`, see `to_model_inputs`.
    statistics: The statistics of the data set.

  Returns:
    An augmentation for clients with uint8 images.

  Example:

    >>> statistics = ChannelStatistics((0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
    >>> build_augmentation('fedopt', statistics).element_spec['x'].shape
    TensorShape([24, 24, 3])
  """

  def augment(examples, generator):
    return to_model_inputs(examples, augmentation, statistics, generator)

  return batching.Augmentation(
      augment,
      element_spec(augmentation),
      lambda examples: to_model_inputs(examples, augmentation, statistics),
  )


def element_spec(augmentation: str) -> feature_arrays.ElementSpec:
  """Returns the spec of one example in the model's form.

  Args:
    augmentation: One of `AUGMENTATIONS`.

  Returns:
    The specs of 'x' and 'y'.

  Example:

    >>> element_spec('none')['x'].shape
    TensorShape([32, 32, 3])
  """
  size = crop_size(augmentation)
  return data.spec(x=('float32', [size, size, 3]), y=('int32', []))


def _random_crops(
    images: np.ndarray,
    size: int,
    padding: int,
    generator: np.random.Generator,
) -> np.ndarray:
  """Returns a random crop of each image, half of them flipped."""
  num_images = len(images)
  width = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
  padded = np.pad(images, width) if padding else images
  padded_size = padded.shape[1]
  tops, lefts = generator.integers(0, padded_size - size + 1, [2, num_images])
  is_flipped = generator.random(num_images) < 0.5
  rows = tops[:, np.newaxis] + np.arange(size)
  columns = np.where(
      is_flipped[:, np.newaxis], np.arange(size)[::-1], np.arange(size)
  )
  columns += lefts[:, np.newaxis]
  # Pixels by their flat index: one gather is several times faster than an index
  # for each axis.
  firsts = np.arange(num_images)[:, np.newaxis] * padded_size
  pixels = (firsts + rows)[:, :, np.newaxis] * padded_size
  pixels = pixels + columns[:, np.newaxis, :]
  return padded.reshape(-1, 3).take(pixels, axis=0)


def _standardize_images(images: np.ndarray) -> np.ndarray:
  """Scales each image to mean 0 and variance 1, unless it is nearly flat."""
  x = images.astype(np.float32)
  axes = (1, 2, 3)
  x -= x.mean(axes, keepdims=True)
  deviation = np.sqrt(np.square(x).mean(axes, keepdims=True))
  x /= np.maximum(deviation, np.float32(1 / np.sqrt(np.prod(x.shape[1:]))))
  return x


def _standardize_channels(
    images: np.ndarray, statistics: ChannelStatistics
) -> np.ndarray:
  # As rows of pixels: NumPy is slow if the last axis is as short as three.
  num_columns = images.shape[2]
  rows = images.reshape(-1, num_columns * 3).astype(np.float32)
  rows /= _MAX_PIXEL
  rows -= np.tile(np.asarray(statistics.mean, np.float32), num_columns)
  rows /= np.tile(np.asarray(statistics.deviation, np.float32), num_columns)
  return rows.reshape(images.shape)
