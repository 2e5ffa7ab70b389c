# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores of a leaderboard's finished runs, and ranks of its methods."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import math
import pathlib
import statistics
from typing import Optional

from experiments.leaderboard import board
from experiments.leaderboard import budgets
from experiments.leaderboard import plans
from experiments.run_results import run_folder
from experiments.run_results import statistics
from experiments.sweep import scores as scores_lib
from experiments.sweep import search_spaces
from experiments.sweep import trials as trials_lib

# The scores of a method's runs by seed; -infinity for a diverged run.
Scores = Mapping[int, float]

_PERCENT = 100.0
_BYTES_PER_MEGABYTE = 1e6

# The share of the methods without which none are compared.
_NEARLY_ALL = 0.75


@dataclasses.dataclass(frozen=True)
class Standing:
  """The rank of a method on a task.

  Attributes:
    method: The name of the method.
    mean: The mean score over the seeds; -infinity if a run diverged.
    std: The standard deviation; None for one seed, or if a run diverged.
    difference: The difference to the best, paired by seed, with its t interval;
      -infinity if a run diverged.
    verdict: The conclusion from the difference.
    num_diverged: The number of diverged runs.
  """

  method: str
  mean: float
  std: Optional[float]
  difference: statistics.Interval
  verdict: statistics.Answer
  num_diverged: int = 0


def rank(scores: Mapping[str, Scores], margin: float) -> list[Standing]:
  """Returns the standings, the best first.

  Methods without diverged runs are ranked by their means. Methods with diverged
  runs follow, ranked by the number of diverged runs and then by the mean of the
  others. If all methods diverged, none is the best.

  The best is chosen on the same seeds on which it is compared, so that its lead
  includes luck, and the others look worse than they are.

  Args:
    scores: The scores of every method, for the same seeds.
    margin: The tolerated loss, in the unit of the scores.

  Returns:
    The standings; ties keep their order.
  """
  order = sorted(scores, key=lambda method: _rank_key(scores[method]))
  return [_stand(method, order[0], scores, margin) for method in order]


def _rank_key(scores: Scores) -> tuple[int, float]:
  finite = list(filter(math.isfinite, scores.values()))
  return len(scores) - len(finite), -statistics.fmean(finite or [-math.inf])


def _stand(
    method: str, best: str, scores: Mapping[str, Scores], margin: float
) -> Standing:
  found = list(scores[method].values())
  num_diverged = sum(map(math.isinf, found))
  if num_diverged:
    # A diverged run decides, whatever the other seeds show.
    difference = statistics.Interval(-math.inf, -math.inf, -math.inf)
    verdict = statistics.Answer.DIVERGED
  else:
    difference = statistics.compare(scores[method], scores[best])
    verdict = statistics.judge(difference, margin)
    if method == best:
      verdict = statistics.Answer.BEST
  mean, std = statistics.fmean(found), statistics.std(found)
  return Standing(method, mean, std, difference, verdict, num_diverged)


def score(run: run_folder.Run, task: board.Task) -> float:
  """Returns the mean of the last ten evaluations in percent.

  Args:
    run: The run.
    task: Its task.

  Returns:
    The score; -infinity for a diverged run.
  """
  value = _PERCENT * run.summarize(task.metric, run_folder.LAST_10_EVALUATIONS)
  return value if math.isfinite(value) else -math.inf


