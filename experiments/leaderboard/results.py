# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The runs of a leaderboard: those that its rules ask for, and the finished."""

from collections.abc import Mapping, Sequence
import dataclasses
import functools
import math
import pathlib
from typing import Any, Optional

import pandas as pd

from experiments.leaderboard import board as board_lib
from experiments.run_results import run_folder
from experiments.run_results import statistics
from experiments.sweep import scores as scores_lib
from experiments.sweep import search_spaces
from experiments.sweep import trials as trials_lib

_PERCENT = 100.0
_BYTES_PER_MEGABYTE = 1e6
# The share of the methods without which none are compared.
_NEARLY_ALL = 0.75

_LABELS = ('method', 'assignment', 'seed', 'score')
# What a run takes until it reaches the target, by the columns that are summed.
_TO_TARGET = {
    'seconds_to_target': [run_folder.SECONDS],
    'gradient_evaluations_to_target': [run_folder.GRADIENT_EVALUATIONS],
    'bytes_to_target': [run_folder.BYTES_UP, run_folder.BYTES_DOWN],
}
# The assignment of the library's defaults, and their folder.
DEFAULTS: search_spaces.Assignment = ()
_DEFAULTS_FOLDER = 'defaults'


@dataclasses.dataclass(frozen=True)
class Plan:
  """The runs of a leaderboard.

  A run lies in `<output_dir>/<task>/<method>/<assignment>/seed_<seed>`. Tuning
  trials differ from final runs in the seed only, so a run needed for both, as
  where the defaults are the best, is trained once.

  Attributes:
    board: The tasks, methods and rules.
    output_dir: The folder of all runs.
    data_dir: The folder of the data sets; None if no task needs one.
    given: The flags that override rules of the data file, and that of the page.
  """

  board: board_lib.Leaderboard
  output_dir: str
  data_dir: Optional[str] = None
  given: tuple[str, ...] = ()

  @property
  def pairs(self) -> list[tuple[str, str]]:
    """The names of every task with every method of it, task by task."""
    return [
        (task, name)
        for task in self.board.tasks
        for name, method in self.board.methods.items()
        if task not in method.not_on
    ]

  @property
  def selection(self) -> scores_lib.Selection:
    """The choice of the best trial, which ignores the test data."""
    rounds = self.board.protocol.selection_rounds
    return dataclasses.replace(
        scores_lib.TRAIN_LOSS,
        name=f'train_loss_last{rounds}',
        num_rounds=rounds,
    )

  def assignments(self, method: str) -> list[search_spaces.Assignment]:
    """Returns a method's assignments: the defaults, then random samples.

    Args:
      method: The name of the method.

    Returns:
      The assignments: a function of the method's ranges and the search seed.
    """
    protocol = self.board.protocol
    drawn = search_spaces.build_assignments(
        randoms=[item.text for item in self.board.methods[method].search],
        num_trials=protocol.num_trials - 1,
        search_seed=protocol.search_seed,
    )
    return list(dict.fromkeys([DEFAULTS, *drawn]))[: protocol.num_trials]

  def tuning(self, task: str, method: str) -> list[trials_lib.Trial]:
    """Returns the trials among which the best is chosen, in their order."""
    seed = self.board.protocol.tuning_seed
    return [
        self._build(task, method, assignment, seed)
        for assignment in self.assignments(method)
    ]

  def finals(
      self, task: str, method: str, assignment: search_spaces.Assignment
  ) -> list[trials_lib.Trial]:
    """Returns the runs of an assignment with the final seeds."""
    return [
        self._build(task, method, assignment, seed)
        for seed in self.board.tasks[task].seeds
    ]

  def _build(
      self,
      task: str,
      method: str,
      assignment: search_spaces.Assignment,
      seed: int,
  ) -> trials_lib.Trial:
    protocol = self.board.protocol
    slug = trials_lib.to_slug(assignment) or _DEFAULTS_FOLDER
    return _build_trial(
        (
            f'--task={task}',
            *self.board.tasks[task].flags,
            *self.board.methods[method].flags,
            f'--total_rounds={protocol.total_rounds}',
            f'--rounds_per_evaluation={protocol.rounds_per_evaluation}',
            *([] if self.data_dir is None else [f'--data_dir={self.data_dir}']),
            *(f'--{flag}={value}' for flag, value in assignment),
        ),
        seed,
        self.output_dir,
        task,
        f'{method}/{slug}',
    )


