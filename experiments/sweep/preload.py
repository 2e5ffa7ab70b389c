# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Imports what a run needs, in the process that is forked for every run."""

from collections.abc import Iterator
import contextlib
import gc
import os
import threading

from experiments import command_line

_POLL_SECONDS = 0.2


@contextlib.contextmanager
def _ending_with_parent() -> Iterator[None]:
  """Ends this process if the one that started it is killed during the block.

  It holds what that one has sent for the first fork, such as the lock of a
  folder. After the imports it hears of the end by itself.
  """
  parent, is_done = os.getppid(), threading.Event()

  def watch():
    while not is_done.wait(_POLL_SECONDS):
      if os.getppid() != parent:
        os._exit(1)

  thread = threading.Thread(target=watch, daemon=True)
  thread.start()
  try:
    yield
  finally:
    # Forks are made without threads.
    is_done.set()
    thread.join()


# As the binaries do, before the first import of TensorFlow: it changes bits.
command_line.prepare_libraries()

with _ending_with_parent():
  import sklearn.datasets  # noqa: F401
  import tensorflow_federated  # noqa: F401

  from experiments.train import training_run  # noqa: F401
  from tff_adaptive.runtime import contexts

# Otherwise TFF prints a traceback when this process ends.
contexts.free_default_at_exit()

# What is imported stays: no collection of a fork looks at it again.
gc.freeze()
