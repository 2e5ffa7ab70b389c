# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rows of tasks, each derived from the value of its task."""

import attrs

from experiments.registry import rows
from tasks import arguments as arguments_lib
from tasks import catalogue
from tasks import definitions

_MODEL = 'model_id'


def _to_argument(
    task: definitions.TaskDefinition, argument: arguments_lib.Argument
) -> rows.Argument:
  name = 'model' if argument.name == _MODEL else argument.name
  fields = attrs.asdict(argument, recurse=False)
  return rows.Argument(**fields, flag=f'{task.name}_{name}')


def create(name: str, task: definitions.TaskDefinition) -> rows.Row:
  """Returns the row of a task.

  Args:
    name: The value of `--task`.
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


TASKS = tuple(create(name, task) for name, task in catalogue.TASKS.items())
