# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes npz files without pickling."""

from collections.abc import Iterable, Mapping
from typing import BinaryIO, Optional
import zipfile

import numpy as np

from tff_adaptive import _files

_SUFFIX = '.npy'


class DamagedNpzError(Exception):
  """A file is not a complete archive; the text says why.

  Attributes:
    array: The array that cannot be read; None if the archive cannot.
  """

  def __init__(self, reason: str, array: Optional[str] = None):
    super().__init__(reason)
    self.array = array


def read_names(path: _files.PathLike) -> list[str]:
  """Returns the names of the arrays in a file.

  Args:
    path: The file.

  Raises:
    OSError: If the file cannot be read.
    DamagedNpzError: If it is not an archive.
  """
  with _open(path) as archive:
    return [name.removesuffix(_SUFFIX) for name in archive.namelist()]


def read(
    path: _files.PathLike, names: Optional[Iterable[str]] = None
) -> dict[str, np.ndarray]:
  """Reads arrays from a file.

  Args:
    path: The file.
    names: The names of existing arrays. Defaults to all.

  Returns:
    The arrays by name.

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
      return np.lib.format.read_array(member, allow_pickle=False)
  except (MemoryError, PermissionError):
    raise
  except Exception as error:  # pylint: disable=broad-exception-caught
    # From zipfile, zlib, tokenize or NumPy, depending on the damaged byte.
    reason = str(error).rstrip('.') or type(error).__name__
    raise DamagedNpzError(reason, name) from error


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
        np.lib.format.write_array(member, array, allow_pickle=False)
