# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A trial: one run of `experiments.train`, with its flags checked."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import hashlib
import json
import pathlib
from typing import Any, Optional

from absl import flags

from experiments import command_line
from experiments import folders
from experiments import hparams
from experiments import published
from experiments import registry
from experiments.run_results import agreement
from experiments.run_results import run_folder
from experiments.sweep import search_spaces
from tff_adaptive import _files

# File systems end names at 255 bytes.
_MAX_SLUG = 200
# Flags that only the sweep sets, and the flags of the sweep for them.
_OF_SWEEP = {'seed': 'seeds', 'experiment_name': 'sweep_name'}

# The values of flags as given, by name: 'seed' and '--seed=0'.
GivenFlags = Mapping[str, str]


# Compared by identity, so that it can be a key.
@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
  """One run.

  Attributes:
    labels: The columns of the CSV files that tell its configuration from the
      others: the flags that are swept, or group, row and column.
    seed: The seed of the run.
    home: The folder of its sweep, which has the CSV files.
    folder: The folder of the run.
    arguments: The flags of `experiments.train`.
    hparams: The values of the flags; None is the task's default.
  """

  labels: Mapping[str, str]
  seed: int
  home: pathlib.Path
  folder: pathlib.Path
  arguments: tuple[str, ...]
  hparams: Mapping[str, Any]

  @property
  def name(self) -> str:
    """Its folder as seen from that of its sweep."""
    return self.folder.relative_to(self.home).as_posix()

  @property
  def log(self) -> pathlib.Path:
    """The file of its output; the folder of the run must be new."""
    return self.home / 'logs' / f'{self.name.replace("/", ".")}.log'

  @property
  def configuration(self) -> tuple[str, ...]:
    """The values that it shares with the same trial of other seeds."""
    return tuple(self.labels.values())


def collect_given_flags(flag_values: flags.FlagValues) -> dict[str, str]:
  """Returns the flags of `experiments.train` that a command line gave.

  Args:
    flag_values: The parsed flags.

  Returns:
    The texts by name; those of flagfiles are among them.
  """
  known = flags.FlagValues()
  hparams.define(known)
  return {
      name: flag_values[name].serialize()
      for name in known
      if flag_values[name].present
  }


def read_given_flags(flag_values: flags.FlagValues) -> dict[str, str]:
  """Returns the same, if none of them is the sweep's to give.

  Args:
    flag_values: The parsed flags of the sweep.

  Returns:
    The texts by name.

  Raises:
    HparamError: If one of them is the sweep's to give.
  """
  given = collect_given_flags(flag_values)
  check_are_free(given)
  return given


def read_seeds(texts: Optional[Sequence[str]]) -> Optional[list[int]]:
  """Returns the seeds that a command line gave, each once.

  Args:
    texts: The value of --seeds, or None.

  Returns:
    The seeds; None if none were given.

  Raises:
    HparamError: If they are no whole numbers.
  """
  if texts is None:
    return None
  if not texts or not all(text.isdecimal() for text in texts):
    raise hparams.HparamError(
        '--seeds takes whole numbers with commas between them, found '
        f'{",".join(texts)!r}'
    )
  return list(dict.fromkeys(map(int, texts)))


def check_are_free(names: Iterable[str]):
  """Raises if a flag is the sweep's to give.

  Args:
    names: The flags that are given or swept.

  Raises:
    HparamError: If the sweep sets one of them for every trial.
  """
  for name in names:
    if name in _OF_SWEEP:
      raise hparams.HparamError(
          f'--{name} is given to every trial by the sweep, give '
          f'--{_OF_SWEEP[name]} in its place'
      )


