# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of the leaderboard: the page, a CSV file and pictures."""

from collections.abc import Iterator, Mapping, Sequence
import pathlib
from typing import Any, Optional

from experiments import csv_files
from experiments import markup
from experiments import pages
from experiments import registry
from experiments.leaderboard import advice
from experiments.leaderboard import board
from experiments.leaderboard import drawing
from experiments.leaderboard import execution
from experiments.leaderboard import headline
from experiments.leaderboard import plans
from experiments.leaderboard import results as results_lib
from experiments.report import views
from experiments.run_results import statistics
from experiments.sweep import trials as trials_lib

# Attributes of an outcome by the columns of the page.
_QUANTITIES = {
    'rounds to target': 'rounds_to_target',
    's to target': 'seconds_to_target',
    'gradients to target': 'gradient_evaluations_to_target',
    'MB to target': 'megabytes_to_target',
}
_HEADER = (
    *('method', 'metric (%)', 'to the best', 'verdict'),
    *_QUANTITIES,
    'chosen',
)
# Attributes of an outcome in the CSV file.
_CSV_QUANTITIES = (
    *_QUANTITIES.values(),
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
    'whole interval is at or above minus the margin. **worse**: all of it is '
    'below. '
    '**open**: neither: too few seeds to decide, not a proof of equality. One '
    'seed has no interval and decides nothing. **diverged**: a run did, and '
    'the other seeds do not make up for it. **failed**: a run ended with an '
    'error. What it takes to reach the target is the median over the seeds, '
    '*never* where most did not reach it; seconds are those of one process on '
    'its share of the cores, evaluations not counted. Gradients are those of '
    'batches, summed over all clients; MB are those sent and received.'
)
_CAVEATS = (
    'A seed fixes the partition, the cohorts and the initial weights, equally '
    'for all methods. Since seeds also differ in the partition, the spread '
    'over seeds is larger than that of repeated training on one partition. The '
    'best method has the best mean on the same seeds on which the others are '
    'compared with it: its lead includes luck, and the others look worse than '
    'they are. The intervals are not corrected for their number either: among '
    'many equal methods, some look worse. Differences below the margin are '
    'meaningless.'
)
_REGISTRATION_LEGEND = (
    'A method is registered with its flags and ranges, a task with its model, '
    'seeds, target and margin: they were committed at this time and have not '
    'changed since. A run counts with the later one of both.'
)
_GAPS_LEGEND = (
    "The difference to the method's own tuned runs, in points, paired by seed, "
    'with a 95 % t interval. The columns of other tasks use the '
    'hyperparameters tuned there, and all other flags of this task.'
)

_DEFAULTS_LEGEND = (
    "The test metric with this library's defaults, mean ± standard deviation "
    'over the seeds, in percent: a ranking of defaults, not of methods. '
    '**from** is their source: the *paper* or the *code* of the authors, '
    '*other* papers or code, or *ours*. Bold is the best of a task, or shown '
    'to be as good within its margin. The **loss** is how far a method is '
    'behind the best of a task, in points, at most, on '
)


def write(
    plan: plans.Plan,
    catalogue: plans.Plan,
    results_dir: pathlib.Path,
    command: str,
):
  """Writes `<results_dir>/leaderboard` as .md, .csv and its pictures.

  The curves of the pictures are in `leaderboard_trials.csv`.

  Args:
    plan: The plan of the compared runs.
    catalogue: The plan of all tasks and methods, for the list of missing runs.
    results_dir: The folder for the page, created if missing.
    command: The command that makes the page.

  Raises:
    OSError: If a file cannot be read or written.
    RunError: If a file of a run is damaged.
    UserError: If a record of finished runs is damaged.
  """
  results = results_lib.Results(plan)
  path = results_dir / 'leaderboard'
  headline_picture, others = drawing.draw(results, path)
  failed = execution.find_failed(results)
  sections = [
      block
      for task in plan.board.tasks.values()
      for block in _task_blocks(results, task, failed)
  ]
  blocks = [
      pages.paragraph(headline.answer(results) or advice.NOTHING),
      *_figures(headline_picture, command),
      *headline.build_blocks(results),
      pages.heading('Which method to pick'),
      *map(pages.paragraph, advice.advise(results)),
      *_warn_of(failed),
      *_default_blocks(results),
      pages.heading('How to read the tables'),
      pages.paragraph(_describe(plan)),
      _tasks_table(plan.board),
      pages.paragraph(_LEGEND),
      pages.paragraph(_CAVEATS),
      *(sections or [pages.paragraph('No method has all its runs yet.')]),
      *_gap_blocks(results),
  ]
  if others:
    blocks += [pages.heading('Figures'), *_figures(others, command)]
  blocks += _failure_blocks(failed)
  blocks += _search_blocks(plan.board)
  blocks += _registration_blocks(results)
  blocks += _missing_blocks(results, results_lib.Results(catalogue))
  blocks += pages.origin(results.runs(), command)
  csv_files.write(path.with_suffix('.csv'), _CSV_HEADER, _csv_rows(results))
  csv_files.write(
      path.with_name(f'{path.name}_trials.csv'),
      headline.CSV_HEADER,
      headline.csv_rows(results),
  )
  pages.write_page(path, 'Leaderboard: one budget for all algorithms', blocks)
  print(f'{path}.md')


