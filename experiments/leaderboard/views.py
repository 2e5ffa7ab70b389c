# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of the leaderboard's page: views of its results."""

from collections.abc import Iterator, Mapping, Sequence
import math
from typing import Any, Optional

import numpy as np
import pandas as pd

from experiments import formatting
from experiments import pages
from experiments.leaderboard import results as results_lib
from experiments.run_results import statistics
from experiments.sweep import search_spaces
from experiments.sweep import trials as trials_lib

NONE = '-'
TRIALS_HEADER = ('task', 'method', 'tuning_free', 'area', 'trials', 'expected')
# Columns of standings by those of the page.
_TO_TARGET = {
    'rounds to target': 'rounds_to_target',
    's to target': 'seconds_to_target',
    'gradients to target': 'gradient_evaluations_to_target',
    'MB to target': 'megabytes_to_target',
}
_TUNED_HEADER = (
    *('method', 'metric (%)', 'to the best', 'verdict'),
    *_TO_TARGET,
    'chosen',
)
# Columns of standings in the CSV file.
_CSV_QUANTITIES = (
    *_TO_TARGET.values(),
    'seconds_per_round',
    'gradient_evaluations',
    'megabytes_up',
    'megabytes_down',
)
CSV_HEADER = (
    *('task', 'rates', 'method', 'assignment', 'seeds', 'mean', 'std'),
    *('difference', 'low', 'high', 'verdict'),
    *_CSV_QUANTITIES,
)
_GOOD = (statistics.Answer.BEST, statistics.Answer.AS_GOOD)


def format_quantity(value: float) -> str:
  """Formats a quantity with three digits; infinity is 'never'."""
  if math.isnan(value):
    return NONE
  if math.isinf(value):
    return 'never'
  return f'{value:,.0f}' if abs(value) >= 100 else f'{value:.3g}'


def format_points(margin: float) -> str:
  """Formats a margin."""
  return f'{margin:g} point{"s" * (margin != 1)}'


def format_interval(interval: statistics.Interval) -> str:
  """Formats a difference with its interval; a single seed has none."""
  if math.isnan(interval.mean):
    return 'both diverged'
  if math.isinf(interval.mean):
    return 'diverged' if interval.mean < 0 else 'the other diverged'
  if math.isinf(interval.low):
    return f'{interval.mean:+.2f} (one seed)'
  return f'{interval.mean:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]'


def format_assignment(assignment: search_spaces.Assignment) -> pages.Markup:
  """Formats flags with their values; no flags are 'defaults'."""
  if not assignment:
    return pages.Markup('defaults')
  codes = (pages.code(f'--{flag}={value}') for flag, value in assignment)
  return pages.Markup(' '.join(codes))


def _format_score(score: Optional[float]) -> str:
  return formatting.format_mean(score, None, decimals=2)


def _free_mark(results: results_lib.Results, method: str) -> str:
  """Returns the mark of a method that is said to need no tuning."""
  return 'yes' if results.plan.board.methods[method].tuning_free else ''


def areas_table(
    results: results_lib.Results, found: Mapping[str, results_lib.Curves]
) -> str:
  """Returns the areas on all tasks, and their mean where a method has all.

  Args:
    results: The finished runs.
    found: The curves by task, of tasks with areas.
  """
  areas = pd.DataFrame({task: curves.areas for task, curves in found.items()})
  means = areas.mean(axis=1, skipna=False)
  order = means.fillna(0.0).sort_values(ascending=False, kind='stable').index
  rows = [
      [
          method,
          _free_mark(results, method),
          *(
              _format_score(None if math.isnan(value) else value)
              for value in (means[method], *areas.loc[method])
          ),
      ]
      for method in order
  ]
  header = ['method', 'free', 'mean area', *(f'area, {task}' for task in areas)]
  return pages.table(header, rows, num_labels=2)


def budgets_table(
    results: results_lib.Results, task: str, curves: results_lib.Curves
) -> str:
  """Returns areas, scores, their dependence on luck, and costs on a task."""
  length = max(map(len, curves.scores.values()))
  counts = [n for n in results.plan.board.protocol.budgets if n <= length]
  finals = results.defaults(task)
  rows = []
  for method in curves.methods:
    scores = curves.scores[method]
    trials = results.trials(task, method)
    of_defaults = trials.iloc[0]
    seconds = [
        *trials.seconds_per_round,
        *finals.seconds_per_round[finals.method == method],
    ]
    quantities = (
        of_defaults.gradient_evaluations,
        (of_defaults.bytes_up + of_defaults.bytes_down) / 1e6,
        min(filter(math.isfinite, seconds), default=math.nan),
    )
    rows.append(
        [
            method,
            _free_mark(results, method),
            _format_score(curves.areas.get(method)),
            *(
                _format_score(scores[n - 1] if n <= len(scores) else None)
                for n in counts
            ),
            _format_score(curves.spreads.get(method)),
            *map(format_quantity, quantities),
        ]
    )
  header = ['method', 'free', 'area', *(f'n = {count}' for count in counts)]
  header += ['± search', 'gradients', 'MB', 's a round']
  return pages.table(header, rows, num_labels=2)


