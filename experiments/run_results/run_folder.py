# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Readers of the run folders of `experiments.train`, without TensorFlow."""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import csv
import dataclasses
import datetime
import json
import math
import os
import pathlib
import statistics
from typing import Any, Optional

from tff_adaptive import _metric_modes
from tff_adaptive import _run_metrics

# The ways to summarize a column, see `tff_adaptive.analysis.summarize`.
LAST_10_EVALUATIONS = _run_metrics.LAST_10_EVALUATIONS
BEST = _run_metrics.BEST
ESTIMATES = _run_metrics.ESTIMATES

is_higher_better = _metric_modes.is_higher_better

# Columns of metrics.csv.
ROUND_NUM = 'round_num'
SECONDS = 'seconds'
NUM_CLIENTS = 'clients/num_clients'
GRADIENT_EVALUATIONS = 'clients/num_gradient_evaluations'
BYTES_UP = 'clients/bytes_up'
BYTES_DOWN = 'clients/bytes_down'

# Reported sums over the rounds: their names and columns.
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
    metric: The name of an evaluation metric, or of a column.

  Returns:
    'evaluation/accuracy' for 'accuracy'; 'clients/loss' is unchanged.
  """
  return metric if '/' in metric else f'{EVALUATION}{metric}'


_EMPTY = ((), ())
# The tail of a metrics.csv: over a hundred rows, and quick to read.
_TAIL_BYTES = 1 << 16


class RunError(ValueError):
  """An error about a folder that is not a valid run, in one sentence."""


@dataclasses.dataclass(frozen=True)
class Run:
  """A run.

  Attributes:
    path: Its folder.
    hparams: The contents of `hparams.json`.
    columns: The rounds and values of each column of `metrics.csv`.
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
    """The number of rounds that it is configured to train."""
    return self.hparams['total_rounds']

  @property
  def is_finished(self) -> bool:
    """Whether all rounds were trained."""
    return self.rounds_done >= self.total_rounds

  @property
  def awaits_evaluation(self) -> bool:
    """Whether it has trained too few rounds for its first evaluation."""
    return not self._last_evaluation() and not any(
        name.startswith(EVALUATION) for name in self.columns
    )

  @property
  def seconds(self) -> float:
    """The total time of its rounds."""
    return self.total(SECONDS)

  @property
  def seconds_per_round(self) -> float:
    """The median of the rounds after the first, which compiles."""
    _, values = self.series(SECONDS)
    return statistics.median(values[1:]) if len(values) > 1 else math.nan

  @property
  def started(self) -> datetime.datetime:
    """The time of its start, or of its last extension by more rounds."""
    return _modified(self.path / 'hparams.json')

  @property
  def ended(self) -> datetime.datetime:
    """The time when its last round was written."""
    return _modified(self.path / 'metrics.csv')

  def series(self, column: str) -> tuple[Sequence[int], Sequence[float]]:
    """Returns the rounds and values of a column; empty if it is missing.

    The model's metrics on training examples are left out where there were none,
    as without clients or where all of them were rejected.

    Args:
      column: The column.
    """
    rounds, values = self.columns.get(column, _EMPTY)
    if not column.startswith(_run_metrics.TRAIN):
      return rounds, values
    sizes = dict(zip(*self.columns.get(_run_metrics.NUM_EXAMPLES, _EMPTY)))
    kept = [(r, v) for r, v in zip(rounds, values) if sizes.get(r) != 0]
    return [r for r, _ in kept], [v for _, v in kept]

  def total(self, column: str) -> float:
    """Returns the sum of a column over the rounds; NaN if it is missing."""
    _, values = self.series(column)
    return math.fsum(values) if values else math.nan

  def summarize(
      self, metric: str, estimate: str, *, higher_is_better: bool = True
  ) -> float:
    """Returns the result of the run.

    Args:
      metric: See `column_of`.
      estimate: One of `ESTIMATES`.
      higher_is_better: Whether the best value is the highest.

    Returns:
      The result; NaN if there is none, or if the metric was not finite in the
      last round: a diverged run has no result, whatever it reached before.
    """
    column = column_of(metric)
    rounds, values = self.series(column)
    last = self._last_evaluation()
    if not column.startswith('evaluation'):  # Also of clients, or averages.
      last = max(set(range(1, last + 1)) - self.idle_rounds(), default=0)
    if not rounds or rounds[-1] < last:
      return math.nan
    return _run_metrics.summarize(
        (rounds, values), estimate, higher_is_better=higher_is_better
    )

  def idle_rounds(self) -> set[int]:
    """Returns the rounds without clients, which measured nothing."""
    return {r for r, n in zip(*self.series(NUM_CLIENTS)) if not n}

  def find_round(self, metric: str, target: float) -> float:
    """Returns the first round in which a metric was at least a target.

    Args:
      metric: See `column_of`.
      target: The value to reach.

    Returns:
      The round; infinity if the target was never reached.
    """
    return _run_metrics.find_round(self.series(column_of(metric)), target)

  def _last_evaluation(self) -> int:
    """Returns the last evaluated round; a finished run ends with one."""
    if self.is_finished:
      return self.rounds_done
    every = self.hparams.get('rounds_per_evaluation') or 1
    return self.rounds_done // every * every


