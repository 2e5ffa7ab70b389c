# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""`--compare`: several methods on one task, in one table and one figure.

The methods are trained as the trials of a sweep, and shown on a report page.
"""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import difflib
import os
import pathlib
from typing import Literal, Optional

from absl import flags
import attrs

from experiments import command_line
from experiments import flag_table
from experiments import folders
from experiments import hparams
from experiments import registry
from experiments import settings as settings_lib
from experiments.flag_table import field
from experiments.leaderboard import board
from experiments.run_results import agreement
from experiments.run_results import inputs
from experiments.run_results import run_folder
from experiments.sweep import running
from experiments.sweep import scores
from experiments.sweep import trials as trials_lib

_COMPARE = 'compare'
# The flags of a comparison that its page repeats.
_SHOWN_FLAGS = ('seeds', 'metric', 'metric_mode')
# The kinds of rows whose names are methods, in addition to the leaderboard's.
_KINDS = (registry.ALGORITHM, registry.CLIENT_OPTIMIZER)


@dataclasses.dataclass(frozen=True)
class _Flags:
  """The flags of a comparison.

  Attributes:
    compare: Train these methods on the task, with the same seeds and flags, and
      show them in one table and one figure, on validation examples if there are
      any, otherwise on test examples. The names are those of the
      leaderboard, of algorithms and of optimizers, such as
      fedadam,delta_sgd,prodigy, and package.module:build_NAME of your own
      rules; the rules have their defaults. fedadam:FILE.flags takes the flags
      of the method from a file, such as best.flags of a sweep, and FILE.flags
      the whole method; LABEL= before either names it in the table and figure.
    seeds: The seeds of every method of --compare, such as 0,1,2. Default: that
      of --seed.
    jobs: The number of runs of --compare at the same time, each on its share of
      the cores. Default: the number of cores, or 1 with a GPU.
    metric: The evaluation metric that --compare shows, as in the column
      evaluation/METRIC of metrics.csv; a name with a slash is a column itself.
      Default: the first of accuracy, recall_at_5 and loss that all have.
    metric_mode: Whether the largest or the smallest value of --metric is the
      best. Default: what its name says; required if that does not tell.
  """

  compare: Sequence[str] = field()
  seeds: Sequence[str] = field()
  jobs: Optional[int] = field(lower_bound=1)
  metric: Optional[str] = None
  metric_mode: Optional[Literal['max', 'min']] = None


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines the flags of a comparison.

  Args:
    flag_values: Where to define them.
  """
  flag_table.define(_Flags, flag_values)


def is_chosen(flag_values: flags.FlagValues = flags.FLAGS) -> bool:
  """Returns whether the flags ask for a comparison.

  Args:
    flag_values: The parsed flags of `experiments.train`.

  Returns:
    Whether --compare is given.

  Raises:
    HparamError: If it is not given, but a flag that needs it is.
  """
  if flag_values[_COMPARE].present:
    return True
  for entry in dataclasses.fields(_Flags):
    if flag_values[entry.name].present:
      raise hparams.HparamError(f'--{entry.name} needs --{_COMPARE}')
  return False


def _list_methods() -> dict[str, board.Method]:
  """Returns all methods by their names in --compare."""
  methods = list(board.load().methods.values())
  methods += [
      board.Method(name, (f'--{kind}={name}',), ())
      for kind in _KINDS
      for name in registry.ROWS[kind]
      if kind == registry.ALGORITHM or name not in registry.FIXED
  ]
  found: dict[str, board.Method] = {}
  for method in methods:
    found.setdefault(board.to_key(method.name), method)
  return found


def find_methods(entries: Sequence[str]) -> list[board.Method]:
  """Returns the methods of these entries.

  Args:
    entries: Names of the leaderboard, of algorithms or of optimizers, in which
      '_' is the same as '-' and case does not matter, and the places of your
      own rules; with labels and files, see `registry.own`.

  Returns:
    The methods by their labels, without repetitions.

  Raises:
    HparamError: If a method is unknown, with the known ones; if a file does not
      fit; if two different methods have one label.
  """
  known = _list_methods()
  found: dict[str, board.Method] = {}
  for entry in map(registry.read_entry, entries):
    method = _find_method(entry, known)
    # Runs are in folders of these names.
    slug = folders.to_slug(method.name)
    other = found.setdefault(slug, method)
    if other.flags != method.flags:
      names = method.name
      if other.name != names:
        names = f'{other.name} and {names}, both in the folder {slug}'
      raise hparams.HparamError(
          f'--{_COMPARE} has two methods named {names}; name one of them, as '
          f'in LABEL={entry.name or entry.flagfile}'
      )
  return list(found.values())


