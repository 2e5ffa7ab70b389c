# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The headline of the leaderboard: the metric over the number of trials."""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import math
import statistics
from typing import Any, Optional

from experiments import pages
from experiments.leaderboard import advice
from experiments.leaderboard import board
from experiments.leaderboard import budgets
from experiments.leaderboard import plans
from experiments.leaderboard import results as results_lib
from experiments.report import views
from experiments.run_results import run_folder

_LEGEND = (
    'With n trials, the one with the lowest training loss is chosen from the '
    "library's defaults and n - 1 random samples. A number is the expected "
    'test metric of the chosen trial in percent, exact over all subsets of the '
    'samples, with the tuning seed. A diverged trial counts as 0. The '
    '**area** is the mean of this metric over a logarithmic axis from 1 trial '
    'to the last, so every doubling of the trials counts the same. It comes '
    'from one seed and one set of samples: differences below the margin of the '
    'task mean nothing. Gradients (of a batch, all clients together) and MB '
    '(both ways) are those of the run with the defaults; seconds a round are '
    "the median of the method's fastest run, since others shared the machine. "
    '*Free* marks methods that need no tuning according to their authors.'
)
_NUM_NAMED = 5
CSV_HEADER = ('task', 'method', 'tuning_free', 'area', 'trials', 'expected')


@dataclasses.dataclass(frozen=True)
class Curves:
  """The scores on a task over the number of trials.

  Attributes:
    budget: The largest budget that at least half of the methods with more than
      one trial have, so that a leaderboard that is half done compares equals;
      0 if none ran.
    scores: The scores after 1, 2, ... trials, by method.
    areas: The areas up to the budget, of the methods that have it, the largest
      first; none if it is 1.
  """

  budget: int
  scores: Mapping[str, Sequence[float]]
  areas: Mapping[str, float]

  @property
  def methods(self) -> list[str]:
    """The methods: those with an area first, then by their defaults."""
    others = (method for method in self.scores if method not in self.areas)
    return [*self.areas, *sorted(others, key=lambda m: -self.scores[m][0])]


