# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files of a run: atomic writes, folder locks, reads of growing CSV files."""

from collections.abc import Iterable, Iterator, Sequence
import contextlib
import csv
import errno
import fcntl
import io
import os
import pathlib
import re
import secrets
import sys
import threading
import time
import types
from typing import Any, BinaryIO, Union

TEMPORARY_SUFFIX = '.tmp'
LOCK_NAME = '.lock'
# The audit event of `tell_of_reading`.
READ_EVENT = 'tff_adaptive.read_file'
# File names have at most 255 bytes.
_MAX_STEM = 50

PathLike = Union[str, os.PathLike]


class WriteError(OSError):
  """A file could not be written; the text is one sentence that names it."""


@contextlib.contextmanager
def write_errors_of(path: PathLike) -> Iterator[None]:
  """Turns an `OSError` on writing `path` into a one-sentence `WriteError`."""
  try:
    yield
  except WriteError:
    raise
  except OSError as error:
    reason = error.strerror or error
    raise WriteError(f'could not write {path}: {reason}') from error


def tell_of_reading(path: PathLike) -> None:
  """Raises an audit event for a file that other code than Python opens."""
  sys.audit(READ_EVENT, os.fspath(path))


def check_readable(path: PathLike) -> None:
  """Raises an `OSError` if a file cannot be opened, as a damaged one can."""
  os.close(os.open(path, os.O_RDONLY))


def is_temporary(path: PathLike, of: PathLike) -> bool:
  """Returns whether a path is a temporary file of `replacing` another."""
  path, of = pathlib.Path(path), pathlib.Path(of)
  return path.parent == of.parent and bool(
      re.fullmatch(
          rf'{re.escape(of.name[:_MAX_STEM])}(\.[0-9a-f]+)?{TEMPORARY_SUFFIX}',
          path.name,
      )
  )


@contextlib.contextmanager
def _new_temporary(path: pathlib.Path) -> Iterator[BinaryIO]:
  """Opens a new file beside a path; a link in its place is never followed."""
  token = secrets.token_hex(8)
  name = f'{path.name[:_MAX_STEM]}.{token}{TEMPORARY_SUFFIX}'
  temporary = path.with_name(name)
  with open(temporary, 'xb', opener=open_no_link) as file:
    try:
      yield file
    except BaseException:
      with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
      raise


