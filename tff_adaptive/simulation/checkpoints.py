# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoint files: plain arrays, written atomically and verified when read.

A checkpoint is an npz file with every leaf of the saved structure as an array,
and a JSON manifest with the names, shapes, dtypes and a SHA-256 digest of all
of them. Nothing is pickled.
"""

from collections.abc import Mapping
import hashlib
import json
import os
import pathlib
import re
from typing import Any, Optional

from absl import logging
import numpy as np

from tff_adaptive import _files
from tff_adaptive.data import npz_files
from tff_adaptive.data import specs
from tff_adaptive.simulation import structures

_FORMAT = 'tff_adaptive checkpoint 1'
_MANIFEST_KEY = 'manifest'


class CheckpointError(Exception):
  """A checkpoint does not fit the run, or no checkpoint is intact."""


class _CorruptFileError(Exception):
  """A file is not an intact checkpoint."""


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
  """Returns the SHA-256 digest of names, dtypes, shapes and bytes."""
  digest = hashlib.sha256()
  for name, array in arrays.items():
    digest.update(f'{name}\0{array.dtype.str}\0{array.shape}\0'.encode())
    digest.update(np.ascontiguousarray(array).tobytes())
  return digest.hexdigest()


def _encode(name: str, leaf: Any) -> tuple[np.ndarray, str]:
  """Returns an array that an npy file supports, and the leaf's dtype."""
  array = np.asarray(leaf)
  if array.dtype.kind == 'O':
    raise TypeError(
        f'The leaf `{name}` of type {type(leaf).__name__} is not an array and '
        'cannot be saved without pickling.'
    )
  if not specs.is_registered(array.dtype):
    return array, array.dtype.name
  # bfloat16 and similar types, which npy files store as raw bytes.
  return array.view(f'u{array.dtype.itemsize}'), array.dtype.name


def _like(
    owner: str, array: np.ndarray, template: Any, may_differ: bool
) -> Any:
  """Returns `array` as a leaf like `template`; errors name the owner.

  An array that may differ keeps its shape and dtype.
  """
  wanted = np.asarray(template)
  same_dtype = array.dtype.name == wanted.dtype.name or (
      wanted.dtype.kind in 'SU' and array.dtype.kind == wanted.dtype.kind
  )
  if not same_dtype or array.shape != wanted.shape:
    if may_differ:
      return array[()]
    raise CheckpointError(
        f'{owner} is {array.dtype.name}{list(array.shape)} in the checkpoint, '
        f'but {wanted.dtype.name}{list(wanted.shape)} in this run'
    )
  # NumPy scalars first: some of them are also Python scalars.
  if isinstance(template, np.generic):
    return array[()]
  if isinstance(template, (bool, int, float, complex, str, bytes)):
    return _item(array)
  return array


def _item(array: np.ndarray) -> Any:
  """Returns the only entry; NumPy leaves out zeros at the end of a text."""
  item = array.item()
  if not isinstance(item, (str, bytes)):
    return item
  length = array.dtype.itemsize // (4 if isinstance(item, str) else 1)
  zero = '\0' if isinstance(item, str) else b'\0'
  return item + zero * (length - len(item)) if length > 1 else item  # Or empty.


def _restore(
    path: pathlib.Path,
    leaves: Mapping[str, np.ndarray],
    template: Any,
    free_part: str = '',
) -> Any:
  """Returns a file's leaves in the structure of `template`, or raises."""
  misfit = f'{path} does not fit this run:'
  wanted = [
      '/'.join(leaf_path)
      for leaf_path, _ in structures.flatten_with_path(template)
  ]
  known = set(wanted)
  missing = [f'lacks `{name}`' for name in wanted if name not in leaves]
  extra = [f'has `{n}`, unknown to this run' for n in leaves if n not in known]
  if missing or extra:
    differences = ', it '.join(missing[:3] + extra[:3])
    raise CheckpointError(f'{misfit} it {differences}')

  def restore(leaf_path, leaf):
    name = '/'.join(leaf_path)
    is_free = leaf_path[:1] == (free_part,)
    return _like(f'{misfit} `{name}`', leaves[name], leaf, is_free)

  return structures.map_with_path(restore, template)


