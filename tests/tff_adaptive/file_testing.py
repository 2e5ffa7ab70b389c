# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A full disk, and what a folder holds."""

from collections.abc import Iterator
import contextlib
import pathlib
import resource


@contextlib.contextmanager
def max_file_size(size: int) -> Iterator[None]:
  """Lets the system refuse to write beyond a size in bytes, in any file.

  As on a full disk, a write may end early, and the next one fails.
  """
  soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
  try:
    yield
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def read_files(folder: pathlib.Path) -> dict[str, bytes]:
  """Returns the bytes of all files in a folder, by their path in it."""
  return {
      path.relative_to(folder).as_posix(): path.read_bytes()
      for path in sorted(folder.rglob('*'))
      if path.is_file()
  }
