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
"""Which runs have failed, kept for the page beside those that are finished."""

from collections.abc import Sequence
import json
import pathlib

from experiments import command_line
from experiments.leaderboards import results as results_lib
from experiments.leaderboards import stages
from experiments.sweeps import result_tables
from experiments.sweeps import trials as trials_lib
from tff_adaptive import _files

_FILE_NAME = 'failed.json'


def update(results: Sequence[result_tables.RunResult]):
  """Notes which runs have failed, and which of those noted have not any more.

  A run that fails is tried again by the next call, and stays noted until it has
  begun.

  Args:
    results: Of runs that were to begin.

  Raises:
    UserError: If the note of a task is damaged.
    WriteError: If it cannot be written.
  """
  for home in dict.fromkeys(result.trial.home for result in results):
    tried = [
        result
        for result in results
        if result.trial.home == home and result.status != result_tables.WAITING
    ]
    failed = {r.trial.name for r in tried if r.status == result_tables.FAILED}
    before = _read(home)
    names = sorted((before - {r.trial.name for r in tried}) | failed)
    if set(names) != before:
      with _files.replacing(home / _FILE_NAME) as file:
        file.write((json.dumps(names, indent=2) + '\n').encode())


def _read(home: pathlib.Path) -> set[str]:
  """Returns the names of the runs of a task that failed when last tried."""
  path = home / _FILE_NAME
  try:
    return set(json.loads(path.read_text(encoding='utf-8')))
  except FileNotFoundError:
    return set()
  except (TypeError, ValueError) as error:
    raise command_line.UserError(
        f'{path} is damaged ({error}); remove it, and run the leaderboard '
        'again to know which runs fail'
    ) from error


def find(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the runs of a plan that failed when they were last tried.

  Args:
    results: What was measured.

  Returns:
    The runs, in the order in which they are made.

  Raises:
    UserError: If the note of a task is damaged.
  """
  failed = {
      task: _read(pathlib.Path(results.plan.output_dir) / task)
      for task in results.plan.board.tasks
  }
  return [
      trial
      for trial in results.unfinished(stages.known_trials(results))
      if trial.name in failed[trial.home.name]
  ]


def method_of(trial: trials_lib.Trial) -> str:
  """Returns the name of the method of a run."""
  return trial.name.partition('/')[0]
