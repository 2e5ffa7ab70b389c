# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The score of a method over the number of its trials."""

from collections.abc import Mapping, Sequence
import dataclasses

from experiments.leaderboard import results as results_lib
from experiments.run_results import search_statistics


@dataclasses.dataclass(frozen=True)
class Curves:
  """The scores on a task over the number of trials.

  Attributes:
    budget: The largest budget that at least half of the methods with more than
      one trial have, so that a leaderboard that is half done compares equals;
      0 if none ran.
    scores: The expected scores after 1, 2, ... trials, by method; see
      `search_statistics.expected_scores`.
    areas: The areas up to the budget, of the methods that have it, the largest
      first; none if it is 1.
    spreads: How much the score with the budget depends on the samples, of the
      same methods; see `search_statistics.spread`.
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


def find(results: results_lib.Results, task: str) -> Curves:
  """Returns the expected scores after 1, 2, ... trials.

  Args:
    results: The finished runs.
    task: The task.
  """
  scores = {}
  for pair_task, method in results.plan.pairs:
    done = results.budget_done(task, method) if pair_task == task else 0
    if done:
      trials = results.trials(task, method)
      found = search_statistics.expected_scores(
          list(trials.selection), list(trials.score)
      )
      # With few values to choose from there are fewer trials; more would change
      # nothing.
      scores[method] = found + found[-1:] * (done - len(found))
  lengths = sorted(map(len, scores.values()), reverse=True)
  tuned = [length for length in lengths if length > 1] or lengths
  budget = tuned[(len(tuned) - 1) // 2] if tuned else 0
  areas = {
      method: search_statistics.area(found[:budget])
      for method, found in scores.items()
      if len(found) >= budget > 1
  }
  order = sorted(areas, key=lambda method: -areas[method])
  spreads = {}
  for method in order:
    trials = results.trials(task, method)[:budget]
    spreads[method] = search_statistics.spread(
        list(trials.selection), list(trials.score)
    )
  return Curves(budget, scores, {m: areas[m] for m in order}, spreads)
