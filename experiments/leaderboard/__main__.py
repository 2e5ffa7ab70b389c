# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Compares all algorithms: the same budget to tune, then paired seeds.

For example:

  python -m experiments.leaderboard --tasks=digits,mnist --data_dir=data \
    --output_dir=runs/leaderboard

runs what is not finished, no longer than --max_hours, and writes
`results/leaderboard.md`, `.html`, `.csv` and its pictures. The same
command goes on where an earlier one ended.

  python -m experiments.leaderboard --list

prints what is not run, with command and expected time. What is compared and by
which rules is written in `experiments/presets/leaderboard.yaml`.

A run that fails leaves the others alone: the page shows its method as failed,
the last lines name the logs, and the exit code is 1.
"""

from collections.abc import Sequence
import pathlib
import shlex
from typing import Optional

from absl import flags

from experiments import command_line
from experiments import folders
from experiments import published
from experiments import registry
from experiments.leaderboard import board
from experiments.leaderboard import execution
from experiments.leaderboard import results as results_lib
from experiments.sweep import running
from experiments.sweep import trials as trials_lib

_DEFAULT_TASKS = ('digits', 'mnist')
_SECONDS_PER_HOUR = 3600.0
# In commands, where none reads data.
_DATA_DIR = 'data'
_PLACES = ('tasks', 'methods', 'data_dir', 'output_dir', 'results_dir')
# They take the place of rules of the data file.
_RULES = ('trials', 'total_rounds', 'num_seeds', 'target', 'margin')


def _define_board(flag_values: flags.FlagValues):
  """Defines the flags of what is compared."""
  flags.DEFINE_list(
      'tasks',
      None,
      f'The tasks. Default: {",".join(_DEFAULT_TASKS)}; with --list all. One '
      "of your own is 'package.module:VALUE'.",
      flag_values=flag_values,
  )
  flags.DEFINE_list(
      'methods',
      None,
      'The methods by name, or all. Default: the ten of the data file; with '
      '--list all.',
      flag_values=flag_values,
  )
  for name, text in (
      ('trials', 'The trials of a method, its defaults among them.'),
      ('total_rounds', 'The rounds of a run.'),
      ('num_seeds', 'How many final seeds there are.'),
  ):
    flags.DEFINE_integer(
        name,
        None,
        f'{text} Default: as the data file says.',
        lower_bound=1,
        flag_values=flag_values,
    )
  for name, text in (
      ('target', 'The accuracy to reach, in percent.'),
      ('margin', 'The loss that a user would not notice, in points.'),
  ):
    flags.DEFINE_float(
        name,
        None,
        f'{text} Default: as the data file says; of a task of your own '
        f'{getattr(board.OWN_TASK, name):g}.',
        lower_bound=0.0,
        flag_values=flag_values,
    )


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags.

  Args:
    flag_values: Where to define them.
  """
  _define_board(flag_values)
  for name, default, text in (
      ('data_dir', None, 'The folder of the data sets; digits needs none.'),
      ('output_dir', 'runs/leaderboard', 'The folder of all runs.'),
      ('results_dir', 'results', 'The folder that gets the page.'),
  ):
    flags.DEFINE_string(name, default, text, flag_values=flag_values)
  flags.DEFINE_integer(
      'jobs',
      None,
      'How many runs work at once, each on its share of the cores. Default: as '
      'many as there are cores; one with a GPU.',
      lower_bound=1,
      flag_values=flag_values,
  )
  flags.DEFINE_float(
      'max_hours',
      4.0,
      'After this time no other run begins; the same command goes on.',
      lower_bound=0.0,
      flag_values=flag_values,
  )
  for name, text in (
      ('list', 'Print what is not run, tab separated, and run nothing.'),
      ('dry_run', 'Print the commands of the tuning trials, and run nothing.'),
      ('report_only', 'Write the page from what is finished, and run nothing.'),
  ):
    flags.DEFINE_boolean(name, False, text, flag_values=flag_values)


def _build_plan(
    flag_values: flags.FlagValues,
    tasks: Optional[Sequence[str]],
    methods: Optional[Sequence[str]],
    data_dir: Optional[str],
) -> board.Plan:
  """Returns the plan of some tasks and methods, by the rules that flags give.

  Args:
    flag_values: The parsed flags.
    tasks: The tasks; None for all.
    methods: The methods; None for the default ones.
    data_dir: The folder of the data sets.
  """
  with command_line.errors_as(command_line.UserError, published.PublishedError):
    rules = board.load()
  rules = rules.restrict(
      tasks=tasks,
      methods=methods,
      num_seeds=flag_values.num_seeds,
      target=flag_values.target,
      margin=flag_values.margin,
      num_trials=flag_values.trials,
      total_rounds=flag_values.total_rounds,
  )
  given = tuple(_serialize(flag_values, _RULES))
  return board.Plan(rules, flag_values.output_dir, data_dir, given)