def defaults_table(results: results_lib.Results) -> str:
  """Returns the runs with the library's defaults; empty if there are none."""
  standings = {}
  for task in results.plan.board.tasks:
    runs = results.defaults(task)
    if runs.method.nunique() > 1:
      standings[task] = results.rank(task, runs)
  if not standings:
    return ''
  behind = pd.DataFrame(
      {
          task: found.difference.map(lambda interval: interval.mean)
          for task, found in standings.items()
      }
  )
  # Those that are not on all tasks come last.
  order = behind.mean(axis=1, skipna=False).sort_values(
      ascending=False, kind='stable', na_position='last'
  )
  rows = [
      [
          method,
          _free_mark(results, method),
          results.plan.board.methods[method].defaults,
          *(_show_mean(found, method) for found in standings.values()),
      ]
      for method in order.index
  ]
  return pages.table(['method', 'free', 'from', *standings], rows, num_labels=3)


def _show_mean(standings: pd.DataFrame, method: str) -> str:
  """Returns the score on a task, in bold if none is shown to be better."""
  if method not in standings.index:
    return NONE
  found = standings.loc[method]
  text = formatting.format_mean(found['mean'], found['std'], 2)
  return pages.Markup(f'**{text}**') if found.verdict in _GOOD else text


def tuned_table(
    results: results_lib.Results, task: str, failing: Sequence[str]
) -> str:
  """Returns the standings of the tuned methods on a task; empty if none ran.

  Args:
    results: The finished runs.
    task: The task.
    failing: The methods of which runs failed.
  """
  rows = []
  standings = results.rank(task, results.tuned(task))
  for method, found in standings.iterrows():
    verdict = found.verdict
    is_best = verdict == statistics.Answer.BEST
    rows.append(
        [
            method,
            formatting.format_mean(found['mean'], found['std'], 2),
            NONE if is_best else format_interval(found.difference),
            pages.Markup(
                f'**{verdict}**' if verdict in _GOOD else f'{verdict}'
            ),
            *(format_quantity(found[name]) for name in _TO_TARGET.values()),
            format_assignment(found.assignment),
        ]
    )
  for method in failing:
    if method not in standings.index:
      others = [NONE] * (len(_TUNED_HEADER) - 4)
      rows.append([method, NONE, NONE, 'failed', *others])
  return pages.table(_TUNED_HEADER, rows) if rows else ''


def gaps_table(results: results_lib.Results) -> str:
  """Returns what is lost with the defaults and with values of other tasks."""
  tasks = list(results.plan.board.tasks)
  tuned = {task: results.tuned(task) for task in tasks}
  columns = {'defaults': {task: results.defaults(task) for task in tasks}}
  for source in tasks:
    carried = {t: results.tuned(t, source) for t in tasks if t != source}
    if any(len(runs) for runs in carried.values()):
      columns[f'tuned on {source}'] = carried
  rows = []
  for task, runs in tuned.items():
    for method, scores in _scores(runs).items():
      others = (
          _scores(found[task]).get(method) if task in found else None
          for found in columns.values()
      )
      gaps = (
          NONE
          if other is None
          else format_interval(statistics.compare(other, scores))
          for other in others
      )
      mean = np.mean([*scores.values()])
      rows.append([task, method, _format_score(mean), *gaps])
  header = ['task', 'method', 'tuned', *columns]
  return pages.table(header, rows, num_labels=2) if rows else ''


def _scores(runs: pd.DataFrame) -> dict[str, dict[int, float]]:
  """Returns scores by seed, by method."""
  return {
      method: dict(zip(found.seed, found.score))
      for method, found in runs.groupby('method', sort=False)
  }


def csv_rows(results: results_lib.Results) -> Iterator[list[Any]]:
  """Yields the columns of `CSV_HEADER`: one row per task, rates and method.

  Rates are 'tuned', 'defaults' or tuned on another task; the difference is to
  the best with the same task and rates. Unreached targets and diverged runs
  are infinite.

  Args:
    results: The finished runs.
  """
  tasks = results.plan.board.tasks
  for task in tasks:
    runs = {'tuned': results.tuned(task), 'defaults': results.defaults(task)}
    for source in tasks:
      if source != task:
        runs[f'tuned on {source}'] = results.tuned(task, source)
    for rates, found in runs.items():
      for method, standing in results.rank(task, found).iterrows():
        yield [
            task,
            rates,
            method,
            trials_lib.to_slug(standing.assignment) or 'defaults',
            len(standing.seeds),
            standing['mean'],
            standing['std'],
            *standing.difference,
            str(standing.verdict),
            *(standing[name] for name in _CSV_QUANTITIES),
        ]


def trials_rows(
    results: results_lib.Results, found: Mapping[str, results_lib.Curves]
) -> Iterator[list[Any]]:
  """Yields the columns of `TRIALS_HEADER`, the largest area of a task first.

  Args:
    results: The finished runs.
    found: The curves by task.
  """
  for task, curves in found.items():
    for method in curves.methods:
      free = results.plan.board.methods[method].tuning_free
      for count, value in enumerate(curves.scores[method], start=1):
        yield [task, method, free, curves.areas.get(method), count, value]
