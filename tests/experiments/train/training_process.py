# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains large models for tests: in forks, one at a time.

The graphs of a ResNet or of DistilBERT take gigabytes, which a process does not
give back, and which a machine may not have twice.
"""

from collections.abc import Iterator
import contextlib
import fcntl
import os
import pathlib
import tempfile

from tests import program_testing


def train(*arguments: str) -> str:
  """Runs `experiments.train` after other runs; returns its output."""
  with _one_at_a_time():
    result = program_testing.run('experiments.train', *arguments)
  if result.returncode:
    raise AssertionError(f'exit code {result.returncode}: {result.stderr}')
  return result.stdout


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
  """Waits until no other worker of this user's tests is in such a block."""
  name = f'tff_adaptive_tests.{os.getuid()}.lock'
  with open(pathlib.Path(tempfile.gettempdir(), name), 'wb') as file:
    fcntl.flock(file, fcntl.LOCK_EX)  # It ends with the file, or the process.
    yield
