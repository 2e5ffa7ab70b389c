# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flags: of parts of tables, of a cell's command, with their origins."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import functools
from typing import Any, Optional

from absl import flags

from experiments import command_line
from experiments import hparams
from experiments import preset_flags
from experiments import registry
from experiments import settings as settings_lib
from experiments.flag_table import field
from experiments.published import tables

# The folder of the data sets in commands.
DATA_DIR = 'data'
_OUTPUT_DIR = 'runs'


@dataclasses.dataclass
class AxisFlags:
  """The flags that select parts of tables; one that is repeated is refused.

  Attributes:
    groups: Only these comma-separated groups of the tables.
    rows: Only these comma-separated rows of the tables.
    columns: Only these comma-separated columns of the tables.
  """

  groups: Sequence[str] = field((), allow_overwrite=False)
  rows: Sequence[str] = field((), allow_overwrite=False)
  columns: Sequence[str] = field((), allow_overwrite=False)


def restrict(
    found: Iterable[tables.Table], flag_values: flags.FlagValues
) -> list[tables.Table]:
  """Returns the parts of tables that `AxisFlags` select.

  Args:
    found: The tables.
    flag_values: The parsed flags.

  Returns:
    Each table once, with the named groups, rows and columns; all if none are
    named.

  Raises:
    PublishedError: If a table lacks a named group, row or column.
  """
  names = {axis: flag_values[axis].value for axis in tables.AXES}
  return [
      table.part(**names)
      for table in {table.place: table for table in found}.values()
  ]


@dataclasses.dataclass(frozen=True)
class Hyperparameter:
  """A hyperparameter of a cell.

  Attributes:
    name: The name of its flag.
    value: Its value; None for the task's default, or for no value.
    origin: The origin of the value; `ASSUMED` for our own defaults.
  """

  name: str
  value: Any
  origin: preset_flags.Origin


def train_arguments(
    cell: tables.Cell,
    *,
    seed: int = 0,
    data_dir: Optional[str] = DATA_DIR,
    output_dir: str = _OUTPUT_DIR,
) -> list[str]:
  """Returns the flags of `experiments.train` that run a cell.

  Args:
    cell: The cell.
    seed: The seed of the run.
    data_dir: The folder of the data sets; None for a task that includes its
      data, and for synthetic data.
    output_dir: The folder of all runs.

  Returns:
    The flags.
  """
  return [
      *(flag.text for flag in cell.flags),
      f'--seed={seed}',
      *([] if data_dir is None else [f'--data_dir={data_dir}']),
      f'--output_dir={output_dir}',
      f'--experiment_name={cell.experiment_name}/seed_{seed}',
  ]


def build_command(cell: tables.Cell, **kwargs: Any) -> str:
  """Returns the command that runs a cell, from the project's folder.

  Args:
    cell: The cell.
    **kwargs: Arguments of `train_arguments`.

  Returns:
    One line for a shell.
  """
  return command_line.build_command('train', train_arguments(cell, **kwargs))


def build_sweep_command(
    cell: tables.Cell, seeds: Sequence[int], *, output_dir: str = _OUTPUT_DIR
) -> str:
  """Returns the command that runs a cell with one or several seeds.

  Args:
    cell: The cell.
    seeds: The seeds of its runs.
    output_dir: The folder of all runs.

  Returns:
    One line for a shell; its runs are those of `build_command`.

  Example:

    >>> cell = published.find_table('delta_sgd/table_7').cells[0]
    >>> build_sweep_command(cell, [1, 2])
    "... -m experiments.sweep --table=delta_sgd/table_7 ..."
  """
  if len(seeds) == 1:
    return build_command(cell, seed=seeds[0], output_dir=output_dir)
  return command_line.build_command(
      'sweep',
      [
          f'--table={cell.paper}/{cell.table}',
          *(f'--{a}={n}' for a, n in zip(tables.AXES, cell.key) if n),
          f'--seeds={",".join(map(str, seeds))}',
          f'--data_dir={DATA_DIR}',
          f'--output_dir={output_dir}',
      ],
  )


@functools.lru_cache(maxsize=None)
def _define_flags() -> flags.FlagValues:
  """Returns the flags of a training run, defined once and parsed repeatedly."""
  values = flags.FlagValues()
  hparams.define(values)
  return values


def parse_flags(
    arguments: Sequence[str],
) -> tuple[dict[str, hparams.Choice], hparams.Settings]:
  """Parses flags of `experiments.train`.

  Args:
    arguments: The flags.

  Returns:
    The chosen rows and the other settings.

  Raises:
    HparamError: If flags conflict.
    absl.flags.Error: If a flag does not exist or has an invalid value.
  """
  values = _define_flags()
  hparams.define_own(arguments, values)
  for name in values:
    values[name].unparse()
  hparams.parse(arguments, values)
  choices = hparams.read_choices(values)
  return choices, hparams.read_settings(choices, values)


def hyperparameters(cell: tables.Cell) -> list[Hyperparameter]:
  """Returns the hyperparameters of a cell with their origins.

  Args:
    cell: The cell.

  Returns:
    The hyperparameters of the chosen rows and of the protocol, including
    defaults, and the other settings that are given.

  Raises:
    HparamError: If flags of the cell conflict.
    absl.flags.Error: If a flag does not exist or has an invalid value.
  """
  given = preset_flags.expand(cell.flags)
  origins = {_flag_name(flag): flag.origin for flag in given}
  choices, settings = parse_flags(
      [flag.text for flag in given] + [f'--data_dir={DATA_DIR}']
  )
  if registry.ALGORITHM in origins:
    for part in choices[registry.ALGORITHM].row.parts:
      origins.setdefault(part.kind, origins[registry.ALGORITHM])
  found = {kind: choice.row.name for kind, choice in choices.items()}
  del found[registry.RUNTIME]
  found.update(argument_values(choices))
  for name, value in vars(settings).items():
    if name in settings_lib.PROTOCOL or name in origins:
      found[name] = value
  return [
      Hyperparameter(
          name, value, origins.get(name, preset_flags.Origin.ASSUMED)
      )
      for name, value in found.items()
  ]


def argument_values(choices: Mapping[str, hparams.Choice]) -> dict[str, Any]:
  """Returns the effective values of the rows' arguments by flag."""
  return {
      flag: value
      for kind, choice in choices.items()
      if kind != registry.RUNTIME
      for flag, value in choice.hparams().items()
  }


def _flag_name(given: preset_flags.GivenFlag) -> str:
  """Returns the name of a flag that may be negated."""
  name = given.name
  return name if name in _define_flags() else name.removeprefix('no')
