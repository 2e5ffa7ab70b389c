# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Compares all algorithms with the same tuning budget and paired seeds.

For example:

  python -m experiments.leaderboard --data_dir=data \
    --output_dir=runs/leaderboard

runs what is not finished, for at most --max_hours, and writes
`results/leaderboard.md`, `.csv`, its pictures and the file of their
curves. The same command continues where an earlier one ended.

  python -m experiments.leaderboard --list

prints what is not run, with command and expected time, and their sum. What is
compared and by which rules is written in
`experiments/presets/leaderboard.yaml`.

A failed run does not stop the others: the page shows its method as failed, the
last lines name the logs, and the exit code is 1.
"""

from collections.abc import Sequence
import dataclasses
import pathlib
from typing import Optional

from absl import flags

from experiments import command_line
from experiments import flag_table
from experiments import folders
from experiments import published
from experiments import registry
from experiments.flag_table import field
from experiments.leaderboard import board
from experiments.leaderboard import execution
from experiments.leaderboard import results as results_lib
from experiments.sweep import running
from experiments.sweep import trials as trials_lib

_SECONDS_PER_HOUR = 3600.0
_PLACES = ('tasks', 'methods', 'data_dir', 'output_dir', 'results_dir')
# Flags that override rules of the data file.
_RULES = ('trials', 'total_rounds', 'num_seeds', 'target', 'margin')


@dataclasses.dataclass
class _Flags:
  """The flags.

  Attributes:
    tasks: The tasks by name; all and default stand for several. Default: those
      of the data file; with --list all. One of your own is
      'package.module:VALUE'.
    methods: The methods by name, likewise. A rule of your own is
      'package.module:build_NAME'.
    trials: The number of trials per method, including its defaults. Default:
      that of the data file.
    total_rounds: The number of rounds of a run. Default: that of the data file.
    num_seeds: The number of final seeds. Default: that of the data file.
    target: The accuracy to reach, in percent. Default: that of the data file,
      or for a task of your own {target:g}.
    margin: The largest loss that does not matter, in points. Default: that of
      the data file, or for a task of your own {margin:g}.
    data_dir: The folder of the data sets; digits needs none.
    output_dir: The folder of all runs.
    results_dir: The folder for the page.
    jobs: The number of parallel runs, each on its share of the cores. Default:
      the number of cores, or 1 with a GPU.
    max_hours: After this time no further run starts; the same command
      continues.
    list: Print the missing runs, tab-separated, without running them.
    dry_run: Print the commands of the tuning trials and exit.
    report_only: Write the page from the finished runs and exit.
  """

  tasks: Optional[Sequence[str]] = None
  methods: Optional[Sequence[str]] = None
  trials: Optional[int] = field(lower_bound=1)
  total_rounds: Optional[int] = field(lower_bound=1)
  num_seeds: Optional[int] = field(lower_bound=1)
  target: Optional[float] = field(lower_bound=0.0)
  margin: Optional[float] = field(lower_bound=0.0)
  data_dir: Optional[str] = None
  output_dir: str = 'runs/leaderboard'
  results_dir: str = 'results'
  jobs: Optional[int] = field(lower_bound=1)
  max_hours: float = field(4.0, lower_bound=0.0)
  list: bool = False
  dry_run: bool = False
  report_only: bool = False


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags."""
  flag_table.define(
      _Flags,
      flag_values,
      target=board.OWN_TASK.target,
      margin=board.OWN_TASK.margin,
  )


def _build_plan(
    flag_values: flags.FlagValues,
    tasks: Optional[Sequence[str]],
    methods: Optional[Sequence[str]],
    data_dir: Optional[str],
) -> results_lib.Plan:
  """Returns the plan of some tasks and methods, by the rules that flags give.

  Args:
    flag_values: The parsed flags.
    tasks: The tasks; None for the default ones.
    methods: The methods; None for the default ones.
    data_dir: The folder of the data sets.
  """
  with command_line.errors_as(command_line.UserError, published.PublishedError):
    rules = board.load().restrict(
        tasks=tasks,
        methods=methods,
        num_seeds=flag_values.num_seeds,
        target=flag_values.target,
        margin=flag_values.margin,
        num_trials=flag_values.trials,
        total_rounds=flag_values.total_rounds,
    )
  given = command_line.given_flags(flag_values, ('results_dir', *_RULES))
  return results_lib.Plan(
      rules, flag_values.output_dir, data_dir, tuple(given.values())
  )


