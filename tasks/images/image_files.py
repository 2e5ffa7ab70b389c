# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads images and their classes from npz files or tensorflow-datasets."""

import collections
from collections.abc import Mapping
import pathlib

import attrs
import numpy as np

from tasks import data_files
from tasks import npz_data
from tff_adaptive import _files
from tff_adaptive.data import feature_arrays


@attrs.frozen
class ImageDataset:
  """A data set of small images, with its files.

  Attributes:
    name: The name of the file and of the data set in tensorflow-datasets.
    title: The name in error messages.
    image_shape: The shape of an image in the file.
    num_classes: Classes are in [0, num_classes).
  """

  name: str
  title: str
  image_shape: tuple[int, ...]
  num_classes: int

  def load(
      self, data_dir: _files.PathLike
  ) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
    """Loads the images in their published form.

    Reads the first of these that exists: `<data_dir>/<name>.npz` with the uint8
    arrays 'x_train', 'y_train', 'x_test' and 'y_test', as in Keras;
    `<data_dir>/tfds/<name>`, as prepared by tensorflow-datasets.

    Args:
      data_dir: The folder of the data sets.

    Returns:
      The training and the test examples. In both 'x' is uint8 of shape
      [num_examples, *image_shape], and 'y' the class, integers of shape
      [num_examples].

    Raises:
      FileNotFoundError: If there are no data; says where to put them and how to
        download them.
      ValueError: If the data are damaged; names the file and the problem.

    Example:

      >>> mnist = ImageDataset('mnist', 'MNIST', (28, 28), 10)
      >>> train, test = mnist.load('data')
      >>> train['x'].shape, test['y'].shape
      ((60000, 28, 28), (10000,))
    """
    source = self._find(data_dir)
    if source.suffix == '.npz':
      parts = npz_data.split(npz_data.read(source))
    else:
      parts = data_files.read_prepared(
          source,
          self._from_prepared,
          f'download it again with '
          f'{data_files.how_to_fetch(self.name, data_dir)}',
      )
    for part, examples in parts.items():
      self.check_examples(source, part, examples)
    return parts['train'], parts['test']

  def check_files(self, data_dir: _files.PathLike) -> None:
    """Raises if there are no data, or the npz file lacks an array; see `load`.

    Args:
      data_dir: The folder of the data sets.
    """
    source = self._find(data_dir)
    if source.suffix == '.npz':
      npz_data.check_names(source)

  def _find(self, data_dir: _files.PathLike) -> pathlib.Path:
    """Returns the npz file, or the folder of tensorflow-datasets."""
    npz = pathlib.Path(data_dir) / f'{self.name}.npz'
    if npz.exists():
      return npz
    prepared = data_files.prepared_version(data_dir, self.name)
    if prepared is None:
      raise FileNotFoundError(
          f'{self.title} was not found: put {npz.name} (arrays '
          f'{", ".join(npz_data.KEYS)}) at {npz}, or download it with '
          f'{data_files.how_to_fetch(self.name, data_dir)}.'
      )
    return prepared

  def _from_prepared(
      self, columns: Mapping[str, np.ndarray]
  ) -> feature_arrays.Examples:
    images = columns['image'].reshape(-1, *self.image_shape)
    return collections.OrderedDict(x=images, y=columns['label'])

  def check_examples(
      self, source: pathlib.Path, part: str, examples: Mapping[str, np.ndarray]
  ) -> None:
    """Raises unless examples are images with matching classes.

    Args:
      source: The source of the examples, for error messages.
      part: The split, 'train' or 'test'.
      examples: As `load` returns them.

    Raises:
      ValueError: If types or shapes differ, there are no examples, or a class
        is out of range.
    """
    found = examples['x'].dtype
    if found != np.uint8:
      raise ValueError(
          f'{source}: x_{part} must be of type uint8, found {found}.'
      )
    npz_data.check_examples(
        source, part, examples, self.image_shape, self.num_classes
    )
