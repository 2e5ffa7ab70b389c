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
"""Files that are at all times absent, as they were before, or whole.

A file is written under another name beside it, flushed to the disk and renamed.
A process that is killed meanwhile leaves a file of that other name behind; the
next one removes it.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib
from typing import BinaryIO, Union

TEMPORARY_SUFFIX = '.tmp'

_PathLike = Union[str, os.PathLike]


class WriteError(OSError):
  """A file could not be written; its text is one sentence that names it."""


@contextlib.contextmanager
def write_errors_of(path: _PathLike) -> Iterator[None]:
  """Turns what the system says when it cannot write into a sentence.

  Args:
    path: The file that is written.

  Yields:
    Nothing.

  Raises:
    WriteError: If the block raises an OSError.
  """
  try:
    yield
  except WriteError:
    raise
  except OSError as error:
    raise WriteError(
        f'could not write {path}: {error.strerror or error}'
    ) from error


def temporary_path(path: _PathLike) -> pathlib.Path:
  """Returns where `replacing` writes."""
  path = pathlib.Path(path)
  return path.with_name(path.name + TEMPORARY_SUFFIX)


def _sync_folder(folder: pathlib.Path):
  descriptor = os.open(folder, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


@contextlib.contextmanager
def replacing(path: _PathLike) -> Iterator[BinaryIO]:
  """Opens a file that takes the place of another one when the block ends.

  If the block raises, nothing has changed.

  Args:
    path: The file to replace, or to make; its folder is made.

  Yields:
    The new file, open for writing bytes.

  Raises:
    WriteError: If the file cannot be written, for example because the disk is
      full. What was there before is kept.

  Example:

    >>> with replacing('runs/demo/hparams.json') as file:
    ...   _ = file.write(b'{}')
  """
  path = pathlib.Path(path)
  temporary = temporary_path(path)
  with write_errors_of(path):
    try:
      path.parent.mkdir(parents=True, exist_ok=True)
      with open(temporary, 'wb') as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
      os.replace(temporary, path)
    except BaseException:
      with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
      raise
    _sync_folder(path.parent)


def remove_temporaries(folder: _PathLike):
  """Removes what killed processes have left in a folder, if there is one.

  Args:
    folder: The folder; those in it are not looked into.
  """
  for path in pathlib.Path(folder).glob(f'*{TEMPORARY_SUFFIX}'):
    if path.is_file():
      path.unlink(missing_ok=True)
