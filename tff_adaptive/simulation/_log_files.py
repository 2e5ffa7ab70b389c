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
"""Files to which a run adds lines, and CSV files that a kill may cut short."""

from collections.abc import Sequence
import contextlib
import csv
import io
import os
import pathlib

from tff_adaptive import _atomic_files


class DamagedFileError(Exception):
  """A file is not what a run has written; the text names it."""


def damaged(path: pathlib.Path, reason: object) -> DamagedFileError:
  """Returns the error of a file that is damaged for some reason."""
  return DamagedFileError(
      f'{path} is damaged ({reason}); bring the file back or remove the folder '
      'of the run'
  )


class LogFile:
  """A file to which whole pieces are added; errors are sentences.

  Every piece is handed to the system at once: a killed process loses none.
  """

  def __init__(self, path: pathlib.Path):
    self._path = path
    with _atomic_files.write_errors_of(path):
      self._file = open(path, 'ab', buffering=0)
      self._size = self._file.seek(0, os.SEEK_END)

  def write(self, data: bytes):
    """Adds a piece, or nothing if it raises."""
    with _atomic_files.write_errors_of(self._path):
      try:
        rest = memoryview(data)
        while rest:
          rest = rest[self._file.write(rest) :]
      except OSError:
        with contextlib.suppress(OSError):
          self._file.truncate(self._size)
        raise
    self._size += len(data)

  def sync(self):
    """Returns when everything is on the disk."""
    with _atomic_files.write_errors_of(self._path):
      os.fsync(self._file.fileno())

  def close(self):
    self._file.close()


def to_line(values: Sequence[str]) -> str:
  """Returns a line of a CSV file."""
  buffer = io.StringIO()
  csv.writer(buffer, lineterminator='\n').writerow(values)
  return buffer.getvalue()


def replace_rows(
    path: pathlib.Path, header: Sequence[str], rows: Sequence[Sequence[str]]
):
  """Replaces a CSV file by a header and rows, atomically."""
  with _atomic_files.replacing(path) as file:
    file.writelines(to_line(row).encode() for row in [header, *rows])


def read_rows(path: pathlib.Path) -> tuple[list[str], list[list[str]]]:
  """Reads a CSV file.

  Args:
    path: The file; one that is not there has no rows.

  Returns:
    The header and the whole rows; a row cut short is left out.

  Raises:
    DamagedFileError: If the file is no CSV file; names it.
  """
  try:
    # Spreadsheets put a mark before the first byte.
    text = path.read_bytes().decode('utf-8-sig')
    whole = text[: text.rfind('\n') + 1]
    lines = [line for line in csv.reader(io.StringIO(whole)) if line]
  except FileNotFoundError:
    return [], []
  except (csv.Error, UnicodeDecodeError) as error:
    raise damaged(path, error) from error
  if not lines:
    return [], []
  header = lines[0]
  return header, [row for row in lines[1:] if len(row) == len(header)]
