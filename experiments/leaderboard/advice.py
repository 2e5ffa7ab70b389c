# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Advice on the choice of a method, by a rule applied to the measurements."""

from collections.abc import Iterable, Mapping, Sequence
import math
from typing import NamedTuple, Optional

import numpy as np

from experiments import markup
from experiments.leaderboard import results as results_lib
from experiments.run_results import statistics
from experiments.sweep import search_spaces

NONE = '-'
NOTHING = 'Nothing to compare yet: no task has two methods that ran.'


def format_number(value: float) -> str:
  """Formats a quantity with three digits; infinity is 'never'."""
  if math.isnan(value):
    return NONE
  if math.isinf(value):
    return 'never'
  if abs(value) >= 100:
    return f'{value:,.0f}'
  return f'{value:.3g}'


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


def format_assignment(assignment: search_spaces.Assignment) -> markup.Markup:
  """Formats flags with their values; no flags are 'defaults'."""
  if not assignment:
    return markup.Markup('defaults')
  codes = (markup.code(f'--{flag}={value}') for flag, value in assignment)
  return markup.Markup(' '.join(codes))


_RULE = (
    'First is the method whose largest loss against the best, over all tasks, '
    'is smallest. This uses means, and depends on who is compared; the groups '
    'above tell what the seeds show.'
)
# Resamples of the seeds, and the share of them that makes a method a rival.
NUM_RESAMPLES = 2000
_RIVAL = 0.05
_COSTS = {
    'seconds': 'seconds_to_target',
    'gradient evaluations': 'gradient_evaluations_to_target',
    'megabytes': 'megabytes_to_target',
}
# Outcomes by method, and by task.
_ByMethod = Mapping[str, results_lib.Outcome]
_Outcomes = Mapping[str, _ByMethod]
# Standings by task, by method.
Standings = Mapping[str, Mapping[str, results_lib.Standing]]


def advise(results: results_lib.Results) -> list[str]:
  """Returns advice on the choice of a method, one paragraph per situation.

  Args:
    results: The finished runs.

  Returns:
    The paragraphs; a single one that says so if nothing can be compared yet.
  """
  paragraphs = [_advise_for(s, results) for s in situations(results)]
  if not paragraphs:
    return [NOTHING]
  tuned = {task: results.tuned(task) for task in results.plan.board.tasks}
  return [*paragraphs, *_cheapest(tuned), _RULE]


class Situation(NamedTuple):
  """A number of trials, and the outcomes that are compared with it.

  Attributes:
    budget: The number of trials; 1 is the defaults.
    outcomes: The outcomes by method, by task; all tasks have the same methods.
  """

  budget: int
  outcomes: _Outcomes

  @property
  def text(self) -> str:
    """The beginning of a sentence."""
    if self.budget == 1:
      return "Without tuning, with this library's defaults"
    return f'With {self.budget} trials to tune'

  def restrict(self, methods: Sequence[str]) -> 'Situation':
    """Returns the situation of some of its methods."""
    found = {
        task: {name: by_method[name] for name in methods}
        for task, by_method in self.outcomes.items()
    }
    return self._replace(outcomes=found)

  def rivals(self) -> dict[str, float]:
    """Returns how often a method loses least when the seeds are resampled.

    The seeds of a task are resampled with replacement, for all methods alike.

    Returns:
      The share of 2,000 resamples by method, the largest first; of those above
      5 percent.
    """
    rng = np.random.default_rng(0)
    names = list(next(iter(self.outcomes.values())))
    losses = np.zeros([NUM_RESAMPLES, len(names)])
    for by_method in self.outcomes.values():
      scores = np.array([[*by_method[n].scores.values()] for n in names])
      num_seeds = scores.shape[1]
      drawn = rng.integers(num_seeds, size=[NUM_RESAMPLES, num_seeds])
      means = scores[:, drawn].mean(axis=-1).T
      with np.errstate(invalid='ignore'):  # If all diverged.
        behind = means.max(axis=1, keepdims=True) - means
      losses = np.maximum(losses, np.where(np.isnan(behind), np.inf, behind))
    shares = np.bincount(losses.argmin(axis=1), minlength=len(names))
    shares = shares / NUM_RESAMPLES
    order = np.argsort(-shares, kind='stable')
    return {names[i]: float(shares[i]) for i in order if shares[i] > _RIVAL}


