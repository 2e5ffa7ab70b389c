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
"""How long cells that were not run are expected to take."""

from collections.abc import Iterable, Iterator, Mapping
import contextlib
import math
import pathlib
from typing import Any, Optional

from experiments import published
from experiments import registry
from experiments.reports import run_folders

_UNKNOWN = 'unknown'


class ExpectedTimes:
  """Expects of a run what other runs of the same task and model took.

  Example:

    >>> times = ExpectedTimes(pathlib.Path('runs'))
    >>> times.describe(cell, seeds=3)
    '1 h 40 min'
  """

  def __init__(self, runs_dir: pathlib.Path):
    """Reads all runs of a folder.

    Args:
      runs_dir: The folder; runs may lie at any depth, and damaged ones are
        left out.

    Raises:
      OSError: If a file cannot be read.
    """
    self._seconds_per_round = _average(_readable_runs(runs_dir))

  def describe(self, cell: published.Cell, seeds: int) -> str:
    """Returns the time of a cell.

    Args:
      cell: The cell.
      seeds: How many runs it has.

    Returns:
      The product of the mean seconds of a round in runs of the same task and
      model, the rounds of the cell and the seeds; 'unknown' without such runs.
    """
    values = {item.name: item.value for item in published.hyperparameters(cell)}
    seconds = self._seconds_per_round.get(_work(values))
    rounds = _total_rounds(values)
    if seconds is None or rounds is None:
      return _UNKNOWN
    return format_seconds(seconds * rounds * seeds)


def _work(hparams: Mapping[str, Any]) -> tuple[Any, Any]:
  """Returns what sets the time of a round, roughly: the task and the model."""
  task = hparams.get('task')
  return task, hparams.get(f'{task}_model')


def _readable_runs(runs_dir: pathlib.Path) -> Iterator[run_folders.Run]:
  for path in sorted(runs_dir.rglob('hparams.json')):
    with contextlib.suppress(run_folders.RunError):
      yield run_folders.read_run(path.parent)


def _average(
    runs: Iterable[run_folders.Run],
) -> dict[tuple[Any, Any], float]:
  """Returns the mean seconds of a round by task and model."""
  totals: dict[tuple[Any, Any], list[float]] = {}
  for run in runs:
    if run.rounds_done:
      total = totals.setdefault(_work(run.hparams), [0.0, 0.0])
      total[0] += run.seconds
      total[1] += run.rounds_done
  return {work: seconds / rounds for work, (seconds, rounds) in totals.items()}


def _total_rounds(values: Mapping[str, Any]) -> Optional[int]:
  """Returns the rounds of a cell, by default those of its task."""
  if values['total_rounds'] is not None:
    return values['total_rounds']
  protocol = registry.ROWS[registry.TASK][values['task']].protocol
  return registry.resolve(str(protocol)).total_rounds


def format_seconds(seconds: float) -> str:
  """Returns a time in its two largest units.

  Args:
    seconds: The time.

  Returns:
    As '45 s', '3 min 20 s' or '2 h 5 min'.
  """
  total = math.ceil(seconds)
  if total < 60:
    return f'{total} s'
  if total < 3600:
    return f'{total // 60} min {total % 60} s'
  return f'{total // 3600:,} h {total % 3600 // 60} min'
