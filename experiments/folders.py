# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of runs: their names, and checks that they can be used."""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import re
import tempfile
from typing import Optional

from absl import flags

from experiments import command_line
from tasks import programs
from tff_adaptive import _files

_CHECKPOINT = 'checkpoint_'


def to_slug(text: str, kept: str = '') -> str:
  """Converts a text to the name of a folder.

  Args:
    text: The text.
    kept: Characters to keep, besides letters, digits, '_', '.', '+' and '-'.

  Returns:
    The text with '_' in place of each sequence of other characters.

  Example:

    >>> to_slug('alpha = 0.1')
    'alpha_0.1'
  """
  return re.sub(rf'[^\w.+{re.escape(kept)}-]+', '_', text, flags=re.ASCII)


def check_output_dir(output_dir: str):
  """Raises unless a folder can be written to or created.

  Args:
    output_dir: The value of --output_dir.

  Raises:
    UserError: If it or one of its parents is a file, or a link to nothing.
    EnvironmentalError: If it is not writable.
  """
  folder = pathlib.Path(output_dir)
  while not os.path.lexists(folder) and folder != folder.parent:
    folder = folder.parent
  if not os.path.exists(folder):
    raise command_line.UserError(
        f'--output_dir={output_dir} needs {folder}, a link to '
        f'{os.readlink(folder)}, which does not exist; make that folder, or '
        'remove the link'
    )
  if not folder.is_dir():
    place = 'is' if folder == pathlib.Path(output_dir) else f'is in {folder},'
    raise command_line.UserError(
        f'--output_dir={output_dir} {place} a file; give a folder, which is '
        'created if missing'
    )
  try:
    with tempfile.TemporaryDirectory(prefix='.', dir=folder):
      pass
  except OSError as error:
    raise command_line.EnvironmentalError(
        f'--output_dir={output_dir} cannot be written to ({folder}: '
        f'{error.strerror}); give a writable folder'
    ) from error


def check_data_dir(data_dir: Optional[str]):
  """Raises if --data_dir is given but is not a folder.

  Args:
    data_dir: The value of --data_dir, or None.

  Raises:
    UserError: If it is not a folder.
  """
  if data_dir is None or os.path.isdir(data_dir):
    return
  found = 'is a file' if os.path.exists(data_dir) else 'does not exist'
  raise command_line.UserError(
      f'--data_dir={data_dir} {found}; give the folder of the data sets, which '
      f'{programs.to_command("tasks.fetch")} fills'
  )


def check_runs_dir(runs_dir: str):
  """Raises unless the folder of all runs exists.

  Args:
    runs_dir: The value of --runs_dir.

  Raises:
    UserError: If it is not a folder.
  """
  if not os.path.isdir(runs_dir):
    raise command_line.UserError(
        f'--runs_dir={runs_dir} is not a folder; give the --output_dir of the '
        'runs'
    )


def check_of_runs(
    flag_values: flags.FlagValues, data_dir: Optional[str] = None
):
  """Raises unless the folders of runs can be used.

  Args:
    flag_values: The parsed flags of `experiments.train`.
    data_dir: The folder of the data sets if --data_dir is not given.

  Raises:
    UserError: See `check_output_dir` and `check_data_dir`.
    EnvironmentalError: See `check_output_dir`.
  """
  check_output_dir(flag_values.output_dir)
  check_data_dir(flag_values.data_dir or data_dir)


def checkpoint_rounds(run: pathlib.Path) -> list[int]:
  """Returns the rounds for which a run has a checkpoint, in ascending order.

  Args:
    run: The folder of the run.
  """
  stems = [path.stem for path in run.glob(f'checkpoints/{_CHECKPOINT}*.npz')]
  numbers = [stem.removeprefix(_CHECKPOINT) for stem in stems]
  return sorted(int(n) for n in numbers if n.isascii() and n.isdecimal())


def check_checkpoint(run: pathlib.Path, newest: int):
  """Raises unless a run has a checkpoint to start from.

  Args:
    run: The folder of the run.
    newest: The last round that may be finished in the checkpoint; 0 needs no
      checkpoint.

  Raises:
    UserError: If there is none, or all are of later rounds.
  """
  if newest and not any(n <= newest for n in checkpoint_rounds(run)):
    raise no_checkpoint_error(run, newest)


def no_checkpoint_error(
    run: pathlib.Path, newest: int
) -> command_line.UserError:
  """Returns the error for a run without a checkpoint to start from.

  Args:
    run: The folder of the run.
    newest: The last round that may be finished in the checkpoint.
  """
  rounds = ', '.join(map(str, checkpoint_rounds(run))) or '(none)'
  return command_line.UserError(
      f'{run} has no valid checkpoint before round {newest + 1}, only those of '
      f'rounds {rounds}; --from_start trains from the first round'
  )


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[int]:
  """Locks a folder against other programs while it is written to.

  Processes that inherit the descriptor, such as the runs of a sweep, hold the
  lock until they end, even if this process is killed.

  Args:
    folder: The folder, created if missing.

  Yields:
    The file descriptor of the lock.

  Raises:
    EnvironmentalError: If another program or its children hold the lock.
    WriteError: If the folder cannot be written to.
  """
  with (
      command_line.errors_as(
          command_line.EnvironmentalError, _files.FolderInUseError
      ),
      _files.locked(folder) as descriptor,
  ):
    yield descriptor
