# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scores of a leaderboard's finished runs, and ranks of its methods."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import math
import pathlib
import statistics
from typing import NamedTuple, Optional

from experiments.leaderboard import board
from experiments.run_results import run_folder
from experiments.run_results import seed_statistics
from experiments.sweep import scores as scores_lib
from experiments.sweep import search_spaces
from experiments.sweep import trials as trials_lib

# The scores of a method's runs by seed; -infinity for a diverged run.
Scores = Mapping[int, float]

_PERCENT = 100.0
_BYTES_PER_MEGABYTE = 1e6


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
  difference: seed_statistics.Interval
  verdict: seed_statistics.Answer
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
    difference = seed_statistics.Interval(-math.inf, -math.inf, -math.inf)
    verdict = seed_statistics.Answer.DIVERGED
  else:
    difference = compare(scores[method], scores[best])
    verdict = seed_statistics.judge(difference, margin)
    if method == best:
      verdict = seed_statistics.Answer.BEST
  mean, std = statistics.fmean(found), seed_statistics.std(found)
  return Standing(method, mean, std, difference, verdict, num_diverged)


def compare(scores: Scores, others: Scores) -> seed_statistics.Interval:
  """Returns the difference of two methods, paired by seed."""
  return seed_statistics.t_interval(seed_statistics.subtract(scores, others))


class TrialScore(NamedTuple):
  """The scores of a tuning trial.

  Attributes:
    selection: The value of the criterion; smaller is better, and NaN, for a
      diverged trial, comes last.
    test: The test score; -infinity if the trial diverged.
  """

  selection: float
  test: float


def choose(trials: Sequence[TrialScore]) -> int:
  """Returns the index of the chosen trial, the first among the best."""
  return _order(trials)[0]


def _order(trials: Sequence[TrialScore]) -> list[int]:
  """Returns the indices of the trials, the best first."""

  def key(place: int) -> float:
    selection = trials[place].selection
    return selection if math.isfinite(selection) else math.inf

  return sorted(range(len(trials)), key=key)


def expected_scores(trials: Sequence[TrialScore]) -> list[float]:
  """Returns the expected test score after 1, 2, ... trials.

  The score after n trials is the test score of the trial chosen among them. The
  expectation is over all subsets of n trials, so it is exact for sampling
  without replacement:

  ```
  E[n] = sum_i t_(i) C(N - i, n - 1) / C(N, n)
  ```

  where t_(i) is the test score of the i-th best trial by the criterion, i = 1
  ... N, which is chosen if the n - 1 others rank after it.

  Args:
    trials: The trials. A diverged trial counts as 0, since its model is
      useless.

  Returns:
    The expectations; the last one is the score of the chosen trial.

  Example:

    >>> expected_scores([TrialScore(0.1, 90.0), TrialScore(0.2, 80.0)])
    [85.0, 90.0]

  References:
    Dodge, Gururangan, Card, Schwartz, Smith, Show Your Work: Improved Reporting
    of Experimental Results, EMNLP 2019, https://arxiv.org/abs/1909.03004, whose
    estimate samples with replacement and chooses by the reported score.
  """
  total = len(trials)
  tests = [max(trials[place].test, 0.0) for place in _order(trials)]
  return [
      math.fsum(
          test * math.comb(total - i, count - 1)
          for i, test in enumerate(tests, start=1)
      )
      / math.comb(total, count)
      for count in range(1, total + 1)
  ]


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
    """The median over the seeds; infinity if most never reach the target."""
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

  def __init__(self, plan: board.Plan):
    """Reads the records of finished runs.

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
    self._scores: dict[tuple[str, str], Optional[list[TrialScore]]] = {}

  def unfinished(
      self, trials: Sequence[trials_lib.Trial]
  ) -> list[trials_lib.Trial]:
    """Returns the trials that are not finished."""
    return [
        trial
        for trial in trials
        if not self._records[trial.home.name].is_finished(trial)
    ]

  def trial_scores(self, task: str, method: str) -> Optional[list[TrialScore]]:
    """Returns the scores of the tuning trials; None until all have run."""
    if (task, method) not in self._scores:
      self._scores[task, method] = self._score_trials(task, method)
    return self._scores[task, method]

  def _score_trials(self, task: str, method: str) -> Optional[list[TrialScore]]:
    trials = self.plan.tuning(task, method)
    if self.unfinished(trials):
      return None
    definition, selection = self.plan.board.tasks[task], self.plan.selection
    found = []
    for run in map(self._read, trials):
      chosen_by = scores_lib.compute_score(selection, run, definition.metric)
      found.append(TrialScore(chosen_by, score(run, definition)))
    return found

  def chosen(
      self, task: str, method: str
  ) -> Optional[search_spaces.Assignment]:
    """Returns the chosen assignment; None until all trials have run."""
    found = self.trial_scores(task, method)
    if found is None:
      return None
    return self.plan.assignments(method)[choose(found)]

  def tuned(
      self, task: str, source: Optional[str] = None
  ) -> dict[str, Outcome]:
    """Returns the outcomes of the chosen assignments, by method.

    Args:
      task: The task of the runs.
      source: The task on which the assignments were chosen; by default the same
        task.
    """
    methods = self.plan.board.methods
    return self._outcomes(
        task, {name: self.chosen(source or task, name) for name in methods}
    )

  def defaults(self, task: str) -> dict[str, Outcome]:
    """Returns the outcomes of the library's defaults, by method."""
    assignments = dict.fromkeys(self.plan.board.methods, board.DEFAULTS)
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

  def _read(self, trial: trials_lib.Trial) -> run_folder.Run:
    if trial not in self._runs:
      self._runs[trial] = run_folder.read_run(trial.folder)
    return self._runs[trial]