def _figures(
    pictures: Mapping[pathlib.Path, str], command: str
) -> Iterator[str]:
  for picture, caption in pictures.items():
    yield pages.figure(picture, caption, command)


def _csv_rows(results: results_lib.Results) -> Iterator[list[Any]]:
  """Yields one row per task, method and origin of the rates.

  Rates are 'tuned', 'defaults' or tuned on another task; the difference is to
  the best with the same task and origin. Unreached targets and diverged runs
  are infinite.
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


def _describe(plan: plans.Plan) -> str:
  """Returns a paragraph on the rules."""
  protocol = plan.board.protocol
  rules = (f for f in plan.given if not f.startswith('--results_dir='))
  changes: list[str] = [*map(markup.code, rules)]
  of_methods = (f for m in plan.board.methods.values() for f in m.flags)
  if any(map(registry.is_own, (*plan.board.tasks, *of_methods))):
    changes.append('those of your own tasks and methods')
  exceptions = f', except {" and ".join(changes)}' if changes else ''
  return (
      f'Every method trains {protocol.total_rounds} rounds and has up to '
      f'{protocol.num_trials} trials with the seed {protocol.tuning_seed}: the '
      "library's defaults and random samples from its ranges (search seed "
      f'{protocol.search_seed}). The trial with the lowest training loss in '
      f'the last {protocol.selection_rounds} rounds is chosen, without test '
      'data, and run with the final seeds. That loss is the one that clients '
      'see during local training, which methods that limit client drift '
      'increase on purpose, so it is only compared within a method. Ranges, '
      'seeds, targets and margins are those of '
      f'`experiments/presets/leaderboard.yaml`{exceptions}; [below](#when-the-'
      'rules-were-committed) is since when. The search was made once.'
  )


def _tasks_table(rules: board.Leaderboard) -> str:
  """Returns the tasks with their rules."""
  rows = [
      [
          task.name,
          markup.Markup(' '.join(map(markup.code, task.flags)) or advice.NONE),
          markup.code(task.metric),
          str(task.num_seeds),
          advice.format_points(task.margin),
          f'{task.target:g} %',
          markup.Markup(task.note or advice.NONE),
      ]
      for task in rules.tasks.values()
  ]
  header = ['task', 'flags', 'metric', 'seeds', 'margin', 'target', 'data']
  return pages.table(header, rows, num_labels=len(header))


def _default_blocks(results: results_lib.Results) -> list[str]:
  """Returns the section of the runs with the library's defaults."""
  widest = advice.largest(
      s for s in advice.situations(results) if s.budget == 1
  )
  if widest is None:
    return []
  standings = {
      task: {s.method: s for s in results.rank(task, results.defaults(task))}
      for task in results.plan.board.tasks
  }
  standings = {task: found for task, found in standings.items() if found}
  ranked = advice.rank_on_all(results, widest.outcomes)
  methods = [*ranked, *(m for found in standings.values() for m in found)]
  rows = []
  for method in dict.fromkeys(methods):
    by_task = ranked.get(method)
    loss = advice.largest_loss(by_task) if by_task else None
    rows.append(
        [
            method,
            headline.free_mark(results, method),
            results.plan.board.methods[method].defaults,
            views.format_value(loss, None, 2),
            *(_show_mean(found.get(method)) for found in standings.values()),
        ]
    )
  return [
      pages.heading('Without tuning'),
      pages.paragraph(_DEFAULTS_LEGEND + ', '.join(widest.outcomes) + '.'),
      pages.table(
          ['method', 'free', 'from', 'loss', *standings], rows, num_labels=3
      ),
  ]


def _show_mean(standing: Optional[results_lib.Standing]) -> str:
  """Returns the score on a task, in bold if none is shown to be better."""
  if standing is None:
    return advice.NONE
  text = views.format_value(standing.mean, standing.std, 2)
  return markup.Markup(f'**{text}**') if _is_good(standing) else text


def _is_good(standing: results_lib.Standing) -> bool:
  answers = statistics.Answer
  return standing.verdict in (answers.BEST, answers.AS_GOOD)


def _warn_of(failed: Sequence[trials_lib.Trial]) -> list[str]:
  """Returns a warning about methods with failed runs, if any."""
  if not failed:
    return []
  names = dict.fromkeys(
      markup.text(f'{_method_of(trial)} on {trial.home.name}')
      for trial in failed
  )
  text = 'These methods may be missing above, because runs failed: '
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
  # Methods with failed runs have no outcome.
  rows += [
      [name, advice.NONE, advice.NONE, 'failed']
      + [advice.NONE] * (len(_HEADER) - 4)
      for name in failing
      if name not in outcomes
  ]
  if not rows:
    return []
  return [
      pages.heading(
          f'{task.name}, tuned with {results.budget(task.name)} trials'
      ),
      pages.table(_HEADER, rows),
  ]