def find_curves(results: results_lib.Results, task: str) -> Curves:
  """Returns the expected scores after 1, 2, ... trials.

  Args:
    results: The finished runs.
    task: The task.
  """
  scores = {}
  for pair_task, method in results.plan.pairs:
    done = results.budget_done(task, method) if pair_task == task else 0
    if done:
      trials = results.trial_scores(task, method)
      found = budgets.expected_scores(trials)
      # With few values to choose from there are fewer trials; more would change
      # nothing.
      scores[method] = found + found[-1:] * (done - len(found))
  lengths = sorted(map(len, scores.values()), reverse=True)
  tuned = [length for length in lengths if length > 1] or lengths
  budget = tuned[(len(tuned) - 1) // 2] if tuned else 0
  areas = {
      method: budgets.area(found[:budget])
      for method, found in scores.items()
      if len(found) >= budget > 1
  }
  order = sorted(areas, key=lambda method: -areas[method])
  return Curves(budget, scores, {method: areas[method] for method in order})


def answer(results: results_lib.Results) -> str:
  """Returns who wins: the first paragraph of the page, then a list.

  Of what is compared without tuning, and of what is compared with it, the
  paragraph has what compares the most outcomes; the list has the others.

  Args:
    results: The finished runs.

  Returns:
    The text; empty if nothing can be compared.
  """
  found = advice.situations(results)
  first = _find_main(found)
  paragraph = ' '.join(_answer_pick(results, s) for s in first)
  items = [_answer_pick(results, s) for s in found if s not in first]
  for task in results.plan.board.tasks:
    curves = find_curves(results, task)
    if len(curves.areas) > 1:
      items.append(_answer_areas(results, task, curves))
    if len(curves.scores) > max(len(curves.areas), len(results.defaults(task))):
      items.append(_answer_first_trials(task, curves))
  bullets = '\n'.join(f'- {item}' for item in items)
  return '\n\n'.join(filter(None, [paragraph, bullets]))


def _find_main(
    found: Sequence[advice.Situation],
) -> list[advice.Situation]:
  """Returns what the first paragraph is about, of all situations."""
  largest = (
      advice.largest(s for s in found if s.budget == 1),
      advice.largest(s for s in found if s.budget > 1),
  )
  return [situation for situation in largest if situation is not None]


def find_picks(results: results_lib.Results) -> list[str]:
  """Returns the methods that come first in the first paragraph of the page.

  Args:
    results: The finished runs.

  Returns:
    The names, of all methods and of the tuning-free ones, without tuning first.
  """
  methods = results.plan.board.methods
  picks: list[str] = []
  for situation in _find_main(advice.situations(results)):
    standings = list(advice.rank_on_all(results, situation.outcomes))
    free = [name for name in standings if methods[name].tuning_free]
    picks += standings[:1] + free[:1]
  return list(dict.fromkeys(picks))


def _answer_pick(
    results: results_lib.Results, situation: advice.Situation
) -> str:
  """Returns which method comes first in a situation, and how surely."""
  methods = results.plan.board.methods
  standings = advice.rank_on_all(results, situation.outcomes)
  best = next(iter(standings))
  tasks = _join(list(situation.outcomes))
  rivals = list(situation.rivals())
  if len(rivals) > 1:
    losses = [f'{advice.largest_loss(standings[m]):.2f}' for m in rivals]
    sentence = (
        f'**{situation.text}, the seeds do not tell {_join(rivals)} apart**: '
        f'they are at most {_join(losses)} points behind the best'
    )
  else:
    loss = _describe_loss(standings[best])
    sentence = f'**{situation.text}, {best} loses least**: {loss}'
  sentence += f' of {len(standings)} methods on {tasks}'
  if len(situation.outcomes) == 1 < len(results.plan.board.tasks):
    sentence += ', which says little of the other tasks'
  free = [name for name in standings if methods[name].tuning_free]
  if best in free:
    sentence += f'; {best} needs no tuning according to its authors'
  elif free:
    sentence += (
        f'; of the {len(free)} that need no tuning according to their authors '
        f'{free[0]}, {_describe_loss(standings[free[0]])}'
    )
  good = [m for m in advice.group(standings).good if m != best]
  if good:
    sentence += f'. Shown to be as good within the margin: {", ".join(good)}'
  elif best not in advice.group(standings).good:
    sentence += '. On every task, none is shown to be as good as the best'
  doubts = _describe_defaults if situation.budget == 1 else _describe_search
  return (
      f'{sentence}. {_describe_seeds(situation)} {doubts(results, situation)}'
  )


def _join(texts: Sequence[str]) -> str:
  """Returns texts as a list in a sentence."""
  *others, last = texts
  return ' and '.join(filter(None, [', '.join(others), last]))


def _describe_seeds(situation: advice.Situation) -> str:
  """Returns who comes first if the seeds are resampled."""
  shares = (f'{m} in {share:.0%}' for m, share in situation.rivals().items())
  found = ', '.join(shares).replace('%', ' %')
  return (
      f'In {advice.NUM_RESAMPLES:,} resamples of the seeds, first is {found}.'
  )


def _describe_defaults(
    results: results_lib.Results, situation: advice.Situation
) -> str:
  """Returns who comes first without the methods whose defaults are ours."""
  methods = results.plan.board.methods
  compared = list(next(iter(situation.outcomes.values())))
  founded = [m for m in compared if methods[m].defaults != board.OURS]
  if not founded:
    return 'All these defaults are ours.'
  standings = advice.rank_on_all(results, situation.restrict(founded).outcomes)
  first = next(iter(standings))
  return (
      f'This ranks defaults, {len(compared) - len(founded)} of which are ours; '
      f'of the other {len(founded)} methods {first} loses least, '
      f'{_describe_loss(standings[first])} of these.'
  )


def _describe_search(
    results: results_lib.Results, situation: advice.Situation
) -> str:
  """Returns how much the chosen trials depend on the samples."""
  found = []
  for method in situation.rivals():
    spreads = {
        task: budgets.spread(
            results.trial_scores(task, method)[: situation.budget]
        )
        for task in situation.outcomes
    }
    task = max(spreads, key=spreads.__getitem__)
    found.append(f'{spreads[task]:.1f} points ({method}, {task})')
  return (
      'The search was made once: over searches with half of its samples the '
      'metric of the chosen trial has a standard deviation of up to '
      f'{", ".join(found)}.'
  )


def _describe_loss(by_task: Mapping[str, results_lib.Standing]) -> str:
  """Returns how far behind the best of a task a method is, at most."""
  loss = advice.largest_loss(by_task)
  if loss == 0.0:
    return 'the best'
  if math.isinf(loss):
    return 'although a run diverged, the best'
  return f'at most {loss:.2f} points behind the best'


def _answer_areas(
    results: results_lib.Results, task: str, curves: Curves
) -> str:
  """Returns who is best over all budgets on a task."""
  areas = curves.areas
  best, *others = areas
  margin = results.plan.board.tasks[task].margin
  near = [m for m in others if areas[best] - areas[m] <= margin]
  return (
      f'Over all budgets up to {curves.budget} trials, {best} is the best of '
      f'{len(areas)} methods on {task} (area {areas[best]:.2f}). Within '
      f'{advice.format_points(margin)}: {", ".join(near) or "none"}.'
  )


def _answer_first_trials(task: str, curves: Curves) -> str:
  """Returns whose defaults are best, where many methods have no more."""
  firsts = {method: scores[0] for method, scores in curves.scores.items()}
  order = sorted(firsts, key=lambda method: -firsts[method])
  best = ', '.join(f'{name} {firsts[name]:.2f}' for name in order[:_NUM_NAMED])
  return (
      f'With defaults and the tuning seed alone, the best of {len(firsts)} '
      f'methods on {task} are {best}.'
  )


def csv_rows(results: results_lib.Results) -> Iterator[list[Any]]:
  """Yields the columns of `CSV_HEADER` for every method and number of trials.

  Args:
    results: The finished runs.

  Yields:
    The values; the largest area of a task first, None where there is none.
  """
  for task in results.plan.board.tasks:
    curves = find_curves(results, task)
    for method in curves.methods:
      free = results.plan.board.methods[method].tuning_free
      for count, value in enumerate(curves.scores[method], start=1):
        yield [task, method, free, curves.areas.get(method), count, value]


def build_blocks(results: results_lib.Results) -> list[str]:
  """Returns the tables: one number per method, then a table per task.

  Args:
    results: The finished runs.

  Returns:
    The blocks; none if nothing ran.
  """
  tasks = results.plan.board.tasks
  found = {task: find_curves(results, task) for task in tasks}
  found = {task: curves for task, curves in found.items() if curves.scores}
  if not found:
    return []
  blocks = [pages.heading('One number per method'), pages.paragraph(_LEGEND)]
  with_areas = {task: curves for task, curves in found.items() if curves.areas}
  if len(with_areas) > 1:
    blocks.append(_areas_table(results, with_areas))
  for task, curves in found.items():
    what = f'the area up to {curves.budget} trials'
    text = f'On {task}, with {what if curves.areas else "the defaults alone"}:'
    blocks += [pages.paragraph(text), _task_table(results, task, curves)]
  return blocks


def _areas_table(
    results: results_lib.Results, found: Mapping[str, Curves]
) -> str:
  """Returns the areas on all tasks, and their mean where a method has all."""
  areas = {task: curves.areas for task, curves in found.items()}
  methods = list(
      dict.fromkeys(m for by_method in areas.values() for m in by_method)
  )
  means = {
      method: statistics.fmean(found[method] for found in areas.values())
      for method in methods
      if all(method in found for found in areas.values())
  }
  rows = [
      [method, free_mark(results, method), _show(means.get(method))]
      + [_show(areas[task].get(method)) for task in found]
      for method in sorted(methods, key=lambda m: -means.get(m, 0.0))
  ]
  header = ['method', 'free', 'mean area', *(f'area, {task}' for task in found)]
  return pages.table(header, rows, num_labels=2)


def _task_table(results: results_lib.Results, task: str, curves: Curves) -> str:
  """Returns areas, scores and costs on a task."""
  length = max(map(len, curves.scores.values()))
  counts = [n for n in results.plan.board.protocol.budgets if n <= length]
  defaults = results.defaults(task)
  rows = []
  for method in curves.methods:
    scores = curves.scores[method]
    cost = _cost(results, task, method)
    quantities = (
        cost.gradient_evaluations,
        cost.megabytes_up + cost.megabytes_down,
        _seconds(results.trial_runs(task, method), defaults.get(method)),
    )
    rows.append(
        [method, free_mark(results, method), _show(curves.areas.get(method))]
        + [_show(scores[n - 1] if n <= len(scores) else None) for n in counts]
        + [advice.format_number(quantity) for quantity in quantities]
    )
  header = ['method', 'free', 'area', *(f'n = {count}' for count in counts)]
  header += ['gradients', 'MB', 's a round']
  return pages.table(header, rows, num_labels=2)


def _show(score: Optional[float]) -> str:
  return views.format_value(score, None, decimals=2)


def _cost(
    results: results_lib.Results, task: str, method: str
) -> results_lib.Outcome:
  """Returns the outcome of the trial with the defaults."""
  run = results.trial_runs(task, method)[0]
  definition = results.plan.board.tasks[task]
  seed = results.plan.board.protocol.tuning_seed
  return results_lib.Outcome(definition, plans.DEFAULTS, {seed: run})


def _seconds(
    trials: Sequence[run_folder.Run], defaults: Optional[results_lib.Outcome]
) -> float:
  """Returns the time of a round where the machine had least else to do."""
  finals = defaults.runs.values() if defaults is not None else ()
  seconds = [run.seconds_per_round for run in (*trials, *finals)]
  return min(filter(math.isfinite, seconds), default=math.nan)


def free_mark(results: results_lib.Results, method: str) -> str:
  """Returns the mark of a method that is said to need no tuning."""
  return 'yes' if results.plan.board.methods[method].tuning_free else ''