@dataclasses.dataclass(frozen=True)
class Outcome:
  """The measurements of the final runs of an assignment.

  Attributes:
    task: The task.
    assignment: The assignment.
    runs: The runs by seed.
  """

  task: board.Task
  assignment: search_spaces.Assignment
  runs: Mapping[int, run_folder.Run]

  @functools.cached_property
  def scores(self) -> dict[int, float]:
    """The scores by seed."""
    return {seed: score(run, self.task) for seed, run in self.runs.items()}

  @property
  def rounds_to_target(self) -> float:
    """The median over the seeds; infinity if half or more never reach it."""
    return statistics.median(map(self._target_round, self.runs.values()))

  @property
  def seconds_per_round(self) -> float:
    """The median over rounds, then over seeds, to exclude outliers."""
    return statistics.median(
        run.seconds_per_round for run in self.runs.values()
    )

  @property
  def seconds_to_target(self) -> float:
    """The median over the seeds, including compilation."""
    return self._to_target(run_folder.SECONDS)

  @property
  def gradient_evaluations(self) -> float:
    """The mean over the seeds of the gradient evaluations of a run."""
    return self._total(run_folder.GRADIENT_EVALUATIONS)

  @property
  def gradient_evaluations_to_target(self) -> float:
    """The median over the seeds."""
    return self._to_target(run_folder.GRADIENT_EVALUATIONS)

  @property
  def megabytes_up(self) -> float:
    """The mean over the seeds of the megabytes that clients send per run."""
    return self._total(run_folder.BYTES_UP) / _BYTES_PER_MEGABYTE

  @property
  def megabytes_down(self) -> float:
    """The mean over the seeds of the megabytes that clients get per run."""
    return self._total(run_folder.BYTES_DOWN) / _BYTES_PER_MEGABYTE

  @property
  def megabytes_to_target(self) -> float:
    """The median over the seeds of the megabytes in both directions."""
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
  """The finished runs of a plan; each is read once, when needed."""

  def __init__(self, plan: plans.Plan):
    """Reads which runs are finished now.

    Args:
      plan: The plan.

    Raises:
      UserError: If a record of finished runs is damaged.
    """
    self.plan = plan
    self._records = {
        task: trials_lib.Record(pathlib.Path(plan.output_dir) / task)
        for task in plan.board.tasks
    }
    self._runs: dict[trials_lib.Trial, run_folder.Run] = {}
    self._is_finished: dict[trials_lib.Trial, bool] = {}
    self._scores: dict[tuple[str, str], list[budgets.TrialScore]] = {}
    self._budgets: dict[str, int] = {}

  def unfinished(
      self, trials: Sequence[trials_lib.Trial]
  ) -> list[trials_lib.Trial]:
    """Returns the trials that were still to run when first asked for."""
    for trial in trials:
      if trial not in self._is_finished:
        record = self._records[trial.home.name]
        self._is_finished[trial] = record.is_finished(trial)
    return [trial for trial in trials if not self._is_finished[trial]]

  def budget_done(self, task: str, method: str) -> int:
    """Returns the largest budget whose trials have all run; 0 for none."""
    trials = self.plan.tuning(task, method)
    return max(
        (
            budget
            for budget in self.plan.board.protocol.budgets
            # A method with few values to choose from has fewer trials.
            if not self.unfinished(trials[:budget])
        ),
        default=0,
    )

  def trial_runs(self, task: str, method: str) -> list[run_folder.Run]:
    """Returns the runs of the trials of the largest budget that is done."""
    trials = self.plan.tuning(task, method)
    done = trials[: self.budget_done(task, method)]
    return [self._read(trial) for trial in done]

  def trial_scores(self, task: str, method: str) -> list[budgets.TrialScore]:
    """Returns the scores of `trial_runs`."""
    if (task, method) not in self._scores:
      definition, selection = self.plan.board.tasks[task], self.plan.selection
      self._scores[task, method] = [
          budgets.TrialScore(
              scores_lib.compute_score(selection, run, definition.metric),
              score(run, definition),
          )
          for run in self.trial_runs(task, method)
      ]
    return self._scores[task, method]

  def chosen(
      self, task: str, method: str, budget: Optional[int] = None
  ) -> Optional[search_spaces.Assignment]:
    """Returns the assignment that is chosen; None until all trials have run.

    Args:
      task: The task.
      method: The method.
      budget: The number of trials. Default: the largest budget.
    """
    budget = budget or self.plan.board.protocol.num_trials
    if self.budget_done(task, method) < budget:
      return None
    found = self.trial_scores(task, method)[:budget]
    return self.plan.assignments(method)[budgets.choose(found)]

  def budget(self, task: str) -> int:
    """Returns the number of trials with which tuned methods are compared.

    That is the largest budget that enough methods have finished: of those with
    all its trials, at least two and three quarters must have all final runs.
    Methods that choose their defaults finish first, so a few would not be a
    fair sample. Where there is none, it is the largest.

    Args:
      task: The task.
    """
    if task not in self._budgets:
      protocol = self.plan.board.protocol
      done = [self.budget_done(task, m) for m in self.plan.board.methods]
      found = (
          budget
          for budget in reversed(protocol.budgets)
          if budget > 1
          and len(self.tuned(task, budget=budget))
          >= max(2, _NEARLY_ALL * sum(trials >= budget for trials in done))
      )
      self._budgets[task] = next(found, protocol.num_trials)
    return self._budgets[task]

  def tuned(
      self,
      task: str,
      source: Optional[str] = None,
      budget: Optional[int] = None,
  ) -> dict[str, Outcome]:
    """Returns the outcomes of the chosen assignments, by method.

    Args:
      task: The task of the runs.
      source: The task on which the assignments were chosen; by default the
        same.
      budget: The number of trials there. Default: its `budget`.
    """
    source = source or task
    budget = budget or self.budget(source)
    methods = self.plan.board.methods
    return self._outcomes(
        task, {name: self.chosen(source, name, budget) for name in methods}
    )

  def defaults(self, task: str) -> dict[str, Outcome]:
    """Returns the outcomes of the library's defaults, by method."""
    assignments = dict.fromkeys(self.plan.board.methods, plans.DEFAULTS)
    return self._outcomes(task, assignments)

  def _outcomes(
      self,
      task: str,
      assignments: Mapping[str, Optional[search_spaces.Assignment]],
  ) -> dict[str, Outcome]:
    """Returns the outcomes of the methods whose runs are all finished."""
    found = {}
    for method, assignment in assignments.items():
      if assignment is not None:
        trials = self.plan.finals(task, method, assignment)
        if not self.unfinished(trials):
          runs = {trial.seed: self._read(trial) for trial in trials}
          definition = self.plan.board.tasks[task]
          found[method] = Outcome(definition, assignment, runs)
    return found

  def rank(self, task: str, outcomes: Mapping[str, Outcome]) -> list[Standing]:
    """Returns the standings of the methods on a task."""
    scores = {name: outcome.scores for name, outcome in outcomes.items()}
    return rank(scores, self.plan.board.tasks[task].margin)

  def runs(self) -> list[run_folder.Run]:
    """Returns the runs read so far."""
    return list(self._runs.values())

  def registrations(self) -> dict[Optional[board.Registration], list[bool]]:
    """Returns whether each run read so far began before its rules were there.

    Returns:
      Whether, for every run, by the registration of its task and method; those
      of None have none.
    """
    found: dict[Optional[board.Registration], list[bool]] = {}
    for trial, run in self._runs.items():
      method, _, _ = trial.name.partition('/')
      rules = self.plan.board.find_registration(trial.home.name, method)
      is_early = rules is None or run.started.astimezone() < rules.time
      found.setdefault(rules, []).append(is_early)
    return found

  def _read(self, trial: trials_lib.Trial) -> run_folder.Run:
    if trial not in self._runs:
      self._runs[trial] = run_folder.read_run(trial.folder)
    return self._runs[trial]