def _modified(path: pathlib.Path) -> datetime.datetime:
  seconds = path.stat().st_mtime if path.is_file() else 0.0
  return datetime.datetime.fromtimestamp(seconds)


def is_run(path: pathlib.Path) -> bool:
  """Returns whether a folder contains a run."""
  return (path / 'hparams.json').is_file()


def read_run(path: pathlib.Path) -> Run:
  """Reads the run in a folder.

  Args:
    path: The folder.

  Returns:
    The run so far; a run that has just started has no columns.

  Raises:
    RunError: If the folder contains no run, or a file in it is damaged.
    OSError: If a file cannot be read.
  """
  if not is_run(path):
    raise RunError(f'{path} is not the folder of a run: it has no hparams.json')
  try:
    hparams = json.loads((path / 'hparams.json').read_text(encoding='utf-8'))
    hparams['total_rounds'] = int(hparams['total_rounds'])
    for name in ('seed', 'rounds_per_evaluation'):
      int(hparams.get(name) or 0)  # Raises unless it is a number.
  except (
      AttributeError,
      KeyError,
      OverflowError,
      TypeError,
      ValueError,
  ) as error:
    raise RunError(f'{path}/hparams.json is damaged, train again') from error
  try:
    columns = _run_metrics.read_columns(path / 'metrics.csv')
  except FileNotFoundError:
    columns = {}
  except ValueError as error:
    raise RunError(str(error)) from error
  return Run(path, hparams, columns)


def read_seeds(path: pathlib.Path) -> dict[int, Run]:
  """Reads the runs `seed_0`, `seed_1`, ... in a folder.

  Args:
    path: The folder of an experiment; it may be missing.

  Returns:
    The runs by seed, in ascending order.

  Raises:
    RunError: If a file in one of them is damaged.
    OSError: If a file cannot be read.
  """
  runs = {}
  for folder in path.glob('seed_*'):
    seed = _run_metrics.parse_round(folder.name.removeprefix('seed_'))
    if seed is not None and is_run(folder):
      runs[seed] = read_run(folder)
  return dict(sorted(runs.items()))


def find_runs(path: pathlib.Path) -> Iterator[Run]:
  """Yields the runs at any depth of a folder, skipping damaged ones.

  Args:
    path: The folder; it may be missing.

  Yields:
    The runs, sorted by path.

  Raises:
    OSError: If a file cannot be read.
  """
  for file in sorted(path.rglob('hparams.json')):
    with contextlib.suppress(RunError):
      yield read_run(file.parent)


def read_hparams(path: pathlib.Path) -> Optional[dict[str, Any]]:
  """Returns the hyperparameters of a run, without raising on a damaged file.

  Args:
    path: The folder of the run.

  Returns:
    The contents of `hparams.json`; None if it is missing or damaged.
  """
  try:
    found = json.loads((path / 'hparams.json').read_text(encoding='utf-8'))
  except (OSError, ValueError):
    return None
  return found if isinstance(found, dict) else None


def read_last_row(path: pathlib.Path) -> dict[str, float]:
  """Returns the latest metrics of a run, which may still be training.

  Args:
    path: The folder of the run.

  Returns:
    The last number of each column in the tail of `metrics.csv`; empty if there
    is no row yet. Damaged rows are skipped.
  """
  try:
    with open(path / 'metrics.csv', 'rb') as file:
      header = file.readline()
      size = file.seek(0, os.SEEK_END)
      file.seek(max(len(header), size - _TAIL_BYTES))
      tail = file.read()
  except OSError:
    return {}
  # The first line may have been read in part, and the last line may be
  # incomplete.
  whole = tail[: tail.rfind(b'\n') + 1].decode(errors='replace')
  lines = whole.splitlines()
  if size - len(header) > _TAIL_BYTES:
    lines = lines[1:]
  first = header.decode('utf-8-sig', errors='replace')
  newest: dict[str, float] = {}
  names: list[str] = []
  with contextlib.suppress(csv.Error):
    names = next(csv.reader([first], strict=True), [])
  # One by one, because the quote of a damaged line would swallow the next ones.
  for line in lines:
    with contextlib.suppress(csv.Error):
      fields = next(csv.reader([line], strict=True), [])
      for name, text in zip(names, fields if len(fields) == len(names) else ()):
        value = _run_metrics.parse_number(text)
        if value is not None:
          newest[name] = value
  return newest
