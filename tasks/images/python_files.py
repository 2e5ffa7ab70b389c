# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the published "python version" of CIFAR, which Keras downloads."""

import collections
from collections.abc import Sequence
import pathlib
import pickle
from typing import Any

import numpy as np

from tasks.images import cifar_augmentation
from tff_adaptive.data import feature_arrays

_DATA_KEY = b'data'
# The parts of a pickled array of numbers.
_ARRAY_PARTS = {
    ('numpy.core.multiarray', '_reconstruct'),
    ('numpy._core.multiarray', '_reconstruct'),  # Written by NumPy 2.
    ('numpy', 'ndarray'),
    ('numpy', 'dtype'),
    ('_codecs', 'encode'),
}


def read_python_files(
    folder: pathlib.Path, names: Sequence[str], label_key: str
) -> feature_arrays.Examples:
  """Reads files from the folder of the published archive.

  They are pickles. Only numbers, strings, lists and arrays are unpickled, and
  nothing that could run code.

  Args:
    folder: 'cifar-10-batches-py' or 'cifar-100-python'.
    names: The files, whose images are concatenated.
    label_key: The key of their labels.

  Returns:
    The images as 'x', uint8 of shape [num_examples, 32, 32, 3], and the classes
    as 'y', int64 of shape [num_examples].

  Raises:
    FileNotFoundError: If a file is missing.
    ValueError: If a file is damaged or holds anything else.

  Example:

    ```python
    test = read_python_files(
        pathlib.Path('data/cifar-100-python'), ['test'], 'fine_labels')
    test['x'].shape  # (10000, 32, 32, 3)
    ```

  References:
    https://www.cs.toronto.edu/~kriz/cifar.html.
  """
  parts = [_read(folder / name, label_key.encode()) for name in names]
  images, labels = (np.concatenate(arrays) for arrays in zip(*parts))
  height, width, channels = cifar_augmentation.IMAGE_SHAPE
  planes = images.reshape(-1, channels, height, width)
  return collections.OrderedDict(
      x=np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), y=labels
  )


class _ArrayUnpickler(pickle.Unpickler):
  """Unpickles arrays and Python's containers, and rejects everything else."""

  def find_class(self, module_name: str, global_name: str) -> Any:
    if (module_name, global_name) in _ARRAY_PARTS:
      return super().find_class(module_name, global_name)
    raise pickle.UnpicklingError(f'it holds a {module_name}.{global_name}')


def _read(
    path: pathlib.Path, label_key: bytes
) -> tuple[np.ndarray, np.ndarray]:
  """Returns the pixel rows and the labels of a file."""
  if not path.exists():
    raise FileNotFoundError(
        f'{path} is missing; unpack the whole archive again.'
    )
  try:
    with open(path, 'rb') as file:
      contents = _ArrayUnpickler(file, encoding='bytes').load()
    pixels, labels = contents[_DATA_KEY], np.asarray(contents[label_key])
  except (PermissionError, MemoryError):
    raise
  except Exception as error:  # pylint: disable=broad-exception-caught
    # Bytes that are not a pickle can raise any error.
    raise ValueError(
        f'{path} is damaged ({type(error).__name__}: {error}); unpack the '
        'archive again.'
    ) from error
  num_pixels = int(np.prod(cifar_augmentation.IMAGE_SHAPE))
  if (
      getattr(pixels, 'dtype', None) != np.uint8
      or pixels.shape != (len(labels), num_pixels)
      or labels.dtype != np.int64
  ):
    raise ValueError(
        f'{path} must have an image of {num_pixels} bytes for each of its '
        f'{labels.size} integer labels; unpack the archive again.'
    )
  return pixels, labels
