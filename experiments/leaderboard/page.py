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
"""The page of the leaderboard."""

from collections.abc import Mapping, Sequence
import pathlib
from typing import Optional

from experiments import pages
from experiments.leaderboard import advice
from experiments.leaderboard import definitions
from experiments.leaderboard import execution
from experiments.leaderboard import listing
from experiments.leaderboard import results as results_lib
from experiments.run_results import provenance
from experiments.sweep import trials as trials_lib

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


def build_blocks(results: results_lib.Results) -> list[pages.Block]:
  """Returns the section, as far as there are runs.

  Args:
    results: What was measured.

  Returns:
    For every task the expected scores after fewer trials, and the losses of
    defaults and of values of other tasks.
  """
  trials = _trials_table(results)
  gaps = _gaps_table(results)
  blocks: list[pages.Block] = []
  for legend, table in ((_TRIALS_LEGEND, trials), (_GAPS_LEGEND, gaps)):
    if table is not None:
      blocks += [pages.Paragraph(legend), table]
  return [pages.Heading('What not tuning costs'), *blocks] if blocks else []


def _trials_table(results: results_lib.Results) -> Optional[pages.Table]:
  rows = []
  for task, method in results.plan.pairs:
    trials = results.trial_scores(task, method)
    if trials is not None:
      expected = results_lib.expected_scores(trials)
      rows.append(
          [
              task,
              method,
              advice.format_score(trials[0].test),
              *map(advice.format_score, expected),
          ]
      )
  if not rows:
    return None
  count = max(map(len, rows)) - 3
  header = [
      'task',
      'method',
      'defaults',
      *(f'n = {i + 1}' for i in range(count)),
  ]
  # Methods with a choice of few values have fewer trials.
  rows = [row + [advice.NONE] * (len(header) - len(row)) for row in rows]
  return pages.Table(header, rows, num_labels=2)


def _gaps_table(results: results_lib.Results) -> Optional[pages.Table]:
  tasks = list(results.plan.board.tasks)
  rows = []
  for task in tasks:
    tuned = results.tuned(task)
    others = [results.defaults(task)]
    others += [
        {} if source == task else results.carried(task, source)
        for source in tasks
    ]
    for method, outcome in tuned.items():
      rows.append([task, method, *_gaps(method, outcome, others)])
  if not rows:
    return None
  header = ['task', 'method', 'tuned', 'defaults']
  if len(tasks) == 1:
    return pages.Table(header, [row[:4] for row in rows], num_labels=2)
  header += [f'tuned on {task}' for task in tasks]
  return pages.Table(header, rows, num_labels=2)


def _gaps(
    method: str,
    tuned: results_lib.Outcome,
    others: Sequence[Mapping[str, results_lib.Outcome]],
) -> list[str]:
  """Returns the tuned score, and what the others differ from it."""
  mean = sum(tuned.scores.values()) / len(tuned.scores)
  texts = [advice.format_score(mean)]
  for outcomes in others:
    other = outcomes.get(method)
    texts.append(
        advice.NONE
        if other is None
        else advice.format_interval(
            results_lib.compare(other.scores, tuned.scores)
        )
    )
  return texts


