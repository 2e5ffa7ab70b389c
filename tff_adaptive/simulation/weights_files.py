# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads and writes global model weights in npz files.

A weights file is an npz file with an array per weight, named by its position in
`tff.learning.models.ModelWeights`, optionally followed by the name of the
variable: `trainable/0/logits/kernel`. Nothing is pickled. To `np.load`, an
array of bfloat16 is one of integers in a field 'bfloat16', its bits.
"""

from collections.abc import Mapping
import hashlib
import pathlib
from typing import Any

import attrs
import numpy as np

from tff_adaptive import _files
from tff_adaptive.data import npz_files
from tff_adaptive.simulation import checkpoints
from tff_adaptive.simulation import run_directory
from tff_adaptive.simulation import structures

# The evaluated weights in the file of `BestCheckpoint`, and in checkpoints of a
# run that evaluates others than its process has; else those of the process.
_PARTS = ('weights', 'process/global_model_weights')


class WeightsFileError(Exception):
  """A file holds no weights, or weights of another model."""


@attrs.frozen(eq=False)
class StoredWeights:
  """The weights in a file, not yet compared with a model.

  Attributes:
    path: The file.
    arrays: The arrays in order, by their names in a weights file.
  """

  path: pathlib.Path
  arrays: Mapping[str, np.ndarray]

  def digest(self) -> str:
    """Returns a SHA-256 digest of the weights, for any kind of file."""
    digest = hashlib.sha256()
    for name, array in self.arrays.items():
      kind = name.partition('/')[0]
      digest.update(f'{kind}\0{array.shape}\0'.encode())
      digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()

  def to_model_weights(self, template: Any) -> Any:
    """Returns the weights in the structure of a model's weights.

    Args:
      template: Model weights whose leaves have the expected shapes and dtypes:
        arrays, tensors, variables or specs.

    Returns:
      A structure like `template`, of arrays.

    Raises:
      WeightsFileError: If the number, shapes or dtypes differ from those of
        `template`; names the weight, the value found and the value expected.
    """
    by_name = {
        '/'.join(leaf_path): self._find('/'.join(leaf_path))
        for leaf_path, _ in structures.flatten_with_path(template)
    }
    lacking = [name for name, found in by_name.items() if found is None]
    extra = [name for name in self.arrays if name not in by_name.values()]
    if lacking or extra:
      detail = f'no `{lacking[0]}`' if lacking else f'an extra `{extra[0]}`'
      raise WeightsFileError(
          f'{self.path} does not match the model: expected {len(by_name)} '
          f'weights, found {len(self.arrays)}, and {detail}'
      )

    def check(leaf_path, leaf):
      name = by_name['/'.join(leaf_path)]
      array = self.arrays[name]
      found, expected = _show(array), _show(leaf)
      if found != expected:
        raise WeightsFileError(
            f'{self.path} does not match the model: `{name}` is {found}, '
            f'expected {expected}'
        )
      return array

    return structures.map_with_path(check, template)

  def _find(self, wanted):
    """Returns the name of a weight in the file, or None."""
    names = (n for n in self.arrays if f'{n}/'.startswith(f'{wanted}/'))
    return next(names, None)


def _show(leaf):
  return f'{leaf.dtype.name}{list(leaf.shape)}'


def write_weights(path: _files.PathLike, weights: Any, variable_names: Any):
  """Writes a weights file.

  Args:
    path: The file.
    weights: Model weights of arrays.
    variable_names: A description of each weight, in the same structure: the
      name of the model's variable.

  Raises:
    OSError: If the file cannot be written; the old content is kept.

  Example:
    >>> weights = tff.learning.models.ModelWeights((np.ones([2, 3]),), ())
    >>> names = tff.learning.models.ModelWeights(('logits/kernel',), ())
    >>> write_weights('model.npz', weights, names)
    >>> list(np.load('model.npz'))
    ['trainable/0/logits/kernel']
  """
  members = {}
  for (leaf_path, leaf), (_, variable_name) in zip(
      structures.flatten_with_path(weights),
      structures.flatten_with_path(variable_names),
  ):
    members['/'.join((*leaf_path, variable_name))] = np.asarray(leaf)
  with _files.replacing(path) as file:
    npz_files.write(file, members)


def read_weights(path: _files.PathLike) -> StoredWeights:
  """Reads the weights in a file.

  Args:
    path: A weights file, a checkpoint, the file of the best round, a `.keras`
      file of Keras 3 or Keras 2, or the folder of a run, whose newest intact
      checkpoint is read.

  Returns:
    The weights, not yet compared with a model.

  Raises:
    OSError: If a file cannot be opened; FileNotFoundError if there is no such
      file, or no checkpoint in the folder.
    CheckpointError: If a checkpoint is damaged.
    WeightsFileError: If another file is damaged, or holds no weights.

  Example:
    >>> stored = read_weights('runs/demo/checkpoints/best.npz')
    >>> weights = stored.to_model_weights(process.get_model_weights(state))
    >>> state = process.set_model_weights(state, weights)
  """
  path = pathlib.Path(path)
  if path.is_dir():
    directory = run_directory.RunDirectory(path.parent, path.name)
    return _of_checkpoint(*read_newest_checkpoint(directory))
  if not path.exists():
    raise FileNotFoundError(f'{path} does not exist')
  if checkpoints.is_checkpoint(path):
    return _of_checkpoint(path, checkpoints.read_leaves(path))
  if path.suffix == '.keras':
    return _of_keras(path)
  try:
    return StoredWeights(path, npz_files.read(path))
  except npz_files.DamagedNpzError as error:
    raise WeightsFileError(
        f'{path} is not an intact npz file ({error})'
    ) from error


def read_newest_checkpoint(
    directory: run_directory.RunDirectory,
) -> tuple[pathlib.Path, dict[str, np.ndarray]]:
  """Reads the newest intact checkpoint of a run.

  Args:
    directory: The folder of the run.

  Returns:
    The file, and its leaves by name.

  Raises:
    OSError: If a file cannot be opened; FileNotFoundError if there is no
      checkpoint.
    CheckpointError: If none is intact.
  """
  manager = checkpoints.CheckpointManager(directory.checkpoints)
  newest = manager.load_latest_leaves()
  if newest is None:
    raise FileNotFoundError(
        f'there is no checkpoint in {directory.checkpoints}'
    )
  round_num, leaves = newest
  return manager.path(round_num), leaves


def _of_keras(path):
  """Returns the weights of the Keras model in a file."""
  from tff_adaptive.models import keras_versions  # pylint: disable=import-outside-toplevel

  try:
    model = keras_versions.load(path)
  except ValueError as error:
    raise WeightsFileError(str(error)) from error
  parts = keras_versions.split_weights(model)
  return StoredWeights(
      path,
      {
          f'{part}/{i}/{weight.name}': weight.numpy()
          for part, weights in zip(('trainable', 'non_trainable'), parts)
          for i, weight in enumerate(weights)
      },
  )


def _of_checkpoint(path, leaves):
  """Extracts the weights from the leaves of a checkpoint."""
  for part in _PARTS:
    found = {
        name[len(part) + 1 :]: array
        for name, array in leaves.items()
        if f'{name}/'.startswith(f'{part}/')
    }
    if found:
      return StoredWeights(path, found)
  raise WeightsFileError(f'{path} holds no weights of a learning process')
