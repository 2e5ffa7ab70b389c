# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Notices the death of Ray on this machine, of which Ray tells nobody.

Without it, a driver waits for some seconds, then Ray ends its process without a
word.
"""

from collections.abc import Iterator
import contextlib
import signal
import socket
import threading
from typing import Optional

from absl import logging

from tff_adaptive.runtime.scale_out import clusters

_DEATH = (
    "The raylet, Ray's process on this machine, has died, so the round cannot "
    "end; run the same command again to continue from the newest checkpoint."
)
_SECONDS_BETWEEN_CONNECTIONS = 1.0


class NodeWatch:
  """Watches the raylet by a connection, which ends with it."""

  def __init__(self, path: Optional[str]):
    """Starts the watch.

    Args:
      path: The path of the raylet's socket; None if it is on another machine,
        where nothing is watched.
    """
    self._is_dead = False
    self._is_waited_for = False
    self._is_closed = threading.Event()
    self._connection: Optional[socket.socket] = None
    if path is None:
      return
    # A socket that cannot be reached is not watched.
    with contextlib.suppress(OSError):
      self._connection = _connect(path)
      threading.Thread(target=self._watch, args=[path], daemon=True).start()

  @contextlib.contextmanager
  def guarded(self) -> Iterator[None]:
    """Raises a `ClusterError` if the raylet dies while the block runs."""
    self._check()
    main = threading.main_thread()
    self._is_waited_for = threading.current_thread() is main
    try:
      yield
    except BaseException:
      self._check()
      raise
    finally:
      self._is_waited_for = False

  @property
  def is_dead(self) -> bool:
    """Whether the raylet has died."""
    return self._is_dead

  def close(self) -> None:
    """Ends the watch."""
    self._is_closed.set()
    if self._connection is not None:
      with contextlib.suppress(OSError):
        self._connection.shutdown(socket.SHUT_RDWR)
      self._connection.close()

  def _check(self) -> None:
    if self._is_dead:
      raise clusters.ClusterError(_DEATH) from None

  def _watch(self, path: str) -> None:
    """Waits for the end of the connection, then of the raylet."""
    while True:
      connection = self._connection
      with contextlib.suppress(OSError):
        # The raylet answers nothing to who asks nothing.
        while connection is not None and connection.recv(1):
          pass
      if self._is_closed.wait(_SECONDS_BETWEEN_CONNECTIONS):
        return
      try:
        self._connection = _connect(path)
      except OSError:
        break
      if self._is_closed.is_set():  # By `close` in the meantime.
        self._connection.close()
        return
    self._is_dead = True
    # Said at once: Ray may end the process before an error is shown.
    logging.error(_DEATH)
    if self._is_waited_for and callable(signal.getsignal(signal.SIGINT)):
      # Wakes it up; `guarded` replaces the KeyboardInterrupt.
      main_id = threading.main_thread().ident
      assert main_id is not None
      signal.pthread_kill(main_id, signal.SIGINT)


def _connect(path: str) -> socket.socket:
  """Connects to a socket of this machine."""
  connection = socket.socket(socket.AF_UNIX)
  try:
    connection.connect(path)
  except OSError:
    connection.close()
    raise
  return connection
