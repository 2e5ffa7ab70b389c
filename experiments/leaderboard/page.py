# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files of the leaderboard: the page, its numbers and its pictures."""

from collections.abc import Iterator, Sequence
import pathlib
from typing import Any, Optional

from experiments import pages
from experiments.leaderboard import advice
from experiments.leaderboard import board
from experiments.leaderboard import drawing
from experiments.leaderboard import execution
from experiments.leaderboard import results as results_lib
from experiments.run_results import seed_statistics
from experiments.sweep import trials as trials_lib

# Quantities of an outcome, as the columns of the page call them.
_QUANTITIES = {
    'rounds to target': 'rounds_to_target',
    's a round': 'seconds_per_round',
    's to target': 'seconds_to_target',
    'gradients to target': 'gradient_evaluations_to_target',
    'gradients': 'gradient_evaluations',
    'MB to target': 'megabytes_to_target',
    'MB up': 'megabytes_up',
    'MB down': 'megabytes_down',
}
_HEADER = (
    *('method', 'metric (%)', 'to the best', 'verdict'),
    *_QUANTITIES,
    'chosen',
)
# Those of the CSV file.
_CSV_QUANTITIES = (
    'rounds_to_target',
    'seconds_to_target',
    'gradient_evaluations_to_target',
    'megabytes_to_target',
    'seconds_per_round',
    'gradient_evaluations',
    'megabytes_up',
    'megabytes_down',
)
_CSV_HEADER = (
    *('task', 'rates', 'method', 'assignment', 'seeds', 'mean', 'std'),
    *('difference', 'low', 'high', 'verdict'),
    *_CSV_QUANTITIES,
)
_LEGEND = (
    'A metric is the mean ± the standard deviation over the seeds, of a run '
    'the mean of its last ten evaluations on the test data. The difference to '
    'the best is paired by seed, with a 95 % t interval. **as good**: the '
    'whole interval is above minus the margin. **worse**: all of it is below. '
    '**open**: neither; a tie for want of seeds, and no proof of equality. One '
    'seed has no interval and decides nothing. **diverged**: a run did, and '
    'the other seeds do not make up for it. **failed**: a run ended with an '
    'error. What it takes to reach the target is the median over the seeds, '
    '*never* where most did not reach it; seconds are those of one process on '
    'its share of the cores, evaluations not counted, and s a round is the '
    'median round. Gradients are those of a batch, of all clients together, '
    'and like MB they are those of a whole run where nothing else is said.'
)
_CAVEATS = (
    'A seed fixes the partition, the cohorts and the initial weights, the same '
    'for all methods; so seeds differ in the partition, too, and the spread '
    'over seeds is larger than that of repeated training on one partition. The '
    'best is the one with the best mean, on the seeds on which it is compared: '
    'luck is part of its lead, and the others look worse than they are. The '
    'intervals are not corrected for their number either: of many methods that '
    'are equal, some look worse. Differences below the margin mean nothing.'
)
_TRIALS_LEGEND = (
    'The expected test metric of the trial that is chosen among n of the '
    'trials, without replacement, in percent; exact over all subsets of the '
    'runs with the tuning seed. A trial that diverged is worth 0.'
)
_GAPS_LEGEND = (
    "What is lost against the method's own tuned runs, in points, paired by "
    'seed, with a 95 % t interval. Carried over are the values that were '
    'chosen on another task; flags of the task itself are its own.'
)


def write(
    plan: board.Plan,
    catalogue: board.Plan,
    results_dir: pathlib.Path,
    command: str,
):
  """Writes `<results_dir>/leaderboard` as .md, .html, .csv and its pictures.

  Args:
    plan: What is compared.
    catalogue: All tasks and methods, for the list of what was not run.
    results_dir: The folder that gets the page; it is made.
    command: What makes the page.

  Raises:
    OSError: If a file cannot be read or written.
    RunError: If a file of a run is damaged.
    UserError: If a record of finished runs is damaged.
  """
  results = results_lib.Results(plan)
  path = results_dir / 'leaderboard'
  pictures = drawing.draw(results, path)
  failed = execution.find_failed(results)
  blocks = [
      pages.paragraph(_describe(plan.board)),
      pages.heading('Which method to pick'),
      *map(pages.paragraph, advice.advise(results)),
      *_warn_of(failed),
      pages.heading('How to read the tables'),
      pages.paragraph(_LEGEND),
      pages.paragraph(_CAVEATS),
  ]
  for task in plan.board.tasks.values():
    blocks += _task_blocks(results, task, failed)
  blocks += _tuning_blocks(results)
  if pictures:
    blocks.append(pages.heading('Figures'))
  blocks += [pages.figure(p, text, command) for p, text in pictures.items()]
  blocks += _failure_blocks(failed)
  blocks += _search_blocks(plan.board)
  blocks += _missing_blocks(results_lib.Results(catalogue))
  blocks += pages.origin(results.runs(), command)
  pages.write_csv(path.with_suffix('.csv'), _CSV_HEADER, _csv_rows(results))
  pages.write_page(path, 'Leaderboard: one budget for all algorithms', blocks)
  print(f'{path}.html')