# A trial is compared by identity, and one run has one trial.
@functools.lru_cache(maxsize=None)
def _build_trial(
    arguments: tuple[str, ...], seed: int, output_dir: str, home: str, name: str
) -> trials_lib.Trial:
  return trials_lib.build_trial(
      {'run': name},
      arguments,
      seed=seed,
      output_dir=output_dir,
      home=home,
      name=name,
  )


@dataclasses.dataclass(frozen=True)
class Curves:
  """The scores on a task over the number of trials.

  Attributes:
    budget: The largest budget that at least half of the methods with more than
      one trial have, so that a leaderboard that is half done compares equals;
      0 if none ran.
    scores: The expected scores after 1, 2, ... trials, by method; see
      `statistics.expected_scores`.
    areas: The areas up to the budget, of the methods that have it, the largest
      first; none if it is 1.
    spreads: How much the score with the budget depends on the samples, of the
      same methods; see `statistics.spread`.
  """

  budget: int
  scores: Mapping[str, Sequence[float]]
  areas: Mapping[str, float]
  spreads: Mapping[str, float]

  @property
  def methods(self) -> list[str]:
    """The methods: those with an area first, then by their defaults."""
    others = (method for method in self.scores if method not in self.areas)
    return [*self.areas, *sorted(others, key=lambda m: -self.scores[m][0])]


