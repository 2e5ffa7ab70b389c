# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of the leaderboard: the page, a CSV file and pictures."""

from collections.abc import Mapping, Sequence
import pathlib

from experiments import formatting
from experiments import pages
from experiments import registry
from experiments.leaderboard import board
from experiments.leaderboard import drawing
from experiments.leaderboard import execution
from experiments.leaderboard import results as results_lib
from experiments.leaderboard import views
from experiments.sweep import trials as trials_lib

_AREAS_LEGEND = (
    'With n trials, the one with the lowest training loss is chosen from the '
    "library's defaults and n - 1 random samples. A number is the expected "
    'test metric of the chosen trial in percent, exact over all subsets of the '
    'samples, with the tuning seed. A diverged trial counts as 0. The '
    '**area** is the mean of this metric over a logarithmic axis from 1 trial '
    'to the last, so every doubling of the trials counts the same. It comes '
    'from one seed and one set of samples: differences below the margin of the '
    'task mean nothing. **± search** is the standard deviation of the metric '
    'over searches with half of the samples. Gradients (of a batch, all '
    'clients together) and MB (both ways) are those of the run with the '
    "defaults; seconds a round are the median of the method's fastest run, "
    'since others shared the machine. *Free* marks methods that need no tuning '
    'according to their authors.'
)
_NOTHING = 'Nothing to compare yet: no method has its first trial.'
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
    'over the seeds, in percent: a ranking of defaults, not of methods, by the '
    'mean difference to the best of a task. **from** is their source: the '
    '*paper* or the *code* of the authors, *other* papers or code, or *ours*. '
    'Bold is the best of a task, or shown to be as good within its margin.'
)


def write(
    plan: results_lib.Plan,
    catalogue: results_lib.Plan,
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
  curves = {task: results.curves(task) for task in plan.board.tasks}
  curves = {task: found for task, found in curves.items() if found.scores}
  pictures = [
      pages.figure(picture, caption, command)
      for picture, caption in drawing.draw(results, curves, path).items()
  ]
  failed = execution.find_failed(results)
  blocks = [
      pages.paragraph(_introduce(results, curves)),
      *pictures[:1],
      *_area_blocks(results, curves),
      *_warn_of(failed),
      *pages.section(
          'Without tuning',
          pages.paragraph(_DEFAULTS_LEGEND),
          views.defaults_table(results),
      ),
      pages.heading('How to read the tables'),
      pages.paragraph(_describe(plan)),
      _tasks_table(plan.board),
      pages.paragraph(_LEGEND),
      pages.paragraph(_CAVEATS),
      *_task_blocks(results, failed),
      *pages.section(
          'What not tuning costs',
          pages.paragraph(_GAPS_LEGEND),
          views.gaps_table(results),
      ),
      *([pages.heading('Figures'), *pictures[1:]] if pictures[1:] else []),
      *_failure_blocks(failed),
      *_search_blocks(plan.board),
      *_registration_blocks(results),
      *_missing_blocks(results, results_lib.Results(catalogue)),
      *pages.origin(results.runs(), command),
  ]
  formatting.write_csv(
      path.with_suffix('.csv'), views.CSV_HEADER, views.csv_rows(results)
  )
  formatting.write_csv(
      path.with_name(f'{path.name}_trials.csv'),
      views.TRIALS_HEADER,
      views.trials_rows(results, curves),
  )
  pages.write_page(path, 'Leaderboard: one budget for all algorithms', blocks)
  print(f'{path}.md')


def _introduce(
    results: results_lib.Results, curves: Mapping[str, results_lib.Curves]
) -> str:
  """Returns what is compared, and how much of it is luck."""
  if not curves:
    return _NOTHING
  tasks = ', '.join(
      f'{task} ({len(found.scores)} methods, up to {found.budget} trials)'
      for task, found in curves.items()
  )
  return (
      f'One budget for all on {tasks}: '
      f'{results.plan.board.protocol.total_rounds} rounds, trials chosen by '
      'training loss, the same seeds for all. Tables '
      'are ordered by means; the verdicts of the tuned methods say which '
      'differences the seeds carry. The search was made once: of two methods '
      'that differ by less than its spread, **± search** below, another search '
      'may choose the other.'
  )


def _area_blocks(
    results: results_lib.Results, curves: Mapping[str, results_lib.Curves]
) -> list[str]:
  """Returns the tables of one number per method, then a table per task."""
  if not curves:
    return []
  blocks = [
      pages.heading('One number per method'),
      pages.paragraph(_AREAS_LEGEND),
  ]
  with_areas = {task: found for task, found in curves.items() if found.areas}
  if len(with_areas) > 1:
    blocks.append(views.areas_table(results, with_areas))
  for task, found in curves.items():
    what = f'the area up to {found.budget} trials'
    text = f'On {task}, with {what if found.areas else "the defaults alone"}:'
    table = views.budgets_table(results, task, found)
    blocks += [pages.paragraph(text), table]
  return blocks


def _task_blocks(
    results: results_lib.Results, failed: Sequence[trials_lib.Trial]
) -> list[str]:
  """Returns the sections of the tasks with tuned methods."""
  blocks = []
  for task in results.plan.board.tasks:
    failing = [_method_of(trial) for trial in failed if trial.home.name == task]
    blocks += pages.section(
        f'{task}, tuned with {results.budget(task)} trials',
        views.tuned_table(results, task, list(dict.fromkeys(failing))),
    )
  return blocks or [pages.paragraph('No method has all its runs yet.')]


def _describe(plan: results_lib.Plan) -> str:
  """Returns a paragraph on the rules."""
  protocol = plan.board.protocol
  rules = (f for f in plan.given if not f.startswith('--results_dir='))
  changes: list[str] = [*map(pages.code, rules)]
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
          pages.Markup(' '.join(map(pages.code, task.flags)) or views.NONE),
          pages.code(task.metric),
          str(task.num_seeds),
          views.format_points(task.margin),
          f'{task.target:g} %',
          pages.Markup(task.note or views.NONE),
      ]
      for task in rules.tasks.values()
  ]
  header = ['task', 'flags', 'metric', 'seeds', 'margin', 'target', 'data']
  return pages.table(header, rows, num_labels=len(header))