def _find_method(
    entry: registry.Entry, known: Mapping[str, board.Method]
) -> board.Method:
  """Returns the method of an entry, with its label and flags."""
  of_file = {} if entry.flagfile is None else _read_file(entry.flagfile)
  if not entry.name and of_file:
    name = entry.label or entry.file_label
    return board.Method(name, tuple(of_file.values()), ())
  method = known.get(board.to_key(entry.name))
  if registry.is_own(entry.name):
    method = board.create_method(registry.kind_of_own(entry.name), entry.name)
  if method is None:
    near = difflib.get_close_matches(
        board.to_key(entry.name), known, cutoff=0.5
    )
    advice = f'did you mean {" or ".join(near)}? ' if near else ''
    raise hparams.HparamError(
        f'--{_COMPARE}={entry.name} is not a method; {advice}the methods are '
        f'{", ".join(known)}'
    )
  label = method.name if not of_file else f'{method.name} ({entry.file_label})'
  own = _by_name(method.flags)
  _check_agree(method, own, of_file, entry)
  added = [text for name, text in of_file.items() if name not in own]
  return attrs.evolve(
      method, name=entry.label or label, flags=(*method.flags, *added)
  )


def _by_name(arguments: Sequence[str]) -> trials_lib.GivenFlags:
  """Returns flags by their names, in one form: '--a=true' as '--a'."""
  values = flags.FlagValues()
  hparams.define(values)
  hparams.define_own(arguments, values)
  hparams.parse(arguments, values)
  return trials_lib.collect_given_flags(values)


def _read_file(path: pathlib.Path) -> trials_lib.GivenFlags:
  """Returns the flags of a file, all of which must be those of a method."""
  if not os.path.isfile(path):
    raise hparams.HparamError(
        f'--{_COMPARE}={path}: there is no such file; give one with one flag '
        'per line, such as best.flags of a sweep'
    )
  given = _by_name([f'--flagfile={path}'])
  for name, text in given.items():
    if not hparams.is_of_method(name):
      raise hparams.HparamError(
          f'--{_COMPARE}={path}: the file sets {text}, which is the same for '
          'all methods; drop it there'
      )
  return given


def _check_agree(
    method: board.Method,
    own: trials_lib.GivenFlags,
    of_file: trials_lib.GivenFlags,
    entry: registry.Entry,
):
  """Raises if a file sets a flag that defines the method to something else."""
  for name, text in of_file.items():
    wanted = own.get(name, text)
    if wanted != text:
      raise hparams.HparamError(
          f'--{_COMPARE}={entry.name}:{entry.flagfile}: {method.name} is '
          f'{wanted}, but the file sets {text}'
      )


def build_trials(
    flag_values: flags.FlagValues = flags.FLAGS,
) -> list[trials_lib.Trial]:
  """Returns the runs of a comparison, after checking their flags.

  Args:
    flag_values: The parsed flags of `experiments.train`.

  Returns:
    The runs, grouped by method.

  Raises:
    HparamError: If a method is unknown, a flag applies to no method, or a
      method does not accept it.
    UserError: If the folder of a run holds a run with other flags.
  """
  methods = find_methods(flag_values[_COMPARE].value or [''])
  for method in methods:
    if flag_values.task in method.not_on:
      raise hparams.HparamError(
          f'--{_COMPARE}={method.name} does not go with '
          f'--{registry.TASK}={flag_values.task}'
      )
  given = trials_lib.collect_given_flags(flag_values)
  seeds = trials_lib.read_seeds(flag_values.seeds) or [flag_values.seed]
  if 'seed' in given and flag_values.seeds is not None:
    raise hparams.HparamError('give --seed or --seeds, not both')
  for name in ('seed', 'experiment_name', 'output_dir'):
    given.pop(name, None)
  _watch_validation(given, flag_values)
  _check_are_free(given, methods)
  arguments = _share_flags(given, methods)
  trials = [
      trials_lib.build_trial(
          {'method': method.name},
          arguments[method.name],
          seed=seed,
          output_dir=flag_values.output_dir,
          home=flag_values.experiment_name
          or f'{_label(flag_values.task)}.{_COMPARE}',
          name=folders.to_slug(method.name),
      )
      for method in methods
      for seed in seeds
  ]
  if flag_values.metric:
    scores.is_metric_higher_better(flag_values.metric, flag_values.metric_mode)
  elif flag_values.metric_mode:
    raise hparams.HparamError('--metric_mode needs --metric')
  evaluations = flag_values.evaluations
  if evaluations and settings_lib.CENTRAL not in evaluations:
    raise hparams.HparamError(
        f'--{_COMPARE} compares central evaluations; add '
        f'{settings_lib.CENTRAL} to --evaluations={",".join(evaluations)}'
    )
  _check_folders(trials)
  return trials


def _watch_validation(given: dict[str, str], flag_values: flags.FlagValues):
  """Adds the flag of validation examples, if there are any to evaluate on."""
  name = 'evaluation_data'
  task = registry.ROWS[registry.TASK].get(flag_values.task)
  evaluations = flag_values.evaluations or [settings_lib.CENTRAL]
  # Building the trials raises for an unknown task.
  if name in given or task is None or settings_lib.CENTRAL not in evaluations:
    return
  values = {
      a.name: flag_values[task.flag_name(a)].value for a in task.arguments
  }
  if settings_lib.has_validation(task, values, flag_values.validation_fraction):
    given[name] = f'--{name}={settings_lib.VALIDATION}'


