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
"""A search: tries assignments, chooses the best, carries it to other tasks."""

from collections.abc import Sequence
import dataclasses
import functools
import pathlib
import sys
from typing import Any, Optional

from experiments import hparam_errors
from experiments.sweep import result_tables
from experiments.sweep import running
from experiments.sweep import scores
from experiments.sweep import search_spaces
from experiments.sweep import trials as trials_lib


@dataclasses.dataclass(frozen=True)
class Search:
  """What is tried, and how is chosen; all of it is checked.

  Attributes:
    trials: The trials.
    transfers: Those of every assignment with the flags of other tasks.
    selection: How is chosen.
    metric: The metric of the evaluations.
    best_per: A flag that is swept: the best is looked for with each of its
      values.
  """

  trials: Sequence[trials_lib.Trial]
  transfers: Sequence[trials_lib.Trial]
  selection: scores.Selection
  metric: str
  best_per: Optional[str] = None

  @property
  def home(self) -> pathlib.Path:
    """The folder of the sweep."""
    return self.trials[0].home

  def write(self, results: Sequence[result_tables.RunResult]):
    """Writes the CSV files and the flagfile.

    Args:
      results: The results of the trials.

    Raises:
      WriteError: If a file cannot be written.
    """
    result_tables.write_results(
        self.home / 'results.csv', results, self.selection
    )
    ranked = self._rank(results)
    write = functools.partial(
        result_tables.write_configurations,
        selection=self.selection,
    )
    write(self.home / 'configurations.csv', ranked)
    best = result_tables.choose_best(ranked, self.best_per)
    best_csv, best_flags = self.home / 'best.csv', self.home / 'best.flags'
    if best:
      write(best_csv, best)
      result_tables.write_flagfile(best_flags, best[0], self.selection)
    else:
      # Those of a call before would be taken for the outcome of this one.
      result_tables.remove(best_csv, best_flags)

  def best(
      self, results: Sequence[result_tables.RunResult]
  ) -> list[result_tables.Configuration]:
    """Returns the best configurations, the very best first."""
    return result_tables.choose_best(self._rank(results), self.best_per)

  def _rank(
      self, results: Sequence[result_tables.RunResult]
  ) -> list[result_tables.Configuration]:
    return result_tables.rank(
        results, higher_is_better=self.selection.is_higher_better(self.metric)
    )


def build_search(
    assignments: Sequence[search_spaces.Assignment],
    given: trials_lib.GivenFlags,
    *,
    seeds: Sequence[int],
    output_dir: str,
    sweep_name: str,
    selection: scores.Selection,
    metric: str,
    best_per: Optional[str] = None,
    transfer_to: Sequence[str] = (),
) -> Search:
  """Returns a search, if every trial of it fits.

  Args:
    assignments: What is tried.
    given: The flags of every trial.
    seeds: The seeds of every assignment.
    output_dir: The folder of all runs.
    sweep_name: The folder of the sweep in it.
    selection: How is chosen.
    metric: The metric of the evaluations.
    best_per: A flag that is swept.
    transfer_to: Flagfiles of other tasks.

  Returns:
    The search.

  Raises:
    HparamError: If a trial does not fit, also with the flags of another task;
      names it. If the metric is none of what is chosen by.
  """
  selection.check_metric(metric)
  names = [flag for flag, _ in assignments[0]]
  if best_per is not None and best_per not in names:
    raise hparam_errors.HparamError(
        f'--best_per takes a flag that is swept, of {", ".join(names)}, found '
        f'{best_per!r}'
    )
  trials_lib.check_are_free(names)
  stems = [pathlib.Path(path).stem for path in transfer_to]
  if len(set(stems)) < len(stems):
    raise hparam_errors.HparamError(
        '--transfer_to takes files of different names, which name the folders '
        f'of their runs, found {", ".join(transfer_to)}'
    )
  places: dict[str, Any] = {
      'seeds': seeds,
      'output_dir': output_dir,
      'sweep_name': sweep_name,
  }
  trials = trials_lib.build_search_trials(assignments, given, **places)
  scores.check(selection, trials)
  transfers = [
      trial
      for path in transfer_to
      for trial in trials_lib.build_transfer_trials(
          path, assignments, given, **places
      )
  ]
  return Search(trials, transfers, selection, metric, best_per)


def run(
    search: Search,
    *,
    command: Sequence[str],
    num_at_once: Optional[int] = None,
):
  """Runs a search, then its best on the other tasks, and says what is best.

  Args:
    search: The search.
    command: The program that takes the flags of a trial.
    num_at_once: How many trials run at once. Default: see
      `running.default_jobs`.

  Raises:
    EnvironmentalError: If trials failed; then nothing is carried over.
    UserError: If a record, or a run that is finished, is damaged.
    KeyboardInterrupt: After a signal that ends.
  """
  run_trials = functools.partial(
      running.run_trials,
      num_at_once=num_at_once,
      measure_fn=functools.partial(
          running.measure,
          metric=search.metric,
          higher_is_better=scores.is_higher_better(search.metric),
          selection=search.selection,
      ),
      stream=sys.stdout,
      command=command,
  )
  results = run_trials(search.trials, write=search.write)
  best = search.best(results)
  chosen = {configuration.assignment for configuration in best}
  transfers = [
      trial
      for trial in search.transfers
      if tuple(trial.labels.items())[1:] in chosen
  ]
  if transfers:
    path = search.home / 'transfer.csv'
    run_trials(
        transfers,
        write=lambda found: result_tables.write_results(
            path, found, search.selection
        ),
    )
    print(f'on the other tasks: {path}')
  print(_describe(search, best))


def _describe(
    search: Search, best: Sequence[result_tables.Configuration]
) -> str:
  """Returns the last line: what is best, and where it is written."""
  if not best:
    return (
        'best: none, because no assignment has a finite '
        f'{search.selection.column_of(search.metric)} for every seed: '
        f'{search.home / "results.csv"}'
    )
  flags = ' '.join(f'--{flag}={value}' for flag, value in best[0].assignment)
  return (
      f'best by {search.selection.label}: {flags} ({best[0].score:.4g}): '
      f'{search.home / "best.csv"}'
  )
