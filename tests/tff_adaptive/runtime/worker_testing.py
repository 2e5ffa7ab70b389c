# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the processes of native runtimes."""

from typing import Optional

import psutil


def workers(pid: Optional[int] = None) -> set[psutil.Process]:
  """Returns the native runtimes of a process, of this one by default."""
  children = psutil.Process(pid).children(recursive=True)
  return {child for child in children if 'worker' in child.name()}


def is_alive(process: psutil.Process) -> bool:
  """Returns whether a process runs, and is not only waited for."""
  try:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
  except psutil.NoSuchProcess:
    return False
