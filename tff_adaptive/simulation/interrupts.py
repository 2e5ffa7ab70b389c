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
"""Ctrl-C and SIGTERM as an exception, except where it would tear something."""

import contextlib
import signal
import threading


class InterruptGuard:
  """Turns SIGINT and SIGTERM into KeyboardInterrupt outside shielded blocks.

  Within a shielded block a signal is kept, and raised when the block ends; so
  is one that Python dropped before. The handlers that were there before come
  back at the end. Outside the main thread Python delivers no signals, and the
  guard does nothing.

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
      # Python has no hold of a handler of C code, which is None here.
      signal.signal(number, signal.SIG_DFL if handler is None else handler)
    self._previous = {}

  def _handle(self, unused_number, unused_frame):
    # Python drops what is raised in a destructor or a callback of the garbage
    # collector; what is kept comes at the end of the next shielded block.
    self._pending = True
    if not self._shielded:
      raise KeyboardInterrupt

  @contextlib.contextmanager
  def shielded(self, raise_at_end: bool = True):
    """Keeps signals back while the block runs.

    Args:
      raise_at_end: Whether a signal that came meanwhile is raised at the end;
        otherwise it is dropped.

    Yields:
      Nothing.

    Raises:
      KeyboardInterrupt: At the end, if a signal came meanwhile.
    """
    self._shielded = True
    try:
      yield
    finally:
      self._shielded = False
      pending, self._pending = self._pending, False
    if pending and raise_at_end:
      raise KeyboardInterrupt
