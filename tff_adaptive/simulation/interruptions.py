# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Ends runs early: on Ctrl-C, or if they cannot succeed."""

import collections
from collections.abc import Mapping, Sequence
import contextlib
import signal
import threading
from typing import Any, Optional
import warnings

from tff_adaptive.client_works import totals
from tff_adaptive.data import specs

# Clients that fail, and not only lack data.
FAILURES = frozenset(
    rejection.name.lower()
    for rejection in (totals.Rejection.NOT_FINITE, totals.Rejection.TOO_LARGE)
)
DEFAULT_MAX_REJECTED_ROUNDS = 5

# The largest ratio of a step size to the learning rate without a warning. With
# the batches of their tasks, MNIST, AG News and digits stay below 5.
_MAX_RELATIVE_STEP_SIZE = 1000.0
_RELATIVE_STEP_SIZE = 'clients/relative_step_size_max'


class AllClientsRejectedError(Exception):
  """Every client was rejected in too many rounds in a row."""


class RunHealth:
  """Counts rounds in which every client fails, and warns of long steps.

  A round fails if no client is healthy, and at least one was rejected because
  its results were not finite or its update was too large. Rounds without
  clients, or whose clients have no examples, do not count and end no series.

  Attributes:
    num_rejected_rounds: The number of failed rounds in a row.
  """

  def __init__(self, max_rejected_rounds: Optional[int]):
    """Initializes the counts.

    Args:
      max_rejected_rounds: The number of failed rounds in a row that ends the
        run, positive; None for no limit.

    Raises:
      TypeError: If it is not an integer.
      ValueError: If it is not positive.
    """
    if max_rejected_rounds is not None:
      specs.check_positive('max_rejected_rounds', max_rejected_rounds)
    self._max_rejected_rounds = max_rejected_rounds
    self.num_rejected_rounds = 0
    self._rejected: Sequence[tuple[str, str]] = ()
    self._has_warned = False

  def observe(
      self,
      num_clients: int,
      rejected: Sequence[tuple[str, str]],
      row: Mapping[str, Any],
  ):
    """Takes note of a finished round.

    Args:
      num_clients: The number of clients that the process reports on.
      rejected: The rejected clients with the reasons, see `find_rejected`.
      row: The metrics of the round.
    """
    if num_clients > len(rejected):
      self.num_rejected_rounds = 0
    elif any(reason in FAILURES for _, reason in rejected):
      self.num_rejected_rounds += 1
      self._rejected = rejected
    largest = row.get(_RELATIVE_STEP_SIZE, 0.0)
    if largest > _MAX_RELATIVE_STEP_SIZE and not self._has_warned:
      self._has_warned = True
      warnings.warn(
          f"A client's step size has grown to {float(largest):.3g} times the "
          'learning rate (`clients/relative_step_size_max`), because its '
          'batches say little about the smoothness of its loss. Limit it by '
          '`max_step_size`, or use larger batches.',
          RuntimeWarning,
          stacklevel=2,
      )

  def check(self, round_num: int):
    """Raises if the run should end.

    Args:
      round_num: The number of finished rounds.

    Raises:
      AllClientsRejectedError: If every client was rejected in too many rounds
        in a row.
    """
    limit = self._max_rejected_rounds
    if limit is None or self.num_rejected_rounds < limit:
      return
    reasons = collections.Counter(
        reason for _, reason in self._rejected if reason in FAILURES
    )
    found = ', '.join(f'{count} {reason}' for reason, count in reasons.items())
    raise AllClientsRejectedError(
        f'Every client was rejected in {self.num_rejected_rounds} rounds in a '
        f'row{found and f" (in the last one {found})"}, so the model did '
        f'not change, and training stopped after round {round_num}. Try a '
        'smaller learning rate of the clients or of the server, or clipped '
        'gradients; for clients that are too_large, a larger limit of the '
        "update's norm; and look for NaN and extreme values in the data. "
        '`max_rejected_rounds` sets the number of rounds.'
    )


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
