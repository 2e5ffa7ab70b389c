# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs built functions: in a process that can, and until Ctrl-C."""

from collections.abc import Callable
from concurrent import futures
import os
import threading
import time
from typing import Any

from tensorflow.python.eager import cancellation
from tensorflow.python.eager import context as eager_context

# A call is expected to take as long as the one before it. Above this, another
# thread runs it, so that Ctrl-C does not wait for its end.
_LONG_SECONDS = 1.0

_was_forked_late = False


def _note_fork() -> None:
  """Notes, in a forked child, whether its parent had started TensorFlow."""
  global _was_forked_late
  context = eager_context.context_safe()
  if context is not None and context._initialized:  # pylint: disable=protected-access
    _was_forked_late = True


os.register_at_fork(after_in_child=_note_fork)


def check_process() -> None:
  """Raises an error if computations would never end in this process.

  Raises:
    RuntimeError: If it was forked after its parent had started TensorFlow.
  """
  if _was_forked_late:
    raise RuntimeError(
        'This process was forked from one that had started TensorFlow, whose '
        'threads a fork does not copy: the computation would never end. Start '
        "processes with `multiprocessing.get_context('spawn')`."
    )


class Runner:
  """Calls functions; Ctrl-C ends a long call between two steps of its loops.

  In the main thread, a call waits in Python if the first or the previous one
  was long. An exception of a signal handler, such as KeyboardInterrupt, then
  cancels the call, and with it those that other threads began meanwhile, as
  TensorFlow has one such manager. Otherwise a call costs nothing more.
  """

  def __init__(self):
    self._expects_long = True

  def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns the result of a TensorFlow function of tensors."""
    start = time.monotonic()
    try:
      if self._expects_long and _is_main_thread():
        return _wait_for(function, arguments)
      return function(*arguments)
    finally:
      self._expects_long = time.monotonic() - start > _LONG_SECONDS


def _is_main_thread() -> bool:
  return threading.current_thread() is threading.main_thread()


def _wait_for(function: Callable[..., Any], arguments: Any) -> Any:
  """Runs a function in a thread; cancels it if a signal raises an error."""
  manager = cancellation.CancellationManager()
  outcome: futures.Future = futures.Future()

  def run():
    try:
      outcome.set_result(manager.get_cancelable_function(function)(*arguments))
    except BaseException as error:  # pylint: disable=broad-exception-caught
      outcome.set_exception(error)

  thread = threading.Thread(target=run, daemon=True)
  try:
    thread.start()
    return outcome.result()
  except BaseException:
    manager.start_cancel()
    if thread.is_alive():
      thread.join()
    raise
