# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""MNIST, and data sets in its form: 28x28 gray pixels, ten classes."""

import collections
from collections.abc import Mapping

import attrs
import numpy as np

from tasks import data
from tasks import npz_data
from tasks import synthetic_data
from tasks.images import image_files
from tff_adaptive.data import feature_arrays

NUM_CLASSES = 10
IMAGE_SHAPE = (28, 28, 1)
# The mean and deviation of MNIST's training pixels after division by 255.
_MEAN = 0.1307
_STANDARD_DEVIATION = 0.3081


def scale(raw: Mapping[str, np.ndarray]) -> feature_arrays.Examples:
  """Scales published examples for the models.

  ```
  x = (pixel / 255 - 0.1307) / 0.3081
  ```

  Args:
    raw: 'x', uint8 of shape [num_examples, 28, 28], and the classes 'y',
      integers of shape [num_examples].

  Returns:
    'x' as float32 of shape [num_examples, 28, 28, 1], of mean 0 and variance 1
    over MNIST's training images, and 'y' as int32.

  Example:

    >>> black = {'x': np.zeros([1, 28, 28], np.uint8), 'y': np.array([7])}
    >>> float(scale(black)['x'].max())
    -0.4242129623889923
  """
  # Few passes over the images, and only one copy.
  scaled = raw['x'].reshape((-1,) + IMAGE_SHAPE).astype(np.float32)
  scaled /= npz_data.MAX_PIXEL
  scaled -= _MEAN
  scaled /= _STANDARD_DEVIATION
  return collections.OrderedDict(x=scaled, y=raw['y'].astype(np.int32))


@attrs.frozen
class GrayImages(data.Data):
  """Images in MNIST's form, scaled like MNIST.

  Attributes:
    images: The data set.
  """

  images: image_files.ImageDataset

  def check_files(self, data_dir):
    self.images.check_files(data_dir)

  def load(self, args, data_dir, seed):
    del args, seed  # Unused.
    return data.Splits(*self.images.load(data_dir))

  def published_spec(self):
    return data.spec(x=('uint8', IMAGE_SHAPE[:2]), y=('int32', []))

  def element_spec(self, args):
    return data.spec(x=('float32', IMAGE_SHAPE), y=('int32', []))

  def num_classes(self, args):
    return NUM_CLASSES

  def build_prepare(self, args, train, data_dir):
    return scale

  @property
  def synthetic_files(self):
    write = synthetic_data.npz(NUM_CLASSES, *IMAGE_SHAPE[:2])
    return {f'{self.images.name}.npz': write}


def _build(name: str, title: str) -> GrayImages:
  shape = IMAGE_SHAPE[:2]
  return GrayImages(image_files.ImageDataset(name, title, shape, NUM_CLASSES))


MNIST = _build('mnist', 'MNIST')
FASHION_MNIST = _build('fashion_mnist', 'Fashion-MNIST')
