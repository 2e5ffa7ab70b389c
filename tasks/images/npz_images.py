# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads images and their classes from npz files or tensorflow-datasets.

Scaling and shapes are those of MNIST and of data sets in its form: 28x28 gray
pixels, ten classes.
"""

import collections
from collections.abc import Mapping, Sequence
import os
import pathlib
from typing import Optional, Union

import attrs
import numpy as np

from tasks import data
from tasks import data_files
from tasks import synthetic_data
from tff_adaptive import _error_texts
from tff_adaptive.data import checks
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import npz_files
from tff_adaptive.data import partition

NUM_CLASSES = 10
IMAGE_SHAPE = (28, 28, 1)
# The mean and deviation of MNIST's training pixels after division by 255.
MEAN = 0.1307
STANDARD_DEVIATION = 0.3081

_KEYS = ('x_train', 'y_train', 'x_test', 'y_test')
_MAX_PIXEL = 255.0

_PathLike = Union[str, os.PathLike]


@attrs.frozen
class ImageDataset:
  """A data set of small images, with its files.

  Attributes:
    name: The name of the file and of the data set in tensorflow-datasets.
    title: The name in error messages.
    image_shape: The shape of an image in the file. Defaults to MNIST's.
    num_classes: Classes are in [0, num_classes). Defaults to 10.
  """

  name: str
  title: str
  image_shape: tuple[int, ...] = IMAGE_SHAPE[:2]
  num_classes: int = NUM_CLASSES

  def load(
      self, data_dir: _PathLike
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

      >>> train, test = ImageDataset('mnist', 'MNIST').load('data')
      >>> train['x'].shape, test['y'].shape
      ((60000, 28, 28), (10000,))
    """
    folder = pathlib.Path(data_dir)
    npz = folder / f'{self.name}.npz'
    fetch = f'`.venv/bin/python -m tasks.fetch {self.name} --data_dir={folder}`'
    prepared = data_files.prepared_version(folder, self.name)
    if npz.exists():
      source, parts = npz, _split(_read_npz(npz))
    elif prepared is not None:
      source = prepared
      parts = data_files.read_prepared(
          prepared, self._from_prepared, f'download it again with {fetch}'
      )
    else:
      raise FileNotFoundError(
          f'{self.title} was not found: put {npz.name} (arrays '
          f'{", ".join(_KEYS)}) at {npz}, or download it with {fetch}.'
      )
    for part, examples in parts.items():
      self.check_examples(source, part, examples)
    return parts['train'], parts['test']

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
    check_examples(source, part, examples, self.image_shape, self.num_classes)


def check_examples(
    source: pathlib.Path,
    part: str,
    examples: Mapping[str, np.ndarray],
    shape: Sequence[int],
    num_classes: int,
) -> None:
  """Raises a ValueError unless examples and classes match."""
  images, labels = examples['x'], examples['y']
  x, y = f'x_{part}', f'y_{part}'
  if images.dtype.kind not in 'biuf':
    raise ValueError(f'{source}: {x} must be numbers, found {images.dtype}.')
  if images.shape[1:] != tuple(shape) or not len(images):
    wanted = ', '.join(['examples', *map(str, shape)])
    raise ValueError(
        f'{source}: {x} must have shape [{wanted}], found '
        f'{list(images.shape)}.'
    )
  if labels.shape != images.shape[:1]:
    raise ValueError(
        f'{source}: {y} must have shape [{len(images)}], one class per image '
        f'of {x}, found {list(labels.shape)}.'
    )
  problem = checks.find_bad_label(labels, num_classes)
  if problem:
    raise ValueError(f'{source}: {y} {problem}.')


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
  scaled /= _MAX_PIXEL
  scaled -= MEAN
  scaled /= STANDARD_DEVIATION
  return collections.OrderedDict(x=scaled, y=raw['y'].astype(np.int32))


@attrs.frozen
class GrayImages(data.Data):
  """Images in MNIST's form, scaled like MNIST.

  Attributes:
    name: The name of the file and of the data set in tensorflow-datasets.
    title: The name in error messages.
  """

  name: str
  title: str

  def load(self, args, data_dir, seed):
    del args, seed  # Unused.
    return data.Splits(*ImageDataset(self.name, self.title).load(data_dir))

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
    return {f'{self.name}.npz': write}