class Results:
  """The finished runs of a plan; each is read once, when needed."""

  def __init__(self, plan: Plan):
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
    # Caches of this object, which end with it.
    self.trials = functools.cache(self.trials)  # type: ignore[method-assign]
    self.budget = functools.cache(self.budget)  # type: ignore[method-assign]

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

  def trials(self, task: str, method: str) -> pd.DataFrame:
    """Returns the trials of the largest budget that is done, in their order.

    Args:
      task: The task.
      method: The method.

    Returns:
      The runs, see `statistics.build_frame`; `selection` chooses, the smaller
      the better, and `score` is the test score.
    """
    of_task, selection = self.plan.board.tasks[task], self.plan.selection
    done = self.budget_done(task, method)
    runs = []
    for trial in self.plan.tuning(task, method)[:done]:
      run = self._read(trial)
      found = scores_lib.compute_score(selection, run, of_task.metric)
      runs.append(({'selection': found, 'score': _score(run, of_task)}, run))
    return statistics.build_frame(runs, labels=['selection', 'score'])

  def curves(self, task: str) -> Curves:
    """Returns the expected scores after 1, 2, ... trials.

    Args:
      task: The task.
    """
    scores = {}
    for pair_task, method in self.plan.pairs:
      done = self.budget_done(task, method) if pair_task == task else 0
      if done:
        trials = self.trials(task, method)
        found = statistics.expected_scores(trials.selection, trials.score)
        # With few values to choose from there are fewer trials; more would
        # change nothing.
        scores[method] = found + found[-1:] * (done - len(found))
    lengths = sorted(map(len, scores.values()), reverse=True)
    tuned = [length for length in lengths if length > 1] or lengths
    budget = tuned[(len(tuned) - 1) // 2] if tuned else 0
    areas = {
        method: statistics.area(found[:budget])
        for method, found in scores.items()
        if len(found) >= budget > 1
    }
    areas = dict(sorted(areas.items(), key=lambda item: -item[1]))
    spreads = {}
    for method in areas:
      trials = self.trials(task, method)[:budget]
      spreads[method] = statistics.spread(trials.selection, trials.score)
    return Curves(budget, scores, areas, spreads)

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
    selection = self.trials(task, method).selection[:budget]
    return self.plan.assignments(method)[statistics.choose(selection)]

  def budget(self, task: str) -> int:
    """Returns the number of trials with which tuned methods are compared.

    That is the largest budget that enough methods have finished: of those with
    all its trials, at least two and three quarters must have all final runs.
    Methods that choose their defaults finish first, so a few would not be a
    fair sample. Where there is none, it is the largest.

    Args:
      task: The task.
    """
    protocol = self.plan.board.protocol
    done = [self.budget_done(task, m) for m in self.plan.board.methods]
    found = (
        budget
        for budget in reversed(protocol.budgets)
        if budget > 1
        and self.tuned(task, budget=budget).method.nunique()
        >= max(2, _NEARLY_ALL * sum(trials >= budget for trials in done))
    )
    return next(found, protocol.num_trials)

  def tuned(
      self,
      task: str,
      source: Optional[str] = None,
      budget: Optional[int] = None,
  ) -> pd.DataFrame:
    """Returns the final runs of the chosen assignments.

    Args:
      task: The task of the runs.
      source: The task on which the assignments were chosen; by default the
        same.
      budget: The number of trials there. Default: its `budget`.

    Returns:
      See `defaults`.
    """
    source = source or task
    budget = budget or self.budget(source)
    methods = self.plan.board.methods
    return self._finals(
        task, {name: self.chosen(source, name, budget) for name in methods}
    )

  def defaults(self, task: str) -> pd.DataFrame:
    """Returns the final runs of the library's defaults.

    Args:
      task: The task.

    Returns:
      The runs of the methods that have all seeds; see `statistics.build_frame`.
      `score` is the mean of the last ten evaluations in percent, minus infinity
      if the run diverged. `rounds_to_target`, `seconds_to_target` and so on are
      infinite if the run did not reach the target.
    """
    return self._finals(task, dict.fromkeys(self.plan.board.methods, DEFAULTS))

  def _finals(
      self,
      task: str,
      assignments: Mapping[str, Optional[search_spaces.Assignment]],
  ) -> pd.DataFrame:
    """Returns the final runs of the methods whose runs are all finished."""
    of_task, runs = self.plan.board.tasks[task], []
    for method, assignment in assignments.items():
      if assignment is None:
        continue
      trials = self.plan.finals(task, method, assignment)
      if self.unfinished(trials):
        continue
      for trial in trials:
        run = self._read(trial)
        labels = (method, assignment, trial.seed, _score(run, of_task))
        found = {**dict(zip(_LABELS, labels)), **_measure_target(run, of_task)}
        runs.append((found, run))
    return statistics.build_frame(
        runs, labels=[*_LABELS, 'rounds_to_target', *_TO_TARGET]
    )

  def rank(self, task: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Returns the standings of the methods on a task, with their costs.

    Args:
      task: The task.
      runs: Runs of `defaults` or `tuned`.

    Returns:
      See `statistics.rank`; `assignment`, and the costs: medians over the
      seeds, but means of the totals of a run.
    """
    standings = statistics.rank(runs, self.plan.board.tasks[task].margin)
    medians = ['rounds_to_target', 'seconds_per_round', *_TO_TARGET]
    by_method = runs.groupby('method', sort=False)
    return standings.join(
        [
            by_method[['assignment']].first(),
            by_method[medians].median(),
            by_method[list(run_folder.TOTALS)].mean(),
        ]
    ).assign(
        megabytes_to_target=lambda f: f.bytes_to_target / _BYTES_PER_MEGABYTE,
        megabytes_up=lambda f: f.bytes_up / _BYTES_PER_MEGABYTE,
        megabytes_down=lambda f: f.bytes_down / _BYTES_PER_MEGABYTE,
    )

  def runs(self) -> list[run_folder.Run]:
    """Returns the runs read so far."""
    return list(self._runs.values())

  def registrations(self) -> dict[Optional[board_lib.Registration], list[bool]]:
    """Returns whether each run read so far began before its rules were there.

    Returns:
      Whether, for every run, by the registration of its task and method; those
      of None have none.
    """
    found: dict[Optional[board_lib.Registration], list[bool]] = {}
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


def _score(run: run_folder.Run, task: board_lib.Task) -> float:
  """Returns the mean of the last ten evaluations; see `Results.defaults`."""
  value = _PERCENT * run.summarize(task.metric, run_folder.LAST_10_EVALUATIONS)
  return value if math.isfinite(value) else -math.inf


def _measure_target(
    run: run_folder.Run, task: board_lib.Task
) -> dict[str, Any]:
  """Returns what a run takes until it reaches the target of its task."""
  last = run.find_round(task.metric, task.target / _PERCENT)
  found = {'rounds_to_target': last}
  for name, columns in _TO_TARGET.items():
    found[name] = math.inf
    if math.isfinite(last):
      found[name] = math.fsum(
          value
          for column in columns
          for round_num, value in zip(*run.series(column))
          if round_num <= last
      )
  return found
