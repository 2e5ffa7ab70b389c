# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""What is finished: the sweep's own record, and else the files of runs."""

import json
import pathlib

from experiments import command_line
from experiments.run_results import agreement
from experiments.run_results import run_folder
from experiments.sweeps import trials as trials_lib
from tff_adaptive import _files

_FILE_NAME = 'sweep.json'


class Record:
  """`sweep.json`: the trials that ended well, with what their flags said."""

  def __init__(self, home: pathlib.Path):
    """Reads the record, if there is one.

    Args:
      home: The folder of the sweep.

    Raises:
      UserError: If the file is damaged.
    """
    self._path = home / _FILE_NAME
    try:
      self._finished = json.loads(self._path.read_text(encoding='utf-8'))
    except FileNotFoundError:
      self._finished = {}
    except ValueError as error:
      raise command_line.UserError(
          f'{self._path} is damaged ({error}); remove it, and what the runs '
          'have written counts'
      ) from error

  def add(self, trial: trials_lib.Trial):
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

  def is_finished(self, trial: trials_lib.Trial) -> bool:
    """Returns whether a trial needs no start.

    Where flags have changed, or nothing tells that they have not, it does: then
    the run itself goes on, or refuses.

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


def _total_rounds(trial: trials_lib.Trial) -> int:
  """Returns the rounds that a trial is to have; not given, its task says."""
  given = trial.hparams['total_rounds']
  if given is not None:  # The task takes a while to look up.
    return given
  return agreement.of_arguments(trial.arguments).values['total_rounds']
