# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Defers Ctrl-C and SIGTERM while something must not be cut in two."""

import contextlib
import signal
import threading


class InterruptGuard:
  """Turns SIGINT and SIGTERM into KeyboardInterrupt outside shielded blocks.

  A signal within a shielded block is raised at the end of the block; so is an
  earlier one that Python dropped. The previous handlers are restored at the
  end. Outside the main thread Python delivers no signals, and the guard does
  nothing.

  Example:
    >>> with InterruptGuard() as guard:
    ...   output = process.next(state, cohort)
    ...   with guard.shielded():
    ...     state = output.state
  """

  def __init__(self):
    self._shielded = False
    self._pending = False
    self._previous = {}

  def __enter__(self):
    if threading.current_thread() is threading.main_thread():
      for number in (signal.SIGINT, signal.SIGTERM):
        self._previous[number] = signal.signal(number, self._handle)
    return self

  def __exit__(self, *unused_exception):
    for number, handler in self._previous.items():
      # Python cannot restore a handler of C code, which is None here.
      signal.signal(number, signal.SIG_DFL if handler is None else handler)
    self._previous = {}

  def _handle(self, unused_number, unused_frame):
    # Python drops exceptions in destructors and callbacks of the garbage
    # collector; a pending signal is raised after the next shielded block.
    self._pending = True
    if not self._shielded:
      raise KeyboardInterrupt

  @contextlib.contextmanager
  def shielded(self, raise_at_end: bool = True):
    """Defers signals while the block runs.

    Args:
      raise_at_end: Whether a deferred signal is raised at the end; otherwise it
        is dropped.

    Yields:
      Nothing.

    Raises:
      KeyboardInterrupt: At the end, if a signal was deferred.
    """
    self._shielded = True
    try:
      yield
    finally:
      self._shielded = False
      pending, self._pending = self._pending, False
    if pending and raise_at_end:
      raise KeyboardInterrupt
