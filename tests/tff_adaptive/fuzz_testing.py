# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks for tests with random inputs: errors are clean, nothing hangs."""

from collections.abc import Iterator
import contextlib
import faulthandler
import re
import sys
import traceback
from typing import Any
import warnings

_MAX_SECONDS = 120
_MAX_SENTENCES = 2
_OURS = ('experiments', 'tasks', 'tff_adaptive')


@contextlib.contextmanager
def watched() -> Iterator[None]:
  """Ends the process where a block hangs; NumPy's warnings are errors."""
  # Not the file that pytest reads and that is lost with the process.
  file: Any = sys.__stderr__
  faulthandler.dump_traceback_later(_MAX_SECONDS, exit=True, file=file)
  try:
    with warnings.catch_warnings():
      warnings.filterwarnings('error', '.* encountered', RuntimeWarning)
      yield
  finally:
    faulthandler.cancel_dump_traceback_later()


def is_raised_by_us(error: BaseException) -> bool:
  """Returns whether an error was raised by a frame of our code."""
  frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
  module = frames[-1].f_globals.get('__name__', '')
  return module.partition('.')[0] in _OURS


def find_fault(text: str) -> str:
  """Returns why a text is no sentence for a user, '' if it is one."""
  if not text.strip():
    return 'it is empty'
  if '\n' in text.strip():
    return 'it has several lines'
  sentences = re.findall(r'[a-z0-9`\')][.?] [A-Z`]', text)
  if len(sentences) >= _MAX_SENTENCES:
    return 'it has many sentences'
  return ''
