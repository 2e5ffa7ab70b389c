# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
r"""Runs a search for the best flags, or the cells of published tables.

For example:

  python -m experiments.sweep --sweep_name=rates --task=digits \
      --client_optimizer=sgd --grid=client_learning_rate=0.01,0.1 --seeds=0,1

runs experiments.train for every combination and seed, several in parallel, and
writes results.csv, configurations.csv, best.csv and best.flags to
OUTPUT_DIR/rates. With --table=delta_sgd/table_1 it runs the cells of a paper's
table. Flags of experiments.train apply to every trial. The same command
continues an interrupted sweep.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import Literal, Optional

from absl import flags

from experiments import command_line
from experiments import flag_table
from experiments import folders
from experiments import hparams
from experiments import published
from experiments.flag_table import field
from experiments.sweep import running
from experiments.sweep import scores
from experiments.sweep import search_spaces
from experiments.sweep import searches
from experiments.sweep import trials as trials_lib

_SPACES = ('grid', 'log_grid', 'random')
# Flags of searches, which do not apply to tables.
_OF_SEARCHES = (
    *_SPACES,
    'sweep_name',
    'num_trials',
    'search_seed',
    'select_by',
    'metric',
    'metric_mode',
    'best_per',
    'transfer_to',
)


@dataclasses.dataclass
class _Flags:
  """The flags, besides those of a run and those that select parts of tables.

  Attributes:
    grid: Values of a flag, such as client_learning_rate=0.01,0.1. All
      combinations of all grids are tried. May be repeated.
    log_grid: Powers of ten of a flag, given as exponents from:to:step, such as
      server_learning_rate=-3:1:0.5. May be repeated.
    random: A distribution of a flag: client_learning_rate=log_uniform(1e-3,1),
      uniform(a,b) or choice(x,y,z). --num_trials values are sampled. May be
      repeated.
    table: A published table to run instead of a search, such as
      delta_sgd/table_1. May be repeated.
    num_trials: The number of values to sample for --random.
    search_seed: The seed for sampling --random.
    jobs: The number of parallel trials, each on its share of the cores.
      Default: the number of cores, or 1 with a GPU.
    select_by: The criterion for the best: the mean training loss of the last
      100 rounds, the mean training accuracy of the ten rounds up to round 100,
      the last ten evaluations on --evaluation_data=validation, or, only to
      replicate papers, the last ten on the test data.
    sweep_name: The folder of the sweep in --output_dir.
    metric: The evaluation metric, as in the column evaluation/METRIC of
      metrics.csv; a name with a slash is a column itself.
    metric_mode: Whether the largest or the smallest value of --metric is the
      best. Default: what its name says, such as min for a loss or an error;
      required if it does not tell.
    best_per: A swept flag: choose the best for each of its values.
    transfer_to: Flagfiles or presets of other tasks, with each of which the
      best is also run.
    seeds: The seeds of every trial, or of one setting if nothing is swept, such
      as that of a --flagfile. Default: 0; for a table, as many as in the paper.
    dry_run: Print the commands without running them.
  """

  grid: Sequence[str] = field((), repeated=True)
  log_grid: Sequence[str] = field((), repeated=True)
  random: Sequence[str] = field((), repeated=True)
  table: Sequence[str] = field((), repeated=True)
  num_trials: int = field(10, lower_bound=1)
  search_seed: int = field(0, lower_bound=0)
  jobs: Optional[int] = field(lower_bound=1)
  select_by: str = field(
      scores.TRAIN_LOSS.name, enum_values=tuple(scores.SELECTIONS)
  )
  sweep_name: Optional[str] = None
  metric: str = 'accuracy'
  metric_mode: Optional[Literal['max', 'min']] = None
  best_per: Optional[str] = None
  transfer_to: Sequence[str] = ()
  seeds: Optional[Sequence[str]] = None
  dry_run: bool = False


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags."""
  hparams.define(flag_values)
  flags.adopt_module_key_flags(hparams, flag_values)
  for table in (_Flags, published.AxisFlags):
    flag_table.define(table, flag_values)