def _read(path: pathlib.Path) -> dict[str, np.ndarray]:
  """Returns the leaves of an intact checkpoint by name, in order.

  Raises:
    _CorruptFileError: If the file is not an intact checkpoint.
    CheckpointError: If another version wrote it.
    OSError: If the file cannot be read.
    MemoryError: If there is too little memory.
  """
  _files.check_readable(path)
  try:
    file = npz_files.read(path)
    manifest = json.loads(file[_MANIFEST_KEY].tobytes().decode())
    found_format, digest = manifest['format'], manifest['digest']
    dtypes = {row['name']: row['dtype'] for row in manifest['leaves']}
    arrays = {name: file[f'leaf_{i}'] for i, name in enumerate(dtypes)}
  except (MemoryError, OSError):  # Not of the file's contents.
    raise
  # Corrupted bits can cause any other error.
  except Exception as error:  # pylint: disable=broad-exception-caught
    raise _CorruptFileError(f'{type(error).__name__}: {error}') from error
  if found_format != _FORMAT:
    raise CheckpointError(
        f'{path} has the format {found_format!r}, but this version of '
        f'tff_adaptive reads {_FORMAT!r}; use the version that wrote it, or '
        'another folder'
    )
  if _digest(arrays) != digest:
    raise _CorruptFileError('its digest does not match its contents')
  return {
      name: (
          array
          if array.dtype.name == dtypes[name]
          else array.view(dtypes[name])
      )
      for name, array in arrays.items()
  }


def check_storable(state: Any):
  """Raises unless a structure can be written and restored.

  Args:
    state: A nested structure of arrays and scalars.

  Raises:
    TypeError: If a leaf is neither an array nor a scalar, or a container cannot
      be built from other leaves.
    ValueError: If two leaves have the same name.
  """
  names = [*_to_arrays(state)]
  copy = structures.map_with_path(lambda _, leaf: leaf, state)
  found = [
      '/'.join(leaf_path) for leaf_path, _ in structures.flatten_with_path(copy)
  ]
  if found != names:
    raise TypeError(
        'A container of the state cannot be restored, as a copy of it has '
        f'other leaves, {found} in place of {names}; use dictionaries, lists '
        'and tuples.'
    )


def _to_arrays(state: Any) -> dict[str, tuple[np.ndarray, str]]:
  """Returns the leaves by name, each as an array and its dtype; see `_encode`.

  Raises:
    TypeError: If a leaf is neither an array nor a scalar.
    ValueError: If two leaves have the same name.
  """
  arrays: dict[str, tuple[np.ndarray, str]] = {}
  for leaf_path, leaf in structures.flatten_with_path(state):
    name = '/'.join(leaf_path)
    if name in arrays:
      raise ValueError(f'Two leaves of the state are named `{name}`.')
    arrays[name] = _encode(name, leaf)
  return arrays


def write_structure(path: pathlib.Path, round_num: int, state: Any):
  """Writes a structure atomically to one file.

  Args:
    path: The file; its folder is created.
    round_num: The number of finished rounds, non-negative.
    state: A nested structure of arrays and scalars.

  Raises:
    TypeError: If a leaf is neither an array nor a scalar.
    ValueError: If two leaves have the same name.
    OSError: If the file cannot be written, for example because the disk is
      full. The old content is kept.
  """
  rows = []
  arrays: dict[str, np.ndarray] = {}
  for name, (array, dtype) in _to_arrays(state).items():
    arrays[name] = array
    rows.append({'name': name, 'dtype': dtype, 'shape': list(array.shape)})
  manifest = json.dumps(
      {
          'format': _FORMAT,
          'round_num': int(round_num),
          'leaves': rows,
          'digest': _digest(arrays),
      }
  )
  members = {_MANIFEST_KEY: np.frombuffer(manifest.encode(), np.uint8)}
  members.update(
      (f'leaf_{i}', array) for i, array in enumerate(arrays.values())
  )
  try:
    with _files.replacing(path) as file:
      npz_files.write(file, members)
  except _files.WriteError as error:
    raise _files.WriteError(f'{error}; earlier checkpoints are kept') from error


def read_structure(path: pathlib.Path, template: Any) -> Any:
  """Reads a file of `write_structure`.

  Args:
    path: The file.
    template: A structure like the saved one; its leaves have the expected
      shapes and dtypes.

  Returns:
    The structure.

  Raises:
    OSError: If the file cannot be opened; FileNotFoundError if there is none.
    CheckpointError: If the file is damaged, or if the names, shapes or dtypes
      differ from those of `template`.
  """
  return _restore(path, read_leaves(path), template)


def is_checkpoint(path: pathlib.Path) -> bool:
  """Returns whether a file looks like one of `write_structure`."""
  try:
    return _MANIFEST_KEY in npz_files.read_names(path)
  except (OSError, npz_files.DamagedNpzError):
    return False


def read_leaves(path: pathlib.Path) -> dict[str, np.ndarray]:
  """Reads a file of `write_structure` without knowing its structure.

  Args:
    path: The file.

  Returns:
    The leaves as arrays, by path, with names joined by slashes.

  Raises:
    OSError: If the file cannot be opened; FileNotFoundError if there is none.
    CheckpointError: If the file is damaged.
  """
  if not path.exists():
    raise FileNotFoundError(f'{path} does not exist')
  try:
    return _read(path)
  except _CorruptFileError as error:
    raise CheckpointError(f'{path} is damaged ({error})') from error