def _csv_rows(results: results_lib.Results) -> Iterator[list[Any]]:
  """Yields a row for every task, method and origin of its rates.

  Rates are 'tuned', 'defaults' or those tuned on another task; the difference
  is that to the best of the same task and origin. A target that was not
  reached, and a run that diverged, are infinite.
  """
  tasks = results.plan.board.tasks
  for task in tasks:
    origins = {'tuned': results.tuned(task), 'defaults': results.defaults(task)}
    for source in tasks:
      if source != task:
        origins[f'tuned on {source}'] = results.tuned(task, source)
    for origin, outcomes in origins.items():
      for standing in results.rank(task, outcomes):
        outcome = outcomes[standing.method]
        yield [
            task,
            origin,
            standing.method,
            trials_lib.to_slug(outcome.assignment) or 'defaults',
            len(outcome.runs),
            standing.mean,
            standing.std,
            *standing.difference,
            standing.verdict.value,
            *(getattr(outcome, name) for name in _CSV_QUANTITIES),
        ]


def _describe(rules: board.Leaderboard) -> str:
  """Returns the rules."""
  protocol = rules.protocol
  return (
      f'Every method trains {protocol.total_rounds} rounds and has '
      f'{protocol.num_trials} trials with the seed {protocol.tuning_seed}: the '
      "library's defaults and random draws from its ranges (search seed "
      f'{protocol.search_seed}). The trial with the least training loss in the '
      f'last {protocol.selection_rounds} rounds is chosen, without a look at '
      'the test data, and run with the final seeds. That loss is the one that '
      'clients see in their own training, which a method that pulls them '
      'together raises on purpose; it is compared within a method only. '
      'Ranges, seeds, targets and margins were fixed before the first run, in '
      '`experiments/presets/leaderboard.yaml`.'
  )


def _warn_of(failed: Sequence[trials_lib.Trial]) -> list[str]:
  """Returns who may be missing above; nothing if no run failed."""
  if not failed:
    return []
  names = dict.fromkeys(
      f'{_method_of(trial)} on {trial.home.name}' for trial in failed
  )
  text = 'Runs of these failed, so that they may be missing above: '
  return [pages.paragraph(f'{text}{", ".join(names)}.')]


def _method_of(trial: trials_lib.Trial) -> str:
  """Returns the name of the method of a run."""
  return trial.name.partition('/')[0]


def _task_blocks(
    results: results_lib.Results,
    task: board.Task,
    failed: Sequence[trials_lib.Trial],
) -> list[str]:
  """Returns the section of a task."""
  outcomes = results.tuned(task.name)
  failing = dict.fromkeys(
      _method_of(trial) for trial in failed if trial.home.name == task.name
  )
  rows = [
      _row(standing, outcomes[standing.method])
      for standing in results.rank(task.name, outcomes)
  ]
  # Of these methods runs failed, and so there is no outcome.
  rows += [
      [name, advice.NONE, advice.NONE, 'failed']
      + [advice.NONE] * (len(_HEADER) - 4)
      for name in failing
      if name not in outcomes
  ]
  flags = f' Flags: `{" ".join(task.flags)}`.' if task.flags else ''
  return [
      pages.heading(f'{task.name}, tuned'),
      pages.paragraph(
          f'`{task.metric}`, {task.num_seeds} seeds, margin {task.margin:g} '
          f'points, target {task.target:g} %.{flags}'
      ),
      pages.table(_HEADER, rows)
      if rows
      else pages.paragraph('No method has all of its runs yet.'),
  ]


