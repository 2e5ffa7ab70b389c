# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shows the progress of a run, and where its time goes."""

import collections
from collections.abc import Iterator, Mapping
import contextlib
import datetime
import gzip
import json
import pathlib
import statistics
import sys
import tempfile
import time
from typing import Any, Optional, TextIO

import tensorflow as tf
import tqdm

from tff_adaptive import _files
from tff_adaptive.simulation import metrics_writers

_SECONDS_BETWEEN_LINES = 5.0
# The time left is estimated from recent rounds, enough to average evaluations.
_NUM_RECENT_ROUNDS = 50
_BAR_FORMAT = (
    '{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} rounds, {rate_inv_fmt}, '
    '{remaining} left{postfix}'
)


def format_loss(value: float, decimals: int) -> str:
  """Returns a loss with decimals, or with three digits if these mislead.

  Args:
    value: The loss, which may be much smaller than one decimal, or explode.
    decimals: The usual number of decimals.

  Example:

    >>> [format_loss(loss, 4) for loss in (1.5, 3.14e-6, 5.75e34)]
    ['1.5000', '3.14e-06', '5.75e+34']
  """
  is_usual = not value or 10.0 ** (1 - decimals) <= abs(value) < 1e6
  return f'{value:.{decimals}f}' if is_usual else f'{value:.3g}'


def _numbers_to_show(row: Mapping[str, Any]) -> dict[str, str]:
  """Returns the training loss and the evaluated accuracy, if available."""
  shown: dict[str, str] = {}
  prefix = f'{metrics_writers.EVALUATION_PREFIX}/'
  for name, value in metrics_writers.numbers_of(row).items():
    is_evaluation = name.startswith(prefix)
    last = name.rpartition('/')[2]
    if last == 'loss' and not is_evaluation:
      shown.setdefault('loss', format_loss(value, 4))
    if last == 'accuracy' and is_evaluation:
      shown['accuracy'] = f'{value:.4f}'
  return shown


class Progress:
  """Shows rounds, loss, seconds per round and the time left on a stream.

  In a terminal it is a bar that is redrawn. Elsewhere (a log file, a pipe) it
  is a plain line for the first round, the last round, and every five seconds in
  between; a resumed run first says after which round it continues. The first
  round compiles, so it is excluded from the seconds per round and the time
  left.

  Example:
    >>> progress = Progress(total_rounds=100)
    >>> progress.update(1, {'clients/loss': 2.3}, seconds=0.4)
    >>> progress.close()
  """

  def __init__(
      self,
      total_rounds: int,
      initial_round: int = 0,
      stream: Optional[TextIO] = None,
  ):
    """Initializes the progress.

    Args:
      total_rounds: The rounds of the whole run.
      initial_round: The number of rounds finished before.
      stream: The output stream. Defaults to standard error.
    """
    self._stream = sys.stderr if stream is None else stream
    self._total_rounds = total_rounds
    self._first_round = initial_round + 1
    self._seconds = collections.deque[float](maxlen=_NUM_RECENT_ROUNDS)
    self._last_line: Optional[float] = None
    self._shown: dict[str, str] = {}
    self._bar = None
    if self._stream.isatty():
      self._bar = tqdm.tqdm(
          total=total_rounds,
          initial=initial_round,
          unit='round',
          file=self._stream,
          dynamic_ncols=True,
          bar_format=_BAR_FORMAT,
      )
    elif 0 < initial_round < total_rounds:
      self._write(f'continues after round {initial_round}')

  def update(self, round_num: int, row: Mapping[str, Any], seconds: float):
    """Shows a finished round.

    Args:
      round_num: The number of finished rounds.
      row: The flat metrics of the round.
      seconds: The time of the round, including its evaluation.
    """
    if round_num == self._first_round + 1:
      # The first round compiles for all others.
      self._seconds.clear()
    self._seconds.append(seconds)
    # The last accuracy is shown until the next evaluation.
    self._shown.update(_numbers_to_show(row))
    if self._bar is not None:
      self._bar.set_postfix(self._shown, refresh=False)
      self._bar.update(1)
    elif self._is_line_due(round_num):
      self._write_line(round_num)

  def _is_line_due(self, round_num: int) -> bool:
    return (
        self._last_line is None
        or round_num == self._total_rounds
        or time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES
    )

  def _write_line(self, round_num: int):
    """Writes a line for a round."""
    self._last_line = time.monotonic()
    seconds = statistics.fmean(self._seconds)
    left = round(seconds * (self._total_rounds - round_num))
    width = len(str(self._total_rounds))
    parts = [f'round {round_num:{width}d}/{self._total_rounds}']
    parts += [f'{name} {value}' for name, value in self._shown.items()]
    parts.append(f'{seconds:.2f} s/round')
    if left and round_num > self._first_round:
      parts.append(f'{datetime.timedelta(seconds=left)} left')
    self._write('  '.join(parts))

  def _write(self, line: str):
    # Training continues if the reader of the stream has gone.
    with contextlib.suppress(OSError):
      self._stream.write(line + '\n')
      self._stream.flush()

  def close(self):
    """Ends the bar's line, so that later text starts on a new line."""
    if self._bar is not None:
      self._bar.close()
      self._bar = None


