# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of the leaderboard: the metric over trials and over rounds.

The axis of the metric is logarithmic in the distance to 100 percent: the best
methods are a point apart, and others start fifty points lower.
"""

from collections.abc import Callable, Sequence
import pathlib

import numpy as np

from experiments.leaderboard import headline
from experiments.leaderboard import results as results_lib
from experiments.report import figure_data
from experiments.report import figures
from experiments.run_results import run_folder
from tff_adaptive import analysis

_Curves = dict[str, analysis.BandCurve]
# The captions by the files of the pictures.
_Captions = dict[pathlib.Path, str]
# How many methods have a color.
_NUM_SHOWN = 8
# Always has a color, for comparison.
_BASELINE = 'FedAvg'
_PERCENT = 100.0
# The names of the data sets; other tasks go by their own names.
_TITLES = {
    'mnist': 'MNIST',
    'emnist_cr': 'EMNIST CR',
    'ag_news': 'AG News',
    'shakespeare': 'Shakespeare',
}
_SCALE = (
    'Higher is better; the axis is logarithmic in the distance to 100 percent.'
)


def draw(
    results: results_lib.Results, path: pathlib.Path
) -> tuple[_Captions, _Captions]:
  """Plots the pictures for which there are runs.

  Args:
    results: The finished runs.
    path: The path of the page without a suffix, which prefixes the names of the
      pictures.

  Returns:
    The captions of the headline's picture and of the others, by their files.

  Raises:
    OSError: If a picture cannot be written.
  """
  shown = _choose_shown(results)
  who = (
      f'In color are the methods that the answer takes, {_BASELINE}, and '
      'those with the best mean place by area on the most tasks.'
      if shown
      else ''
  )
  over_trials = _draw(
      results,
      path.with_name(f'{path.name}_trials.png'),
      'The expected test metric of the trial selected from so many; the first '
      f'trial is the defaults. {_SCALE} {who}',
      _over_trials,
      shown,
      x_label='trials',
      log_x=True,
  )
  over_rounds = _draw(
      results,
      path.with_name(f'{path.name}_accuracy.png'),
      'The test metric of the tuned methods by round, the mean over the seeds; '
      f'the band reaches from the lowest to the highest seed. {_SCALE} {who}',
      _over_rounds,
      shown,
      x_label='round',
  )
  return over_trials, over_rounds


def _choose_shown(results: results_lib.Results) -> list[str]:
  """Returns the methods that have a color; none if they all have one."""
  methods = results.plan.board.methods
  if len(methods) <= _NUM_SHOWN:
    return []
  places: dict[str, list[int]] = {}
  for task in results.plan.board.tasks:
    for place, method in enumerate(headline.find_curves(results, task).areas):
      places.setdefault(method, []).append(place)
  # Who is on most tasks, and has the best mean place there.
  order = sorted(
      places, key=lambda name: (-len(places[name]), np.mean(places[name]))
  )
  chosen = [*headline.find_picks(results), _BASELINE, *order]
  return [name for name in dict.fromkeys(chosen) if name in places][:_NUM_SHOWN]


def _draw(
    results: results_lib.Results,
    picture: pathlib.Path,
    caption: str,
    build: Callable[[results_lib.Results, str], _Curves],
    shown: Sequence[str],
    **options,
) -> _Captions:
  """Plots one panel per task with curves; returns captions by picture."""
  tasks = results.plan.board.tasks
  panels = {task: build(results, task) for task in tasks}
  panels = {task: curves for task, curves in panels.items() if curves}
  if not panels:
    return {}
  metrics = {tasks[task].metric.replace('_', ' ') for task in panels}
  analysis.plot_band_curves(
      {_TITLES.get(task, task): curves for task, curves in panels.items()},
      picture,
      y_label=f'test {metrics.pop() if len(metrics) == 1 else "metric"} (%)',
      log_below=_PERCENT,
      panels_per_row=2 if len(panels) == 4 else 3,  # No empty places.
      names=shown or list(results.plan.board.methods),
      only_names=bool(shown),
      **options,
  )
  return {picture: caption.strip()}


def _over_rounds(results: results_lib.Results, task: str) -> _Curves:
  column = run_folder.column_of(results.plan.board.tasks[task].metric)
  curves = {}
  for method, outcome in results.tuned(task).items():
    series = [run.series(column) for run in outcome.runs.values()]
    band = figure_data.band_over_seeds(series, _PERCENT, figures.RANGE)
    if band is not None:
      curves[method] = band
  return curves


def _over_trials(results: results_lib.Results, task: str) -> _Curves:
  curves: _Curves = {}
  found = headline.find_curves(results, task)
  if found.budget == 1:  # Points that show less than the table of them.
    return curves
  for method, scores in found.scores.items():
    counts = [
        n for n in results.plan.board.protocol.budgets if n <= len(scores)
    ]
    curves[method] = analysis.BandCurve.of_line(
        counts, [scores[count - 1] for count in counts]
    )
  return curves
