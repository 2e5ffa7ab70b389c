# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which processes of native runtimes there are, and whether one is alive."""

from typing import Optional

import psutil


def workers(pid: Optional[int] = None) -> set[psutil.Process]:
  """The native runtimes that a process has started, this one by default."""
  children = psutil.Process(pid).children(recursive=True)
  return {child for child in children if 'worker' in child.name()}


def is_alive(process: psutil.Process) -> bool:
  """Whether a process runs, and is not only waited for."""
  try:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
  except psutil.NoSuchProcess:
    return False