_HEADER = (
    'method',
    'metric (%)',
    'to the best',
    'verdict',
    'rounds to target',
    's a round',
    's to target',
    'gradients to target',
    'gradients',
    'MB to target',
    'MB up',
    'MB down',
    'chosen',
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


def build_page(
    results: results_lib.Results,
    catalogue: results_lib.Results,
    pictures: Mapping[pathlib.Path, str],
    command: str,
) -> pages.Page:
  """Returns the page.

  Args:
    results: What was measured of the tasks and methods that are compared.
    catalogue: The same of all tasks and methods, for what was not run.
    pictures: What the pictures show, by their files.
    command: What makes the page.

  Returns:
    The page.
  """
  shown = [pages.Figure(path, text, command) for path, text in pictures.items()]
  failed = execution.find(results)
  blocks: list[pages.Block] = [
      pages.Paragraph(_describe(results.plan.board)),
      pages.Heading('Which method to pick'),
      *map(pages.Paragraph, advice.advise(results)),
      *map(pages.Paragraph, _warn_of(failed)),
      pages.Heading('How to read the tables'),
      pages.Paragraph(_LEGEND),
      pages.Paragraph(_CAVEATS),
  ]
  for task in results.plan.board.tasks.values():
    blocks += _task_blocks(results, task, failed)
  blocks += build_blocks(results)
  if shown:
    blocks += [pages.Heading('Figures'), *shown]
  blocks += _failure_blocks(failed)
  blocks += _search_blocks(results.plan.board)
  blocks += _missing_blocks(catalogue)
  blocks += provenance.build_blocks(results.runs(), command)
  return pages.Page('Leaderboard: one budget for all algorithms', blocks)


def _describe(board: definitions.Leaderboard) -> str:
  """Returns the rules."""
  rules = board.protocol
  return (
      f'Every method trains {rules.total_rounds} rounds and has '
      f'{rules.num_trials} trials with the seed {rules.tuning_seed}: the '
      "library's defaults and random draws from its ranges (search seed "
      f'{rules.search_seed}). The trial with the least training loss in the '
      f'last {rules.selection_rounds} rounds is chosen, without a look at the '
      'test data, and run with the final seeds. That loss is the one that '
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
      f'{execution.method_of(trial)} on {trial.home.name}' for trial in failed
  )
  return [
      'Runs of these failed, so that they may be missing above: '
      f'{", ".join(names)}.'
  ]


def _task_blocks(
    results: results_lib.Results,
    task: definitions.Task,
    failed: Sequence[trials_lib.Trial],
) -> list[pages.Block]:
  """Returns the section of a task."""
  outcomes = results.tuned(task.name)
  failing = dict.fromkeys(
      execution.method_of(trial)
      for trial in failed
      if trial.home.name == task.name
  )
  flags = f' Flags: `{" ".join(task.flags)}`.' if task.flags else ''
  blocks: list[pages.Block] = [
      pages.Heading(f'{task.name}, tuned'),
      pages.Paragraph(
          f'`{task.metric}`, {task.num_seeds} seeds, margin {task.margin:g} '
          f'points, target {task.target:g} %.{flags}'
      ),
  ]
  rows = [
      _row(standing, outcomes[standing.method])
      for standing in results_lib.rank(outcomes, task.margin)
  ]
  rows += [_failed_row(name) for name in failing if name not in outcomes]
  if not rows:
    return [*blocks, pages.Paragraph('No method has all of its runs yet.')]
  return [*blocks, pages.Table(_HEADER, rows)]


def _failed_row(method: str) -> list[str]:
  """Returns the row of a method that has no outcome, as runs of it failed."""
  row = dict.fromkeys(_HEADER, advice.NONE)
  return list({**row, 'method': method, 'verdict': 'failed'}.values())


def _row(
    standing: results_lib.Standing, outcome: results_lib.Outcome
) -> list[str]:
  is_best = standing.verdict is results_lib.Verdict.BEST
  is_good = is_best or standing.verdict is results_lib.Verdict.AS_GOOD
  verdict = standing.verdict.value
  return [
      standing.method,
      advice.format_score(standing.mean, standing.std),
      advice.NONE if is_best else advice.format_interval(standing.difference),
      f'**{verdict}**' if is_good else verdict,
      *map(
          advice.format_number,
          (
              outcome.rounds_to_target,
              outcome.seconds_per_round,
              outcome.seconds_to_target,
              outcome.gradients_to_target,
              outcome.gradients,
              outcome.megabytes_to_target,
              outcome.megabytes_up,
              outcome.megabytes_down,
          ),
      ),
      advice.format_assignment(outcome.assignment),
  ]


def _failure_blocks(failed: Sequence[trials_lib.Trial]) -> list[pages.Block]:
  """Returns the runs that failed, with their logs."""
  if not failed:
    return []
  rows = [
      [trial.home.name, f'`{trial.name}`', f'`{trial.log}`'] for trial in failed
  ]
  return [
      pages.Heading('Failed runs'),
      pages.Paragraph(
          'They ended with an error when they were last tried. The same '
          'command tries them again.'
      ),
      pages.Table(['task', 'run', 'log'], rows, num_labels=3),
  ]


def _search_blocks(board: definitions.Leaderboard) -> list[pages.Block]:
  """Returns what each method searches, and why there."""
  rows = [
      [
          method.name,
          f'`{" ".join(method.flags)}`',
          f'`--{item.flag}`',
          f'`{item.values}`',
          item.reason,
      ]
      for method in board.methods.values()
      for item in method.search
  ]
  return [
      pages.Heading('What was searched'),
      pages.Table(
          ['method', 'flags', 'searched', 'values', 'why'], rows, num_labels=5
      ),
  ]


def _missing_blocks(catalogue: results_lib.Results) -> list[pages.Block]:
  """Returns what was not run, with its command."""
  rows = [
      [
          entry.task,
          entry.methods,
          str(entry.num_runs),
          entry.time,
          f'`{entry.command}`',
      ]
      for entry in listing.list_entries(catalogue, per_method=False)
  ]
  blocks: list[pages.Block] = [pages.Heading('Not run')]
  if rows:
    blocks += [
        pages.Paragraph(
            'Per task how many runs are missing, of all methods. The time is '
            'that of one run after the other at the speed of FedAvg on two '
            'cores; it is unknown where nobody has measured a round.'
        ),
        pages.Table(listing.HEADER, rows, num_labels=5),
    ]
  blocks += [
      pages.Paragraph(f'Not on the leaderboard is `{name}`: {reason}.')
      for name, reason in catalogue.plan.board.excluded.items()
  ]
  return blocks if len(blocks) > 1 else []
