# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small leaderboard and runs that nobody has trained, for its tests."""

from collections.abc import Mapping, Sequence
import math
import pathlib
from typing import Optional

import attrs

from experiments.leaderboard import board
from experiments.leaderboard import results as results_lib
from experiments.sweep import trials as trials_lib
from tests.experiments.report import made_up_runs

ROUNDS = 4
_ROUND_NUMS = range(1, ROUNDS + 1)
TASKS = ('digits', 'mnist')
METHODS = ('FedAvg', 'Delta-SGD')


def build_plan(
    output_dir: pathlib.Path,
    *,
    tasks: Sequence[str] = TASKS,
    methods: Sequence[str] = METHODS,
    num_trials: int = 3,
    num_seeds: int = 2,
    total_rounds: int = ROUNDS,
) -> results_lib.Plan:
  """Returns the plan of a leaderboard with few runs."""
  rules = board.load().restrict(
      tasks=tasks,
      methods=methods,
      num_seeds=num_seeds,
      num_trials=num_trials,
      total_rounds=total_rounds,
  )
  return results_lib.Plan(rules, str(output_dir), 'data')


def break_method(rules: board.Leaderboard, name: str) -> board.Leaderboard:
  """Gives a method the rate with which the made-up program fails."""
  method = rules.methods[name]
  rate = 'client_learning_rate'
  broken = attrs.evolve(
      method,
      flags=(*method.flags, f'--{rate}=13'),
      search=tuple(item for item in method.search if item.flag != rate),
  )
  return attrs.evolve(rules, methods={**rules.methods, name: broken})


def write_run(
    trial: trials_lib.Trial,
    accuracies: Sequence[float],
    loss: float = 1.0,
    seconds: float = 0.5,
):
  """Writes a finished run with a test accuracy in every second round."""
  of_rounds = ['' if i % 2 else accuracies[i // 2 - 1] for i in _ROUND_NUMS]
  columns = {
      'clients/loss': loss,
      'clients/num_gradient_evaluations': 100,
      'clients/bytes_up': 1e6,
      'clients/bytes_down': 2e6,
  }
  made_up_runs.write_run(
      trial.folder,
      of_rounds,
      seconds=[seconds],
      columns=columns,
      **trial.hparams,
  )


def write_tuning(
    plan: results_lib.Plan,
    task: str,
    method: str,
    losses: Sequence[float],
    accuracies: Optional[Sequence[float]] = None,
):
  """Writes the tuning trials of a method, by loss and test accuracy."""
  trials = plan.tuning(task, method)
  accuracies = accuracies or [0.5] * len(trials)
  for trial, loss, accuracy in zip(trials, losses, accuracies):
    write_run(trial, [accuracy, accuracy], loss)


def write_finals(
    plan: results_lib.Plan,
    task: str,
    method: str,
    place: int,
    accuracies: Mapping[int, float],
    seconds: float = 0.5,
):
  """Writes the final runs of a trial's assignment, by seed."""
  assignment = plan.assignments(method)[place]
  for trial in plan.finals(task, method, assignment):
    accuracy = accuracies[trial.seed]
    reached = accuracy if math.isfinite(accuracy) else 0.1
    write_run(trial, [reached, accuracy], seconds=seconds)
