# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Loading MNIST from a file, or through tensorflow-datasets, and scaling it."""

import collections
from collections.abc import Mapping
import os
import pathlib
import re
from typing import Any, Union
import zipfile

import numpy as np

from tff_adaptive.simulation import feature_arrays

NUM_CLASSES = 10
IMAGE_SHAPE = (28, 28, 1)
FILE_NAME = 'mnist.npz'
# Of the training pixels after division by 255.
MEAN = 0.1307
STANDARD_DEVIATION = 0.3081

_KEYS = ('x_train', 'y_train', 'x_test', 'y_test')
_MAX_PIXEL = 255.0
_TFDS_FOLDER = 'tfds'
_TFDS_NAME = 'mnist'
# In the folder of a version, but not in one that is still being written.
_PREPARED = '[0-9]*/dataset_info.json'
_DOWNLOAD_COMMAND = (
    'python -m experiments.train --task=mnist --data_dir={} --mnist_download'
)

_PathLike = Union[str, os.PathLike]
_RawArrays = Mapping[str, np.ndarray]


def load_mnist(
    data_dir: _PathLike, *, download: bool = False
) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
  """Loads MNIST, with pixels of mean 0 and variance 1.

  ```
  x = (pixel / 255 - 0.1307) / 0.3081
  ```

  Read is the first of these that is there: `<data_dir>/mnist.npz` with the
  uint8 arrays 'x_train', 'y_train', 'x_test' and 'y_test', as Keras has them;
  `<data_dir>/tfds/mnist`, as tensorflow-datasets prepares it.

  Args:
    data_dir: The folder of the data sets.
    download: Whether tensorflow-datasets downloads the data to
      `<data_dir>/tfds` if there are none. Defaults to False.

  Returns:
    The training and the test examples, 60,000 and 10,000 in the original. In
    both 'x' is float32 of shape [num_examples, 28, 28, 1], and 'y' the class,
    int32 of shape [num_examples].

  Raises:
    FileNotFoundError: If there are no data; says where they belong and how they
      are downloaded.
    OSError: If they could not be downloaded.
    ValueError: If the data are damaged: names the file and what is wrong.

  Example:

    >>> train, test = load_mnist('data')
    >>> train['x'].shape, test['y'].shape
    ((60000, 28, 28, 1), (10000,))

  References:
    LeCun et al., Gradient-Based Learning Applied to Document Recognition,
    Proceedings of the IEEE, 1998, http://yann.lecun.com/exdb/mnist.
  """
  folder = pathlib.Path(data_dir)
  npz = folder / FILE_NAME
  prepared = folder / _TFDS_FOLDER / _TFDS_NAME
  if npz.exists():
    source, arrays = npz, _read_npz(npz)
  elif any(prepared.glob(_PREPARED)):
    source, arrays = prepared, _read_prepared(prepared)
  elif download:
    source, arrays = prepared, _download(folder / _TFDS_FOLDER, prepared)
  else:
    raise FileNotFoundError(
        f'MNIST was not found: put {FILE_NAME} (arrays {", ".join(_KEYS)}) at '
        f'{npz}, or download it by `{_DOWNLOAD_COMMAND.format(folder)}`.'
    )
  _check_arrays(source, arrays)
  return (
      _to_examples(arrays['x_train'], arrays['y_train']),
      _to_examples(arrays['x_test'], arrays['y_test']),
  )


def _read_npz(path: pathlib.Path) -> _RawArrays:
  """Returns the arrays of a file, none of them checked."""
  try:
    # `np.load` takes a file that is no archive for one array, or a pickle.
    with open(path, 'rb') as file, zipfile.ZipFile(file) as archive:
      names = archive.namelist()
    missing = [name for name in _KEYS if f'{name}.npy' not in names]
    if not missing:
      with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in _KEYS}
  except (PermissionError, MemoryError):
    raise
  except Exception as error:  # pylint: disable=broad-exception-caught
    # Of zipfile, zlib, tokenize and NumPy, depending on the byte that is wrong.
    raise ValueError(
        f'{path} is damaged ({_first_line(error)}); replace it by a good copy.'
    ) from error
  raise ValueError(
      f'{path} must hold the arrays {", ".join(_KEYS)}, but '
      f'{", ".join(missing)} is missing.'
  )