def _check(plan: results_lib.Plan):
  """Raises unless every trial fits, and there is the data that it needs."""
  for name in plan.board.tasks:
    row = registry.ROWS[registry.TASK][name]
    if row.reads_files and plan.data_dir is None:
      raise command_line.UserError(
          f'the task {name} needs --data_dir, the folder of the data sets'
      )
  for pair in plan.pairs:
    plan.tuning(*pair)


def _command(flag_values: flags.FlagValues) -> str:
  """Returns the command line with the given flags."""
  given = command_line.given_flags(flag_values, (*_PLACES, *_RULES))
  return command_line.build_command('leaderboard', given.values())


def _print_list(plan: results_lib.Plan):
  print('\t'.join(execution.HEADER))
  for row in execution.list_missing(results_lib.Results(plan), per_method=True):
    print('\t'.join(row))


def _run(
    plan: results_lib.Plan, flag_values: flags.FlagValues
) -> list[trials_lib.Trial]:
  """Runs what is not finished, says what is left, returns what failed."""
  folders.check_output_dir(flag_values.output_dir)
  folders.check_data_dir(flag_values.data_dir)
  to_do = execution.describe_missing(results_lib.Results(plan))
  if to_do:
    print(to_do, flush=True)
  trials = [trial for pair in plan.pairs for trial in plan.tuning(*pair)]
  ending = execution.run(
      plan,
      num_at_once=flag_values.jobs or running.default_jobs(trials),
      max_seconds=flag_values.max_hours * _SECONDS_PER_HOUR,
  )
  if not ending.in_time:
    left = execution.describe_missing(results_lib.Results(plan))
    print(
        f'Stopped after {flag_values.max_hours:g} hours with '
        f'{left}; the page has what is finished, and the same command '
        'continues.'
    )
  return ending.failed


def _write(plan: results_lib.Plan, flag_values: flags.FlagValues):
  """Writes the page of what is finished."""
  # TensorFlow takes seconds to import: not for --help and not for a typo.
  from experiments.leaderboard import page  # pylint: disable=import-outside-toplevel

  data_dir = flag_values.data_dir or published.DATA_DIR
  catalogue = _build_plan(flag_values, [board.ALL], [board.ALL], data_dir)
  results_dir = pathlib.Path(flag_values.results_dir)
  with folders.locked(results_dir):
    page.write(plan, catalogue, results_dir, _command(flag_values))


def _check_none_failed(failed: Sequence[trials_lib.Trial]):
  """Prints the logs of failed runs, and raises if there are any."""
  for trial in failed:
    print(f'failed: {trial.home.name}/{trial.name}, see {trial.log}')
  if failed:
    raise command_line.EnvironmentalError(
        f'{len(failed)} runs failed, see the logs listed above; the page has '
        'the other runs, and the same command retries the failed ones'
    )


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Runs, lists or reports, according to the flags.

  Args:
    flag_values: The parsed flags.
  """
  tasks, methods = flag_values.tasks, flag_values.methods
  data_dir = flag_values.data_dir
  if flag_values.list or flag_values.report_only:
    # The commands on the page name the folder, although nothing is read.
    data_dir = data_dir or published.DATA_DIR
  if flag_values.list:
    methods = [board.ALL] if methods is None else methods
    tasks = [board.ALL] if tasks is None else tasks
  plan = _build_plan(flag_values, tasks, methods, data_dir)
  _check(plan)
  if flag_values.dry_run:
    for pair in plan.pairs:
      for trial in plan.tuning(*pair):
        print(command_line.build_command('train', trial.arguments))
    return
  command_line.prepare_libraries()
  with command_line.reporting(ValueError):  # A run may be damaged.
    if flag_values.list:
      _print_list(plan)
      return
    failed = [] if flag_values.report_only else _run(plan, flag_values)
    _write(plan, flag_values)
  _check_none_failed(failed)


if __name__ == '__main__':
  define()
  command_line.run(main)
