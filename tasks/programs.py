# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The commands that programs print, as they work where the user stands."""

from collections.abc import Iterable
import os
import re
import shlex
import sys

# The variable with the script by which `tff-adaptive` was started, if it was.
STARTED_BY = 'TFF_ADAPTIVE_STARTED_BY'
# As in the documentation.
_IN_CHECKOUT = '.venv/bin/python'


def _python() -> str:
  """Returns the path of Python, in a checkout the documentation's."""
  is_checkout = os.path.exists('tasks/programs.py')
  return _IN_CHECKOUT if is_checkout else sys.executable


def to_command(module: str, arguments: Iterable[str] = ()) -> str:
  """Returns the line for a shell that runs a program.

  Args:
    module: The module of the program, such as 'experiments.train'.
    arguments: Its arguments.

  Example:

    >>> to_command('tasks.fetch', ['mnist'])
    '... -m tasks.fetch mnist'
  """
  script = os.environ.get(STARTED_BY)
  words = (
      [script, module.rpartition('.')[2]]
      if script
      else [_python(), '-m', module]
  )
  return shlex.join([*words, *arguments])


def localize(text: str) -> str:
  """Replaces each `python -m MODULE` of a help text by `to_command(MODULE)`."""
  return re.sub(r'(?<!/)python -m ([\w.]+)', lambda m: to_command(m[1]), text)


def find_script(name: str) -> str:
  """Returns the path of a script of the environment, such as 'tensorboard'."""
  script = os.environ.get(STARTED_BY) or _python()
  return os.path.join(os.path.dirname(script), name)