def _read_prepared(folder: pathlib.Path) -> _RawArrays:
  """Returns the arrays that tensorflow-datasets has prepared."""
  # Here, because it takes seconds that a file does not need.
  import tensorflow_datasets as tfds  # pylint: disable=g-import-not-at-top

  version = max(
      (path.parent for path in folder.glob(_PREPARED)),
      key=lambda path: [int(n) for n in path.name.split('.') if n.isdigit()],
  )
  try:
    builder = tfds.builder_from_directory(version)
    train, test = (
        tfds.as_numpy(builder.as_dataset(split=split, batch_size=-1))
        for split in ('train', 'test')
    )
    return dict(
        x_train=train['image'][..., 0],
        y_train=train['label'],
        x_test=test['image'][..., 0],
        y_test=test['label'],
    )
  except Exception as error:  # pylint: disable=broad-exception-caught
    # TensorFlow, protobuf and tensorflow-datasets all have errors of their own.
    raise ValueError(
        f'{version} could not be read as a prepared data set '
        f'({_first_line(error)}); delete it and download it again by '
        f'`{_DOWNLOAD_COMMAND.format(folder.parents[1])}`.'
    ) from error


def _download(tfds_dir: pathlib.Path, prepared: pathlib.Path) -> _RawArrays:
  """Downloads and prepares the data, then reads them."""
  import tensorflow_datasets as tfds  # pylint: disable=g-import-not-at-top

  try:
    tfds.builder(_TFDS_NAME, data_dir=tfds_dir).download_and_prepare()
  except Exception as error:  # pylint: disable=broad-exception-caught
    raise OSError(
        f'MNIST could not be downloaded to {tfds_dir} '
        f'({_first_line(error)}); put {FILE_NAME} (arrays {", ".join(_KEYS)}) '
        f'at {tfds_dir.parent / FILE_NAME} instead.'
    ) from error
  return _read_prepared(prepared)


def _first_line(error: BaseException) -> str:
  """Returns what an error says in its first line, to be part of a sentence."""
  # TensorFlow puts the name of the operation in front.
  text = re.sub(r'^\{\{.*?\}\}\s*', '', str(error).strip())
  lines = text.splitlines() or [type(error).__name__]
  return lines[0].strip().rstrip('.')


def _check_arrays(source: pathlib.Path, arrays: _RawArrays) -> None:
  """Raises unless the arrays are images and classes that belong together."""
  for part in ('train', 'test'):
    images, labels = arrays[f'x_{part}'], arrays[f'y_{part}']
    _check_array(source, f'x_{part}', images, images.dtype == np.uint8, 'uint8')
    _check_array(
        source,
        f'y_{part}',
        labels,
        np.issubdtype(labels.dtype, np.integer),
        'integer',
    )
    if images.shape[1:] != IMAGE_SHAPE[:2] or not len(images):
      raise ValueError(
          f'{source}: x_{part} must have shape [examples, 28, 28], found '
          f'{list(images.shape)}.'
      )
    if labels.shape != images.shape[:1]:
      raise ValueError(
          f'{source}: y_{part} must have shape [{len(images)}], one class for '
          f'each image of x_{part}, found {list(labels.shape)}.'
      )
    if labels.min() < 0 or labels.max() >= NUM_CLASSES:
      raise ValueError(
          f'{source}: y_{part} must be classes from 0 to {NUM_CLASSES - 1}, '
          f'found {labels.min()} to {labels.max()}.'
      )


def _check_array(
    source: pathlib.Path, name: str, array: Any, is_good: bool, wanted: str
) -> None:
  if not is_good:
    raise ValueError(
        f'{source}: {name} must be of type {wanted}, found {array.dtype}.'
    )


def _to_examples(
    images: np.ndarray, labels: np.ndarray
) -> feature_arrays.Examples:
  """Returns scaled images and their classes, in a few passes over them."""
  scaled = images.reshape((-1,) + IMAGE_SHAPE).astype(np.float32)
  scaled /= _MAX_PIXEL
  scaled -= MEAN
  scaled /= STANDARD_DEVIATION
  return collections.OrderedDict(x=scaled, y=labels.astype(np.int32))