_FILE_PATTERN = re.compile(r'^checkpoint_(\d{8})\.npz$')


class CheckpointManager:
  """Saves the states of a run, and loads the newest intact checkpoint.

  A file is written under a temporary name, flushed to disk and renamed, so that
  a run killed at any instant leaves the previous checkpoint untouched.

  Example:
    >>> manager = CheckpointManager('runs/demo/checkpoints')
    >>> manager.save(10, state)
    >>> round_num, state = manager.load_latest(process.initialize())
    >>> round_num
    10
  """

  def __init__(self, directory: _files.PathLike, keep_total: int = 3):
    """Initializes the manager; the first save creates the folder.

    Args:
      directory: The folder of the checkpoints.
      keep_total: The number of newest checkpoints to keep, at least 1. Defaults
        to 3.

    Raises:
      TypeError: If `keep_total` is not an integer.
      ValueError: If `keep_total` is not positive.
    """
    specs.check_positive('keep_total', keep_total)
    self._directory = pathlib.Path(directory)
    self._keep_total = keep_total

  def path(self, round_num: int) -> pathlib.Path:
    """Returns the path of a round's file, which may not exist.

    Args:
      round_num: The number of finished rounds.
    """
    return self._directory / f'checkpoint_{round_num:08d}.npz'

  def round_nums(self) -> list[int]:
    """Returns the rounds that have a file, oldest first; not verified."""
    if not self._directory.is_dir():
      return []
    matches = (
        _FILE_PATTERN.match(name) for name in os.listdir(self._directory)
    )
    return sorted(int(match.group(1)) for match in matches if match)

  def save(self, round_num: int, state: Any):
    """Saves `state` as the newest checkpoint and deletes old ones.

    Files of later rounds are deleted as well: they are damaged, or the run
    continues from an earlier round.

    Args:
      round_num: The number of finished rounds, non-negative.
      state: A nested structure of arrays and scalars.

    Raises:
      TypeError: If a leaf is neither an array nor a scalar.
      ValueError: If two leaves have the same name.
      OSError: If the file cannot be written, for example because the disk is
        full. Earlier checkpoints are kept.
    """
    write_structure(self.path(round_num), round_num, state)
    for other in self.round_nums():
      if other > round_num:
        self.path(other).unlink(missing_ok=True)
    self.drop_old(round_num)

  def drop_old(self, newest: int):
    """Deletes old checkpoints, after the checkpoint of a round was verified.

    Args:
      newest: The verified round, one of the `keep_total` that are kept. Later
        files are kept, too. Temporary files of killed runs are deleted.
    """
    kept = [number for number in self.round_nums() if number <= newest]
    for round_num in kept[: -self._keep_total]:
      self.path(round_num).unlink(missing_ok=True)
    _files.remove_temporaries(self._directory)

  def load_latest(
      self,
      template: Any,
      defaults: Optional[Mapping[str, Any]] = None,
      free_part: str = '',
  ) -> Optional[tuple[int, Any]]:
    """Loads the newest intact checkpoint.

    Args:
      template: A structure like the saved one; its leaves have the expected
        shapes and dtypes.
      defaults: The leaves, by name, of checkpoints that are older than them.
        None, the default, for none.
      free_part: The name of a part whose leaves may have other shapes and
        dtypes. Defaults to no part.

    Returns:
      The round number and the structure, or None if there is no checkpoint.
      Truncated or modified files are skipped with a warning.

    Raises:
      CheckpointError: If the names, shapes or dtypes differ from those of
        `template`, or if there are checkpoints but none is intact.
      OSError: If a checkpoint cannot be opened; names it.
    """
    newest = self.load_latest_leaves()
    if newest is None:
      return None
    round_num, leaves = newest
    leaves = {**(defaults or {}), **leaves}
    path = self.path(round_num)
    return round_num, _restore(path, leaves, template, free_part)

  def load_latest_leaves(self) -> Optional[tuple[int, dict[str, np.ndarray]]]:
    """Loads the newest intact checkpoint without knowing its structure.

    Returns:
      The round number and the leaves by name, see `read_leaves`, or None if
      there is no checkpoint.

    Raises:
      CheckpointError: If there are checkpoints but none is intact.
      OSError: If a checkpoint cannot be opened; names it.
    """
    round_nums = self.round_nums()
    for round_num in reversed(round_nums):
      path = self.path(round_num)
      try:
        return round_num, _read(path)
      except _CorruptFileError as error:
        logging.warning('Skipping the damaged checkpoint %s (%s).', path, error)
    if round_nums:
      raise CheckpointError(
          f'every checkpoint in {self._directory} is damaged; remove the '
          'folder to restart the run from the first round'
      )
    return None
