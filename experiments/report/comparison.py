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
"""Compares any runs: a table of numbers and curves over the rounds."""

from collections.abc import Mapping, Sequence
import math
import os
import pathlib

from experiments import pages
from experiments import published
from experiments.report import figure_data
from experiments.report import figures
from experiments.report import views
from experiments.run_results import formatting
from experiments.run_results import provenance
from experiments.run_results import run_folder
from experiments.run_results import seed_statistics
from tff_adaptive import analysis

# The first one that all runs have measured is compared; the scale of percents.
_METRICS = {'accuracy': 100.0, 'recall_at_5': 100.0, 'loss': 1.0}
_ESTIMATES = {
    'final': 'final',
    'best': 'best',
    'last_10_evaluations': 'last ten',
}
_DECIMALS = {100.0: 2, 1.0: 4}

_Runs = Mapping[str, Sequence[run_folder.Run]]


def read_runs(paths: Sequence[str]) -> dict[str, list[run_folder.Run]]:
  """Returns the runs of folders.

  Args:
    paths: Folders of runs, or of seeds of the same run: `seed_0`, `seed_1`, ...

  Returns:
    The runs of every folder, by its path from the last common folder on.

  Raises:
    RunError: If a folder is none of both, or a file in it is damaged.
    OSError: If a file cannot be read.
  """
  runs = {}
  for name in paths:
    path = pathlib.Path(name)
    seeds = list(run_folder.read_seeds(path).values())
    runs[path] = seeds or [run_folder.read_run(path)]
  return dict(zip(_short_names(list(runs)), runs.values()))


def _short_names(paths: Sequence[pathlib.Path]) -> list[str]:
  """Returns what tells paths apart, from their last common folder on."""
  common = os.path.commonpath([path.absolute().parent for path in paths])
  return [str(path.absolute().relative_to(common)) for path in paths]


def choose_metric(runs: _Runs) -> str:
  """Returns the metric to compare.

  Args:
    runs: The runs, by the name of their folder.

  Returns:
    The first of accuracy, recall at five and loss that all have measured.

  Raises:
    RunError: If they have none of them in common.
  """
  for metric in _METRICS:
    if all(
        run.series(run_folder.column_of(metric))[0]
        for found in runs.values()
        for run in found
    ):
      return metric
  raise run_folder.RunError(
      '--runs have no metric of the evaluation in common, of '
      f'{", ".join(_METRICS)}; a run must have evaluated once'
  )


def draw(runs: _Runs, metric: str, path_png: pathlib.Path):
  """Draws the metric over the rounds, a line a folder.

  Args:
    runs: The runs, by the name of their folder.
    metric: The metric.
    path_png: The picture to write.

  Raises:
    OSError: If the picture cannot be written; names it.
  """
  scale = _METRICS[metric]
  curves = {}
  for name, found in runs.items():
    series = [run.series(run_folder.column_of(metric)) for run in found]
    curve = figure_data.band_over_seeds(series, scale, figures.RANGE)
    if curve is not None:
      curves[name] = curve
  analysis.plot_band_curves(
      {'': curves}, path_png, y_label=_label(metric), names=list(runs)
  )


def _label(metric: str) -> str:
  unit = ' (%)' if _METRICS[metric] == 100.0 else ''
  return f'test {metric.replace("_", " ")}{unit}'


def build_page(
    runs: _Runs, metric: str, path_png: pathlib.Path, command: str
) -> pages.Page:
  """Returns the page of the comparison.

  Args:
    runs: The runs, by the name of their folder.
    metric: The metric.
    path_png: The picture of the curves.
    command: What makes the page.

  Returns:
    The page.
  """
  rows = [_row(name, found, metric) for name, found in runs.items()]
  return pages.Page(
      f'{_label(metric)} of {len(runs)} runs',
      [
          pages.Paragraph(
              'Of several seeds, numbers are the mean ± the standard '
              f'deviation. `best` is for {published.REPLICATION_ONLY}.'
          ),
          pages.Table(
              ['run', *_ESTIMATES.values(), 'rounds', 'time', 'seeds'], rows
          ),
          pages.Figure(
              path_png,
              f'{_label(metric)} by round; the band is the range of the seeds.',
              command,
          ),
          *provenance.build_blocks(
              [run for found in runs.values() for run in found], command
          ),
      ],
  )


def _row(name: str, runs: Sequence[run_folder.Run], metric: str) -> list[str]:
  """Returns the texts of a folder's row."""
  scale = _METRICS[metric]
  texts = []
  for estimate in _ESTIMATES:
    values = [
        scale
        * run.summarize(metric, estimate, higher_is_better=metric != 'loss')
        for run in runs
    ]
    texts.append(
        views.format_value(
            seed_statistics.mean(values),
            seed_statistics.std(values),
            _DECIMALS[scale],
        )
    )
  rounds = min(run.rounds_done for run in runs)
  total = max(run.total_rounds for run in runs)
  seconds = math.fsum(run.seconds for run in runs)
  return [
      name,
      *texts,
      f'{rounds}' if rounds >= total else f'{rounds} of {total}, unfinished',
      formatting.format_seconds(seconds),
      str(len(runs)),
  ]
