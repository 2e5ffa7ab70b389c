# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of the leaderboard: the metric over rounds and over trials.

They show the distance to 100 percent on a logarithmic axis, since the best
methods are a point apart, while others start fifty points below them.
"""

import pathlib

import numpy as np

from experiments.leaderboard import results as results_lib
from experiments.report import figure_data
from experiments.report import figures
from experiments.run_results import run_folder
from tff_adaptive import analysis

_Curves = dict[str, analysis.BandCurve]
# The smallest distance that the logarithmic axis shows, in percent.
_LEAST = 0.01


def draw(
    results: results_lib.Results, path: pathlib.Path
) -> dict[pathlib.Path, str]:
  """Plots the pictures for which there are runs.

  Args:
    results: The finished runs.
    path: The path of the page without a suffix, which prefixes the names of the
      pictures.

  Returns:
    The captions of the pictures by file.

  Raises:
    OSError: If a picture cannot be written.
  """
  names = list(results.plan.board.methods)
  found = {}
  for suffix, build, x_label, caption in (
      (
          'accuracy',
          _accuracy,
          'round',
          'Distance of the tuned methods to 100 percent by round, mean over '
          'the seeds; the band reaches from the lowest to the highest seed. '
          'Lower is better; the axis is logarithmic.',
      ),
      (
          'trials',
          _scores_of_trials,
          'trials',
          'Expected distance to 100 percent of the best choice among a number '
          'of trials, in the runs with the tuning seed. Lower is better; the '
          'axis is logarithmic.',
      ),
  ):
    panels = {task: build(results, task) for task in results.plan.board.tasks}
    panels = {task: curves for task, curves in panels.items() if curves}
    if panels:
      picture = path.with_name(f'{path.name}_{suffix}.png')
      analysis.plot_band_curves(
          panels,
          picture,
          x_label=x_label,
          y_label='test metric, points below 100 %',
          log_y=True,
          names=names,
      )
      found[picture] = caption
  return found


def _accuracy(results: results_lib.Results, task: str) -> _Curves:
  column = run_folder.column_of(results.plan.board.tasks[task].metric)
  curves = {}
  for method, outcome in results.tuned(task).items():
    series = [run.series(column) for run in outcome.runs.values()]
    band = figure_data.band_over_seeds(series, 100.0, figures.RANGE)
    if band is not None:
      curves[method] = _to_missing(band)
  return curves


def _scores_of_trials(results: results_lib.Results, task: str) -> _Curves:
  curves = {}
  for method in results.plan.board.methods:
    trials = results.trial_scores(task, method)
    if trials is not None:
      expected = np.array(results_lib.expected_scores(trials))
      count = np.arange(1, len(expected) + 1)
      curves[method] = _to_missing(
          analysis.BandCurve(count, expected, expected, expected)
      )
  return curves


def _to_missing(band: analysis.BandCurve) -> analysis.BandCurve:
  """Returns the distance to 100 percent, with the ends of the band swapped."""
  mean, low, high = (
      np.maximum(100.0 - values, _LEAST)
      for values in (band.mean, band.high, band.low)
  )
  return analysis.BandCurve(band.x, mean, low, high)
