# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes npz files without pickling.

NumPy has no bfloat16, nor floats of 8 bits, and its files do not say which of
them an array is. Here such an array is written as a structured array, whose
only field has the name of the type and holds the bits as integers.
"""

import collections
from collections.abc import Iterable, Mapping
from typing import BinaryIO, Optional
import zipfile

import numpy as np

from tff_adaptive import _error_texts
from tff_adaptive import _files
from tff_adaptive.data import specs

_SUFFIX = '.npy'


class DamagedNpzError(Exception):
  """A file is not a complete archive; the text says why.

  Attributes:
    array: The array that cannot be read; None if the archive cannot.
  """

  def __init__(self, reason: str, array: Optional[str] = None):
    super().__init__(reason)
    self.array = array

  def describe(self, path: _files.PathLike) -> str:
    """Returns a sentence on the file, with advice."""
    reason = _error_texts.first_line(self)
    if self.array is None:
      return (
          f'{path} could not be read ({reason}); replace it by an intact copy.'
      )
    return (
        f'{path}: array {self.array!r} could not be read ({reason}); save '
        'strings as np.asarray(..., str), and replace a damaged file by an '
        'intact copy.'
    )


def read_names(path: _files.PathLike) -> list[str]:
  """Returns the names of the arrays in a file.

  Args:
    path: The file.

  Raises:
    OSError: If the file cannot be read.
    DamagedNpzError: If it is not an archive.
  """
  with _open(path) as archive:
    names = [name.removesuffix(_SUFFIX) for name in archive.namelist()]
  for name, count in collections.Counter(names).items():
    if count > 1:
      raise DamagedNpzError(f'it has {count} arrays {name!r}')
  return names


def read(
    path: _files.PathLike, names: Optional[Iterable[str]] = None
) -> dict[str, np.ndarray]:
  """Reads arrays from a file.

  Args:
    path: The file.
    names: The names of existing arrays. Defaults to all.

  Returns:
    The arrays by name. Two bytes of no type, as NumPy writes bfloat16, are
    bfloat16.

  Raises:
    OSError: If the file cannot be read.
    DamagedNpzError: If it is not a complete archive, or holds pickled data.
  """
  names = read_names(path) if names is None else names
  with _open(path) as archive:
    return {name: _read_array(archive, name) for name in names}


def _open(path: _files.PathLike) -> zipfile.ZipFile:
  """Opens an archive.

  `np.load` takes a file that is not an archive for a single array or a pickle,
  and leaves an unreadable file open.
  """
  try:
    return zipfile.ZipFile(path)
  except (MemoryError, OSError):
    raise
  except Exception as error:  # pylint: disable=broad-exception-caught
    raise DamagedNpzError(str(error)) from error


def _read_array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
  try:
    with archive.open(f'{name}{_SUFFIX}') as member:
      array = np.lib.format.read_array(member, allow_pickle=False)
      if member.read(1):  # At its end, the checksum is verified.
        raise ValueError('there are more values than its shape has')
      return _restored(array)
  except (MemoryError, PermissionError):
    raise
  except Exception as error:  # pylint: disable=broad-exception-caught
    # From zipfile, zlib, tokenize or NumPy, depending on the damaged byte.
    reason = str(error).rstrip('.') or type(error).__name__
    raise DamagedNpzError(reason, name) from error


def _restored(array: np.ndarray) -> np.ndarray:
  """Returns an array with its dtype, if NumPy's files do not have that."""
  names = array.dtype.names or ()
  if array.dtype.kind != 'V' or len(names) > 1:
    return array
  if not names and array.dtype.itemsize != 2:
    return array
  import tensorflow as tf  # pylint: disable=import-outside-toplevel

  return array.view(tf.as_dtype(*names or ['bfloat16']).as_numpy_dtype)


def _storable(array: np.ndarray) -> np.ndarray:
  """Returns an array with a dtype that NumPy's files have."""
  if not specs.is_registered(array.dtype):
    return array
  return array.view([(array.dtype.name, f'u{array.dtype.itemsize}')])


def write(file: BinaryIO, arrays: Mapping[str, np.ndarray]) -> None:
  """Writes an npz file like `np.savez`, but leaves no file open on failure.

  Args:
    file: The open file.
    arrays: The arrays by name; no object arrays.

  Raises:
    OSError: If the file cannot be written.
  """
  with zipfile.ZipFile(file, 'w') as archive:
    for name, array in arrays.items():
      with archive.open(f'{name}{_SUFFIX}', 'w', force_zip64=True) as member:
        np.lib.format.write_array(member, _storable(array), allow_pickle=False)
