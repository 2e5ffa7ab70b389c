# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where the time of a run goes: seconds by part, and the ops of a round."""

import collections
from collections.abc import Iterator
import contextlib
import gzip
import json
import pathlib
import tempfile
import time
from typing import Any

import tensorflow as tf

from tff_adaptive import _files


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
