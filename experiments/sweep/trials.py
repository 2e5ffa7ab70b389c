# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trials: runs of `experiments.train` with checked flags."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import hashlib
import json
import os
import pathlib
from typing import Any, Optional

from absl import flags

from experiments import command_line
from experiments import folders
from experiments import hparams
from experiments import preset_flags
from experiments import published
from experiments import registry
from experiments.run_results import agreement
from experiments.run_results import inputs
from experiments.run_results import run_folder
from experiments.sweep import search_spaces
from tff_adaptive import _files

# The folder of a setting of which nothing is swept.
_ONE_SETTING = 'setting'
# File names have at most 255 bytes.
_MAX_SLUG = 200
_MAX_LOG = 250
# Flags that the sweep sets for each trial, and the sweep's own flags for them.
_OF_SWEEP = {'seed': 'seeds', 'experiment_name': 'sweep_name'}

# The values of flags as given, by name: 'seed' and '--seed=0'.
GivenFlags = Mapping[str, str]


# Compared by identity, to be usable as a key.
@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
  """One run of a sweep.

  Attributes:
    labels: The values that identify its configuration in the CSV files: of the
      swept flags, or group, row and column.
    seed: The seed of the run.
    home: The folder of the sweep, with the CSV files.
    folder: The folder of the run.
    arguments: The flags of `experiments.train`.
    hparams: The values of the flags; None for the task's default.
    data_dir: The folder of the data sets. Default: none.
  """

  labels: Mapping[str, str]
  seed: int
  home: pathlib.Path
  folder: pathlib.Path
  arguments: tuple[str, ...]
  hparams: Mapping[str, Any]
  data_dir: Optional[str] = None

  @property
  def name(self) -> str:
    """Its folder, relative to that of the sweep."""
    return self.folder.relative_to(self.home).as_posix()

  @property
  def log(self) -> pathlib.Path:
    """The file of its output, outside the run's folder, which must be new."""
    # The end has the seed and what makes it unique.
    name = self.name.replace('/', '.')[-_MAX_LOG:]
    return self.home / 'logs' / f'{name}.log'

  @property
  def configuration(self) -> tuple[str, ...]:
    """The values that it shares with its trials of other seeds."""
    return tuple(self.labels.values())


def collect_given_flags(flag_values: flags.FlagValues) -> dict[str, str]:
  """Returns the flags of `experiments.train` given on the command line.

  Args:
    flag_values: The parsed flags.

  Returns:
    The texts by name, including those from flagfiles and presets.
  """
  known = flags.FlagValues()
  hparams.define(known)
  return command_line.given_flags(flag_values, known)


def read_given_flags(flag_values: flags.FlagValues) -> dict[str, str]:
  """Returns the flags that were given, if the sweep lets them be set.

  Args:
    flag_values: The parsed flags of the sweep.

  Returns:
    The texts by name.

  Raises:
    HparamError: If only the sweep may set one of them.
  """
  given = collect_given_flags(flag_values)
  check_are_free(given)
  return given


def read_seeds(texts: Optional[Sequence[str]]) -> Optional[list[int]]:
  """Returns the seeds given on the command line, without repetitions.

  Args:
    texts: The value of --seeds, or None.

  Returns:
    The seeds, or None if the flag is not set.

  Raises:
    HparamError: If one is not an integer.
  """
  if texts is None:
    return None
  if not texts or not all(text.isdecimal() for text in texts):
    raise hparams.HparamError(
        f'--seeds takes comma-separated integers, found {",".join(texts)!r}'
    )
  return list(dict.fromkeys(map(int, texts)))


def check_are_free(names: Iterable[str]):
  """Raises if a flag is one that only the sweep may set.

  Args:
    names: The given or swept flags.

  Raises:
    HparamError: If only the sweep may set one of them.
  """
  for name in names:
    if name in _OF_SWEEP:
      raise hparams.HparamError(
          f'--{name} is set by the sweep for every trial, give '
          f'--{_OF_SWEEP[name]} instead'
      )


def to_slug(assignment: search_spaces.Assignment) -> str:
  """Returns the folder name of an assignment.

  Args:
    assignment: The values by flag.

  Returns:
    A name such as 'client_learning_rate=0.1,server_learning_rate=1'; one that
    was shortened or altered ends with a hash.
  """
  text = ','.join(f'{flag}={value}' for flag, value in assignment)
  slug = folders.to_slug(text, kept='=,')
  if slug == text and len(slug) <= _MAX_SLUG:
    return slug
  # The hash distinguishes names that differ in other characters.
  digest = hashlib.sha256(text.encode()).hexdigest()[:8]
  return f'{slug[:_MAX_SLUG]}-{digest}'


