# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rows of tasks: those of this project, and users' own tasks.

A row is derived from the value of its task.
"""

from collections.abc import Sequence
import contextlib
import importlib
import os
import pathlib
import re

import attrs

from experiments import flag_table
from experiments.registry import rows
from tasks import arguments as arguments_lib
from tasks import catalogue
from tasks import definitions

_MODEL = 'model_id'
_NAME = re.compile(r'[a-z][a-z0-9_]*')
_SEPARATOR = ':'


def _to_argument(
    task: definitions.TaskDefinition, argument: arguments_lib.Argument
) -> rows.Argument:
  name = 'model' if argument.name == _MODEL else argument.name
  fields = attrs.asdict(argument, recurse=False)
  return rows.Argument(**fields, flag=f'{task.name}_{name}')


def _to_row(name: str, task: definitions.TaskDefinition) -> rows.Row:
  """Returns the row of a task."""
  data_dir = ('data_dir',) if task.data.reads_files else ()
  return rows.Row(
      name,
      task.create,
      tuple(_to_argument(task, argument) for argument in task.arguments),
      supplied=(*data_dir, 'seed', 'protocol'),
      task=task,
  )


def load_own(name: str) -> rows.Row:
  """Imports the module of a user's own task, and returns the task's row.

  Args:
    name: The value of `--task`: 'package.module:VALUE'.

  Raises:
    HparamError: If the module or the value does not exist, or is not a task.
  """
  module_name, _, attribute = name.partition(_SEPARATOR)
  if not module_name or module_name.startswith('.'):
    raise flag_table.HparamError(
        f'--task={name} must be package.module:VALUE, found no module'
    )
  try:
    module = importlib.import_module(module_name)
  except ModuleNotFoundError as error:
    if error.name is None or not f'{module_name}.'.startswith(f'{error.name}.'):
      raise
    raise flag_table.HparamError(
        f'--task={name} names the module {error.name}, which is not found from '
        f'{pathlib.Path.cwd()}'
    ) from error
  task = getattr(module, attribute, None)
  if task is None:
    raise flag_table.HparamError(
        f'--task={name}: the module {module_name} has no {attribute or "value"}'
    )
  if not isinstance(task, definitions.TaskDefinition):
    raise flag_table.HparamError(
        f'--task={name} must be a tasks.definitions.TaskDefinition, found '
        f'{type(task).__name__}'
    )
  if task.name in catalogue.TASKS or not _NAME.fullmatch(task.name):
    raise flag_table.HparamError(
        f'--task={name}: the name of the task, which begins its flags, must '
        'consist of lower-case letters, digits and _ and differ from those of '
        f'other tasks, found {task.name!r}'
    )
  return _to_row(name, task)


def is_own(name: str) -> bool:
  """Returns whether a value of `--task` names a user's own task."""
  return _SEPARATOR in name


def find_own(
    arguments: Sequence[str], including: Sequence[str] = ()
) -> list[str]:
  """Returns the names of users' own tasks on a command line.

  Args:
    arguments: The flags; flagfiles among them are read, unless they cannot be
      read, which absl reports.
    including: The flagfiles that contain these flags; not read again.
  """
  arguments = [argument.strip() for argument in arguments]
  names = []
  for place, argument in enumerate(arguments):
    flag, equals, value = argument.lstrip('-').partition('=')
    if not argument.startswith('-'):
      continue
    if not equals and place + 1 < len(arguments):
      value = arguments[place + 1]
    if flag == 'task' and is_own(value):
      names.append(value)
    elif flag == 'flagfile':
      path = os.path.expanduser(value.strip())
      if os.path.isfile(path) and path not in including:
        with (
            contextlib.suppress(OSError),
            open(path, encoding='utf-8', errors='replace') as file,
        ):
          names += find_own(file.read().splitlines(), (*including, path))
  return names


TASKS = tuple(_to_row(name, task) for name, task in catalogue.TASKS.items())
