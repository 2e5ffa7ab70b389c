# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Advice on the choice of a method, by a rule applied to the measurements."""

from collections.abc import Mapping, Sequence
import math
from typing import Optional

from experiments.leaderboard import results as results_lib
from experiments.run_results import seed_statistics
from experiments.sweep import search_spaces

NONE = '-'


def format_number(value: float) -> str:
  """Formats a quantity with three digits; infinity is 'never'."""
  if math.isnan(value):
    return NONE
  if math.isinf(value):
    return 'never'
  if abs(value) >= 100:
    return f'{value:,.0f}'
  return f'{value:.3g}'


def format_score(mean: float, std: Optional[float] = None) -> str:
  """Formats a score in percent with its spread; infinity is 'diverged'."""
  if math.isinf(mean):
    return 'diverged'
  return f'{mean:.2f}' if std is None else f'{mean:.2f} ± {std:.2f}'


def format_interval(interval: seed_statistics.Interval) -> str:
  """Formats a difference with its interval; a single seed has none."""
  if math.isnan(interval.mean):
    return 'both diverged'
  if math.isinf(interval.mean):
    return 'diverged' if interval.mean < 0 else 'the other diverged'
  if math.isinf(interval.low):
    return f'{interval.mean:+.2f} (one seed)'
  return f'{interval.mean:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]'


def format_assignment(assignment: search_spaces.Assignment) -> str:
  """Formats flags with their values; no flags are 'defaults'."""
  if not assignment:
    return 'defaults'
  return ' '.join(f'`--{flag}={value}`' for flag, value in assignment)


_RULE = (
    'The rule picks the method whose largest loss against the best, over all '
    'tasks, is smallest. It was fixed beforehand and uses means; the groups '
    'above tell what the seeds show.'
)
_COSTS = {
    'seconds': 'seconds_to_target',
    'gradient evaluations': 'gradient_evaluations_to_target',
    'megabytes': 'megabytes_to_target',
}
# Outcomes by task and method.
_Outcomes = Mapping[str, Mapping[str, results_lib.Outcome]]
# Standings by method and task.
_Standings = Mapping[str, Mapping[str, results_lib.Standing]]


def advise(results: results_lib.Results) -> list[str]:
  """Returns advice on the choice of a method, one paragraph per situation.

  Args:
    results: The finished runs.

  Returns:
    The paragraphs; a single one that says so if nothing can be compared yet.
  """
  rules = results.plan.board
  tuned = {task: results.tuned(task) for task in rules.tasks}
  defaults = {task: results.defaults(task) for task in rules.tasks}
  paragraphs = [
      *_advise_for(
          f'With {rules.protocol.num_trials} trials to tune', results, tuned
      ),
      *_advise_for(
          'Without tuning, with the defaults of the library', results, defaults
      ),
  ]
  if not paragraphs:
    return ['Nothing to compare yet: no task has two methods with all runs.']
  return [*paragraphs, *_cheapest(tuned), _RULE]


def _advise_for(
    situation: str, results: results_lib.Results, outcomes: _Outcomes
) -> list[str]:
  """Returns the paragraph on a situation, if anything can be compared."""
  tasks = [task for task, found in outcomes.items() if len(found) > 1]
  standings = _rank_on_all(results, tasks, outcomes)
  if not standings:
    return []
  best = next(iter(standings))
  worst_task = min(tasks, key=lambda task: _rank_key(standings[best][task]))
  num_runs = len(outcomes[worst_task][best].runs)
  loss = _describe(standings[best][worst_task], worst_task, num_runs)
  return [
      f'**{situation}: {best}**; {loss}. {_group(standings)} Compared on '
      f'{", ".join(tasks)}.'
  ]


def _rank_on_all(
    results: results_lib.Results, tasks: Sequence[str], outcomes: _Outcomes
) -> _Standings:
  """Returns the standings of the methods that ran on all tasks.

  They are sorted by their largest loss, the smallest first.
  """
  found: dict[str, dict[str, results_lib.Standing]] = {}
  for task in tasks:
    for standing in results.rank(task, outcomes[task]):
      found.setdefault(standing.method, {})[task] = standing
  common = [method for method in found if len(found[method]) == len(tasks)]

  def worst(method: str) -> tuple[float, int]:
    return min(map(_rank_key, found[method].values()))

  return {m: found[m] for m in sorted(common, key=worst, reverse=True)}


def _rank_key(standing: results_lib.Standing) -> tuple[float, int]:
  """Returns a sort key: the difference to the best, then few diverged runs."""
  return standing.difference.mean, -standing.num_diverged


def _describe(worst: results_lib.Standing, task: str, num_runs: int) -> str:
  """Returns a text on the task where the picked method is furthest behind."""
  if worst.num_diverged:
    return (
        f'every method diverged on some task, this one on {task} in '
        f'{worst.num_diverged} of {num_runs} runs'
    )
  difference = worst.difference
  if difference.mean == 0.0:
    return 'it is the best on every task'
  loss = (
      f'{difference.mean:+.2f} points against the best, in the only seed'
      if num_runs == 1
      else f'{format_interval(difference)} points against the best'
  )
  return f'where it is furthest behind, on {task}, it has {loss}'


def _group(standings: _Standings) -> str:
  """Returns the methods that are as good, worse or diverged, and open."""
  answers = seed_statistics.Answer
  good, undecided, worse = [], [], []
  for method, by_task in standings.items():
    verdicts = {standing.verdict for standing in by_task.values()}
    if verdicts & {answers.WORSE, answers.DIVERGED}:
      worse.append(method)
    elif answers.OPEN in verdicts:
      undecided.append(method)
    else:
      good.append(method)
  return (
      'The best, or shown to be as good within the margin, on every task: '
      f'{_join(good)}. Shown to be worse by more than the margin on a task, or '
      f'diverged in a run: {_join(worse)}. Seeds inconclusive: '
      f'{_join(undecided)}.'
  )


def _join(names: Sequence[str]) -> str:
  return ', '.join(names) or 'none'


def _cheapest(tuned: _Outcomes) -> list[str]:
  """Returns a text on the tuned methods that reach the targets most cheaply."""
  sentences = []
  for task, outcomes in tuned.items():
    for name, attribute in _COSTS.items():
      costs = {m: getattr(found, attribute) for m, found in outcomes.items()}
      reached = {m: value for m, value in costs.items() if math.isfinite(value)}
      if reached:
        best = min(reached, key=reached.__getitem__)
        cost = format_number(reached[best])
        sentences.append(f'{task}, {name}: {best} ({cost})')
  if not sentences:
    return []
  return [
      'If cost matters more than the last point, these tuned methods reach the '
      f'target at the lowest cost: {"; ".join(sentences)}.'
  ]
