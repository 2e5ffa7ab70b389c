# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The folder of a run of `experiments.train`, read.

TensorFlow is imported once the metrics of a run are read, not with this module.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import csv
import dataclasses
import datetime
import io
import json
import math
import os
import pathlib
import statistics
from types import ModuleType
from typing import Any, Optional

# How a run's number is made of a column, see `tff_adaptive.analysis.summarize`.
LAST_10_EVALUATIONS = 'last_10_evaluations'
LAST_100_ROUNDS = 'last_100_rounds'
BEST = 'best'
FINAL = 'final'
ESTIMATES = (LAST_10_EVALUATIONS, LAST_100_ROUNDS, BEST, FINAL)

# Columns of metrics.csv.
ROUND_NUM = 'round_num'
SECONDS = 'seconds'
GRADIENT_EVALUATIONS = 'clients/num_gradient_evaluations'
BYTES_UP = 'clients/bytes_up'
BYTES_DOWN = 'clients/bytes_down'

# Those whose sum over the rounds is told of a run, by what it is called.
TOTALS = {
    'seconds': SECONDS,
    'gradient_evaluations': GRADIENT_EVALUATIONS,
    'bytes_up': BYTES_UP,
    'bytes_down': BYTES_DOWN,
}

EVALUATION = 'evaluation/'


def column_of(metric: str) -> str:
  """Returns the column of metrics.csv that holds a metric.

  Args:
    metric: The name of a metric of the evaluation, or that of a column.

  Returns:
    As 'evaluation/accuracy' for 'accuracy'; 'clients/loss' stays.
  """
  return metric if '/' in metric else f'{EVALUATION}{metric}'


_EMPTY = ((), ())
# Of a metrics.csv: more than a hundred rows, and quick to read.
_TAIL_BYTES = 1 << 16


class RunError(ValueError):
  """A folder is not that of a run; its text is one sentence."""


def _analysis() -> ModuleType:
  """Returns `tff_adaptive.analysis`, which takes seconds to import."""
  from tff_adaptive import analysis  # pylint: disable=import-outside-toplevel

  return analysis


@dataclasses.dataclass(frozen=True)
class Run:
  """A run.

  Attributes:
    path: Its folder.
    hparams: What `hparams.json` says.
    columns: Rounds and values of every column of metrics.csv.
  """

  path: pathlib.Path
  hparams: Mapping[str, Any]
  columns: Mapping[str, tuple[Sequence[int], Sequence[float]]]

  @property
  def rounds_done(self) -> int:
    """The last round that was trained."""
    rounds, _ = self.series(ROUND_NUM)
    return rounds[-1] if rounds else 0

  @property
  def total_rounds(self) -> int:
    """The rounds that it is to have."""
    return self.hparams['total_rounds']

  @property
  def is_finished(self) -> bool:
    """Whether all rounds were trained."""
    return self.rounds_done >= self.total_rounds

  @property
  def seconds(self) -> float:
    """The time of all rounds."""
    return self.total(SECONDS)

  @property
  def seconds_per_round(self) -> float:
    """The median of the rounds after the first, which compiles."""
    _, values = self.series(SECONDS)
    return statistics.median(values[1:]) if len(values) > 1 else math.nan

  @property
  def gradient_evaluations(self) -> float:
    """The gradients of a batch that all clients computed."""
    return self.total(GRADIENT_EVALUATIONS)

  @property
  def num_bytes(self) -> float:
    """The bytes that went over the network, down and up."""
    return self.total(BYTES_DOWN) + self.total(BYTES_UP)

  @property
  def started(self) -> datetime.datetime:
    """When it was begun, or was last given more rounds, by the file system."""
    return _modified(self.path / 'hparams.json')

  @property
  def ended(self) -> datetime.datetime:
    """When the last round was written, as the file system knows it."""
    return _modified(self.path / 'metrics.csv')

  def series(self, column: str) -> tuple[Sequence[int], Sequence[float]]:
    """Returns the rounds and values of a column; none if it is not there."""
    return self.columns.get(column, _EMPTY)

  def total(self, column: str) -> float:
    """Returns the sum of a column over the rounds; NaN if it is not there."""
    _, values = self.series(column)
    return math.fsum(values) if values else math.nan

  def summarize(
      self, metric: str, estimate: str, *, higher_is_better: bool = True
  ) -> float:
    """Returns the number that stands for the run.

    Args:
      metric: Of `column_of`.
      estimate: Of `ESTIMATES`.
      higher_is_better: What 'best' is.

    Returns:
      The number; not a number if none was measured, or the metric was not
      finite in the last round: a run that diverged has no result, whatever it
      had reached before.
    """
    rounds, values = self.series(column_of(metric))
    if not rounds or rounds[-1] < self._last_evaluation():
      return math.nan
    return _analysis().summarize(
        (rounds, values), estimate, higher_is_better=higher_is_better
    )

  def find_round(self, metric: str, target: float) -> float:
    """Returns the first round in which a metric was at least a target.

    Args:
      metric: Of `column_of`.
      target: The value to reach.

    Returns:
      The number of the round; infinity if it was never reached.
    """
    series = self.series(column_of(metric))
    return _analysis().find_round(series, target)

  def _last_evaluation(self) -> int:
    """The last round that was evaluated; a finished run ends with one."""
    if self.is_finished:
      return self.rounds_done
    every = self.hparams.get('rounds_per_evaluation') or 1
    return self.rounds_done // every * every


