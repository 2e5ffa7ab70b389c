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
"""Which method to pick: a rule, applied to what was measured."""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
from typing import Optional

from experiments.leaderboard import results as results_lib
from experiments.run_results import seed_statistics
from experiments.sweep import search_spaces

NONE = '-'


def format_number(value: float) -> str:
  """Returns a quantity: three digits, thousands apart; 'never' of infinity."""
  if math.isnan(value):
    return NONE
  if math.isinf(value):
    return 'never'
  if abs(value) >= 100:
    return f'{value:,.0f}'
  return f'{value:.3g}'


def format_score(mean: float, std: Optional[float] = None) -> str:
  """Returns a score in percent with its spread; 'diverged' of infinity."""
  if math.isinf(mean):
    return 'diverged'
  return f'{mean:.2f}' if std is None else f'{mean:.2f} ± {std:.2f}'


def format_interval(interval: seed_statistics.Interval) -> str:
  """Returns a difference with its interval, which one seed does not have."""
  if math.isnan(interval.mean):
    return 'both diverged'
  if math.isinf(interval.mean):
    return 'diverged' if interval.mean < 0 else 'the other diverged'
  if math.isinf(interval.low):
    return f'{interval.mean:+.2f} (one seed)'
  return f'{interval.mean:+.2f} [{interval.low:+.2f}, {interval.high:+.2f}]'


def format_assignment(assignment: search_spaces.Assignment) -> str:
  """Returns flags with their values; 'defaults' of none."""
  if not assignment:
    return 'defaults'
  return ' '.join(f'`--{flag}={value}`' for flag, value in assignment)


RULE = (
    'The rule: take the method whose largest loss against the best, over all '
    'tasks, is the smallest. It is fixed beforehand, and looks at means; what '
    'the seeds prove stands beside it.'
)
# Outcomes by method, by task.
_Outcomes = Mapping[str, Mapping[str, results_lib.Outcome]]
_COSTS: Mapping[str, Callable[[results_lib.Outcome], float]] = {
    'seconds': lambda outcome: outcome.seconds_to_target,
    'gradient evaluations': lambda outcome: outcome.gradients_to_target,
    'megabytes': lambda outcome: outcome.megabytes_to_target,
}


@dataclasses.dataclass(frozen=True)
class Record:
  """How a method stands on all tasks.

  Attributes:
    method: The name of the method.
    worst_task: Where it loses most against the best.
    worst: Its standing there.
    verdicts: What is said of it, by task.
  """

  method: str
  worst_task: str
  worst: results_lib.Standing
  verdicts: frozenset[results_lib.Verdict]


def build_records(
    by_task: Mapping[str, Sequence[results_lib.Standing]],
) -> list[Record]:
  """Returns the records of the methods that all tasks have, the best first.

  Args:
    by_task: The standings of every task.

  Returns:
    The records, that of the smallest largest loss first.
  """
  if not by_task:
    return []
  found = {
      task: {standing.method: standing for standing in ranked}
      for task, ranked in by_task.items()
  }
  common = set.intersection(*(set(ranked) for ranked in found.values()))
  records = []
  for standing in next(iter(by_task.values())):
    method = standing.method
    if method in common:
      of_method = {task: ranked[method] for task, ranked in found.items()}
      worst = min(of_method, key=lambda t: _rank_key(of_method[t]))
      verdicts = frozenset(s.verdict for s in of_method.values())
      records.append(Record(method, worst, of_method[worst], verdicts))
  return sorted(
      records, key=lambda record: _rank_key(record.worst), reverse=True
  )


def _rank_key(standing: results_lib.Standing) -> tuple[float, int]:
  """The mean difference to the best; of runs that diverged, how few."""
  return standing.difference.mean, -standing.num_diverged


def advise(results: results_lib.Results) -> list[str]:
  """Returns what a user should pick, a paragraph a situation.

  Args:
    results: What was measured.

  Returns:
    The paragraphs; one that says so if nothing can be compared yet.
  """
  board = results.plan.board
  tuned = {task: results.tuned(task) for task in board.tasks}
  defaults = {task: results.defaults(task) for task in board.tasks}
  trials = board.protocol.num_trials
  paragraphs = [
      text
      for situation, outcomes in (
          (f'With {trials} trials to tune', tuned),
          ('Without tuning, with the defaults of the library', defaults),
      )
      for text in _advise_for(situation, results, outcomes)
  ]
  if not paragraphs:
    return ['Nothing can be compared yet: no task has two methods that ran.']
  return [*paragraphs, *_cheapest(tuned), RULE]


def _advise_for(
    situation: str, results: results_lib.Results, outcomes: _Outcomes
) -> list[str]:
  """Returns the paragraph of a situation; none if nothing can be compared."""
  by_task = {
      task: results_lib.rank(found, results.plan.board.tasks[task].margin)
      for task, found in outcomes.items()
      if len(found) > 1
  }
  records = build_records(by_task)
  if not records:
    return []
  best = records[0]
  num_runs = len(outcomes[best.worst_task][best.method].runs)
  return [
      f'**{situation}: {best.method}**; {_describe(best, num_runs)}. '
      f'{_group(records)} Compared on {", ".join(by_task)}.'
  ]


def _describe(best: Record, num_runs: int) -> str:
  """Returns where the pick is furthest behind, of so many runs there."""
  difference = best.worst.difference
  if best.worst.num_diverged:
    return (
        'every method diverged on some task, this one on '
        f'{best.worst_task} in {best.worst.num_diverged} of {num_runs} runs'
    )
  if difference.mean == 0.0:
    return 'it is the best on every task'
  loss = (
      f'{difference.mean:+.2f} points against the best, in the only seed'
      if num_runs == 1
      else f'{format_interval(difference)} points against the best'
  )
  return f'where it is furthest behind, on {best.worst_task}, it has {loss}'


def _group(records: Sequence[Record]) -> str:
  """Returns who is proven as good, who is worse or diverged, who is open."""
  groups: dict[str, list[str]] = {'as good': [], 'open': [], 'worse': []}
  for record in records:
    if record.verdicts & {
        results_lib.Verdict.WORSE,
        results_lib.Verdict.DIVERGED,
    }:
      groups['worse'].append(record.method)
    elif results_lib.Verdict.OPEN in record.verdicts:
      groups['open'].append(record.method)
    else:
      groups['as good'].append(record.method)
  return (
      'The best, or shown to be as good within the margin, on every task: '
      f'{_join(groups["as good"])}. Shown to be worse by more than the margin '
      f'on a task, or diverged in a run: {_join(groups["worse"])}. The seeds '
      f'decide nothing about: {_join(groups["open"])}.'
  )


def _join(names: Sequence[str]) -> str:
  return ', '.join(names) or 'none'


def _cheapest(tuned: _Outcomes) -> list[str]:
  """Returns which tuned methods reach the targets at the least cost."""
  sentences = []
  for task, outcomes in tuned.items():
    for name, cost in _COSTS.items():
      costs = {method: cost(found) for method, found in outcomes.items()}
      reached = {m: value for m, value in costs.items() if math.isfinite(value)}
      if reached:
        best = min(reached, key=lambda method: reached[method])
        sentences.append(
            f'{task}, fewest {name}: {best} '
            f'({format_number(reached[best])})'
        )
  if not sentences:
    return []
  return [
      'If one cost counts more than the last point, the tuned methods that '
      f'reach the target first: {"; ".join(sentences)}.'
  ]