def situations(results: results_lib.Results) -> list[Situation]:
  """Returns what is compared, by how much there is to tune.

  Args:
    results: The finished runs.

  Returns:
    The situations, first of the defaults, then of the most trials. Tasks with
    the same methods are compared together, so that one that is half done
    narrows no other.
  """
  tasks = results.plan.board.tasks
  found = [(1, task, results.defaults(task)) for task in tasks]
  for task in sorted(tasks, key=results.budget, reverse=True):
    if results.budget(task) > 1:
      found.append((results.budget(task), task, results.tuned(task)))
  groups: dict[tuple[int, frozenset[str]], dict[str, _ByMethod]] = {}
  for budget, task, outcomes in found:
    if len(outcomes) > 1:
      groups.setdefault((budget, frozenset(outcomes)), {})[task] = outcomes
  return [Situation(budget, by_task) for (budget, _), by_task in groups.items()]


def largest(found: Iterable[Situation]) -> Optional[Situation]:
  """Returns the situation that compares the most outcomes; None if none does.

  Args:
    found: The situations.
  """
  return max(
      found, key=lambda s: sum(map(len, s.outcomes.values())), default=None
  )


def _advise_for(situation: Situation, results: results_lib.Results) -> str:
  """Returns the paragraph of a situation."""
  outcomes = situation.outcomes
  standings = rank_on_all(results, outcomes)
  best = next(iter(standings))
  worst_task = min(outcomes, key=lambda task: _rank_key(standings[best][task]))
  num_runs = len(outcomes[worst_task][best].runs)
  loss = _describe(standings[best][worst_task], worst_task, num_runs)
  return (
      f'**{situation.text}, {best} is first**; {loss}. '
      f'{_describe_groups(standings)} '
      f'Compared on {", ".join(outcomes)}.'
  )


def rank_on_all(results: results_lib.Results, outcomes: _Outcomes) -> Standings:
  """Returns the standings of the methods, which ran on all tasks.

  Args:
    results: The finished runs.
    outcomes: The outcomes by method, by task.

  Returns:
    The standings; the method with the smallest largest loss comes first.
  """
  found: dict[str, dict[str, results_lib.Standing]] = {}
  for task, by_method in outcomes.items():
    for standing in results.rank(task, by_method):
      found.setdefault(standing.method, {})[task] = standing

  def worst(method: str) -> tuple[float, int]:
    return min(map(_rank_key, found[method].values()))

  return {m: found[m] for m in sorted(found, key=worst, reverse=True)}


def largest_loss(by_task: Mapping[str, results_lib.Standing]) -> float:
  """Returns how far a method is behind the best of a task, at most.

  Args:
    by_task: Its standings.

  Returns:
    The points; infinity if a run diverged.
  """
  return abs(min(standing.difference.mean for standing in by_task.values()))


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
    return 'it is the best on each task that was compared'
  loss = (
      f'{difference.mean:+.2f} points against the best, in the only seed'
      if num_runs == 1
      else f'{format_interval(difference)} points against the best'
  )
  return f'where it is furthest behind, on {task}, it has {loss}'


class Groups(NamedTuple):
  """The methods by what the seeds show on all tasks, the best included.

  Attributes:
    good: As good as the best within the margin, on every task.
    undecided: Open on a task, worse on none.
    worse: Worse or diverged on a task.
  """

  good: list[str]
  undecided: list[str]
  worse: list[str]


def group(standings: Standings) -> Groups:
  """Returns the methods by what the seeds show.

  Args:
    standings: The standings by task, by method.
  """
  answers = statistics.Answer
  groups = Groups([], [], [])
  for method, by_task in standings.items():
    verdicts = {standing.verdict for standing in by_task.values()}
    if verdicts & {answers.WORSE, answers.DIVERGED}:
      groups.worse.append(method)
    elif answers.OPEN in verdicts:
      groups.undecided.append(method)
    else:
      groups.good.append(method)
  return groups


def _describe_groups(standings: Standings) -> str:
  """Returns the methods that are as good, worse or diverged, and open."""
  groups = group(standings)
  return (
      'The best, or shown to be as good within the margin, on every task: '
      f'{_join(groups.good)}. Shown to be worse by more than the margin on a '
      f'task, or diverged in a run: {_join(groups.worse)}. Seeds inconclusive: '
      f'{_join(groups.undecided)}.'
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
