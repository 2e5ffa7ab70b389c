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
"""Runs of `experiments.train`, read from their folders."""

from collections.abc import Mapping, Sequence
import dataclasses
import datetime
import json
import math
import pathlib
from typing import Any, Optional

from tff_adaptive import analysis

_SECONDS = 'seconds'
_GRADIENT_EVALUATIONS = 'clients/num_gradient_evaluations'
_BYTES = ('clients/bytes_down', 'clients/bytes_up')
_EMPTY = ((), ())


def column_of(metric: str) -> str:
  """Returns the column of metrics.csv that holds a metric.

  Args:
    metric: The name of a metric of the evaluation, or that of a column.

  Returns:
    As 'evaluation/accuracy' for 'accuracy'; 'clients/loss' stays.
  """
  return metric if '/' in metric else f'evaluation/{metric}'


class RunError(ValueError):
  """A folder is not that of a run; its text is one sentence."""


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
    rounds, _ = self.columns.get('round_num', _EMPTY)
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
    return self._total(_SECONDS)

  @property
  def gradient_evaluations(self) -> float:
    """How many gradients of a batch all clients computed."""
    return self._total(_GRADIENT_EVALUATIONS)

  @property
  def num_bytes(self) -> float:
    """What went over the network, down and up."""
    return sum(map(self._total, _BYTES))

  @property
  def started(self) -> datetime.datetime:
    """When the folder was made, as the file system knows it."""
    return _modified(self.path / 'hparams.json')

  @property
  def ended(self) -> datetime.datetime:
    """When the last round was written, as the file system knows it."""
    return _modified(self.path / 'metrics.csv')

  def series(self, metric: str) -> tuple[Sequence[int], Sequence[float]]:
    """Returns the rounds and values of a column; none if it is not there."""
    return self.columns.get(metric, _EMPTY)

  def summarize(
      self, metric: str, estimate: str, *, higher_is_better: bool = True
  ) -> float:
    """Returns the number that stands for the run.

    Args:
      metric: Of `column_of`.
      estimate: Of `analysis.summarize`.
      higher_is_better: What 'best' is.

    Returns:
      The number; not a number if none was measured, or the metric was not
      finite in the last round: a run that diverged has no result, whatever it
      had reached before.
    """
    rounds, values = self.series(column_of(metric))
    if not rounds or rounds[-1] < self._last_evaluation():
      return math.nan
    return analysis.summarize(
        (list(rounds), list(values)),
        estimate,
        higher_is_better=higher_is_better,
    )

  def _last_evaluation(self) -> int:
    """The last round that was evaluated; a finished run ends with one."""
    if self.is_finished:
      return self.rounds_done
    every = self.hparams.get('rounds_per_evaluation') or 1
    return self.rounds_done // every * every

  def _total(self, column: str) -> float:
    return math.fsum(self.series(column)[1])


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
    The run; one that has just begun has no columns.

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
  csv = path / 'metrics.csv'
  return Run(path, hparams, analysis.read_columns(csv) if csv.exists() else {})


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
