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
"""Keeps two processes from writing into one folder at the same time."""

from collections.abc import Iterator
import contextlib
import fcntl
import os
import pathlib
import sys
import time

from tff_adaptive import _atomic_files

FILE_NAME = '.lock'
# What a killed process has left behind saves what it has, and ends.
_SECONDS_FOR_LEFTOVERS = 30


class FolderInUseError(Exception):
  """Another process writes into a folder; the text names it."""


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[int]:
  """Keeps other processes that ask for the same lock out of a folder.

  The lock is the kernel's: it ends with the process, however that dies, and
  with those that inherited the descriptor. Its file, which names the process,
  is removed with the block; one that a killed process left does no harm.

  Args:
    folder: The folder. It is made; what this call made and is still empty when
      the block ends is removed.

  Yields:
    The descriptor that holds the lock.

  Raises:
    FolderInUseError: If another process has the lock, or what a process that is
      gone has left behind keeps it for half a minute.
    WriteError: If the folder cannot be made or written.
  """
  path = folder / FILE_NAME
  made = [parent for parent in path.parents if not parent.exists()]
  with _atomic_files.write_errors_of(path):
    descriptor = _acquire(path)
  try:
    yield descriptor
  finally:
    with contextlib.suppress(OSError):
      path.unlink()
      for parent in made:
        parent.rmdir()  # Unless it holds something.
    os.close(descriptor)


def _acquire(path: pathlib.Path) -> int:
  """Opens and locks the file of a lock."""
  deadline = time.monotonic() + _SECONDS_FOR_LEFTOVERS
  while True:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
      descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except FileNotFoundError:
      continue  # Whoever had it before has just removed the folder.
    try:
      fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
      owner, is_gone = _describe_owner(os.pread(descriptor, 4096, 0))
      os.close(descriptor)
      if is_gone and time.monotonic() < deadline:
        time.sleep(0.1)
        continue
      raise FolderInUseError(
          f'{path.parent} is in use by {owner}; wait for its end, or end it'
      ) from None
    except OSError:
      pass  # This file system has no locks.
    # Whoever had it before may have removed the file since it was opened.
    with contextlib.suppress(FileNotFoundError):
      if os.path.samestat(os.stat(path), os.fstat(descriptor)):
        os.truncate(descriptor, 0)
        command = ' '.join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])
        os.pwrite(descriptor, f'{os.getpid()} {command}'.encode()[:4096], 0)
        return descriptor
    os.close(descriptor)


def _describe_owner(text: bytes) -> tuple[str, bool]:
  """Names the process that has written a lock's file; says if it is gone."""
  process_id, _, command = text.decode(errors='replace').partition(' ')
  if not process_id.isdecimal():
    return 'another process, which has just begun', False
  name = f'process {process_id} ({command})'
  try:
    os.kill(int(process_id), 0)
  except ProcessLookupError:
    return f'what {name} has left behind', True
  except PermissionError:
    pass  # It is another user's.
  return name, False
