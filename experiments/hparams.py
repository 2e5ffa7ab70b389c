# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The flags of a training run, and the hyperparameters read from them.

TensorFlow is not imported here.
"""

from collections.abc import Mapping, Sequence
import dataclasses
import json
from typing import Any, Optional

from absl import flags

from experiments import flag_table
from experiments import preset_flags
from experiments import registry
from experiments import settings as settings_lib
from tff_adaptive import ranges

# The kinds of rows in the default name of a run.
_NAMING_KINDS = (
    registry.TASK,
    registry.ALGORITHM,
    registry.CLIENT_OPTIMIZER,
    registry.SERVER_OPTIMIZER,
)

HparamError = flag_table.HparamError
Settings = settings_lib.Settings


# The default rows; an algorithm may replace some by its own parts.
DEFAULT_ROWS = {
    registry.TASK: 'digits',
    registry.ALGORITHM: 'fed_opt',
    registry.CLIENT_OPTIMIZER: 'delta_sgd',
    registry.SERVER_OPTIMIZER: 'fedavg',
    registry.LOSS_TERM: 'none',
    registry.CLIENT_SCHEDULE: 'constant',
    registry.SERVER_SCHEDULE: 'constant',
    registry.RUNTIME: registry.COMPILED,
}

# The kinds of rows that say where a method is run.
_NO_METHODS = (registry.TASK, registry.RUNTIME)
_NAMES_OF_SETTINGS = frozenset(
    field.name for field in dataclasses.fields(Settings)
)
# A kind, one of its rows, and an argument of the row.
_Use = tuple[str, registry.Row, registry.Argument]


def flags_of_rows() -> dict[str, list[_Use]]:
  """Returns the (kind, row, argument) tuples of each flag."""
  uses: dict[str, list[_Use]] = {}
  for kind, rows in registry.ROWS.items():
    for row in rows.values():
      for argument in row.arguments:
        uses.setdefault(row.flag_name(argument), []).append(
            (kind, row, argument)
        )
  return uses


def _help_of(argument: registry.Argument) -> str:
  """Returns the help of an argument, with its default."""
  default = argument.default
  shown = default if isinstance(default, str) else json.dumps(default)
  ending = 'Required.' if argument.is_required else f'Default {shown}.'
  words = [argument.help.rstrip('.')] if argument.help else []
  if argument.range != ranges.Range():
    words.append(str(argument.range))
  return f'{"; ".join(words)}. {ending}' if words else ending


def _define_argument(name, uses, flag_values):
  """Defines the flag of an argument, which several rows may share."""
  # Rows with the same text share one entry of the help.
  owners: dict[str, list[str]] = {}
  for _, row, argument in uses:
    owners.setdefault(_help_of(argument), []).append(row.label)
  texts = [f'{", ".join(names)}: {text}' for text, names in owners.items()]
  argument = uses[0][2]
  flag_table.define_flag(
      name,
      argument.type,
      ' '.join(texts),
      flag_values,
      choices=argument.choices,
  )


def _define_choices(flag_values):
  """Defines the flags that choose rows, and the flags of their arguments."""
  algorithms = registry.ROWS[registry.ALGORITHM].values()
  kinds_of_parts = {part.kind for row in algorithms for part in row.parts}
  for kind, rows in registry.ROWS.items():
    text = f'The {kind.replace("_", " ")}: {", ".join(rows)}.'
    if kind in registry.OWN_KINDS:
      text += f' Give your own as {registry.form_of_own(kind)}.'
    default = DEFAULT_ROWS[kind]
    if kind in kinds_of_parts:
      text += f" Default: the algorithm's, or {default} if it has none."
      default = None
    flags.DEFINE_string(kind, default, text, flag_values=flag_values)
  for name, uses in flags_of_rows().items():
    _define_argument(name, uses, flag_values)


# Flags of no row that are part of a method: its local work and its tuning.
_OF_METHODS = frozenset(
    (
        'client_batch_size',
        'client_epochs',
        'tune_rates',
        'tune_rates_step',
        'tune_rates_rounds',
    )
)


def is_of_method(flag: str) -> bool:
  """Returns whether a flag is part of a method, not of its task or the run.

  Args:
    flag: The name of the flag.
  """
  if flag in registry.ROWS:
    return flag not in _NO_METHODS
  kinds = {kind for kind, _, _ in flags_of_rows().get(flag, ())}
  return flag in _OF_METHODS or bool(kinds.difference(_NO_METHODS))


def load_own(kind: str, name: str):
  """Adds a user's own task or rule to the registry, unless it is there.

  Args:
    kind: The flag that names it.
    name: The value of the flag; nothing is done if it has no colon.

  Raises:
    HparamError: If it cannot be loaded, or its flags would be those of others.
  """
  if not registry.is_own(name) or name in registry.ROWS[kind]:
    return
  row = registry.load_own(kind, name)
  for other_kind, rows in registry.ROWS.items():
    for other in rows.values():
      # Rows such as 'none' have no flags.
      is_alike = other.label == row.label and other.name != name
      if is_alike and (other_kind == kind or other.arguments):
        raise HparamError(
            f'--{kind}={name} and --{other_kind}={other.name} have the same '
            f'name, {row.label!r}, which would give their flags the same names'
        )
  for argument in row.arguments:
    if row.flag_name(argument) in _NAMES_OF_SETTINGS:
      raise HparamError(
          f'--{kind}={name} would define --{row.flag_name(argument)}, which is '
          'another flag; choose another name'
      )
  registry.ROWS[kind][name] = row


def define_own(
    arguments: Sequence[str], flag_values: flags.FlagValues = flags.FLAGS
):
  """Defines the flags of the user's own tasks and rules.

  Those are the ones on a command line, and those that were loaded before.

  Args:
    arguments: The flags, not yet parsed.
    flag_values: Where to define the flags.

  Raises:
    HparamError: If a task or rule cannot be loaded.
  """
  for kind, name in registry.find_own(arguments):
    load_own(kind, name)
  own = (
      (kind, row)
      for kind in registry.OWN_KINDS
      for row in registry.ROWS[kind].values()
      if registry.is_own(row.name)
  )
  for kind, row in own:
    for argument in row.arguments:
      flag = row.flag_name(argument)
      if flag not in flag_values:
        _define_argument(flag, [(kind, row, argument)], flag_values)
        continue
      # A rate, whose flag other rules have, too.
      text = f'{row.label}: {_help_of(argument)}'
      if text not in flag_values[flag].help:
        flag_values[flag].help += f' {text}'


def define(flag_values: flags.FlagValues = flags.FLAGS):
  """Defines all flags of a training run.

  Args:
    flag_values: Where to define them.
  """
  _define_choices(flag_values)
  flag_table.define(Settings, flag_values)
  preset_flags.define(flag_values)


def parse(arguments: Sequence[str], flag_values: flags.FlagValues):
  """Parses flags of a training run.

  Args:
    arguments: The flags.
    flag_values: Where they are defined.

  Raises:
    absl.flags.Error: If a flag does not exist or has an invalid value, or a
      file of flags cannot be read.
  """
  try:
    flag_values(['experiments.train', *arguments])
  except ValueError as error:  # Of '--noflag=value', or of a file's bytes.
    raise HparamError(str(error)) from error


@dataclasses.dataclass(frozen=True)
class Choice:
  """A row of the registry with the values given for its arguments.

  Attributes:
    row: The row that was chosen.
    given: The values from the command line, by the builder's argument.
  """

  row: registry.Row
  given: Mapping[str, Any]

  def build(self, **supplied: Any) -> Any:
    """Imports and calls the builder.

    Args:
      **supplied: The arguments that have no flag; those that the row does not
        take are ignored.

    Returns:
      The result of the builder; None for a row without a builder.
    """
    if self.row.builder is None:
      return None
    supplied = {
        name: value
        for name, value in supplied.items()
        if name in self.row.supplied
    }
    return registry.resolve(self.row.builder)(**supplied, **self._arguments())

  def build_keras_model(self, seed: int) -> Any:
    """Builds the Keras model of a task without reading its data.

    Args:
      seed: The seed of the initial weights.

    Returns:
      The model.
    """
    return self.row.definition.build_keras_model(seed=seed, **self._arguments())

  def _arguments(self) -> dict[str, Any]:
    """Returns the given values in the form that the builder takes.

    Choices have the row's default, which may be another than the builder's.
    """
    values = {
        **{a.name: a.default for a in self.row.arguments if a.references},
        **self.given,
    }
    return {
        argument.name: argument.to_builder_value(values[argument.name])
        for argument in self.row.arguments
        if values.get(argument.name) is not None
    }

  @property
  def file_name(self) -> str:
    """The name of the digest of its file in `hparams`."""
    return f'{self.row.label}_file'

  def with_values(self, **values: Any) -> 'Choice':
    """Returns a copy with some arguments replaced."""
    return dataclasses.replace(self, given={**self.given, **values})

  def hparams(self) -> dict[str, Any]:
    """Returns the effective values by flag, including defaults.

    A user's own rule has one more, `<rule>_file`: the digest of its file.
    """
    values = {
        self.row.flag_name(argument): self.given.get(
            argument.name, argument.default
        )
        for argument in self.row.arguments
        if argument.is_hparam
    }
    if self.row.digest is not None:
      values[self.file_name] = self.row.digest
    return values


def _choose(kind: str, name: str) -> registry.Row:
  """Returns a row by name, or raises an error with similar names."""
  if kind in registry.OWN_KINDS:
    load_own(kind, name)
  rows = registry.ROWS[kind]
  elsewhere = [other for other, its in registry.ROWS.items() if name in its]
  known = list(rows)
  if kind in registry.OWN_KINDS and name not in rows:
    if any(mark in name for mark in './'):
      raise HparamError(
          f'--{kind}={name} must be a name or {registry.form_of_own(kind)}'
      )
    known.append(registry.form_of_own(kind))
  flag_table.check_name(kind, name, known, elsewhere)
  return rows[name]


def complete_rows(chosen: Mapping[str, str]) -> dict[str, str]:
  """Returns the names of all rows, with those that the algorithm requires.

  Args:
    chosen: The names that are given, by kind.

  Returns:
    The names by kind.

  Raises:
    HparamError: If the name of the algorithm is unknown.
  """
  names = {**DEFAULT_ROWS, **chosen}
  algorithm = _choose(registry.ALGORITHM, names[registry.ALGORITHM])
  return {**DEFAULT_ROWS, **algorithm.part_names, **chosen}


def choose_rows(flag_values: flags.FlagValues) -> dict[str, registry.Row]:
  """Returns the chosen row of every kind, including an algorithm's parts.

  Args:
    flag_values: The parsed flags.

  Returns:
    The rows by kind.

  Raises:
    HparamError: If a name is unknown, or an algorithm does not go with a row.
  """
  given = {kind: flag_values[kind].value for kind in registry.ROWS}
  names = complete_rows({k: n for k, n in given.items() if n is not None})
  chosen = {kind: _choose(kind, name) for kind, name in names.items()}
  algorithm = chosen[registry.ALGORITHM]
  for part in algorithm.parts:
    found = chosen[part.kind].name
    if part.is_fixed and found != part.name:
      raise HparamError(
          f'--{registry.ALGORITHM}={algorithm.name} requires '
          f'--{part.kind}={part.name}, found {found}'
      )
  return chosen


def _check_belongs(flag, uses, chosen):
  """Raises if a given flag belongs to no chosen row."""
  kind = uses[0][0]
  owners = [row.name for _, row, _ in uses]
  if any(row is chosen[use_kind] for use_kind, row, _ in uses):
    return
  raise HparamError(
      f'--{flag} belongs to --{kind}={" or ".join(owners)}, but '
      f'--{kind}={chosen[kind].name} was chosen'
  )


def _check_number(flag: str, argument: registry.Argument, value: Any):
  """Raises if a number is out of its range, or too large to compute with."""
  if argument.type not in (int, float):
    return
  if value not in argument.range:
    raise HparamError(
        f'--{flag} must be {argument.range.describe(value)}, found {value:g}'
    )
  if argument.is_hparam:
    flag_table.check_size(flag, value)


def _check_ingredients(choices: Mapping[str, Choice]):
  """Raises if a row or flag was chosen that the algorithm does not take."""
  algorithm = choices[registry.ALGORITHM].row
  others = (registry.TASK, registry.ALGORITHM, registry.RUNTIME)
  for kind, choice in choices.items():
    if kind in (*others, *algorithm.supplied):
      continue
    row, given = choice.row, choice.given
    chosen = [f'{kind}={row.name}']
    if row.name == DEFAULT_ROWS[kind]:
      chosen = [row.flag_name(a) for a in row.arguments if a.name in given]
    if chosen:
      raise HparamError(
          f'--{registry.ALGORITHM}={algorithm.name} takes no '
          f'{kind.replace("_", " ")}, drop --{chosen[0]}'
      )


def read_choices(
    flag_values: flags.FlagValues = flags.FLAGS,
) -> dict[str, Choice]:
  """Returns the chosen row of every kind with its checked arguments.

  Args:
    flag_values: The parsed flags.

  Returns:
    A `Choice` for each kind: the task, the algorithm, both optimizers, the loss
    term, both schedules and the runtime.

  Raises:
    HparamError: If a name is unknown, the algorithm cannot be combined with an
      optimizer or a loss term, a flag belongs to a row that was not chosen, or
      a number is out of range.

  Example:
    >>> values = flags.FlagValues()
    >>> define(values)
    >>> _ = values(['train', '--task=digits'])
    >>> read_choices(values)['client_optimizer'].row.name
    'delta_sgd'
  """
  chosen = choose_rows(flag_values)
  given: dict[str, dict[str, Any]] = {kind: {} for kind in chosen}
  for flag, uses in flags_of_rows().items():
    value = flag_values[flag].value
    if value is None:
      continue
    _check_belongs(flag, uses, chosen)
    for kind, row, argument in uses:
      if row is chosen[kind]:
        _check_number(flag, argument, value)
        given[kind][argument.name] = value
  given[registry.ALGORITHM] = {
      **_weighting_by_default(chosen),
      **given[registry.ALGORITHM],
  }
  for kind, row in chosen.items():
    for argument in row.arguments:
      if argument.is_required and argument.name not in given[kind]:
        raise HparamError(
            f'--{kind}={row.name} needs --{row.flag_name(argument)}'
        )
  choices = {kind: Choice(row, given[kind]) for kind, row in chosen.items()}
  _check_ingredients(choices)
  return choices


def _weighting_by_default(rows: Mapping[str, registry.Row]) -> dict[str, Any]:
  """Returns the argument of the algorithm that the client optimizer sets."""
  if rows[registry.ALGORITHM].pools_clients:
    return {}
  client_optimizer = rows[registry.CLIENT_OPTIMIZER]
  return {'client_weighting': registry.weighting_of(client_optimizer)}


def default_choices(rows: Mapping[str, registry.Row]) -> dict[str, Choice]:
  """Returns the choices of rows, by their kinds, if no flag is given."""
  choices = {kind: Choice(row, {}) for kind, row in rows.items()}
  algorithm = choices[registry.ALGORITHM]
  choices[registry.ALGORITHM] = algorithm.with_values(
      **_weighting_by_default(rows)
  )
  return choices


def recorded_choice(kind: str, recorded: Mapping[str, Any]) -> Choice:
  """Returns a choice that is recorded in `hparams.json`.

  Args:
    kind: The kind of its row.
    recorded: The hyperparameters of the run.

  Returns:
    The choice with the effective values.

  Raises:
    HparamError: If the row is unknown, or it does not take a value.
  """
  row = _choose(kind, str(recorded.get(kind)))
  given = {}
  for argument in row.arguments:
    flag = row.flag_name(argument)
    if flag not in recorded:
      continue
    given[argument.name] = recorded[flag]
    known = (*argument.choices, argument.default)
    if argument.choices and recorded[flag] not in known:
      raise HparamError(
          f'--{flag} takes {", ".join(argument.choices)}, found '
          f'{recorded[flag]!r}'
      )
  return Choice(row, given)


def _check_data(task: registry.Row, values: Mapping[str, Any]):
  """Raises unless the flags define the source of a task's data."""
  has_synthetic = bool(task.definition.data.synthetic_files)
  if values['use_synthetic_data']:
    if not task.reads_files:
      raise HparamError(
          f'--task={task.name} includes its data, drop --use_synthetic_data'
      )
    if not has_synthetic:
      raise HparamError(
          f'--task={task.name} has no synthetic data; give --data_dir, or '
          'define `synthetic_files` of its data'
      )
    if values['data_dir']:
      raise HparamError(
          '--use_synthetic_data and --data_dir cannot be combined, drop one of '
          'them'
      )
  elif task.reads_files and not values['data_dir']:
    advice = ', or --use_synthetic_data to try it on synthetic data'
    raise HparamError(
        f'--task={task.name} needs --data_dir, the folder of the data sets'
        f'{advice if has_synthetic else ""}'
    )


