# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares each method of 2025 and 2026 with the one that it should replace.

`python -m tools.head_to_heads` writes docs/results/methods_2026.md from runs of
the leaderboard, in `runs/leaderboard`, with its flags, ranges and draws.
`--train` first makes those that are missing.
"""

import argparse
from collections.abc import (
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
import itertools
import pathlib
import sys
import time
from typing import Optional

import pandas as pd

from experiments import command_line
from experiments import formatting
from experiments import pages
from experiments.leaderboard import board
from experiments.leaderboard import execution
from experiments.leaderboard import results as results_lib
from experiments.leaderboard import views
from experiments.run_results import statistics
from experiments.sweep import running

# A method, and the one that it should replace.
PAIRS = (
    ('FedSLS', 'FedLi-LS'),
    ('FedExpSLS', 'FedLi-LS'),
    ('FedAdamom', 'FedAdam'),
    ('FedAdamom', 'FedAvgM'),
    ('AdGD', 'Delta-SGD'),
    ('Schedule-Free-Polyak-SGD', 'Schedule-Free-SGD'),
    ('Schedule-Free-Polyak-Adam', 'Schedule-Free-AdamW'),
)
# The other methods of these years.
OTHERS = (
    *('FedAvgM-Nesterov', 'GPA', 'Fed-Schedule-Free', 'FedLion', 'FedPAC-SOAP'),
    *('FedPAC-Sophia', 'FedMuon-LMO', 'COCOB', 'Mechanic-SGD', 'Mechanic-Adam'),
    'Schedule-Free-Plus',
)
TASKS = ('digits', 'ag_news', 'mnist')
CSV_HEADER = ('method', 'against', 'task', 'rates', 'difference', 'low', 'high')
_RATES = ('defaults', 'tuned')
_NUM_ROWS = len(PAIRS) * len(_RATES)
_NUM_TRIALS = 6
_NUM_SEEDS = 5
_INTRODUCTION = (
    'The tasks, flags, ranges and draws are those of the '
    '[leaderboard](leaderboard.md): 100 rounds, and of six trials, the first '
    'of which is the defaults, the one with the lowest training loss in the '
    'last 20 rounds. A metric is the mean over the last ten evaluations on the '
    'test data, in percent.'
)
_PAIRS_LEGEND = (
    'The difference of the first method to the second, in points, paired by '
    'seed ({seeds} seeds), with a 95 % t interval: above zero the first is '
    'better. An interval that holds zero means that they **cannot be told '
    'apart**. The intervals are not corrected for their number, and the search '
    'was done once, with one seed: another search may choose other trials.'
)
_DEFAULTS_LEGEND = (
    'The mean ± the standard deviation over the seeds with the defaults and '
    'with the chosen trial, and the difference of the first to the second, '
    'paired by seed, with a 95 % t interval. A method needs no tuning as far '
    'as the whole interval is above minus the margin of the task ({margins}): '
    '**as good**. Zero where the defaults were chosen.'
)


def make_plans(
    output_dir: pathlib.Path,
    data_dir: str,
    tasks: Sequence[str] = TASKS,
) -> tuple[results_lib.Plan, results_lib.Plan]:
  """Returns the plans of the pairs, and of all methods of these years.

  Args:
    output_dir: The folder of the leaderboard's runs.
    data_dir: The folder of the data sets.
    tasks: The tasks. Default: all.
  """

  def build(
      methods: Iterable[str], num_seeds: Optional[int]
  ) -> results_lib.Plan:
    rules = board.load().restrict(
        tasks=tasks,
        methods=tuple(dict.fromkeys(methods)),
        num_trials=_NUM_TRIALS,
        num_seeds=num_seeds,
    )
    return results_lib.Plan(rules, str(output_dir), data_dir)

  return (
      build((name for pair in PAIRS for name in pair), _NUM_SEEDS),
      build((*(first for first, _ in PAIRS), *OTHERS), None),
  )


def _by_seed(runs: pd.DataFrame, method: str) -> Mapping[int, float]:
  """Returns the scores of a method by seed; empty without runs."""
  of_method = runs[runs.method == method]
  return dict(zip(of_method.seed, of_method.score))


def _read(
    results: results_lib.Results,
) -> Mapping[str, Mapping[str, pd.DataFrame]]:
  """Returns the final runs by task, with the defaults and tuned."""
  return {
      task: {
          'defaults': results.defaults(task),
          'tuned': results.tuned(task, budget=_NUM_TRIALS),
      }
      for task in results.plan.board.tasks
  }


def _compare_pairs(results: results_lib.Results) -> pd.DataFrame:
  """Returns the differences of the pairs, whose runs are finished."""
  rows, of_tasks = [], _read(results)
  for first, second in PAIRS:
    for task, found_runs in of_tasks.items():
      for rates, runs in found_runs.items():
        scores, others = _by_seed(runs, first), _by_seed(runs, second)
        if scores and others:
          found = statistics.compare(scores, others)
          rows.append((first, second, task, rates, *found))
  return pd.DataFrame(rows, columns=CSV_HEADER)


def _pair_rows(differences: pd.DataFrame) -> Iterator[Sequence[str]]:
  """Yields a row for each pair and task of the result of `_compare_pairs`."""
  labels = ['method', 'against', 'task']
  for key, of_pair in differences.groupby(labels, sort=False):
    found = {
        row.rates: statistics.Interval(row.difference, row.low, row.high)
        for row in of_pair.itertuples()
    }
    yield [*key, *(_answer(found.get(rates)) for rates in _RATES)]


def _answer(difference: Optional[statistics.Interval]) -> str:
  """Returns a difference with its interval, and what it shows."""
  if difference is None:
    return views.NONE
  text = views.format_interval(difference)
  if difference.low > 0:
    return f'{text} better'
  return f'{text} worse' if difference.high < 0 else text


def _format_scores(scores: Mapping[int, float]) -> str:
  """Returns the mean and the spread over the seeds."""
  if not scores:
    return views.NONE
  values = pd.Series(scores)
  return formatting.format_mean(values.mean(), statistics.std(values), 2)


def _default_rows(
    results: results_lib.Results, tasks: Collection[str]
) -> Iterator[Sequence[str]]:
  """Yields what tuning adds to each method on each of some tasks."""
  of_tasks = _read(results)
  for name, method in results.plan.board.methods.items():
    for task, of_task in results.plan.board.tasks.items():
      if task not in tasks:
        continue
      defaults, tuned = (
          _by_seed(runs, name) for runs in of_tasks[task].values()
      )
      if not (defaults and tuned):
        continue
      found = statistics.compare(defaults, tuned)
      yield [
          name,
          'yes' if method.tuning_free else '',
          task,
          _format_scores(defaults),
          _format_scores(tuned),
          views.format_interval(found),
          statistics.judge(found, of_task.margin).value,
      ]


def _list_missing(methods: Mapping[str, Sequence[str]]) -> Iterator[str]:
  """Yields a paragraph for each task on which methods have not run."""
  for task, names in methods.items():
    if names:
      text = f'Not finished on {task}: {", ".join(names)}.'
      yield pages.paragraph(text)


def write(output_dir: pathlib.Path, data_dir: str, results_dir: pathlib.Path):
  """Writes the page of the tasks on which all pairs are finished.

  Args:
    output_dir: The folder of the leaderboard's runs.
    data_dir: The folder of the data sets.
    results_dir: The folder of the page.
  """
  of_pairs, of_all = map(results_lib.Results, make_plans(output_dir, data_dir))
  differences = _compare_pairs(of_pairs)
  num_rows = differences.task.value_counts()
  done = [task for task in TASKS if num_rows.get(task) == _NUM_ROWS]
  differences = differences[differences.task.isin(done)]
  default_rows = list(_default_rows(of_all, done))
  shown = {(name, task) for name, _, task, *_ in default_rows}
  missing = {
      task: [n for n in of_all.plan.board.methods if (n, task) not in shown]
      for task in TASKS
  }
  margins = ', '.join(
      f'{name} {views.format_points(task.margin)}'
      for name, task in of_all.plan.board.tasks.items()
  )
  blocks = [
      pages.paragraph(_INTRODUCTION),
      pages.heading('Against what they should replace'),
      pages.paragraph(_PAIRS_LEGEND.format(seeds=_NUM_SEEDS)),
      pages.table(
          ('method', 'against', 'task', *_RATES),
          _pair_rows(differences),
          num_labels=3,
      ),
      pages.heading('What tuning adds'),
      pages.paragraph(_DEFAULTS_LEGEND.format(margins=margins)),
      pages.table(
          (
              *('method', 'free', 'task', *_RATES),
              *('difference', 'defaults are'),
          ),
          default_rows,
          num_labels=3,
      ),
      *_list_missing(missing),
      *pages.origin(
          [*of_pairs.runs(), *of_all.runs()],
          command_line.build_command('head_to_heads', (), package='tools'),
      ),
  ]
  title = 'The methods of 2025 and 2026, and what they should replace'
  path = results_dir / 'methods_2026'
  pages.write_page(path, title, blocks)
  formatting.write_csv(
      path.with_suffix('.csv'),
      CSV_HEADER,
      differences.itertuples(index=False),
  )


def _train(output_dir: pathlib.Path, data_dir: str, max_hours: float):
  """Makes the missing runs, those of the pairs first."""
  deadline = time.monotonic() + 3600 * max_hours
  # A task at a time: the leaderboard also tries rates on the other tasks.
  of_tasks = [make_plans(output_dir, data_dir, [task]) for task in TASKS]
  for plan in itertools.chain(*zip(*of_tasks)):
    trials = [trial for pair in plan.pairs for trial in plan.tuning(*pair)]
    execution.run(
        plan,
        num_at_once=running.default_jobs(trials),
        max_seconds=deadline - time.monotonic(),
    )


def main(arguments: Sequence[str]):
  """Trains, if asked to, and writes the page."""
  parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
  parser.add_argument('--train', action='store_true')
  parser.add_argument('--max_hours', type=float, default=4.0)
  parser.add_argument('--data_dir', default='data')
  parser.add_argument(
      '--output_dir',
      type=pathlib.Path,
      default=pathlib.Path('runs/leaderboard'),
  )
  parser.add_argument(
      '--results_dir', type=pathlib.Path, default=pathlib.Path('docs/results')
  )
  given = parser.parse_args(arguments)
  if given.train:
    _train(given.output_dir, given.data_dir, given.max_hours)
  write(given.output_dir, given.data_dir, given.results_dir)


if __name__ == '__main__':
  main(sys.argv[1:])
