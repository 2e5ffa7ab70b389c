# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of the registry: builders that a flag chooses, with their flags."""

from collections.abc import Callable
import dataclasses
import math
from typing import Any, Optional, Union

import attrs

from tasks import arguments as arguments_lib
from tasks import definitions
from tff_adaptive import ranges

TASK = 'task'
ALGORITHM = 'algorithm'
CLIENT_OPTIMIZER = 'client_optimizer'
SERVER_OPTIMIZER = 'server_optimizer'
LOSS_TERM = 'loss_term'
CLIENT_SCHEDULE = 'client_schedule'
SERVER_SCHEDULE = 'server_schedule'
RUNTIME = 'runtime'
# The kinds of rules, which combine freely.
RULES = (CLIENT_OPTIMIZER, SERVER_OPTIMIZER, LOSS_TERM)
# The functions that build rules begin with it.
PREFIX = 'build_'
# The default runtime.
COMPILED = 'compiled'
NATIVE = 'native'
RAY = 'ray'


@attrs.frozen
class Argument(arguments_lib.Argument):
  """An argument of a builder that has a flag.

  Attributes:
    flag: The name of the flag; by default `{row}_{argument}`.
    references: The objects that the choices stand for, as 'module:attribute',
      in the order of `choices`; empty if they are plain strings.
    parser: The function that converts the flag's text to the builder's value,
      as 'module:function'.
    is_required: Whether the builder has no default.
    range: The range of a number; of a task it follows from `minimum`.
  """

  flag: Optional[str] = attrs.field(default=None, kw_only=True)
  references: tuple[str, ...] = attrs.field(default=(), kw_only=True)
  parser: Optional[str] = attrs.field(default=None, kw_only=True)
  is_required: bool = attrs.field(default=False, kw_only=True)
  range: ranges.Range = attrs.field(
      default=attrs.Factory(
          lambda self: ranges.Range(
              -math.inf if self.minimum is None else self.minimum,
              may_be_infinite=self.may_be_infinite,
          ),
          takes_self=True,
      ),
      kw_only=True,
  )

  def to_builder_value(self, value: Any) -> Any:
    """Converts a value of the flag to one of the builder's argument."""
    if self.parser is not None:
      return definitions.resolve(self.parser)(value)
    if value is None or not self.references:
      return value
    return definitions.resolve(self.references[self.choices.index(value)])


@dataclasses.dataclass(frozen=True)
class Part:
  """A row of another kind that belongs to an algorithm.

  Attributes:
    kind: The kind of the row.
    name: The name of the row.
    is_fixed: Whether the algorithm requires it; otherwise it is a default.
  """

  kind: str
  name: str
  is_fixed: bool = True


@dataclasses.dataclass(frozen=True)
class Row:
  """A choice of a flag.

  Attributes:
    name: The name on the command line.
    builder: The function that builds it, or its place, 'module:function'; None
      for a choice such as no loss term.
    arguments: The arguments that have flags.
    supplied: The arguments without flags, which the binary passes or omits.
    task: The definition of a task, from which its row is derived.
    parts: The rows that belong to an algorithm.
    pools_clients: Whether an algorithm trains on the pooled examples of all
      clients, and thus has no cohorts.
    digest: The digest of the file of a user's own rule.
  """

  name: str
  builder: Union[str, Callable[..., Any], None]
  arguments: tuple[Argument, ...] = ()
  supplied: tuple[str, ...] = ()
  task: Optional[definitions.TaskDefinition] = None
  parts: tuple[Part, ...] = ()
  pools_clients: bool = False
  digest: Optional[str] = None

  @property
  def label(self) -> str:
    """The name without its place; begins its flags and names its runs."""
    if self.task is not None:
      return self.task.name
    # 'sign_descent' of 'package.module:build_sign_descent'.
    return self.name.rpartition(f':{PREFIX}')[2]

  @property
  def definition(self) -> definitions.TaskDefinition:
    """The definition of a task; for a row of this kind alone."""
    assert self.task is not None
    return self.task

  @property
  def reads_files(self) -> bool:
    """Whether it is a task whose data are read from `--data_dir`."""
    return self.task is not None and self.task.data.reads_files

  @property
  def part_names(self) -> dict[str, str]:
    """The names of an algorithm's parts by kind."""
    return {part.kind: part.name for part in self.parts}

  def flag_name(self, argument: Argument) -> str:
    """Returns the name of an argument's flag."""
    return argument.flag or f'{self.label}_{argument.name}'


def _to_task_argument(
    task: definitions.TaskDefinition, argument: arguments_lib.Argument
) -> Argument:
  name = 'model' if argument.name == 'model_id' else argument.name
  fields = attrs.asdict(argument, recurse=False)
  return Argument(**fields, flag=f'{task.name}_{name}')


def create_task(name: str, task: definitions.TaskDefinition) -> Row:
  """Returns the row of a task.

  Args:
    name: The value of `--task`.
    task: The task.
  """
  data_dir = ('data_dir',) if task.data.reads_files else ()
  return Row(
      name,
      task.create,
      tuple(_to_task_argument(task, argument) for argument in task.arguments),
      supplied=(*data_dir, 'seed', 'protocol'),
      task=task,
  )