def _check(plan: board.Plan):
  """Raises unless every trial fits, and there is the data that it needs."""
  for name in plan.board.tasks:
    row = registry.ROWS[registry.TASK][name]
    if 'data_dir' in row.supplied and plan.data_dir is None:
      raise command_line.UserError(
          f'the task {name} needs --data_dir, the folder of the data sets'
      )
  for pair in plan.pairs:
    plan.tuning(*pair)


def _serialize(
    flag_values: flags.FlagValues, names: Sequence[str]
) -> list[str]:
  """Returns the flags that were given, as they are on a command line."""
  return [
      flag_values[name].serialize()
      for name in names
      if flag_values[name].present
  ]


def _command(flag_values: flags.FlagValues) -> str:
  """Returns the command line with what was given."""
  given = _serialize(flag_values, (*_PLACES, *_RULES))
  return shlex.join(['python', '-m', 'experiments.leaderboard', *given])


def _print_list(plan: board.Plan):
  print('\t'.join(execution.HEADER))
  for row in execution.list_missing(results_lib.Results(plan), per_method=True):
    print('\t'.join(row))


def _run(
    plan: board.Plan, flag_values: flags.FlagValues
) -> list[trials_lib.Trial]:
  """Runs what is not finished, says what is left, returns what failed."""
  trials = [trial for pair in plan.pairs for trial in plan.tuning(*pair)]
  ending = execution.run(
      plan,
      num_at_once=flag_values.jobs or running.default_jobs(trials),
      max_seconds=flag_values.max_hours * _SECONDS_PER_HOUR,
      command=running.TRAIN,
  )
  if not ending.in_time:
    print(
        f'Stopped after {flag_values.max_hours:g} hours with runs to go; the '
        'page has what is finished, and the same command goes on.'
    )
  return ending.failed


def _write(plan: board.Plan, flag_values: flags.FlagValues):
  """Writes the page of what is finished."""
  # TensorFlow takes seconds to import: not for --help and not for a typo.
  from experiments.leaderboard import page  # pylint: disable=import-outside-toplevel

  data_dir = flag_values.data_dir or _DATA_DIR
  catalogue = _build_plan(flag_values, None, [board.ALL], data_dir)
  results_dir = pathlib.Path(flag_values.results_dir)
  with folders.locked(results_dir):
    page.write(plan, catalogue, results_dir, _command(flag_values))


def _check_none_failed(failed: Sequence[trials_lib.Trial]):
  """Raises if runs failed, once the page is written; prints their logs."""
  for trial in failed:
    print(f'failed: {trial.home.name}/{trial.name}, see {trial.log}')
  if failed:
    raise command_line.EnvironmentalError(
        f'{len(failed)} runs failed, listed above with their logs; the page '
        'has the others, and the same command tries them again'
    )


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Runs, lists or reports, as the flags say.

  Args:
    flag_values: The parsed flags.
  """
  tasks, methods = flag_values.tasks, flag_values.methods
  data_dir = flag_values.data_dir
  if flag_values.list or flag_values.report_only:
    # Commands of the page name the folder, though nothing is read.
    data_dir = data_dir or _DATA_DIR
  if flag_values.list:
    methods = methods or [board.ALL]
  else:
    tasks = tasks or _DEFAULT_TASKS
  plan = _build_plan(flag_values, tasks, methods, data_dir)
  _check(plan)
  if flag_values.dry_run:
    for pair in plan.pairs:
      for trial in plan.tuning(*pair):
        print(shlex.join([*running.TRAIN, *trial.arguments]))
    return
  command_line.prepare_libraries()
  with (
      command_line.errors_as(command_line.EnvironmentalError, OSError),
      # A run may be damaged.
      command_line.errors_as(command_line.UserError, ValueError),
  ):
    if flag_values.list:
      _print_list(plan)
      return
    failed = [] if flag_values.report_only else _run(plan, flag_values)
    _write(plan, flag_values)
  _check_none_failed(failed)


if __name__ == '__main__':
  define()
  command_line.run(main)
