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
"""What the finished runs of a leaderboard came to."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import math
import pathlib
import statistics
from typing import Optional

from experiments.leaderboards import definitions
from experiments.leaderboards import plans
from experiments.leaderboards import standings
from experiments.leaderboards import tuning_costs
from experiments.run_results import run_folder
from experiments.sweeps import records
from experiments.sweeps import scores as scores_lib
from experiments.sweeps import search_spaces
from experiments.sweeps import trials as trials_lib

_PERCENT = 100.0
_BYTES_PER_MEGABYTE = 1e6


def score(run: run_folder.Run, task: definitions.Task) -> float:
  """Returns the mean of the last ten evaluations in percent.

  Args:
    run: The run.
    task: Its task.

  Returns:
    The score; -infinity of a run that diverged.
  """
  value = _PERCENT * run.summarize(task.metric, run_folder.LAST_10_EVALUATIONS)
  return value if math.isfinite(value) else -math.inf


@dataclasses.dataclass(frozen=True)
class Outcome:
  """What the final runs of an assignment came to.

  Attributes:
    task: The task.
    assignment: The assignment.
    runs: The runs by seed.
  """

  task: definitions.Task
  assignment: search_spaces.Assignment
  runs: Mapping[int, run_folder.Run]

  @functools.cached_property
  def scores(self) -> dict[int, float]:
    """The scores by seed."""
    return {seed: score(run, self.task) for seed, run in self.runs.items()}

  @property
  def rounds_to_target(self) -> float:
    """The median over the seeds; infinity if most never reach it."""
    return statistics.median(map(self._target_round, self.runs.values()))

  @property
  def seconds_per_round(self) -> float:
    """The median over rounds, then over seeds: no compilation, no hiccup."""
    return statistics.median(
        run.seconds_per_round for run in self.runs.values()
    )

  @property
  def seconds_to_target(self) -> float:
    """The median over the seeds, compilation included."""
    return self._to_target(run_folder.SECONDS)

  @property
  def gradients(self) -> float:
    """The gradient evaluations of a run, the mean over the seeds."""
    return self._total(run_folder.GRADIENT_EVALUATIONS)

  @property
  def gradients_to_target(self) -> float:
    """The median over the seeds."""
    return self._to_target(run_folder.GRADIENT_EVALUATIONS)

  @property
  def megabytes_up(self) -> float:
    """What the clients send in a run, the mean over the seeds."""
    return self._total(run_folder.BYTES_UP) / _BYTES_PER_MEGABYTE

  @property
  def megabytes_down(self) -> float:
    """What the clients receive in a run, the mean over the seeds."""
    return self._total(run_folder.BYTES_DOWN) / _BYTES_PER_MEGABYTE

  @property
  def megabytes_to_target(self) -> float:
    """Both directions, the median over the seeds."""
    return (
        self._to_target(run_folder.BYTES_UP, run_folder.BYTES_DOWN)
        / _BYTES_PER_MEGABYTE
    )

  def _target_round(self, run: run_folder.Run) -> float:
    return run.find_round(self.task.metric, self.task.target / _PERCENT)

  def _to_target(self, *columns: str) -> float:
    def total(run: run_folder.Run) -> float:
      last = self._target_round(run)
      if math.isinf(last):
        return math.inf
      return math.fsum(
          value
          for column in columns
          for round_num, value in zip(*run.series(column))
          if round_num <= last
      )

    return statistics.median(map(total, self.runs.values()))

  def _total(self, column: str) -> float:
    return statistics.fmean(run.total(column) for run in self.runs.values())


class Results:
  """The finished runs of a plan; each is read once, when it is asked for."""

  def __init__(self, plan: plans.Plan):
    """Reads what is finished now.

    Args:
      plan: The plan.

    Raises:
      UserError: If a record of finished runs is damaged.
    """
    self.plan = plan
    self._records = {
        task: records.Record(pathlib.Path(plan.output_dir) / task)
        for task in plan.board.tasks
    }
    self._runs: dict[trials_lib.Trial, run_folder.Run] = {}

  def is_finished(self, trial: trials_lib.Trial) -> bool:
    """Returns whether a trial has run to its end."""
    return self._records[trial.home.name].is_finished(trial)

  def unfinished(
      self, trials: Sequence[trials_lib.Trial]
  ) -> list[trials_lib.Trial]:
    """Returns the trials that are still to run."""
    return [trial for trial in trials if not self.is_finished(trial)]

  def trial_scores(
      self, task: str, method: str
  ) -> Optional[list[tuning_costs.TrialScore]]:
    """Returns what the tuning trials came to; None until all have."""
    trials = self.plan.tuning(task, method)
    if self.unfinished(trials):
      return None
    definition, selection = self.plan.board.tasks[task], self.plan.selection
    return [
        tuning_costs.TrialScore(
            scores_lib.compute_score(
                selection, self._read(trial), definition.metric
            ),
            score(self._read(trial), definition),
        )
        for trial in trials
    ]

  def chosen(
      self, task: str, method: str
  ) -> Optional[search_spaces.Assignment]:
    """Returns the assignment that is chosen; None until all trials have run."""
    found = self.trial_scores(task, method)
    if found is None:
      return None
    return self.plan.assignments(method)[tuning_costs.choose(found)]

  def outcome(
      self,
      task: str,
      method: str,
      assignment: Optional[search_spaces.Assignment],
  ) -> Optional[Outcome]:
    """Returns what the final runs came to; None until all have run."""
    if assignment is None:
      return None
    trials = self.plan.finals(task, method, assignment)
    if self.unfinished(trials):
      return None
    runs = {trial.seed: self._read(trial) for trial in trials}
    return Outcome(self.plan.board.tasks[task], assignment, runs)

  def tuned(self, task: str) -> dict[str, Outcome]:
    """Returns what the chosen assignments came to, by method."""
    return self._outcomes(task, task)

  def carried(self, task: str, source: str) -> dict[str, Outcome]:
    """Returns what the assignments chosen on another task came to."""
    return self._outcomes(task, source)

  def defaults(self, task: str) -> dict[str, Outcome]:
    """Returns what the library's defaults came to, by method."""
    found = {
        method: self.outcome(task, method, plans.DEFAULTS)
        for method in self.plan.board.methods
    }
    return {name: outcome for name, outcome in found.items() if outcome}

  def _outcomes(self, task: str, source: str) -> dict[str, Outcome]:
    found = {
        method: self.outcome(task, method, self.chosen(source, method))
        for method in self.plan.board.methods
    }
    return {name: outcome for name, outcome in found.items() if outcome}

  def runs(self) -> list[run_folder.Run]:
    """Returns the runs that were read so far."""
    return list(self._runs.values())

  def _read(self, trial: trials_lib.Trial) -> run_folder.Run:
    if trial not in self._runs:
      self._runs[trial] = run_folder.read_run(trial.folder)
    return self._runs[trial]


def rank(
    outcomes: Mapping[str, Outcome], margin: float
) -> list[standings.Standing]:
  """Returns the standings of methods on a task; none of no methods."""
  if not outcomes:
    return []
  return standings.rank(
      {name: outcome.scores for name, outcome in outcomes.items()}, margin
  )