def to_slug(assignment: search_spaces.Assignment) -> str:
  """Returns the name of the folder of an assignment.

  Args:
    assignment: The values by flag.

  Returns:
    As 'client_learning_rate=0.1,server_learning_rate=1'; one that is too long
    for a folder ends in a hash of it.
  """
  text = ','.join(f'{flag}={value}' for flag, value in assignment)
  slug = folders.to_slug(text, kept='=,')
  if slug == text and len(slug) <= _MAX_SLUG:
    return slug
  # So that two that differ in other characters stay apart.
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
  # Final evaluations are no hyperparameters, but must have been made.
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
  """Returns a trial, if its flags fit.

  Args:
    labels: As in `Trial`.
    arguments: The flags but for the seed and the folder; later ones win.
    seed: The seed.
    output_dir: The folder of all runs.
    home: The folder of the sweep in it.
    name: The folder of the run in that, without the seed.

  Returns:
    The trial.

  Raises:
    HparamError: If two flags do not fit, there is no such flag, or not of this
      value; names the trial.
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
        f'the trial {folder} does not fit: {error}'
    ) from error
  root = pathlib.Path(output_dir)
  return Trial(
      dict(labels),
      seed,
      root / home,
      root / folder,
      arguments,
      _collect_hparams(choices, settings),
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
  """Returns the trials of a search, or of its assignments on another task.

  Args:
    assignments: The assignments; they win over all other flags.
    given: The flags of every trial.
    seeds: The seeds of every assignment.
    output_dir: The folder of all runs.
    sweep_name: The folder of the sweep in it.
    transfer_to: The flagfile of another task, which wins over the given flags;
      those that only a task has belong to the first one and are left out.

  Returns:
    The trials, the seeds of an assignment together.

  Raises:
    HparamError: As `build_trial`; also if there is no such file.
  """
  labels, folder, arguments = {}, '', list(given.values())
  if transfer_to is not None:
    path = pathlib.Path(transfer_to)
    if not path.is_file():
      raise hparams.HparamError(
          f'--transfer_to={transfer_to} is not there, give a file with one '
          'flag a line'
      )
    of_tasks = {
        flag
        for flag, uses in hparams.flags_of_rows().items()
        if all(kind == registry.TASK for kind, _, _ in uses)
    }
    labels, folder = {'transfer_to': path.stem}, f'transfer/{path.stem}/'
    arguments = [t for name, t in given.items() if name not in of_tasks]
    arguments.append(f'--flagfile={transfer_to}')
  return [
      build_trial(
          {**labels, **dict(assignment)},
          [*arguments, *(f'--{flag}={value}' for flag, value in assignment)],
          seed=seed,
          output_dir=output_dir,
          home=sweep_name,
          name=f'{folder}{to_slug(assignment)}',
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
  """Returns the trials of a published table, each in the place of its cell.

  Args:
    table: The table.
    given: Flags that win over those of the cells.
    seeds: The seeds of every cell; None for those of the table.
    output_dir: The folder of all runs.

  Returns:
    The trials, column by column.

  Raises:
    HparamError: As `build_trial`.
  """
  if seeds is None:
    seeds = range(table.seeds)
  data = [] if 'use_synthetic_data' in given else ['--data_dir=data']
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


class Record:
  """`sweep.json`: the trials that ended well, with their hyperparameters."""

  def __init__(self, home: pathlib.Path):
    """Reads the record, if there is one.

    Args:
      home: The folder of the sweep.

    Raises:
      UserError: If the file is damaged.
    """
    self._path = home / 'sweep.json'
    try:
      self._finished = json.loads(self._path.read_text(encoding='utf-8'))
    except FileNotFoundError:
      self._finished = {}
    except ValueError as error:
      raise command_line.UserError(
          f'{self._path} is damaged ({error}); remove it, and what the runs '
          'have written counts'
      ) from error

  def add(self, trial: Trial):
    """Records that a trial has ended well.

    Args:
      trial: The trial.

    Raises:
      WriteError: If the file cannot be written.
    """
    if self._finished.get(trial.name) == dict(trial.hparams):
      return
    self._finished[trial.name] = dict(trial.hparams)
    text = json.dumps(self._finished, indent=2, sort_keys=True) + '\n'
    with _files.replacing(self._path) as file:
      file.write(text.encode())

  def is_finished(self, trial: Trial) -> bool:
    """Returns whether a trial needs no start.

    It does where flags may have changed: then the run itself continues, or
    refuses.

    Args:
      trial: The trial.

    Returns:
      Whether the record has it with the same flags and its folder is there,
      and not on the way to more rounds; or, without a record of it, its files
      say that all rounds were trained with these values, and drawn.
    """
    recorded = run_folder.read_hparams(trial.folder)
    if recorded is None:
      return False
    if trial.name in self._finished:
      given = json.loads(json.dumps(dict(trial.hparams)))
      goes_on = recorded.get('total_rounds') != _total_rounds(trial)
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


def _was_killed_at_its_end(folder: pathlib.Path) -> bool:
  """Returns whether a run has trained all rounds and not drawn them."""
  is_drawn = (folder / 'plots' / 'training.png').exists()
  # Of runs that are kept for their numbers there are no checkpoints.
  return ((folder / 'checkpoints').exists() and not is_drawn) or any(
      folder.rglob(f'*{_files.TEMPORARY_SUFFIX}')
  )


def _total_rounds(trial: Trial) -> int:
  """Returns the rounds that a trial is to have; not given, its task says."""
  given = trial.hparams['total_rounds']
  if given is not None:  # The task takes a while to look up.
    return given
  return agreement.of_arguments(trial.arguments).values['total_rounds']
