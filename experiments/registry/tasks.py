# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tasks that a binary can train: those of this project, and a user's own.

A row follows from the value of its task.
"""

from collections.abc import Sequence
import importlib
import pathlib
import re

from experiments.registry import rows
from tasks import arguments as arguments_lib
from tasks import catalogue
from tasks import definitions

_MODEL = 'model_id'
_NAME = re.compile(r'[a-z][a-z0-9_]*')
_SEPARATOR = ':'


class OwnTaskError(Exception):
  """A user's own task cannot be had; the text is a sentence without stop."""


def _to_argument(
    task: definitions.TaskDefinition, argument: arguments_lib.Argument
) -> rows.Argument:
  name = 'model' if argument.name == _MODEL else argument.name
  return rows.Argument(
      argument.name,
      argument.type,
      argument.default,
      argument.help,
      flag=f'{task.name}_{name}',
      choices=argument.choices,
      minimum=argument.minimum,
      may_be_infinite=argument.may_be_infinite,
      is_hparam=argument.is_hparam,
  )


def to_row(name: str, task: definitions.TaskDefinition) -> rows.Row:
  """Returns the row of a task.

  Args:
    name: What `--task` calls it.
    task: The task.
  """
  data_dir = ('data_dir',) if task.data.reads_files else ()
  return rows.Row(
      name,
      task.create,
      tuple(_to_argument(task, argument) for argument in task.arguments),
      supplied=(*data_dir, 'seed', 'protocol'),
      task=task,
  )


def load_own(name: str) -> rows.Row:
  """Returns the row of a user's own task; imports its module.

  Args:
    name: What `--task` says: 'package.module:VALUE'.

  Raises:
    OwnTaskError: If there is no such module or value, or it is no task.
  """
  module_name, _, attribute = name.partition(_SEPARATOR)
  try:
    module = importlib.import_module(module_name)
  except ModuleNotFoundError as error:
    if error.name is None or not f'{module_name}.'.startswith(f'{error.name}.'):
      raise
    raise OwnTaskError(
        f'--task={name} names a module that is not found from '
        f'{pathlib.Path.cwd()}: {error.name}'
    ) from error
  task = getattr(module, attribute, None)
  if task is None:
    raise OwnTaskError(
        f'--task={name}: the module {module_name} has no {attribute or "value"}'
    )
  if not isinstance(task, definitions.TaskDefinition):
    raise OwnTaskError(
        f'--task={name} must be a tasks.definitions.TaskDefinition, found '
        f'{type(task).__name__}'
    )
  if task.name in catalogue.TASKS or not _NAME.fullmatch(task.name):
    raise OwnTaskError(
        f'--task={name}: its flags begin with its name, which must be of '
        'lower-case letters, digits and _, and not that of another task, found '
        f'{task.name!r}'
    )
  return to_row(name, task)


def is_own(name: str) -> bool:
  """Returns whether a name of `--task` is that of a user's own task."""
  return _SEPARATOR in name


def find_own(arguments: Sequence[str]) -> list[str]:
  """Returns the names of a user's own tasks that a command line has.

  Args:
    arguments: The flags; flagfiles among them are read.
  """
  names = []
  for place, argument in enumerate(arguments):
    flag, equals, value = argument.strip().lstrip('-').partition('=')
    if not argument.startswith('-'):
      continue
    if not equals and place + 1 < len(arguments):
      value = arguments[place + 1]
    if flag == 'task' and is_own(value):
      names.append(value)
    elif flag == 'flagfile':
      path = pathlib.Path(value)
      if path.is_file():
        names += find_own(path.read_text(encoding='utf-8').splitlines())
  return names


TASKS = tuple(to_row(name, task) for name, task in catalogue.TASKS.items())