@attrs.frozen
class NpzData(data.Data):
  """A user's own `.npz` file with x_train, y_train, x_test and y_test.

  Models take 'x' as float32: bytes (uint8) are divided by 255, other numbers
  are unchanged. `create_from_data` takes 'x' as models do, already divided.

  Attributes:
    file: The name of the file in `--data_dir`.
    shape: The shape of an example.
    classes: The number of classes; labels start at 0.
    client_ids: The name of an array with the client of each training example,
      integers or strings, for a task without a partition. None (the default) if
      the task partitions the examples.
  """

  file: str
  shape: Sequence[int]
  classes: int
  client_ids: Optional[str] = None

  @property
  def in_memory(self):
    return self.client_ids is not None

  def load(self, args, data_dir, seed):
    del args, seed  # Unused.
    path = pathlib.Path(data_dir) / self.file
    names = _KEYS if self.client_ids is None else (*_KEYS, self.client_ids)
    if not path.exists():
      raise FileNotFoundError(
          f'{self.file} (arrays {", ".join(names)}) was not found: put it at '
          f'{path}.'
      )
    arrays = _read_npz(path, names)
    parts = _split(arrays)
    for part, examples in parts.items():
      check_examples(path, part, examples, self.shape, self.classes)
    train = parts['train']
    if self.client_ids is not None:
      train = self._group(path, train, arrays[self.client_ids])
    return data.Splits(train, parts['test'])

  def _group(self, path, examples, ids):
    """Returns the clients that own the examples."""
    if ids.shape != examples['y'].shape:
      raise ValueError(
          f'{path}: {self.client_ids} must have shape [{len(examples["y"])}], '
          f'one client per example of x_train, found {list(ids.shape)}.'
      )
    try:
      rows = partition.by_natural_id(ids)
    except TypeError as error:
      raise TypeError(
          f'{path}: {self.client_ids} must be integers or strings, found '
          f'{ids.dtype}.'
      ) from error
    return client_data.PackedClientArrays.from_partition(examples, rows)

  def published_spec(self):
    return self.element_spec(None)

  def element_spec(self, args):
    return data.spec(x=('float32', self.shape), y=('int32', []))

  def num_classes(self, args):
    return self.classes

  def build_prepare(self, args, train, data_dir):
    return _to_numbers

  @property
  def synthetic_files(self):
    write = synthetic_data.npz(
        self.classes, *self.shape, client_ids=self.client_ids
    )
    return {self.file: write}


def _to_numbers(raw: Mapping[str, np.ndarray]) -> feature_arrays.Examples:
  """Converts examples to float32; bytes are divided by 255."""
  x = raw['x'].astype(np.float32)
  if raw['x'].dtype == np.uint8:
    x /= _MAX_PIXEL
  return collections.OrderedDict(x=x, y=raw['y'].astype(np.int32))


def _read_npz(
    path: pathlib.Path, names: Sequence[str] = _KEYS
) -> dict[str, np.ndarray]:
  """Returns the arrays of a file with these names, unchecked."""
  try:
    found = npz_files.read_names(path)
    missing = [name for name in names if name not in found]
    arrays = {} if missing else npz_files.read(path, names)
  except npz_files.DamagedNpzError as error:
    raise ValueError(
        f'{path} is damaged ({_error_texts.first_line(error)}); replace it '
        'by an intact copy.'
    ) from error
  if missing:
    raise ValueError(
        f'{path} must hold the arrays {", ".join(names)}, but lacks '
        f'{", ".join(missing)}; it holds {", ".join(found) or "none"}.'
    )
  return arrays


def _split(
    arrays: Mapping[str, np.ndarray],
) -> dict[str, feature_arrays.Examples]:
  """Returns the examples of the splits 'train' and 'test'."""
  return {
      part: collections.OrderedDict(
          x=arrays[f'x_{part}'], y=_flat_labels(arrays[f'y_{part}'])
      )
      for part in ('train', 'test')
  }


def _flat_labels(labels: np.ndarray) -> np.ndarray:
  """Returns labels as a vector, and whole numbers as integers.

  Keras stores some in a column; others are stored as floats or booleans.
  """
  if labels.shape[1:] == (1,):
    labels = labels[:, 0]
  if labels.dtype.kind not in 'bf':
    return labels
  with np.errstate(invalid='ignore'):
    whole = labels.astype(np.int64)
  return whole if np.array_equal(whole, labels) else labels
