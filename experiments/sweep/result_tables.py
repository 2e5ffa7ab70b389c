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
"""The CSV files of a sweep: a row a run, a row an assignment, the best."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import math
import pathlib
import statistics
from typing import Any, Optional

from experiments import command_line
from experiments import pages
from experiments.run_results import run_folder
from experiments.run_results import seed_statistics
from experiments.sweep import scores
from experiments.sweep import search_spaces
from experiments.sweep import trials as trials_lib
from tff_adaptive import _files

WAITING = 'waiting'
RUNNING = 'running'
FINISHED = 'finished'
FAILED = 'failed'


@dataclasses.dataclass(frozen=True)
class RunResult:
  """What a run came to.

  Attributes:
    trial: The trial.
    status: One of the constants of this module.
    metric: The metric of the evaluations; empty before the end.
    score: The number by which it is compared; NaN if there is none.
    measured: What else is said of it, as `scores.measure` returns it.
  """

  trial: trials_lib.Trial
  status: str
  metric: str = ''
  score: float = math.nan
  measured: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Configuration:
  """What the runs of an assignment came to, over the seeds.

  Attributes:
    labels: The assignment.
    runs: Its runs.
    rank: 1 for the best.
  """

  labels: Mapping[str, str]
  runs: tuple[RunResult, ...]
  rank: int = 0

  @property
  def assignment(self) -> search_spaces.Assignment:
    """The values by flag."""
    return tuple(self.labels.items())

  @property
  def score(self) -> float:
    """The mean over the seeds; NaN unless every run has a score."""
    return self.mean('score')

  def mean(self, name: str) -> float:
    """Returns the mean over the seeds of something measured."""
    return statistics.fmean(self._values(name))

  def std(self, name: str) -> Optional[float]:
    """Returns the sample standard deviation; None for one seed."""
    return seed_statistics.std(self._values(name))

  def _values(self, name: str) -> list[float]:
    if name == 'score':
      return [run.score for run in self.runs]
    return [run.measured.get(name, math.nan) for run in self.runs]


def rank(
    results: Iterable[RunResult], *, higher_is_better: bool
) -> list[Configuration]:
  """Returns the configurations, the best first.

  Args:
    results: The runs.
    higher_is_better: Whether the largest score is the best.

  Returns:
    The configurations; those without a finite score come last, in their order.
  """
  runs: dict[tuple[str, ...], list[RunResult]] = {}
  for result in results:
    runs.setdefault(result.trial.configuration, []).append(result)
  found = [
      Configuration(of_one[0].trial.labels, tuple(of_one))
      for of_one in runs.values()
  ]
  sign = -1 if higher_is_better else 1

  def key(configuration: Configuration) -> tuple[bool, float]:
    is_last = not math.isfinite(configuration.score)
    return is_last, 0.0 if is_last else sign * configuration.score

  return [
      dataclasses.replace(configuration, rank=place)
      for place, configuration in enumerate(sorted(found, key=key), start=1)
  ]


def choose_best(
    ranked: Sequence[Configuration], best_per: Optional[str] = None
) -> list[Configuration]:
  """Returns the best configuration, or the best ones.

  Args:
    ranked: What `rank` returned.
    best_per: A flag that is swept; then there is one for each of its values.

  Returns:
    The best with a finite score, the very best first; may be empty.
  """
  best: dict[Optional[str], Configuration] = {}
  for configuration in ranked:
    if math.isfinite(configuration.score):
      value = configuration.labels[best_per] if best_per else None
      best.setdefault(value, configuration)
  return list(best.values())


def write_results(
    path: pathlib.Path,
    results: Sequence[RunResult],
    selection: Optional[scores.Selection] = None,
    *,
    keep_others: bool = False,
):
  """Writes a row a run.

  Args:
    path: The file.
    results: The runs, with the same labels.
    selection: How is chosen; None if nothing is.
    keep_others: Whether rows of other runs stay, if the file has such rows.

  Raises:
    WriteError: If the file cannot be written.
  """
  rows: list[Mapping[str, Any]] = []
  for result in results:
    trial = result.trial
    chosen = (
        {'selected_by': selection.label, 'score': result.score}
        if selection
        else {}
    )
    rows.append(
        {
            **trial.labels,
            'seed': trial.seed,
            'status': result.status,
            **chosen,
            'metric': result.metric,
            'evaluation_data': scores.evaluation_data(trial),
            **{name: result.measured.get(name) for name in scores.MEASURED},
            'run': trial.folder,
        }
    )
  if keep_others:
    # Not by its folder: that may be given in other words from day to day.
    names = (*results[0].trial.labels, 'seed')
    runs = {tuple(str(row[name]) for name in names) for row in rows}
    # Rows of a file with other columns would not be understood.
    others = [
        row
        for row in _read_rows(path)
        if list(row) == list(rows[0])
        and tuple(row[name] for name in names) not in runs
    ]
    rows = others + rows
  _write_rows(path, rows)


def write_configurations(
    path: pathlib.Path,
    ranked: Sequence[Configuration],
    selection: scores.Selection,
):
  """Writes a row a configuration: mean and standard deviation over seeds.

  Args:
    path: The file.
    ranked: What `rank` returned, or some of it.
    selection: How is chosen.

  Raises:
    WriteError: If the file cannot be written.
  """
  rows = []
  for configuration in ranked:
    over_seeds = {
        f'{name}_{suffix}': compute(name)
        for name in ('score', run_folder.LAST_10_EVALUATIONS)
        for suffix, compute in (
            ('mean', configuration.mean),
            ('std', configuration.std),
        )
    }
    runs = configuration.runs
    rows.append(
        {
            'rank': configuration.rank,
            **configuration.labels,
            'num_seeds': len(runs),
            'num_finished': sum(run.status == FINISHED for run in runs),
            'selected_by': selection.label,
            **over_seeds,
            'metric': runs[0].metric,
            'evaluation_data': scores.evaluation_data(runs[0].trial),
            'runs': runs[0].trial.folder.parent,
        }
    )
  _write_rows(path, rows)


def write_flagfile(
    path: pathlib.Path,
    best: Configuration,
    selection: scores.Selection,
):
  """Writes the flags of an assignment, for `experiments.train --flagfile`.

  Args:
    path: The file.
    best: The assignment.
    selection: How it was chosen.

  Raises:
    WriteError: If the file cannot be written.
  """
  lines = [
      f'# The best by {selection.label}: {pages.format_value(best.score)}.'
  ]
  lines += [f'--{flag}={value}' for flag, value in best.assignment]
  pages.write(path, '\n'.join(lines) + '\n')


def remove(*paths: pathlib.Path):
  """Removes files that were written before, if they are there.

  Args:
    *paths: The files.

  Raises:
    WriteError: If one of them cannot be removed.
  """
  for path in paths:
    with _files.write_errors_of(path):
      path.unlink(missing_ok=True)


def _read_rows(path: pathlib.Path) -> list[dict[str, str]]:
  try:
    header, *rows = [fields for _, fields in _files.read_lines(path)] or [[]]
    return [dict(zip(header, row)) for row in rows]
  except FileNotFoundError:
    return []
  except _files.DamagedCSVError as error:
    raise command_line.UserError(
        f'{path} is damaged ({error}); remove it, and it is written anew'
    ) from error


def _write_rows(path: pathlib.Path, rows: Sequence[Mapping[str, Any]]):
  pages.write_csv(path, list(rows[0]), (row.values() for row in rows))