def _warn_of(failed: Sequence[trials_lib.Trial]) -> list[str]:
  """Returns a warning about methods with failed runs, if any."""
  if not failed:
    return []
  names = dict.fromkeys(
      pages.text(f'{_method_of(trial)} on {trial.home.name}')
      for trial in failed
  )
  text = 'These methods may be missing above, because runs failed: '
  return [pages.paragraph(f'{text}{", ".join(names)}.')]


def _method_of(trial: trials_lib.Trial) -> str:
  """Returns the name of the method of a run."""
  return trial.name.partition('/')[0]


def _failure_blocks(failed: Sequence[trials_lib.Trial]) -> list[str]:
  """Returns the section of failed runs with their logs."""
  rows = [
      [trial.home.name, pages.code(trial.name), pages.code(trial.log)]
      for trial in failed
  ]
  return pages.section(
      'Failed runs',
      pages.paragraph(
          'These runs ended with an error when last tried. The same command '
          'tries them again.'
      ),
      pages.table(['task', 'run', 'log'], rows, num_labels=3) if rows else '',
  )


def _search_blocks(rules: board.Leaderboard) -> list[str]:
  """Returns the section of the search ranges and their reasons."""
  rows = [
      [
          method.name,
          pages.code(' '.join(method.flags)),
          pages.code(f'--{item.flag}'),
          pages.code(item.values),
          pages.Markup(item.reason),
      ]
      for method in rules.methods.values()
      for item in method.search
  ]
  header = ['method', 'flags', 'searched', 'values', 'reason']
  return pages.section('Search ranges', pages.table(header, rows, num_labels=5))


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
        place = [pages.code(rules.commit), f'{rules.time:%F %R}', entries]
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
      [*fields, pages.code(command)]
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