def open_no_link(path: str, flags: int) -> int:
  """Opens a file as the `opener` of `open`; a link is an `OSError`."""
  return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def _sync_folder(folder: pathlib.Path):
  descriptor = os.open(folder, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  except OSError as error:
    # Of a file system that cannot sync folders, such as shares of Windows.
    if error.errno not in (errno.EBADF, errno.EINVAL):
      raise
  finally:
    os.close(descriptor)


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
  """Opens a file that atomically replaces another when the block ends.

  If the block raises, nothing changes.

  Args:
    path: The file to replace or create; its folder is created.

  Yields:
    The new file, open for binary writing.

  Raises:
    WriteError: If the file cannot be written, for example because the disk is
      full. The old content is kept.

  Example:
    >>> with replacing('runs/demo/hparams.json') as file:
    ...   _ = file.write(b'{}')
  """
  path = pathlib.Path(path)
  with write_errors_of(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    with _new_temporary(path) as file:
      yield file
      file.flush()
      os.fsync(file.fileno())
      os.replace(file.name, path)
    _sync_folder(path.parent)


def write(path: PathLike, data: Union[str, bytes]):
  """Atomically replaces or creates a file; see `replacing`.

  Args:
    path: The file; its folder is created.
    data: The content; a string is written as UTF-8.

  Raises:
    WriteError: If the file cannot be written. The old content is kept.
  """
  with replacing(path) as file:
    file.write(data.encode() if isinstance(data, str) else data)


def remove_temporaries(folder: PathLike):
  """Removes temporary files that killed processes left in a folder.

  The folder may be missing. Its subfolders are not searched.
  """
  for path in pathlib.Path(folder).glob(f'*{TEMPORARY_SUFFIX}'):
    if path.is_file():
      path.unlink(missing_ok=True)


# A child that a killed process left behind saves its work and exits.
_SECONDS_FOR_LEFTOVERS = 30


class FolderInUseError(Exception):
  """Another process writes to a folder; the text names it."""


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[int]:
  """Locks a folder against other processes that use this function.

  The lock is the kernel's: it ends with the process, however that dies, and
  with the children that inherited the descriptor. The lock file names the
  process and is removed when the block ends; a leftover lock file is harmless.

  Args:
    folder: The folder. Missing folders are created, and removed again if they
      are empty when the block ends.

  Yields:
    The descriptor that holds the lock.

  Raises:
    FolderInUseError: If another process holds the lock, or a leftover child of
      a dead process still holds it after half a minute.
    WriteError: If the folder cannot be created or written.
  """
  path = folder / LOCK_NAME
  made = [parent for parent in path.parents if not parent.exists()]
  with write_errors_of(path):
    descriptor = _acquire(path)
  try:
    yield descriptor
  finally:
    with contextlib.suppress(OSError):
      path.unlink()
      for parent in made:
        parent.rmdir()  # Fails if the folder is not empty.
    os.close(descriptor)


def _acquire(path: pathlib.Path) -> int:
  """Opens and locks a lock file."""
  deadline = time.monotonic() + _SECONDS_FOR_LEFTOVERS
  while True:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
      descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except FileNotFoundError:
      continue  # The previous owner has just removed the folder.
    try:
      fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      owner, is_gone = _describe_owner(os.pread(descriptor, 4096, 0))
      os.close(descriptor)
      if is_gone and time.monotonic() < deadline:
        time.sleep(0.1)
        continue
      raise FolderInUseError(
          f'{path.parent} is in use by {owner}; wait for it to end, or end it'
      ) from None
    except OSError:
      pass  # This file system has no locks.
    # The previous owner may have removed the file since it was opened.
    with contextlib.suppress(FileNotFoundError):
      if os.path.samestat(os.stat(path), os.fstat(descriptor)):
        os.truncate(descriptor, 0)
        program = pathlib.Path(sys.argv[0])
        if program.name == '__main__.py':  # Of a package.
          program = program.parent
        command = ' '.join([program.name, *sys.argv[1:]])
        writer = os.fsencode(f'{os.getpid()} {command}')
        os.pwrite(descriptor, writer[:4096], 0)
        return descriptor
    os.close(descriptor)


def _describe_owner(text: bytes) -> tuple[str, bool]:
  """Names the process that wrote a lock file; returns whether it is gone."""
  process_id, _, command = text.decode(errors='replace').partition(' ')
  if not process_id.isdecimal():
    return 'another process, which has just started', False
  name = f'process {process_id} ({command})'
  try:
    os.kill(int(process_id), 0)
  except ProcessLookupError:
    return f'a leftover child of {name}', True
  except PermissionError:
    pass  # It belongs to another user.
  return name, False


def to_csv(rows: Iterable[Sequence[Any]]) -> bytes:
  """Returns rows as the text of a CSV file."""
  lines: list[str] = []
  # With the default line end, cells that hold a carriage return are quoted.
  sink = types.SimpleNamespace(
      write=lambda line: lines.append(line.removesuffix('\r\n') + '\n')
  )
  csv.writer(sink, lineterminator='\r\n').writerows(rows)
  return ''.join(lines).encode()


class DamagedCSVError(ValueError):
  """A file is not a CSV file; the text says why.

  Attributes:
    line_num: The number of the offending line.
  """

  def __init__(self, reason: object, line_num: int):
    super().__init__(str(reason))
    self.line_num = line_num


# The limit of a cell's length belongs to the module `csv`, not to a reader.
_CELL_LIMIT_LOCK = threading.Lock()


def parse_csv(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
  """Yields the non-empty rows of a CSV file, the header first.

  Quotes are as in RFC 4180, so that a stray one does not join rows: a quoted
  cell must end, and end at a comma or a line end. Cells have any length.

  Args:
    lines: The lines with their ends, as of `open(path, newline='')`.

  Yields:
    The number of a row's last line, and its cells.

  Raises:
    DamagedCSVError: If a quoted cell does not end as it must; has the number of
      the line where its row begins.
  """
  reader = csv.reader(lines, strict=True)
  while True:
    start = reader.line_num + 1
    try:
      with _CELL_LIMIT_LOCK:
        limit = csv.field_size_limit(sys.maxsize)
        try:
          row = next(reader, None)
        finally:
          csv.field_size_limit(limit)
    except csv.Error as error:
      raise DamagedCSVError(_reason(error, start, reader), start) from error
    if row is None:
      return
    if row:
      yield reader.line_num, row


def _reason(error: csv.Error, start: int, reader: Any) -> str:
  """Returns what is wrong with the quotes of a row."""
  if 'unexpected end' in str(error):
    return 'it opens a double quote that is never closed'
  if 'expected after' not in str(error):
    return str(error)
  end = f' in line {reader.line_num}' if reader.line_num > start else ''
  return f'the double quote that closes a cell{end} is followed by text'


def read_lines(path: PathLike) -> Iterator[tuple[int, list[str]]]:
  """Yields the non-empty lines of a CSV file, the header first.

  Each line is its number and its fields; see `parse_csv`. An unterminated last
  line is still being written and is skipped.

  Raises:
    OSError: If the file cannot be read.
    DamagedCSVError: If it is not a CSV file.
  """
  data = pathlib.Path(path).read_bytes()
  whole = data[: data.rfind(b'\n') + 1]
  try:
    # Spreadsheets write a byte order mark.
    text = whole.decode('utf-8-sig')
  except UnicodeDecodeError as error:
    line_num = whole.count(b'\n', 0, error.start) + 1
    raise DamagedCSVError(error, line_num) from error
  yield from parse_csv(io.StringIO(text, newline=''))


class RepeatedKeyError(ValueError):
  """An object of a JSON file has a key several times."""


def to_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
  """Returns a JSON object with its keys, as the `object_pairs_hook` of `json`.

  Raises:
    RepeatedKeyError: If a key is there more than once; without it, the last
      value would count.
  """
  found = dict(pairs)
  if len(found) < len(pairs):
    keys = [key for key, _ in pairs]
    repeated = next(key for key in keys if keys.count(key) > 1)
    raise RepeatedKeyError(f'the key {repeated!r} more than once')
  return found