def _collect_hparams(
    choices: Mapping[str, hparams.Choice], settings: hparams.Settings
) -> dict[str, Any]:
  """Returns the values of the flags of a trial."""
  found: dict[str, Any] = {
      kind: choice.row.name for kind, choice in choices.items()
  }
  for choice in choices.values():
    for argument in choice.row.arguments:
      if argument.is_hparam and argument.name in choice.given:
        found[choice.row.flag_name(argument)] = choice.given[argument.name]
  # Final evaluations are not hyperparameters, but must have been made.
  found['final_evaluations'] = list(settings.final_evaluations) or None
  return {**settings.hparams(), **found}


def build_trial(
    labels: Mapping[str, str],
    arguments: Sequence[str],
    *,
    seed: int,
    output_dir: str,
    home: str,
    name: str,
) -> Trial:
  """Builds a trial, after checking its flags.

  Args:
    labels: See `Trial`.
    arguments: The flags except the seed and the folder; later ones win.
    seed: The seed.
    output_dir: The folder of all runs.
    home: The folder of the sweep, relative to `output_dir`.
    name: The folder of the run, relative to `home`, without the seed.

  Returns:
    The trial.

  Raises:
    HparamError: If flags conflict, do not exist or have invalid values; names
      the trial.
  """
  folder = f'{home}/{name}/seed_{seed}'
  arguments = (
      *arguments,
      f'--seed={seed}',
      f'--output_dir={output_dir}',
      f'--experiment_name={folder}',
  )
  try:
    choices, settings = published.parse_flags(arguments)
  except flags.Error as error:
    raise hparams.HparamError(
        f'the trial {folder} has invalid flags: {error}'
    ) from error
  root = pathlib.Path(output_dir)
  return Trial(
      dict(labels),
      seed,
      root / home,
      root / folder,
      arguments,
      _collect_hparams(choices, settings),
      settings.data_dir,
  )


def build_search_trials(
    assignments: Sequence[search_spaces.Assignment],
    given: GivenFlags,
    *,
    seeds: Sequence[int],
    output_dir: str,
    sweep_name: str,
    transfer_to: Optional[str] = None,
) -> list[Trial]:
  """Builds the trials of a search, or of its assignments on another task.

  Args:
    assignments: The assignments, which override all other flags.
    given: The flags of every trial.
    seeds: The seeds of every assignment.
    output_dir: The folder of all runs.
    sweep_name: The folder of the sweep, relative to `output_dir`.
    transfer_to: The flagfile or the preset of another task, which overrides the
      given flags; flags that belong only to tasks are then dropped from the
      given ones.

  Returns:
    The trials, grouped by assignment.

  Raises:
    HparamError: See `build_trial`; also if neither file nor preset exist.
  """
  labels, folder, arguments = {}, '', list(given.values())
  if transfer_to is not None:
    path = pathlib.Path(transfer_to)
    flag = 'preset' if transfer_to in preset_flags.load() else 'flagfile'
    # `path.is_file` raises if the name is too long.
    if flag == 'flagfile' and not os.path.isfile(path):
      raise hparams.HparamError(
          f'--transfer_to={transfer_to} does not exist, give a preset, or a '
          'file with one flag per line'
      )
    of_tasks = {
        flag
        for flag, uses in hparams.flags_of_rows().items()
        if all(kind == registry.TASK for kind, _, _ in uses)
    }
    labels, folder = {'transfer_to': path.stem}, f'transfer/{path.stem}/'
    arguments = [t for name, t in given.items() if name not in of_tasks]
    arguments.append(f'--{flag}={transfer_to}')
  return [
      build_trial(
          {**labels, **dict(assignment)},
          [*arguments, *(f'--{flag}={value}' for flag, value in assignment)],
          seed=seed,
          output_dir=output_dir,
          home=sweep_name,
          name=f'{folder}{to_slug(assignment) or _ONE_SETTING}',
      )
      for assignment in assignments
      for seed in seeds
  ]


def build_table_trials(
    table: published.Table,
    given: GivenFlags,
    *,
    seeds: Optional[Sequence[int]],
    output_dir: str,
) -> list[Trial]:
  """Builds the trials of a published table, each in the folder of its cell.

  Args:
    table: The table.
    given: Flags that override those of the cells.
    seeds: The seeds of every cell; None for those of the table.
    output_dir: The folder of all runs.

  Returns:
    The trials, column by column.

  Raises:
    HparamError: See `build_trial`.
  """
  if seeds is None:
    seeds = range(table.seeds)
  is_made_up = given.get('use_synthetic_data') == '--use_synthetic_data'
  data = [] if is_made_up else [f'--data_dir={published.DATA_DIR}']
  return [
      build_trial(
          {'group': cell.group, 'row': cell.row, 'column': cell.column},
          [*data, *(flag.text for flag in cell.flags), *given.values()],
          seed=seed,
          output_dir=output_dir,
          home=f'{cell.paper}/{cell.table}',
          name=cell.experiment_name.rpartition('/')[2],
      )
      for column in table.columns
      for cell in table.cells
      if cell.column == column.name
      for seed in seeds
  ]


