# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a row is: the builder that a flag chooses, with the flags it takes."""

from collections.abc import Callable
import dataclasses
import importlib
from typing import Any, Optional, Union

from tasks import definitions

TASK = 'task'
ALGORITHM = 'algorithm'
CLIENT_OPTIMIZER = 'client_optimizer'
SERVER_OPTIMIZER = 'server_optimizer'
LOSS_TERM = 'loss_term'
CLIENT_SCHEDULE = 'client_schedule'
SERVER_SCHEDULE = 'server_schedule'
RUNTIME = 'runtime'


@dataclasses.dataclass(frozen=True)
class Argument:
  """An argument of a builder that has a flag.

  Attributes:
    name: The builder's name of the argument.
    type: One of float, int, bool and str.
    default: The builder's default, as the flag shows it.
    help: One sentence for `--help`, without the default.
    flag: The flag's name; by default `{row}_{argument}`.
    choices: The values that a str may take; all, if empty.
    references: For choices that stand for an object: where it is found, as
      'module:attribute', in the order of `choices`.
    minimum: The smallest value of a number, if there is one.
    may_be_infinite: Whether infinity is a value of a number.
    parser: Where the function is found that makes the builder's value of the
      flag's text, as 'module:function'.
    is_required: Whether the builder has no default.
    is_hparam: Whether a run with another value is another run; not so where the
      flag says how to come by something.
  """

  name: str
  type: type
  default: Any
  help: str
  flag: Optional[str] = None
  choices: tuple[str, ...] = ()
  references: tuple[str, ...] = ()
  minimum: Optional[float] = None
  may_be_infinite: bool = False
  parser: Optional[str] = None
  is_required: bool = False
  is_hparam: bool = True

  def to_builder_value(self, value: Any) -> Any:
    """Returns what the builder takes for a value of the flag."""
    if self.parser is not None:
      return resolve(self.parser)(value)
    if not self.references:
      return value
    return resolve(self.references[self.choices.index(value)])


@dataclasses.dataclass(frozen=True)
class Part:
  """A row of another kind that an algorithm comes with.

  Attributes:
    kind: The kind of the row.
    name: The name of the row.
    is_fixed: Whether the algorithm goes with no other row of this kind.
  """

  kind: str
  name: str
  is_fixed: bool = True


@dataclasses.dataclass(frozen=True)
class Row:
  """Something that a flag chooses by name.

  Attributes:
    name: The name on the command line.
    builder: The function that builds it, or where it is found:
      'module:function'; None for a choice that stands for nothing.
    arguments: The arguments that get a flag.
    supplied: The arguments that the binary gives, or leaves alone; they have no
      flag.
    task: Of a task: its definition, from which the rest of the row follows.
    parts: Of an algorithm: the rows that are chosen with it.
    pools_clients: Of an algorithm: whether it trains on the examples of all
      clients together, and so has no cohorts.
  """

  name: str
  builder: Union[str, Callable[..., Any], None]
  arguments: tuple[Argument, ...] = ()
  supplied: tuple[str, ...] = ()
  task: Optional[definitions.TaskDefinition] = None
  parts: tuple[Part, ...] = ()
  pools_clients: bool = False

  @property
  def label(self) -> str:
    """The name in the default name of a run's folder."""
    return self.name if self.task is None else self.task.name

  def flag_name(self, argument: Argument) -> str:
    """Returns the name of an argument's flag."""
    return argument.flag or f'{self.name}_{argument.name}'


def resolve(reference: Union[str, Callable[..., Any]]) -> Any:
  """Returns the object at 'module:attribute', attributes joined by dots."""
  if not isinstance(reference, str):
    return reference
  module_name, _, path = reference.partition(':')
  value = importlib.import_module(module_name)
  for name in path.split('.'):
    value = getattr(value, name)
  return value
