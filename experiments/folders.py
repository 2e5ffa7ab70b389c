# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of runs: names for them, and whether they can be used."""

from collections.abc import Iterator, Sequence
import contextlib
import os
import pathlib
import re
import tempfile
from typing import Optional

from experiments import command_line
from tff_adaptive import _files


def to_slug(text: str, kept: str = '') -> str:
  """Returns a text as the name of a folder.

  Args:
    text: The text.
    kept: Characters that stay, besides letters, digits, '_', '.', '+' and '-'.

  Returns:
    The text with a '_' in the place of all others that stand together.

  Example:

    >>> to_slug('alpha = 0.1')
    'alpha_0.1'
  """
  return re.sub(rf'[^\w.+{re.escape(kept)}-]+', '_', text, flags=re.ASCII)


_CHECKPOINT = 'checkpoint_'


def check_output_dir(output_dir: str):
  """Raises unless a folder can be written to, or be made.

  Args:
    output_dir: The value of --output_dir.

  Raises:
    UserError: If a file is in its place, or in that of a folder above it.
    EnvironmentalError: If nothing can be written there.
  """
  folder = pathlib.Path(output_dir)
  while not folder.exists() and folder != folder.parent:
    folder = folder.parent
  if not folder.is_dir():
    place = 'is' if folder == pathlib.Path(output_dir) else f'is in {folder},'
    raise command_line.UserError(
        f'--output_dir={output_dir} {place} a file; give a folder, which is '
        'made where there is none'
    )
  try:
    with tempfile.TemporaryDirectory(prefix='.', dir=folder):
      pass
  except OSError as error:
    raise command_line.EnvironmentalError(
        f'--output_dir={output_dir} cannot be written to ({folder}: '
        f'{error.strerror}); give a folder that can be'
    ) from error


def check_data_dir(data_dir: Optional[str]):
  """Raises if the folder of the data sets is given, and is none.

  Args:
    data_dir: The value of --data_dir; None where it is not given.

  Raises:
    UserError: If it is not a folder.
  """
  if data_dir is None or os.path.isdir(data_dir):
    return
  found = 'is a file' if os.path.exists(data_dir) else 'does not exist'
  raise command_line.UserError(
      f'--data_dir={data_dir} {found}; give the folder of the data sets, which '
      'python -m tasks.fetch fills'
  )


def checkpoint_rounds(run: pathlib.Path) -> list[int]:
  """Returns the rounds of which a run has a checkpoint, the oldest first.

  Args:
    run: The folder of the run.
  """
  stems = [path.stem for path in run.glob(f'checkpoints/{_CHECKPOINT}*.npz')]
  numbers = [stem.removeprefix(_CHECKPOINT) for stem in stems]
  return sorted(int(number) for number in numbers if number.isdigit())


def check_checkpoint(run: pathlib.Path, newest: int):
  """Raises unless there is a checkpoint to begin with.

  Args:
    run: The folder of the run.
    newest: The last round that may be finished in it; 0 needs none.

  Raises:
    UserError: If all that there are are of later rounds.
  """
  found = checkpoint_rounds(run)
  if newest and not any(number <= newest for number in found):
    raise no_checkpoint_error(run, newest, found)


def no_checkpoint_error(
    run: pathlib.Path, newest: int, found: Sequence[int]
) -> command_line.UserError:
  """Returns the error of a run without a checkpoint to begin with.

  Args:
    run: The folder of the run.
    newest: The last round that may be finished in it.
    found: The rounds of which there are checkpoints.
  """
  rounds = ', '.join(map(str, found)) or 'no round'
  return command_line.UserError(
      f'{run} has no checkpoint that fits before round {newest + 1}; there are '
      f'those of {rounds}, and --from_start trains from the first round on'
  )


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[int]:
  """Keeps other programs out of a folder that is written into.

  What inherits the descriptor, such as the runs of a sweep, keeps the lock
  until it ends, even if this process is killed.

  Args:
    folder: The folder; it is made.

  Yields:
    The descriptor of the lock.

  Raises:
    EnvironmentalError: If another program, or what it left, is at work there.
    WriteError: If the folder cannot be written.
  """
  with (
      command_line.errors_as(
          command_line.EnvironmentalError, _files.FolderInUseError
      ),
      _files.locked(folder) as descriptor,
  ):
    yield descriptor
