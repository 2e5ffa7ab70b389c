# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The runs that the rules of a leaderboard ask for."""

from collections.abc import Iterable
import dataclasses
import functools
from typing import Optional

from experiments.leaderboard import board as board_lib
from experiments.sweep import scores
from experiments.sweep import search_spaces
from experiments.sweep import trials as trials_lib

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
  def selection(self) -> scores.Selection:
    """The choice of the best trial, which ignores the test data."""
    rounds = self.board.protocol.selection_rounds
    return dataclasses.replace(
        scores.TRAIN_LOSS, name=f'train_loss_last{rounds}', num_rounds=rounds
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


def unite(trials: Iterable[trials_lib.Trial]) -> list[trials_lib.Trial]:
  """Returns trials without doubles, in their order."""
  return list(dict.fromkeys(trials))