def read_json(path: pathlib.Path, kind: type, advice: str) -> Any:
  """Returns the content of a record as a dictionary or a set.

  Args:
    path: The file; without one, the record is empty.
    kind: The type of the content.
    advice: What follows, or what to do, if the file is removed.

  Raises:
    UserError: If the file is damaged.
    EnvironmentalError: If it cannot be read.
  """
  try:
    return kind(json.loads(path.read_text(encoding='utf-8')))
  except FileNotFoundError:
    return kind()
  except OSError as error:
    raise command_line.EnvironmentalError(
        f'could not read {path}: {error.strerror}'
    ) from error
  except (TypeError, ValueError) as error:
    raise command_line.UserError(
        f'{path} is damaged ({error}); remove it, and {advice}'
    ) from error


class Record:
  """The record `sweep.json` of finished trials with their hyperparameters."""

  def __init__(self, home: pathlib.Path):
    """Reads the record, if there is one.

    Args:
      home: The folder of the sweep.

    Raises:
      UserError: If the file is damaged.
      EnvironmentalError: If it cannot be read.
    """
    self._path = home / 'sweep.json'
    self._finished = read_json(
        self._path, dict, 'the sweep reads the files of the runs instead'
    )

  def add(self, trial: Trial):
    """Records a finished trial.

    Args:
      trial: The trial.

    Raises:
      WriteError: If the file cannot be written.
    """
    if self._finished.get(trial.name) == dict(trial.hparams):
      return
    self._finished[trial.name] = dict(trial.hparams)
    text = json.dumps(self._finished, indent=2, sort_keys=True) + '\n'
    _files.write(self._path, text)

  def is_finished(self, trial: Trial) -> bool:
    """Returns whether a trial need not be started.

    A trial whose flags, code or data may have changed is started: then the run
    itself continues, or rejects the change.

    Args:
      trial: The trial.

    Returns:
      True if the record has the trial with the same flags, its folder exists
      and it is not being extended; or, if it is not recorded, if its files show
      that all rounds were trained with these values and plotted.
    """
    recorded = run_folder.read_hparams(trial.folder)
    if recorded is None or _has_changed(trial, recorded):
      return False
    if trial.name in self._finished:
      given = json.loads(json.dumps(dict(trial.hparams)))
      wanted = agreement.of_arguments(trial.arguments)
      goes_on = recorded.get('total_rounds') != wanted.values['total_rounds']
      return self._finished[trial.name] == given and not goes_on
    if trial.hparams['final_evaluations']:
      return False
    last_row = run_folder.read_last_row(trial.folder)
    if last_row.get('round_num', 0) != recorded.get('total_rounds'):
      return False
    if _was_killed_at_its_end(trial.folder):
      return False
    wanted = agreement.of_arguments(trial.arguments)
    return not wanted.find_differences(recorded)


def _has_changed(trial: Trial, recorded: Mapping[str, Any]) -> bool:
  """Returns whether a run began with other code, data or weights."""
  if inputs.describe_change(trial.folder, trial.data_dir) is not None:
    return True
  for kind in registry.RULES:
    row = registry.ROWS[kind].get(trial.hparams.get(kind, ''))
    found = None if row is None else recorded.get(f'{row.label}_file')
    if found not in (None, row and row.digest):
      return True
  path = trial.hparams.get('initial_weights')
  digest = recorded.get('initial_weights_sha256')
  if path is None or digest is None:
    return False
  command_line.prepare_libraries()
  # Imported late, as TensorFlow takes seconds.
  from tff_adaptive.simulation import checkpoints  # pylint: disable=import-outside-toplevel
  from tff_adaptive.simulation import weights_files  # pylint: disable=import-outside-toplevel

  try:
    return weights_files.read_weights(path).digest() != digest
  except FileNotFoundError:  # Nothing to compare.
    return False
  except (checkpoints.CheckpointError, weights_files.WeightsFileError):
    return True


def _was_killed_at_its_end(folder: pathlib.Path) -> bool:
  """Returns whether a run trained all rounds but did not plot them."""
  is_drawn = (folder / 'plots' / 'training.png').exists()
  # Runs that are kept for their numbers have no checkpoints.
  return ((folder / 'checkpoints').exists() and not is_drawn) or any(
      folder.rglob(f'*{_files.TEMPORARY_SUFFIX}')
  )
