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
"""The checkpoints of a run, of which the newest are kept."""

import os
import pathlib
import re
from typing import Any, Optional, Union

from absl import logging
import numpy as np

from tff_adaptive import _atomic_files
from tff_adaptive.simulation import checkpoint_files

_FILE_PATTERN = re.compile(r'^checkpoint_(\d{8})\.npz$')


class CheckpointManager:
  """Saves the states of a run, and loads the newest that is whole.

  A file is written under another name, flushed to the disk and then renamed, so
  that a run killed at any instant leaves the checkpoint before untouched.

  Example:
    >>> manager = CheckpointManager('runs/demo/checkpoints')
    >>> manager.save(10, state)
    >>> round_num, state = manager.load_latest(process.initialize())
    >>> round_num
    10
  """

  def __init__(self, directory: Union[str, os.PathLike], keep_total: int = 3):
    """Initializes the manager; the folder is made on the first save.

    Args:
      directory: The folder of the checkpoints.
      keep_total: How many of the newest checkpoints to keep, at least 1.
        Defaults to 3.

    Raises:
      ValueError: If `keep_total` is not positive.
    """
    if keep_total < 1:
      raise ValueError(f'`keep_total` must be positive, found {keep_total}.')
    self._directory = pathlib.Path(directory)
    self._keep_total = keep_total

  def path(self, round_num: int) -> pathlib.Path:
    """Returns the file of a round, which there may or may not be.

    Args:
      round_num: The number of finished rounds.
    """
    return self._directory / f'checkpoint_{round_num:08d}.npz'

  def round_nums(self) -> list[int]:
    """Returns the rounds that have a file, oldest first, unchecked."""
    if not self._directory.is_dir():
      return []
    matches = (
        _FILE_PATTERN.match(name) for name in os.listdir(self._directory)
    )
    return sorted(int(match.group(1)) for match in matches if match)

  def save(self, round_num: int, state: Any):
    """Saves `state` as the newest checkpoint and drops old ones.

    Files of later rounds are dropped as well: they are damaged, or the run has
    gone back to before them.

    Args:
      round_num: The number of finished rounds, not negative.
      state: A nested structure of arrays and scalars.

    Raises:
      TypeError: If a leaf is neither array nor scalar.
      ValueError: If two leaves have the same name.
      CheckpointWriteError: If the file cannot be written, for example because
        the disk is full; an OSError. The checkpoints before are kept.
    """
    checkpoint_files.write_structure(self.path(round_num), round_num, state)
    for other in self.round_nums():
      if other > round_num:
        self.path(other).unlink(missing_ok=True)
    self.drop_old(round_num)

  def drop_old(self, newest: int):
    """Drops what is not kept, once the checkpoint of a round is known whole.

    Args:
      newest: That round; it is one of the `keep_total` that stay. Files beyond
        it stay, too. What a killed run left unfinished goes.
    """
    kept = [number for number in self.round_nums() if number <= newest]
    for round_num in kept[: -self._keep_total]:
      self.path(round_num).unlink(missing_ok=True)
    _atomic_files.remove_temporaries(self._directory)

  def load_latest(self, template: Any) -> Optional[tuple[int, Any]]:
    """Loads the newest whole checkpoint.

    Args:
      template: A structure like the saved one; its leaves give the shapes and
        dtypes that are expected.

    Returns:
      The round number and the structure, or None if there is no checkpoint.
      Files that are cut short or changed are skipped with a warning.

    Raises:
      CheckpointError: If the names, shapes or dtypes differ from those of
        `template`, or if there are checkpoints but none is whole.
    """
    newest = self._read_newest()
    if newest is None:
      return None
    round_num, contents = newest
    return round_num, contents.restore(template)

  def load_latest_leaves(self) -> Optional[tuple[int, dict[str, np.ndarray]]]:
    """Loads the newest whole checkpoint without knowing its structure.

    Returns:
      The round number and the leaves by name, as `read_leaves` returns them, or
      None if there is no checkpoint.

    Raises:
      CheckpointError: If there are checkpoints but none is whole.
    """
    newest = self._read_newest()
    if newest is None:
      return None
    round_num, contents = newest
    return round_num, contents.leaves()

  def _read_newest(self) -> Optional[tuple[int, checkpoint_files.Contents]]:
    """Returns the round number and contents of the newest whole checkpoint."""
    round_nums = self.round_nums()
    for round_num in reversed(round_nums):
      path = self.path(round_num)
      try:
        return round_num, checkpoint_files.read_contents(path)
      except checkpoint_files.CorruptFileError as error:
        logging.warning('Skipping the damaged checkpoint %s (%s).', path, error)
    if round_nums:
      raise checkpoint_files.CheckpointError(
          f'every checkpoint in {self._directory} is damaged; remove the '
          'folder to start the run again'
      )
    return None
