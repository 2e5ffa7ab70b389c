# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page that compares any runs: a table of numbers and curves by round."""

from collections.abc import Mapping, Sequence
import math
import os
import pathlib

from experiments import pages
from experiments import published
from experiments.report import figure_data
from experiments.report import figures
from experiments.report import views
from experiments.run_results import run_folder
from experiments.run_results import seed_statistics
from tff_adaptive import analysis

# The first one that all runs have measured is compared; its scale and decimals.
_METRICS = {'accuracy': (100.0, 2), 'recall_at_5': (100.0, 2), 'loss': (1.0, 4)}
_ESTIMATES = {
    'final': 'final',
    'best': 'best',
    'last_10_evaluations': 'last ten',
}

_Runs = Mapping[str, Sequence[run_folder.Run]]


def write_comparison(
    paths: Sequence[str], output_dir: pathlib.Path, command: str
):
  """Writes `<output_dir>/comparison` as .md, .html and .png.

  Args:
    paths: Folders of runs, or of seeds of the same run: `seed_0`, `seed_1`, ...
    output_dir: The folder that gets the page; it is made.
    command: What makes the page.

  Raises:
    RunError: If a folder is neither of both, a file in it is damaged, or the
      runs have no metric in common.
    OSError: If a file cannot be read or written.
  """
  runs = _read_runs([pathlib.Path(path) for path in paths])
  metric = _choose_metric(runs)
  path = output_dir / 'comparison'
  picture = path.with_suffix('.png')
  unit = ' (%)' if _METRICS[metric][0] == 100.0 else ''
  label = f'test {metric.replace("_", " ")}{unit}'
  _draw(runs, metric, label, picture)
  columns = ['run', *_ESTIMATES.values(), 'rounds', 'time', 'seeds']
  blocks = [
      pages.paragraph(
          'Of several seeds, numbers are the mean ± the standard deviation. '
          f'`best` is for {published.REPLICATION_ONLY}.'
      ),
      pages.table(columns, [_row(*item, metric) for item in runs.items()]),
      pages.figure(
          picture,
          f'{label} by round; the band is the range of the seeds.',
          command,
      ),
      *pages.origin([run for found in runs.values() for run in found], command),
  ]
  pages.write_page(path, f'{label} of {len(runs)} runs', blocks)
  print(f'{path}.html: {len(runs)} runs compared', flush=True)


def _read_runs(paths: Sequence[pathlib.Path]) -> _Runs:
  """Returns the runs of folders, by path from the last common folder on."""
  common = os.path.commonpath([path.absolute().parent for path in paths])
  runs = {}
  for path in paths:
    seeds = list(run_folder.read_seeds(path).values())
    name = str(path.absolute().relative_to(common))
    runs[name] = seeds or [run_folder.read_run(path)]
  return runs


def _choose_metric(runs: _Runs) -> str:
  """Returns the first of the metrics that all runs have measured."""
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


def _draw(runs: _Runs, metric: str, label: str, path_png: pathlib.Path):
  """Draws the metric over the rounds, a line a folder."""
  scale, _ = _METRICS[metric]
  curves = {}
  for name, found in runs.items():
    series = [run.series(run_folder.column_of(metric)) for run in found]
    curve = figure_data.band_over_seeds(series, scale, figures.RANGE)
    if curve is not None:
      curves[name] = curve
  analysis.plot_band_curves(
      {'': curves}, path_png, y_label=label, names=list(runs)
  )


def _row(name: str, runs: Sequence[run_folder.Run], metric: str) -> list[str]:
  """Returns the texts of a folder's row."""
  scale, decimals = _METRICS[metric]
  texts = []
  for estimate in _ESTIMATES:
    values = [
        scale
        * run.summarize(metric, estimate, higher_is_better=metric != 'loss')
        for run in runs
    ]
    mean, std = seed_statistics.mean(values), seed_statistics.std(values)
    texts.append(views.format_value(mean, std, decimals))
  rounds = min(run.rounds_done for run in runs)
  total = max(run.total_rounds for run in runs)
  return [
      name,
      *texts,
      f'{rounds}' if rounds >= total else f'{rounds} of {total}, unfinished',
      pages.format_seconds(math.fsum(run.seconds for run in runs)),
      str(len(runs)),
  ]