class Stopwatch:
  """Adds up the seconds of the parts of a run; parts may be nested.

  A part is also an event of TensorFlow's profiler, if it is active.

  Attributes:
    seconds: The seconds by part, without those of the parts within it.

  Example:
    >>> stopwatch = Stopwatch()
    >>> with stopwatch.measure('round'):
    ...   with stopwatch.measure('evaluation'):
    ...     pass
    ...
    >>> list(stopwatch.seconds)
    ['round', 'evaluation']
  """

  def __init__(self):
    self.seconds: dict[str, float] = collections.defaultdict(float)
    self._parts: list[str] = []
    self._since = 0.0

  @contextlib.contextmanager
  def measure(self, part: str) -> Iterator[None]:
    """Measures a block, which interrupts the part around it.

    Args:
      part: The name of the part.

    Yields:
      Nothing.
    """
    self._lap()
    self._parts.append(part)
    try:
      with tf.profiler.experimental.Trace(part):
        yield
    finally:
      self._lap()
      self._parts.pop()

  def _lap(self):
    """Adds the time since the last call to the innermost part."""
    now = time.perf_counter()
    if self._parts:
      self.seconds[self._parts[-1]] += now - self._since
    self._since = now


@contextlib.contextmanager
def profile(path: _files.PathLike) -> Iterator[None]:
  """Profiles a block, and writes a Chrome trace of its ops.

  The file opens in https://ui.perfetto.dev and in chrome://tracing. It has a
  line for each thread of the CPU and each stream of a GPU. If the block raises,
  nothing is written.

  Args:
    path: The file, a gzipped JSON.

  Yields:
    Nothing.

  Raises:
    OSError: If the file cannot be written.

  Example:
    >>> with profile('runs/profile.json.gz'):
    ...   output = process.next(state, cohort)
  """
  with tempfile.TemporaryDirectory() as folder:
    tf.profiler.experimental.start(folder)
    try:
      yield
    except BaseException:
      tf.profiler.experimental.stop(save=False)
      raise
    tf.profiler.experimental.stop()
    (found,) = pathlib.Path(folder).rglob('*.xplane.pb')
    events = _to_events(found.read_bytes())
  text = json.dumps({'displayTimeUnit': 'ms', 'traceEvents': events})
  _files.write(path, gzip.compress(text.encode()))


def _to_events(data: bytes) -> list[dict[str, Any]]:
  """Converts a profile of TensorFlow's to the events of a Chrome trace."""
  # Not among the modules that `import tensorflow` loads.
  from tensorflow.tsl.profiler.protobuf import xplane_pb2  # pylint: disable=import-outside-toplevel

  events: list[dict[str, Any]] = []

  def name(kind: str, text: str, **place: int):
    events.append({'ph': 'M', 'name': kind, 'args': {'name': text}, **place})

  for pid, plane in enumerate(xplane_pb2.XSpace.FromString(data).planes):
    if not any(line.events for line in plane.lines):
      continue
    name('process_name', plane.name, pid=pid)
    for line in plane.lines:
      name('thread_name', line.name, pid=pid, tid=line.id)
      events += [
          {
              'ph': 'X',
              'name': plane.event_metadata[event.metadata_id].name,
              'pid': pid,
              'tid': line.id,
              # In microseconds.
              'ts': line.timestamp_ns / 1e3 + event.offset_ps / 1e6,
              'dur': event.duration_ps / 1e6,
          }
          for event in line.events
      ]
  return events