def _row(
    standing: results_lib.Standing, outcome: results_lib.Outcome
) -> list[str]:
  verdict = standing.verdict
  is_best = verdict is seed_statistics.Answer.BEST
  is_good = is_best or verdict is seed_statistics.Answer.AS_GOOD
  quantities = (getattr(outcome, name) for name in _QUANTITIES.values())
  return [
      standing.method,
      advice.format_score(standing.mean, standing.std),
      advice.NONE if is_best else advice.format_interval(standing.difference),
      f'**{verdict.value}**' if is_good else verdict.value,
      *map(advice.format_number, quantities),
      advice.format_assignment(outcome.assignment),
  ]


def _tuning_blocks(results: results_lib.Results) -> list[str]:
  """Returns what is lost with fewer trials, defaults, values of other tasks."""
  blocks = [*_trials_table(results), *_gaps_table(results)]
  return [pages.heading('What not tuning costs'), *blocks] if blocks else []


def _trials_table(results: results_lib.Results) -> list[str]:
  """Returns the expected scores after fewer trials."""
  rows = []
  for task, method in results.plan.pairs:
    trials = results.trial_scores(task, method)
    if trials is not None:
      scores = [trials[0].test, *results_lib.expected_scores(trials)]
      rows.append([task, method, *map(advice.format_score, scores)])
  if not rows:
    return []
  width = max(map(len, rows))
  counts = [f'n = {i + 1}' for i in range(width - 3)]
  # Methods with a choice of few values have fewer trials.
  rows = [row + [advice.NONE] * (width - len(row)) for row in rows]
  header = ['task', 'method', 'defaults', *counts]
  return [pages.paragraph(_TRIALS_LEGEND), pages.table(header, rows, 2)]


def _gaps_table(results: results_lib.Results) -> list[str]:
  """Returns the losses of defaults and of values of other tasks."""
  tasks = list(results.plan.board.tasks)
  header = ['task', 'method', 'tuned', 'defaults']
  if len(tasks) > 1:
    header += [f'tuned on {task}' for task in tasks]
  rows = []
  for task in tasks:
    others = [results.defaults(task)]
    if len(tasks) > 1:
      others += [results.tuned(task, s) if s != task else {} for s in tasks]
    for method, outcome in results.tuned(task).items():
      gaps = [_gap(found.get(method), outcome) for found in others]
      mean = sum(outcome.scores.values()) / len(outcome.scores)
      rows.append([task, method, advice.format_score(mean), *gaps])
  if not rows:
    return []
  return [pages.paragraph(_GAPS_LEGEND), pages.table(header, rows, 2)]


def _gap(
    other: Optional[results_lib.Outcome], tuned: results_lib.Outcome
) -> str:
  if other is None:
    return advice.NONE
  difference = results_lib.compare(other.scores, tuned.scores)
  return advice.format_interval(difference)


def _failure_blocks(failed: Sequence[trials_lib.Trial]) -> list[str]:
  """Returns the runs that failed, with their logs."""
  if not failed:
    return []
  rows = [
      [trial.home.name, f'`{trial.name}`', f'`{trial.log}`'] for trial in failed
  ]
  return [
      pages.heading('Failed runs'),
      pages.paragraph(
          'They ended with an error when they were last tried. The same '
          'command tries them again.'
      ),
      pages.table(['task', 'run', 'log'], rows, num_labels=3),
  ]


def _search_blocks(rules: board.Leaderboard) -> list[str]:
  """Returns what each method searches, and why there."""
  rows = [
      [
          method.name,
          f'`{" ".join(method.flags)}`',
          f'`--{item.flag}`',
          f'`{item.values}`',
          item.reason,
      ]
      for method in rules.methods.values()
      for item in method.search
  ]
  header = ['method', 'flags', 'searched', 'values', 'why']
  return [
      pages.heading('What was searched'),
      pages.table(header, rows, num_labels=5),
  ]


def _missing_blocks(catalogue: results_lib.Results) -> list[str]:
  """Returns what was not run, with its command."""
  blocks = []
  rows = [
      [*fields, f'`{command}`']
      for *fields, command in execution.list_missing(
          catalogue, per_method=False
      )
  ]
  if rows:
    blocks += [
        pages.paragraph(
            'Per task how many runs are missing, of all methods. The time is '
            'that of one run after the other at the speed of FedAvg on two '
            'cores; it is unknown where nobody has measured a round.'
        ),
        pages.table(execution.HEADER, rows, num_labels=5),
    ]
  blocks += [
      pages.paragraph(f'Not on the leaderboard is `{name}`: {reason}.')
      for name, reason in catalogue.plan.board.excluded.items()
  ]
  return [pages.heading('Not run'), *blocks] if blocks else []
