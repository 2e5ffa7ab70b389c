# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figures of the leaderboard: over trials, over rounds, and profiles.

The axis of the metric is logarithmic in the distance to 100 percent: the best
methods are a point apart, and others start fifty points lower.
"""

from collections.abc import Mapping, Sequence
import pathlib

import numpy as np
import pandas as pd

from experiments.leaderboard import results as results_lib
from experiments.report import drawing
from experiments.run_results import run_folder
from experiments.run_results import statistics
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
    results: results_lib.Results,
    curves: Mapping[str, results_lib.Curves],
    path: pathlib.Path,
) -> _Captions:
  """Plots the pictures for which there are runs.

  Args:
    results: The finished runs.
    curves: The scores over the number of trials, by task.
    path: The path of the page without a suffix, which prefixes the names of the
      pictures.

  Returns:
    The captions by the files of the pictures, that of the headline first.

  Raises:
    OSError: If a picture cannot be written.
  """
  shown = _choose_shown(results, curves)
  who = (
      f' In color are {_BASELINE} and those with the best mean place by area '
      'on the most tasks.'
      if shown
      else ''
  )
  captions = {}
  for name, caption, panels, options in (
      (
          'trials',
          'The expected test metric of the trial selected from so many; the '
          f'first trial is the defaults. {_SCALE}{who}',
          {
              task: _over_trials(results, found)
              for task, found in curves.items()
          },
          {'x_label': 'trials', 'log_x': True},
      ),
      (
          'profile',
          'The share of tasks on which the tuned method reaches the target '
          'with at most so many times the gradients of the method that needs '
          f'the fewest there.{who}',
          {'': _profiles(results)},
          {
              'x_label': 'gradients, relative to the fewest',
              'y_label': 'share of tasks',
              'log_x': True,
              'log_below': None,
          },
      ),
      (
          'accuracy',
          'The test metric of the tuned methods by round, the mean over the '
          'seeds; the band reaches from the lowest to the highest seed. '
          f'{_SCALE}{who}',
          {task: _over_rounds(results, task) for task in curves},
          {'x_label': 'round'},
      ),
  ):
    picture = path.with_name(f'{path.name}_{name}.png')
    panels = {task: found for task, found in panels.items() if found}
    if panels:
      _draw(results, picture, panels, shown, **options)
      captions[picture] = caption
  return captions


def _choose_shown(
    results: results_lib.Results, curves: Mapping[str, results_lib.Curves]
) -> list[str]:
  """Returns the methods that have a color; none if they all have one."""
  if len(results.plan.board.methods) <= _NUM_SHOWN:
    return []
  places = pd.DataFrame(
      {
          task: pd.Series(range(len(found.areas)), list(found.areas), float)
          for task, found in curves.items()
      }
  )
  # Who is on most tasks, and has the best mean place there.
  order = pd.DataFrame(
      {'tasks': -places.count(axis=1), 'place': places.mean(axis=1)}
  )
  chosen = [
      _BASELINE,
      *order.sort_values(['tasks', 'place'], kind='stable').index,
  ]
  found = [name for name in dict.fromkeys(chosen) if name in places.index]
  return found[:_NUM_SHOWN]


def _draw(
    results: results_lib.Results,
    picture: pathlib.Path,
    panels: Mapping[str, _Curves],
    shown: Sequence[str],
    **options,
):
  """Plots a panel for each task."""
  tasks = results.plan.board.tasks
  metrics = {tasks[t].metric.replace('_', ' ') for t in panels if t in tasks}
  metric = metrics.pop() if len(metrics) == 1 else 'metric'
  analysis.plot_band_curves(
      {_TITLES.get(task, task): found for task, found in panels.items()},
      picture,
      **{
          'y_label': f'test {metric} (%)',
          'log_below': _PERCENT,
          'panels_per_row': 2 if len(panels) == 4 else 3,  # No empty places.
          'names': shown or list(results.plan.board.methods),
          'only_names': bool(shown),
          **options,
      },
  )


def _over_rounds(results: results_lib.Results, task: str) -> _Curves:
  column = run_folder.column_of(results.plan.board.tasks[task].metric)
  found = {
      method: drawing.curve_over_seeds(runs, column, scale=_PERCENT)
      for method, runs in results.tuned(task).groupby('method', sort=False).run
  }
  return {method: band for method, band in found.items() if band is not None}


def _over_trials(
    results: results_lib.Results, found: results_lib.Curves
) -> _Curves:
  if found.budget == 1:  # Points that show less than the table of them.
    return {}
  budgets = results.plan.board.protocol.budgets
  curves = {}
  for method, scores in found.scores.items():
    counts = [count for count in budgets if count <= len(scores)]
    values = [scores[count - 1] for count in counts]
    curves[method] = analysis.BandCurve.of_line(counts, values)
  return curves


def _profiles(results: results_lib.Results) -> _Curves:
  """Returns the profiles over the tasks on which a method is tuned."""
  costs = {}
  for task in results.plan.board.tasks:
    runs = results.tuned(task)
    if len(runs):
      costs[task] = results.rank(task, runs).gradient_evaluations_to_target
  if len(costs) < 2:
    return {}
  profile = statistics.profile(pd.DataFrame(costs).fillna(np.inf))
  # Steps: each share holds up to the next factor.
  factors = np.repeat(profile.index, 2)[1:]
  return {
      method: analysis.BandCurve.of_line(factors, np.repeat(shares, 2)[:-1])
      for method, shares in profile.items()
  }