def _build_search(flag_values: flags.FlagValues) -> searches.Search:
  """Returns the search that the flags describe."""
  for axis in published.AXES:
    if flag_values[axis].value:
      raise hparams.HparamError(f'--{axis} needs --table')
  if not any(flag_values[name].value for name in (*_SPACES, 'seeds')):
    raise hparams.HparamError(
        'nothing to sweep: give --grid, --log_grid, --random or --table, or'
        ' --seeds to run one setting'
    )
  for name in ('num_trials', 'search_seed'):
    if flag_values[name].present and not flag_values.random:
      raise hparams.HparamError(f'--{name} needs --random')
  if not flag_values.sweep_name:
    raise hparams.HparamError(
        'a search needs --sweep_name, the name of its folder in --output_dir'
    )
  assignments = search_spaces.build_assignments(
      grids=flag_values.grid,
      log_grids=flag_values.log_grid,
      randoms=flag_values.random,
      num_trials=flag_values.num_trials,
      search_seed=flag_values.search_seed,
  )
  return searches.build_search(
      assignments,
      trials_lib.read_given_flags(flag_values),
      seeds=trials_lib.read_seeds(flag_values.seeds) or [0],
      output_dir=flag_values.output_dir,
      sweep_name=flag_values.sweep_name,
      selection=scores.SELECTIONS[flag_values.select_by],
      metric=flag_values.metric,
      metric_mode=flag_values.metric_mode,
      best_per=flag_values.best_per,
      transfer_to=flag_values.transfer_to,
  )


def _build_tables(flag_values: flags.FlagValues) -> list[trials_lib.Trial]:
  """Returns the trials of the tables that the flags name."""
  for name in _OF_SEARCHES:
    if flag_values[name].present:
      raise hparams.HparamError(
          f'--{name} is for searches and cannot be combined with --table: drop '
          'one of them'
      )
  given = trials_lib.read_given_flags(flag_values)
  with command_line.errors_as(command_line.UserError, published.PublishedError):
    named = map(published.find_table, flag_values.table)
    tables = published.restrict(named, flag_values)
  found = {}
  for table in tables:
    for trial in trials_lib.build_table_trials(
        table,
        given,
        seeds=trials_lib.read_seeds(flag_values.seeds),
        output_dir=flag_values.output_dir,
    ):
      # A figure may show the runs of a table that is also named.
      found[trial.folder] = trial
  return list(found.values())


def _run_tables(
    trials: Sequence[trials_lib.Trial], *, num_at_once: Optional[int]
):
  """Runs the cells of tables and writes a results.csv for each.

  Runs that a table shows but another one owns are in the owner's file only,
  since the metrics may differ.

  Args:
    trials: The trials, each in the folder of the table that owns it.
    num_at_once: The number of parallel trials.
  """
  tables = {
      home: published.find_table(f'{home.parent.name}/{home.name}')
      for home in dict.fromkeys(trial.home for trial in trials)
  }

  def measure(trial: trials_lib.Trial) -> scores.RunResult:
    compared = tables[trial.home].measure(
        trial.labels['column'], trial.labels['group']
    )
    return scores.measure(
        trial,
        metric=compared.metric,
        higher_is_better=compared.higher_is_better,
    )

  def write(results: Sequence[scores.RunResult]):
    for home in tables:
      searches.write_results(
          home / 'results.csv',
          [result for result in results if result.trial.home == home],
          keep_others=True,
      )

  running.run_trials(
      trials, measure_fn=measure, write=write, num_at_once=num_at_once
  )
  for home in tables:
    print(f'results: {home / "results.csv"}')


def main(flag_values: flags.FlagValues = flags.FLAGS):
  """Runs the search or the tables that the flags describe.

  Args:
    flag_values: The parsed flags.
  """
  run: Callable[..., None]
  if flag_values.table:
    trials: Sequence[trials_lib.Trial] = _build_tables(flag_values)
    run = functools.partial(_run_tables, trials)
  else:
    search = _build_search(flag_values)
    trials = search.trials
    run = functools.partial(searches.run, search)
  if flag_values.dry_run:
    for trial in trials:
      print(command_line.build_command('train', trial.arguments))
    return
  needs_data = flag_values.table and not flag_values.use_synthetic_data
  folders.check_of_runs(flag_values, published.DATA_DIR if needs_data else None)
  command_line.prepare_libraries()
  run(num_at_once=flag_values.jobs)


if __name__ == '__main__':
  define()
  command_line.run(main, hparams.define_own)