def _modified(path: pathlib.Path) -> datetime.datetime:
  seconds = path.stat().st_mtime if path.is_file() else 0.0
  return datetime.datetime.fromtimestamp(seconds)


def is_run(path: pathlib.Path) -> bool:
  """Returns whether a folder is that of a run."""
  return (path / 'hparams.json').is_file()


def read_run(path: pathlib.Path) -> Run:
  """Returns the run of a folder.

  Args:
    path: The folder.

  Returns:
    The run, as far as it has come; one that has just begun has no columns.

  Raises:
    RunError: If it is no folder of a run, or a file in it is damaged.
    OSError: If a file cannot be read.
  """
  if not is_run(path):
    raise RunError(f'{path} is not the folder of a run: it has no hparams.json')
  try:
    hparams = json.loads((path / 'hparams.json').read_text(encoding='utf-8'))
    hparams['total_rounds'] = int(hparams['total_rounds'])
  except (KeyError, TypeError, ValueError) as error:
    raise RunError(f'{path}/hparams.json is damaged, train again') from error
  try:
    columns = _analysis().read_columns(path / 'metrics.csv')
  except FileNotFoundError:
    columns = {}
  except ValueError as error:
    raise RunError(str(error)) from error
  return Run(path, hparams, columns)


def read_seeds(path: pathlib.Path) -> dict[int, Run]:
  """Returns the runs `seed_0`, `seed_1`, ... of a folder by their seed.

  Args:
    path: The folder of an experiment; it may be missing.

  Returns:
    The runs, by ascending seed.

  Raises:
    RunError: If a file in one of them is damaged.
    OSError: If a file cannot be read.
  """
  runs = {}
  for folder in path.glob('seed_*'):
    seed = _seed_of(folder)
    if seed is not None and is_run(folder):
      runs[seed] = read_run(folder)
  return dict(sorted(runs.items()))


def _seed_of(folder: pathlib.Path) -> Optional[int]:
  text = folder.name.partition('_')[2]
  return int(text) if text.isdecimal() else None


def find_runs(path: pathlib.Path) -> Iterator[Run]:
  """Yields the runs at any depth of a folder; those that are damaged are not.

  Args:
    path: The folder; it may be missing.

  Yields:
    The runs, in the order of their folders.

  Raises:
    OSError: If a file cannot be read.
  """
  for file in sorted(path.rglob('hparams.json')):
    with contextlib.suppress(RunError):
      yield read_run(file.parent)


def read_hparams(path: pathlib.Path) -> Optional[dict[str, Any]]:
  """Returns the hyperparameters of a run, for a glance at it.

  Args:
    path: The folder of the run.

  Returns:
    Those of `hparams.json`; None if that is not there or damaged, about which
    the run itself has a sentence.
  """
  try:
    found = json.loads((path / 'hparams.json').read_text(encoding='utf-8'))
  except (OSError, ValueError):
    return None
  return found if isinstance(found, dict) else None


def read_last_row(path: pathlib.Path) -> dict[str, float]:
  """Returns the newest numbers of a run's metrics, for a glance at it.

  Args:
    path: The folder of the run, which may be at work.

  Returns:
    The last number of every column that is in the end of `metrics.csv`; empty
    if there is no row yet. Rows that are damaged do not count.
  """
  try:
    with open(path / 'metrics.csv', 'rb') as file:
      header = file.readline()
      size = file.seek(0, os.SEEK_END)
      file.seek(max(len(header), size - _TAIL_BYTES))
      tail = file.read()
  except OSError:
    return {}
  # Of the first line only the end may have been read, and the last one may
  # not be whole yet.
  whole = tail[: tail.rfind(b'\n') + 1].decode(errors='replace')
  lines = whole.splitlines()
  if size - len(header) > _TAIL_BYTES:
    lines = lines[1:]
  first = header.decode('utf-8-sig', errors='replace')
  newest: dict[str, float] = {}
  with contextlib.suppress(csv.Error):
    names = next(csv.reader(io.StringIO(first)), [])
    for fields in csv.reader(lines):
      if len(fields) == len(names):
        for name, text in zip(names, fields):
          with contextlib.suppress(ValueError):
            newest[name] = float(text)
  return newest