def check_data_files(task: str, data_dir: Optional[str]):
  """Raises if the files of a task are missing or of another form.

  Args:
    task: The value of --task.
    data_dir: The value of --data_dir; None checks nothing.

  Raises:
    HparamError: If a file is missing or of another form; says how to mend it.
  """
  if data_dir is None:
    return
  try:
    registry.ROWS[registry.TASK][task].definition.data.check_files(data_dir)
  except (FileNotFoundError, ValueError) as error:
    raise HparamError(str(error)) from error


def _default_name(choices: Mapping[str, Choice]) -> str:
  rows = [choices[kind].row for kind in _NAMING_KINDS]
  loss_term = choices[registry.LOSS_TERM].row
  if loss_term.builder:
    rows.append(loss_term)
  return '.'.join(row.label for row in rows)


def read_settings(
    choices: Mapping[str, Choice], flag_values: flags.FlagValues = flags.FLAGS
) -> Settings:
  """Returns the flags that belong to no row.

  Args:
    choices: The result of `read_choices`, used for the default name.
    flag_values: The parsed flags.

  Returns:
    The `Settings`.

  Raises:
    HparamError: If the experiment's folder is outside --output_dir, the task
      needs a folder of data and none was given, an evaluation is unknown, or
      flags conflict.
  """
  values = {
      field.name: flag_values[field.name].value
      for field in dataclasses.fields(Settings)
  }
  _check_data(choices[registry.TASK].row, values)
  if values['experiment_name'] is None:
    values['experiment_name'] = _default_name(choices)
  parts = values['experiment_name'].split('/')
  if not all(parts) or any(part in ('.', '..') for part in parts):
    raise HparamError(
        '--experiment_name must name a folder in --output_dir, found '
        f'{values["experiment_name"]!r}'
    )
  return settings_lib.complete(values, choices)