def _row(
    standing: results_lib.Standing, outcome: results_lib.Outcome
) -> list[str]:
  verdict = standing.verdict
  is_good = _is_good(standing)
  is_best = verdict is statistics.Answer.BEST
  quantities = (getattr(outcome, name) for name in _QUANTITIES.values())
  return [
      standing.method,
      views.format_value(standing.mean, standing.std, 2),
      advice.NONE if is_best else advice.format_interval(standing.difference),
      markup.Markup(f'**{verdict.value}**' if is_good else verdict.value),
      *map(advice.format_number, quantities),
      advice.format_assignment(outcome.assignment),
  ]


def _gap_blocks(results: results_lib.Results) -> list[str]:
  """Returns what is lost with the defaults and with values of other tasks."""
  tasks = list(results.plan.board.tasks)
  tuned = {task: results.tuned(task) for task in tasks}
  columns = {'defaults': {task: results.defaults(task) for task in tasks}}
  for source in tasks:
    carried = {t: results.tuned(t, source) for t in tasks if t != source}
    if any(carried.values()):
      columns[f'tuned on {source}'] = carried
  rows = []
  for task, outcomes in tuned.items():
    for method, outcome in outcomes.items():
      others = [found.get(task, {}).get(method) for found in columns.values()]
      mean = sum(outcome.scores.values()) / len(outcome.scores)
      gaps = [_gap(other, outcome) for other in others]
      rows.append([task, method, views.format_value(mean, None, 2), *gaps])
  if not rows:
    return []
  return [
      pages.heading('What not tuning costs'),
      pages.paragraph(_GAPS_LEGEND),
      pages.table(['task', 'method', 'tuned', *columns], rows, 2),
  ]


def _gap(
    other: Optional[results_lib.Outcome], tuned: results_lib.Outcome
) -> str:
  if other is None:
    return advice.NONE
  difference = statistics.compare(other.scores, tuned.scores)
  return advice.format_interval(difference)


def _failure_blocks(failed: Sequence[trials_lib.Trial]) -> list[str]:
  """Returns the section of failed runs with their logs."""
  if not failed:
    return []
  rows = [
      [trial.home.name, markup.code(trial.name), markup.code(trial.log)]
      for trial in failed
  ]
  return [
      pages.heading('Failed runs'),
      pages.paragraph(
          'These runs ended with an error when last tried. The same command '
          'tries them again.'
      ),
      pages.table(['task', 'run', 'log'], rows, num_labels=3),
  ]


def _search_blocks(rules: board.Leaderboard) -> list[str]:
  """Returns the section of the search ranges and their reasons."""
  rows = [
      [
          method.name,
          markup.code(' '.join(method.flags)),
          markup.code(f'--{item.flag}'),
          markup.code(item.values),
          markup.Markup(item.reason),
      ]
      for method in rules.methods.values()
      for item in method.search
  ]
  header = ['method', 'flags', 'searched', 'values', 'reason']
  return [
      pages.heading('Search ranges'),
      pages.table(header, rows, num_labels=5),
  ]


def _registration_blocks(results: results_lib.Results) -> list[str]:
  """Returns the section on which runs began before their rules were fixed."""
  found = results.registrations()
  if not found:
    return []
  compared = {*results.plan.board.tasks, *results.plan.board.methods}
  rows = []
  for rules in (*results.plan.board.registered, None):
    if rules in found:
      place = ['not registered', '', '']
      if rules is not None:
        entries = ', '.join(n for n in rules.entries if n in compared)
        place = [markup.code(rules.commit), f'{rules.time:%F %R}', entries]
      rows.append([*place, str(len(found[rules])), str(sum(found[rules]))])
  num_early = sum(map(sum, found.values()))
  header = ['commit', 'time (UTC)', 'entries', 'runs', 'begun earlier']
  return [
      pages.heading('When the rules were committed'),
      pages.paragraph(
          f'{_REGISTRATION_LEGEND} {num_early:,} of {len(results.runs()):,} '
          'runs began earlier.'
      ),
      pages.table(header, rows, num_labels=3),
  ]


def _missing_blocks(
    results: results_lib.Results, catalogue: results_lib.Results
) -> list[str]:
  """Returns the section of missing runs, with the commands of all."""
  blocks = []
  rows = [
      [*fields, markup.code(command)]
      for *fields, command in execution.list_missing(
          catalogue, per_method=False
      )
  ]
  if rows:
    to_do = execution.describe_missing(results) or 'no runs to go'
    blocks += [
        pages.paragraph(f'Of the tasks and methods compared above: {to_do}.'),
        pages.paragraph(
            'The missing runs per task, of all tasks and methods. The time '
            'is the total for sequential runs at the speed of FedAvg on two '
            'cores; it is unknown if no round was measured.'
        ),
        pages.table(execution.HEADER, rows, num_labels=5),
    ]
  blocks += [
      pages.paragraph(f'`{name}` is not on the leaderboard: {reason}.')
      for name, reason in catalogue.plan.board.excluded.items()
  ]
  return [pages.heading('Not run'), *blocks] if blocks else []