def _label(task: str) -> str:
  """Returns the name of a task; 'wine' of 'docs.examples.wine:WINE'."""
  # Building the trials raises for an unknown task.
  row = registry.ROWS[registry.TASK].get(task)
  return task if row is None else row.label


def _check_are_free(
    given: trials_lib.GivenFlags, methods: Iterable[board.Method]
):
  """Raises if a flag is given that a method sets itself."""
  for method in methods:
    for name, text in _by_name(method.flags).items():
      if given.get(name, text) != text:
        raise hparams.HparamError(
            f'--{_COMPARE}={method.name} already sets '
            f'{" ".join(method.flags)}; drop {given[name]}'
        )


def _share_flags(
    given: trials_lib.GivenFlags, methods: Iterable[board.Method]
) -> dict[str, list[str]]:
  """Returns the flags of each method, without those of rows it does not use.

  Raises:
    HparamError: If no method uses the row of a flag.
  """
  of_rows = hparams.flags_of_rows()
  unused = {name for name in given if name in of_rows}
  shared = {}
  for method in methods:
    values = flags.FlagValues()
    hparams.define(values)
    hparams.parse([*given.values(), *method.flags], values)
    chosen = hparams.choose_rows(values)
    fitting = {
        name
        for name, uses in of_rows.items()
        if any(row is chosen[kind] for kind, row, _ in uses)
    }
    shared[method.name] = [
        text
        for name, text in given.items()
        if name not in of_rows or name in fitting
    ] + list(method.flags)
    unused -= fitting
  for name in given:
    if name in unused:
      owners = ' or '.join(f'--{k}={row.name}' for k, row, _ in of_rows[name])
      raise hparams.HparamError(
          f'--{name} belongs to {owners}, which no method of --{_COMPARE} uses'
      )
  return shared


def _check_folders(trials: Sequence[trials_lib.Trial]):
  """Raises if the folder of a run holds one with other flags."""
  record = trials_lib.Record(trials[0].home)
  for trial in trials:
    recorded = run_folder.read_hparams(trial.folder)
    change = inputs.describe_change(trial.folder, trial.data_dir)
    if change is not None:
      raise command_line.UserError(change)
    if recorded is None or record.is_finished(trial):
      continue
    wanted = agreement.of_arguments(trial.arguments)
    for name, found, value in wanted.find_differences(recorded):
      # The run compares the weights, whose file may have been moved.
      is_moved = name == 'initial_weights' and found and value
      if not is_moved and (name != 'total_rounds' or value < found):
        raise command_line.UserError(
            f'{trial.folder} holds a run with {name}={found}, but {name}='
            f'{value} was given; choose another experiment_name'
        )


def run(flag_values: flags.FlagValues = flags.FLAGS):
  """Trains the methods, and writes and prints a comparison.

  Args:
    flag_values: The parsed flags of `experiments.train`.

  Raises:
    HparamError: If the flags do not fit.
    EnvironmentalError: If runs failed, after the comparison of the others; if
      a file cannot be written.
    UserError: If a folder, or a file in it, is not valid.
    KeyboardInterrupt: After a terminating signal, with how to continue.
  """
  folders.check_of_runs(flag_values)
  trials = build_trials(flag_values)
  num_methods = len({trial.configuration for trial in trials})
  print(
      f'{num_methods} methods, {len(trials)} runs: {trials[0].home}', flush=True
  )
  try:
    results: Sequence[scores.RunResult] = running.run_trials(
        trials, num_at_once=flag_values.jobs
    )
  except running.TrialsFailed as error:
    _write(error.results, flag_values)
    raise
  _write(results, flag_values)


def _command(flag_values: flags.FlagValues) -> str:
  """Returns the command line with the given flags."""
  given = {
      **command_line.given_flags(flag_values, [_COMPARE]),
      **trials_lib.collect_given_flags(flag_values),
      **command_line.given_flags(flag_values, _SHOWN_FLAGS),
  }
  return command_line.build_command('train', given.values())


def _write(results: Sequence[scores.RunResult], flag_values: flags.FlagValues):
  """Writes the page of the methods whose runs are all finished, if any."""
  homes = {
      result.trial.folder.parent: result.trial.labels['method']
      for result in results
  }
  unfinished = {
      result.trial.folder.parent
      for result in results
      if result.status != scores.FINISHED
  }
  paths = [path for path in homes if path not in unfinished]
  if not paths:
    return
  command_line.prepare_libraries()
  # Imported late, as TensorFlow takes seconds that --help and typos can spare.
  from experiments.report import comparison  # pylint: disable=import-outside-toplevel

  home = results[0].trial.home
  # The folder may also have the seeds of another command.
  seeds = {result.trial.seed for result in results}
  with command_line.reporting(run_folder.RunError), folders.locked(home):
    comparison.write_comparison(
        list(map(str, paths)),
        home,
        _command(flag_values),
        kind='method',
        title=_label(flag_values.task),
        seeds=seeds,
        names=[homes[path] for path in paths],
        failed=[homes[path] for path in homes if path in unfinished],
        metric=flag_values.metric,
        metric_mode=flag_values.metric_mode,
    )
