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
"""How long cells that were not run are expected to take."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import pathlib
import statistics
from typing import Any

from experiments import published
from experiments.run_results import agreement
from experiments.run_results import durations
from experiments.run_results import run_folder

# What the work of a round depends on, besides the model.
_WORK = (
    'task',
    'use_synthetic_data',
    'clients_per_round',
    'client_batch_size',
    'client_epochs',
    'max_examples',
    'num_clients',
    'heldout_clients',
    'heldout_fraction',
)
_METHOD = ('algorithm', 'client_optimizer', 'loss_term')


@dataclasses.dataclass(frozen=True)
class _Pace:
  """How fast a run was.

  Attributes:
    hparams: The hyperparameters of the run.
    seconds: Of a round.
  """

  hparams: Mapping[str, Any]
  seconds: float


class ExpectedTimes:
  """Expects of a run what other runs of the same work a round took.

  Example:

    >>> cell = published.find_table('delta_sgd/table_7').cells[0]
    >>> ExpectedTimes(pathlib.Path('nothing_there')).describe(cell, seeds=3)
    'unknown'
  """

  def __init__(self, runs_dir: pathlib.Path):
    """Reads all runs of a folder.

    Args:
      runs_dir: The folder; runs may lie at any depth, and damaged ones are
        left out.

    Raises:
      OSError: If a file cannot be read.
    """
    paces = [
        _Pace(run.hparams, run.seconds_per_round)
        for run in run_folder.find_runs(runs_dir)
    ]
    self._paces = [pace for pace in paces if math.isfinite(pace.seconds)]

  def describe(self, cell: published.Cell, seeds: int) -> str:
    """Returns the time of a cell.

    Args:
      cell: The cell.
      seeds: How many runs it has.

    Returns:
      The product of the seconds of a round, the rounds of the cell and the
      seeds. The seconds are the median over the runs with the same task, model,
      cohort and local work; of those with the same method, if there are any.
      'unknown' without such runs.
    """
    wanted = agreement.of_cell(cell, seed=0)
    task = wanted.values['task']
    same_work = _with_same(self._paces, wanted, [*_WORK, f'{task}_model'])
    same_method = _with_same(same_work, wanted, _METHOD)
    found = [pace.seconds for pace in same_method or same_work]
    if not found:
      return durations.UNKNOWN
    rounds = wanted.values['total_rounds']
    return durations.format_seconds(statistics.median(found) * rounds * seeds)


def _with_same(
    paces: Sequence[_Pace],
    wanted: agreement.WantedHparams,
    names: Sequence[str],
) -> list[_Pace]:
  """Returns those of runs that have some of the values that are wanted."""
  return [
      pace for pace in paces if not wanted.find_differences(pace.hparams, names)
  ]
