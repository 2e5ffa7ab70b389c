# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writers of each round's metrics: CSV files and TensorBoard events.

A writer takes one flat row of scalars per round. At the start of a run it is
told the round of the checkpoint, and drops rows beyond it, because the
checkpoint determines where a run resumes.
"""

import abc
import collections
from collections.abc import Iterator, Mapping, Sequence
import contextlib
import io
import itertools
import math
import os
import pathlib
import socket
import time
from typing import Any, Optional

from absl import logging
import numpy as np
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto import summary_pb2
from tensorboard.summary.writer import record_writer

from tff_adaptive import _files
from tff_adaptive import _run_metrics
from tff_adaptive.client_works import totals
from tff_adaptive.data import cohort as cohort_lib
from tff_adaptive.simulation import client_states
from tff_adaptive.simulation import structures


class MetricsFileError(Exception):
  """A metrics file does not fit the run that wants to continue it."""


@contextlib.contextmanager
def _errors_of_reading() -> Iterator[None]:
  """Says what is wrong with a file; lets a missing file have no rows."""
  try:
    yield
  except FileNotFoundError:
    pass
  except ValueError as error:
    raise MetricsFileError(f'{error} in another folder') from error


def append(path: pathlib.Path, data: bytes):
  """Appends bytes to a file; if it raises, nothing is appended.

  Nothing is buffered in this process: a killed process loses no bytes.

  Args:
    path: The file, which is created if missing.
    data: The bytes.

  Raises:
    OSError: If the file cannot be written; names the file.
  """
  with (
      _files.write_errors_of(path),
      open(path, 'ab', buffering=0, opener=_files.open_no_link) as file,
  ):
    size = file.seek(0, os.SEEK_END)
    try:
      rest = memoryview(data)
      while rest:
        rest = rest[file.write(rest) :]
    except OSError:
      with contextlib.suppress(OSError):
        file.truncate(size)
      raise


def _replace_rows(
    path: pathlib.Path, header: Sequence[str], rows: Sequence[Sequence[str]]
):
  """Replaces a CSV file by a header and rows, atomically."""
  _files.write(path, _files.to_csv([header, *rows]))


def _read_metrics(
    path: pathlib.Path, num_rows: Optional[int] = None
) -> list[dict[str, str]]:
  """Returns the first rows of a `metrics.csv`, checked, if it exists."""
  rows: list[_run_metrics.Row] = []
  with _errors_of_reading():
    # Later rows, which may be damaged, are not read.
    rows += itertools.islice(_run_metrics.read_rows(path), num_rows)
    _run_metrics.to_columns(path, rows)
  return [row for _, _, row in rows]


ROUND_NUM_KEY = 'round_num'
SECONDS_KEY = 'seconds'
# The columns that the training loop adds.
LOOP_COLUMNS = (ROUND_NUM_KEY, SECONDS_KEY)
EVALUATION_PREFIX = 'evaluation'

_PROCESS_PARTS = ('distributor', 'client_work', 'aggregator', 'finalizer')
# The parts of the metrics with those of the model.
_MODEL_PARTS = ('train', 'eval')

_EVENT_FILE_VERSION = 'brain.Event:2'
_event_file_numbers = itertools.count()


def _column_names(paths: Sequence[tuple[str, ...]]) -> list[str]:
  """Joins paths, without the part of the process unless names clash."""
  short = [
      '/'.join(path[1:] if path[0] in _PROCESS_PARTS else path)
      for path in paths
  ]
  counts = collections.Counter(short)
  names = [
      '/'.join(path)
      if counts[name] > 1 or not name or _is_taken(name)
      else name
      for path, name in zip(paths, short)
  ]
  return [f'metrics/{name}' if _is_taken(name) else name for name in names]


def _is_taken(name: str) -> bool:
  """Returns whether a column is one of the loop or its evaluations."""
  return name in LOOP_COLUMNS or name.startswith(f'{EVALUATION_PREFIX}/')


def flatten_metrics(
    metrics: Any, evaluation: Optional[Mapping[str, float]] = None
) -> collections.OrderedDict[str, Any]:
  """Flattens the metrics of a round to named scalars.

  The names of nested metrics are joined by `/`. A first name that is a part of
  the process (`distributor`, `client_work`, `aggregator`, `finalizer`) is left
  out, unless two metrics would then share a name, or one would be `round_num`
  or `seconds`, or begin with `evaluation/`. Without such a part, these get the
  prefix `metrics/`. Each entry of a vector among the model's metrics, those
  below `train` or `eval`, becomes a scalar: `train/f1_0`, `train/f1_1` and so
  on. If another metric has such a name, the later one ends with `_0` once more.
  Other arrays are left out.

  Args:
    metrics: The nested metrics of `LearningProcess.next`.
    evaluation: The metrics of the central evaluation after the round, if any.

  Returns:
    An ordered dictionary of scalars; evaluation metrics come last, under
    `evaluation/`.

  Example:
    >>> list(flatten_metrics({'finalizer': {'norm': 0.5}}, {'loss': 1.0}))
    ['norm', 'evaluation/loss']
  """
  leaves: dict[tuple[str, ...], Any] = {}
  for path, leaf in structures.flatten_with_path(metrics):
    for place, scalar in _to_scalars(path, leaf) if path else ():
      while place in leaves:
        place = (*place[:-1], f'{place[-1]}_0')
      leaves[place] = scalar
  row = collections.OrderedDict(zip(_column_names([*leaves]), leaves.values()))
  for name, value in (evaluation or {}).items():
    row[f'{EVALUATION_PREFIX}/{name}'] = value
  return row


def _to_scalars(
    path: tuple[str, ...], leaf: Any
) -> list[tuple[tuple[str, ...], Any]]:
  """Returns a metric as scalars, each with its path."""
  if np.ndim(leaf) == 0:
    return [(path, leaf)]
  is_of_model = any(part in _MODEL_PARTS for part in path[:-1])
  if np.ndim(leaf) == 1 and is_of_model:
    *outer, name = path
    return [((*outer, f'{name}_{i}'), value) for i, value in enumerate(leaf)]
  return []


class MetricsWriter(abc.ABC):
  """Takes one row of scalars per round."""

  @abc.abstractmethod
  def resume(self, round_num: int):
    """Drops everything that was written after a round.

    Args:
      round_num: The number of finished rounds; 0 for a new run.
    """

  @abc.abstractmethod
  def write(self, round_num: int, row: Mapping[str, Any]):
    """Adds the row of a finished round.

    Args:
      round_num: The round number, from 1.
      row: Its scalars by name.

    Raises:
      OSError: If the row cannot be written; names the file.
    """

  def write_rejected(self, round_num: int, rejected: Sequence[tuple[str, str]]):
    """Adds the rejected clients of the same round; does nothing by default.

    Args:
      round_num: The round number, from 1.
      rejected: The id of each rejected client and the reason; see
        `tff_adaptive.client_works.Rejection`.

    Raises:
      OSError: If they cannot be written; names the file.
    """

  def flush(self):
    """Flushes all rows to disk."""

  def close(self):
    """Closes the writer."""


def _format(value: Any) -> str:
  """Returns a text in one line; that of a number reads back as the same."""
  if isinstance(value, str):
    text = ' '.join(value.splitlines())  # Readers take a line for a row.
    # A column must not have texts and numbers.
    return text if _run_metrics.parse_number(text) is None else repr(text)
  array = np.asarray(value)
  if array.dtype.kind in 'biu':
    return str(int(array))
  if array.dtype == np.float32:
    return str(np.float32(array))
  if array.dtype.kind == 'S':
    return _format(array.item().decode())
  return repr(float(array))


def to_scalars(metrics: Any, source: str) -> dict[str, Any]:
  """Returns named measurements as scalars, each entry of a vector as one.

  Args:
    metrics: What a function of the user's returned.
    source: The function, for error messages.

  Returns:
    Numbers and texts by name; the entries of a vector `f1` are `f1_0`, `f1_1`
    and so on.

  Raises:
    TypeError: If it is not a mapping, or a value is something else.

  Example:
    >>> to_scalars({'loss': 0.5, 'f1': [0.1, 0.9]}, '`evaluate_fn`')
    {'loss': 0.5, 'f1_0': 0.1, 'f1_1': 0.9}
  """
  if not isinstance(metrics, Mapping):
    raise TypeError(
        f'{source} must return a mapping from names to numbers, found '
        f'{type(metrics).__name__}.'
    )
  scalars: dict[str, Any] = {}
  for name, value in metrics.items():
    try:
      for place, scalar in _entries(str(name), value):
        _format(scalar)
        while place in scalars:  # An entry of a vector, and another metric.
          place += '_0'
        scalars[place] = scalar
    except (TypeError, ValueError):
      raise TypeError(
          f'{source} must return numbers, found {value!r} for {name!r}.'
      ) from None
  return scalars


def _entries(name: str, value: Any) -> list[tuple[str, Any]]:
  """Returns a measurement as named scalars: of a vector, each entry."""
  if hasattr(value, 'numpy'):  # NumPy has no array of a scalar bfloat16.
    value = value.numpy()
  if np.ndim(value) != 1:
    return [(name, value)]
  return [(f'{name}_{i}', entry) for i, entry in enumerate(value)]


def numbers_of(row: Mapping[str, Any]) -> dict[str, float]:
  """Returns the numbers of a row, without its texts."""
  return {
      name: float(value)
      for name, value in row.items()
      if not isinstance(value, (str, bytes))
  }


class _FileWriter(MetricsWriter):
  """A writer that appends to a file."""

  def __init__(self, path: _files.PathLike):
    self._path = pathlib.Path(path)

  def flush(self):
    """Flushes all rows to disk."""
    if self._path.is_file():
      with _files.write_errors_of(self._path), open(self._path, 'rb') as file:
        os.fsync(file.fileno())

  def _remove_temporaries(self):
    """Removes what a killed process has left of replacing the file."""
    for path in self._path.parent.glob(f'*{_files.TEMPORARY_SUFFIX}'):
      if _files.is_temporary(path, self._path):
        path.unlink(missing_ok=True)


class CSVMetricsWriter(_FileWriter):
  """Writes `metrics.csv`: one row per round, `round_num` first, seconds last.

  Columns that first appear in a later round (those of the evaluation) are
  inserted before `seconds`, and are empty in rows without them. Numbers are
  written with the fewest digits that read back as the same number, and texts
  that look like numbers in quotes, as '12'.

  Example:
    >>> writer = CSVMetricsWriter('runs/demo/metrics.csv')
    >>> writer.resume(0)
    >>> writer.write(1, {'loss': 0.5, 'seconds': 0.1})
  """

  def __init__(self, path: _files.PathLike):
    """Initializes the writer; nothing is read or written yet.

    Args:
      path: The file, in an existing folder.
    """
    super().__init__(path)
    self._columns: list[str] = []
    # Whether columns have numbers or texts, as far as it is known.
    self._has_numbers: dict[str, bool] = {}

  def resume(self, round_num: int):
    """Keeps the header and the rows up to `round_num`.

    Args:
      round_num: The number of finished rounds; 0 removes the file.

    Raises:
      MetricsFileError: If a row up to `round_num` is missing or damaged; names
        the file and the line.
      OSError: If the file cannot be written; names it.
    """
    self._remove_temporaries()
    self._has_numbers = {}
    if round_num == 0:
      self._columns = []
      self._path.unlink(missing_ok=True)
      return
    rows = _read_metrics(self._path, round_num)
    found = [row[ROUND_NUM_KEY] for row in rows]
    if found != [str(i + 1) for i in range(round_num)]:
      raise MetricsFileError(
          f'{self._path} does not have a row for every round up to '
          f'{round_num}, the round of the newest checkpoint; restore the file '
          'or remove the folder of the run'
      )
    for row in rows:
      self._check_kinds(row)
    self._columns = list(rows[0])
    _replace_rows(
        self._path, self._columns, [list(row.values()) for row in rows]
    )

  def write(self, round_num: int, row: Mapping[str, Any]):
    """Adds a row; see the base class.

    Args:
      round_num: The round number, from 1.
      row: Its scalars by name.

    Raises:
      TypeError: If a column has a text among its numbers, or vice versa.
      OSError: If the row cannot be written; names the file.
    """
    values = {ROUND_NUM_KEY: round_num, **row}
    fields = {name: _format(value) for name, value in values.items()}
    self._check_kinds(fields)
    new = [name for name in values if name not in self._columns]
    if new:
      self._add_columns(new)
    texts = [fields.get(name, '') for name in self._columns]
    append(self._path, _files.to_csv([texts]))

  def _check_kinds(self, fields: Mapping[str, str]):
    """Raises if a row would make the file a damaged one to its readers."""
    for name, text in fields.items():
      value = _run_metrics.parse_number(text)
      # Those that are not finite may stand for either.
      if not text or (value is not None and not math.isfinite(value)):
        continue
      is_number = value is not None
      if self._has_numbers.setdefault(name, is_number) != is_number:
        raise TypeError(
            f'{name!r} of round {fields[ROUND_NUM_KEY]} is {text}, but the '
            f'{"texts" if is_number else "numbers"} of earlier rounds are in '
            'the same column; NaN is for an unknown number.'
        )

  def _add_columns(self, names: Sequence[str]):
    """Inserts new columns before `seconds` and rewrites the existing rows."""
    old = self._columns
    named = _read_metrics(self._path) if old else []
    columns = sorted([*old, *names], key=lambda name: name == SECONDS_KEY)
    rows = [[row.get(name, '') for name in columns] for row in named]
    _replace_rows(self._path, columns, rows)
    self._columns = columns


class TensorBoardMetricsWriter(_FileWriter):
  """Writes the rows as TensorBoard scalars, with the round as the step.

  Example:
    >>> writer = TensorBoardMetricsWriter('runs/demo/tensorboard')
    >>> writer.resume(0)
    >>> writer.write(1, {'loss': 0.5})
  """

  def __init__(self, directory: _files.PathLike):
    """Initializes the writer; the first use creates the folder.

    Args:
      directory: The folder of the event files.
    """
    super().__init__(directory)
    self._directory = self._path

  def resume(self, round_num: int):
    """Starts an event file that hides earlier events after `round_num`.

    Args:
      round_num: The number of finished rounds; 0 removes all event files of the
        folder.
    """
    if round_num == 0 and self._directory.is_dir():
      for path in self._directory.glob('events.out.tfevents.*'):
        path.unlink()
    self._directory.mkdir(parents=True, exist_ok=True)
    # TensorBoard reads the files of a folder in the order of their names. Its
    # own writer is not used: its thread prints a traceback if the disk is full.
    name = (
        f'events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.'
        f'{os.getpid()}.{next(_event_file_numbers):06d}'
    )
    self._path = self._directory / name
    self._add(file_version=_EVENT_FILE_VERSION)
    if round_num > 0:
      start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
      self._add(step=round_num + 1, session_log=start)

  def write(self, round_num: int, row: Mapping[str, Any]):
    """Adds the numbers of a row as scalars at step `round_num`."""
    values = [
        summary_pb2.Summary.Value(tag=name, simple_value=value)
        for name, value in numbers_of(row).items()
    ]
    self._add(step=round_num, summary=summary_pb2.Summary(value=values))

  def _add(self, **fields: Any):
    """Adds one event."""
    event = event_pb2.Event(wall_time=time.time(), **fields)
    record = io.BytesIO()
    record_writer.RecordWriter(record).write(event.SerializeToString())
    append(self._path, record.getvalue())


_REJECTIONS_KEY = 'rejections'
_COLUMNS = (ROUND_NUM_KEY, 'client_id', 'reason')


def _rejection_codes(metrics: Any) -> Sequence[Any]:
  """Returns the `Rejection` of each client; empty if not reported."""
  for key in (client_states.CLIENT_WORK_KEY, _REJECTIONS_KEY):
    metrics = metrics.get(key, ()) if isinstance(metrics, Mapping) else ()
  return metrics


def count_reported(metrics: Any) -> int:
  """Returns the number of clients whose rejection or health is reported.

  Args:
    metrics: The metrics of the process in the round, see `find_rejected`.
  """
  return len(_rejection_codes(metrics))


def find_rejected(
    clients: Sequence[Any], metrics: Any
) -> list[tuple[str, str]]:
  """Finds the clients that a round has rejected.

  Args:
    clients: The clients of the round. Those of a `Cohort` have ids; those of
      other sequences are named by their index, '0' and so on.
    metrics: The metrics of the process in the round, see
      `tff_adaptive.client_works.build_local_training_client_work`.

  Returns:
    The id of each rejected client and the lower-case name of its `Rejection`,
    in the order of the clients. Empty if the process does not report them.

  Example:

    >>> find_rejected(cohort, process.next(state, cohort).metrics)
    []
  """
  codes = _rejection_codes(metrics)
  ids: Sequence[Any] = range(len(codes))
  if isinstance(clients, cohort_lib.Cohort):
    ids = clients.client_ids
  return [
      (str(ids[place]), totals.Rejection(codes[place]).name.lower())
      for place in np.flatnonzero(codes)
  ]


class RejectedClientsWriter(_FileWriter):
  """Writes `rejected_clients.csv`: one row per rejected client and round.

  The columns are `round_num`, `client_id` and `reason`: `no_example`,
  `not_finite` or `too_large`, see `tff_adaptive.client_works.Rejection`. The
  first rejected client creates the file and is reported by a warning.

  Example:

    >>> writer = RejectedClientsWriter('runs/demo/rejected_clients.csv')
    >>> writer.resume(0)
    >>> writer.write_rejected(1, [('client_007', 'not_finite')])
  """

  def __init__(self, path: _files.PathLike):
    """Initializes the writer; nothing is read or written yet.

    Args:
      path: The file, in an existing folder.
    """
    super().__init__(path)
    self._has_warned = False

  def resume(self, round_num: int):
    """Keeps the rows up to `round_num`; removes the file if none is left.

    Args:
      round_num: The number of finished rounds; 0 removes the file.

    Raises:
      MetricsFileError: If the file is damaged; names it.
      OSError: If the file cannot be written; names it.
    """
    self._has_warned = False
    self._remove_temporaries()
    if round_num == 0:
      self._path.unlink(missing_ok=True)
      return
    rows: list[list[str]] = []
    with _errors_of_reading():
      rows += (
          list(row.values())
          for _, found, row in _run_metrics.read_rows(
              self._path, may_repeat=True
          )
          if found <= round_num
      )
    if not rows:
      self._path.unlink(missing_ok=True)
      return
    _replace_rows(self._path, _COLUMNS, rows)

  def write(self, round_num: int, row: Mapping[str, Any]):
    """Does nothing: other writers write metrics."""

  def write_rejected(self, round_num: int, rejected: Sequence[tuple[str, str]]):
    """Adds the rejected clients of a round; see the base class."""
    if not rejected:
      return
    if not self._has_warned:
      self._has_warned = True
      self._warn(round_num, rejected)
    if not self._path.exists():
      _replace_rows(self._path, _COLUMNS, [])
    rows = [(round_num, *client) for client in rejected]
    append(self._path, _files.to_csv(rows))

  def _warn(self, round_num: int, rejected: Sequence[tuple[str, str]]):
    client_id, reason = rejected[0]
    others = f' (the first of {len(rejected)})' if len(rejected) > 1 else ''
    logging.warning(
        f'Round {round_num} has rejected client {client_id!r}{others}: '
        f'{reason}. It has no effect on the model; {self._path} lists the '
        'rejected clients of all rounds.'
    )
