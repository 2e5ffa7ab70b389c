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
"""Which runs of a leaderboard are made one after the other."""

from collections.abc import Callable, Sequence

from experiments.leaderboards import plans
from experiments.leaderboards import results as results_lib
from experiments.sweeps import trials as trials_lib

_Stage = Callable[[results_lib.Results], list[trials_lib.Trial]]


def tuning(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the tuning trials of all tasks and methods."""
  plan = results.plan
  return plans.unite(t for pair in plan.pairs for t in plan.tuning(*pair))


def tuned(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the final runs of what was chosen on the same task."""
  return _finals(results, lambda task: [task])


def carried(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the final runs of what was chosen on the other tasks."""
  return _finals(
      results, lambda task: [t for t in results.plan.board.tasks if t != task]
  )


def defaults(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the final runs of the library's defaults."""
  plan = results.plan
  return plans.unite(
      trial
      for pair in plan.pairs
      for trial in plan.finals(*pair, plans.DEFAULTS)
  )


def _finals(
    results: results_lib.Results, sources_of: Callable[[str], Sequence[str]]
) -> list[trials_lib.Trial]:
  """Returns the final runs of assignments that are known by now."""
  found = []
  for task, method in results.plan.pairs:
    for source in sources_of(task):
      assignment = results.chosen(source, method)
      if assignment is not None:
        found += results.plan.finals(task, method, assignment)
  return plans.unite(found)


STAGES: dict[str, _Stage] = {
    'tuning trials': tuning,
    'final runs of the best': tuned,
    'final runs of rates of other tasks': carried,
    'final runs of the defaults': defaults,
}


def known_trials(results: results_lib.Results) -> list[trials_lib.Trial]:
  """Returns the runs of all stages, as far as they are known by now."""
  return plans.unite(
      trial for stage in STAGES.values() for trial in stage(results)
  )
