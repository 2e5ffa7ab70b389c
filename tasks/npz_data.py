# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads examples and their classes from npz files."""

import collections
from collections.abc import Iterator, Mapping, Sequence
import contextlib
import pathlib
from typing import Optional

import attrs
import numpy as np

from tasks import data
from tasks import synthetic_data
from tff_adaptive.data import checks
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import npz_files
from tff_adaptive.data import partition
from tff_adaptive.data import specs

KEYS = ('x_train', 'y_train', 'x_test', 'y_test')
MAX_PIXEL = 255.0


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

  @property
  def names(self) -> Sequence[str]:
    """The names of the arrays that the file must hold."""
    return KEYS if self.client_ids is None else (*KEYS, self.client_ids)

  def check_files(self, data_dir):
    path = pathlib.Path(data_dir) / self.file
    if not path.exists():
      raise FileNotFoundError(
          f'{self.file} (arrays {", ".join(self.names)}) was not found: put it '
          f'at {path}.'
      )
    check_names(path, self.names)

  def load(self, args, data_dir, seed):
    del args, seed  # Unused.
    self.check_files(data_dir)
    path = pathlib.Path(data_dir) / self.file
    arrays = read(path, self.names)
    parts = split(arrays)
    for part, examples in parts.items():
      check_examples(path, part, examples, self.shape, self.classes)
    dtypes = {part: examples['x'].dtype for part, examples in parts.items()}
    if len({dtype == np.uint8 for dtype in dtypes.values()}) > 1:
      found = ' and '.join(f'x_{part} {dtypes[part]}' for part in dtypes)
      raise ValueError(
          f'{path}: x_train and x_test must both be bytes (uint8), which are '
          f'divided by {MAX_PIXEL:g}, or both other numbers, found {found}.'
      )
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
    x /= MAX_PIXEL
  return collections.OrderedDict(x=x, y=raw['y'].astype(np.int32))


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
  if specs.kind(images.dtype) not in 'biuf':
    raise ValueError(f'{source}: {x} must be numbers, found {images.dtype}.')
  if images.shape[1:] != tuple(shape) or not len(images):
    wanted = ', '.join(['examples', *map(str, shape)])
    raise ValueError(
        f'{source}: {x} must have shape [{wanted}], found '
        f'{list(images.shape)}.'
    )
  if labels.shape != images.shape[:1]:
    raise ValueError(
        f'{source}: {y} must have shape [{len(images)}], one class per '
        f'example of {x}, found {list(labels.shape)}.'
    )
  changed = specs.cast(images, np.float32)[1]
  if changed.any():
    raise ValueError(
        f'{source}: {x} has the value {images[changed][0]}, which float32 '
        'cannot hold; scale it.'
    )
  problem = checks.find_bad_label(labels, num_classes)
  if problem:
    raise ValueError(f'{source}: {y} {problem}.')


def check_names(path: pathlib.Path, names: Sequence[str] = KEYS) -> None:
  """Raises a ValueError unless a file has arrays with these names."""
  with _damages_named(path):
    found = npz_files.read_names(path)
  missing = [name for name in names if name not in found]
  if missing:
    # The names that `tff_adaptive.data.read_clients` expects.
    advice = (
        ' That is the layout of `data.read_clients`, with one row per example;'
        " a task's file has training and test examples apart."
        if 'x' in found and set(KEYS).isdisjoint(found)
        else ''
    )
    raise ValueError(
        f'{path} must hold the arrays {", ".join(names)}, but lacks '
        f'{", ".join(missing)}; it holds {", ".join(found) or "none"}.{advice}'
    )


def read(
    path: pathlib.Path, names: Sequence[str] = KEYS
) -> dict[str, np.ndarray]:
  """Returns the arrays of a file with these names, unchecked."""
  check_names(path, names)
  with _damages_named(path):
    return npz_files.read(path, names)


@contextlib.contextmanager
def _damages_named(path: pathlib.Path) -> Iterator[None]:
  try:
    yield
  except npz_files.DamagedNpzError as error:
    raise ValueError(error.describe(path)) from error


def split(
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
  if specs.kind(labels.dtype) not in 'bf':
    return labels
  with np.errstate(invalid='ignore'):
    whole = labels.astype(np.int64)
  return whole if np.array_equal(whole, labels) else labels
