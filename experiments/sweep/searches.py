# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Searches: try assignments, choose the best, and transfer it to other tasks.

A search writes `results.csv`, `configurations.csv`, `best.csv`, `transfer.csv`
and `best.flags`.
"""

from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools
import pathlib
from typing import Any, Optional

import pandas as pd

from experiments import command_line
from experiments import formatting
from experiments import hparams
from experiments import registry
from experiments.sweep import running
from experiments.sweep import scores
from experiments.sweep import search_spaces
from experiments.sweep import trials as trials_lib
from tff_adaptive import _files

_Results = Sequence[scores.RunResult]


def _method_flags(trial: trials_lib.Trial) -> list[str]:
  """Returns the flags of a trial that define its method, and the swept ones."""
  found = {}
  if (
      trial.hparams[registry.ALGORITHM]
      == hparams.DEFAULT_ROWS[registry.ALGORITHM]
  ):
    # Others choose their rules themselves.
    for kind in (registry.CLIENT_OPTIMIZER, registry.SERVER_OPTIMIZER):
      found[kind] = f'--{kind}={trial.hparams[kind]}'
  for text in trial.arguments:
    name = text.removeprefix('--').partition('=')[0]
    if name in trial.labels or any(
        map(hparams.is_of_method, (name, name.removeprefix('no')))
    ):
      found[name] = text
  return list(found.values())


def write_results(
    path: pathlib.Path,
    results: _Results,
    selection: Optional[scores.Selection] = None,
    *,
    keep_others: bool = False,
):
  """Writes one row per run.

  Args:
    path: The file.
    results: The results of the runs, which have the same kinds of labels.
    selection: The criterion for the best; None to write no scores.
    keep_others: Whether to keep the file's rows of other runs.

  Raises:
    WriteError: If the file cannot be written.
  """
  rows: list[Mapping[str, Any]] = [
      {
          **result.trial.labels,
          'seed': result.trial.seed,
          'status': result.status,
          **(
              {'selected_by': selection.label, 'score': result.score}
              if selection
              else {}
          ),
          'metric': result.metric,
          'evaluation_data': scores.evaluation_data(result.trial),
          **{name: result.measured.get(name) for name in scores.MEASURED},
          'run': result.trial.folder,
      }
      for result in results
  ]
  if keep_others:
    # Not by the folder, which can be given in different ways.
    names = (*results[0].trial.labels, 'seed')
    runs = {tuple(str(row[name]) for name in names) for row in rows}
    # Rows with other columns are dropped.
    others = [
        row
        for row in _read_rows(path)
        if list(row) == list(rows[0])
        and tuple(row[name] for name in names) not in runs
    ]
    rows = others + rows
  formatting.write_csv_rows(path, rows)


def _read_rows(path: pathlib.Path) -> Iterator[Mapping[str, str]]:
  """Yields the rows of a file, if it exists."""
  try:
    lines = [fields for _, fields in _files.read_lines(path)]
  except FileNotFoundError:
    return
  except _files.DamagedCSVError as error:
    raise command_line.UserError(
        f'{path} is damaged ({error}); remove it to have it written again'
    ) from error
  for fields in lines[1:]:
    if len(fields) != len(lines[0]):
      raise command_line.UserError(
          f'{path} is damaged ({len(fields)} fields for {len(lines[0])} '
          'columns); remove it to have it written again'
      )
    yield dict(zip(lines[0], fields))


@dataclasses.dataclass(frozen=True)
class Search:
  """The checked trials of a search and its criterion.

  Attributes:
    trials: The trials.
    transfers: The trials of every assignment on other tasks.
    selection: The criterion for the best.
    metric: The evaluation metric.
    best_per: A swept flag, to choose the best for each of its values.
    metric_mode: Whether the largest or the smallest value of the metric is the
      best, 'max' or 'min'; None for what its name says.
  """

  trials: Sequence[trials_lib.Trial]
  transfers: Sequence[trials_lib.Trial]
  selection: scores.Selection
  metric: str
  best_per: Optional[str] = None
  metric_mode: Optional[str] = None

  @property
  def home(self) -> pathlib.Path:
    """The folder of the sweep."""
    return self.trials[0].home

  @property
  def transfer_csv(self) -> pathlib.Path:
    """The results on other tasks."""
    return self.home / 'transfer.csv'

  def rank(self, results: _Results) -> pd.DataFrame:
    """Returns the configurations, the best first."""
    return scores.rank(
        results,
        higher_is_better=self.selection.is_higher_better(
            self.metric, self.metric_mode
        ),
    )

  def write(self, results: _Results):
    """Writes the CSV files and the flagfile.

    Args:
      results: The results of the trials.

    Raises:
      WriteError: If a file cannot be written.
    """
    write_results(self.home / 'results.csv', results, self.selection)
    ranked = self.rank(results)
    best = scores.choose_best(ranked, self.best_per)
    self._write_configurations('configurations', ranked)
    best_csv, best_flags = self.home / 'best.csv', self.home / 'best.flags'
    if len(best):
      self._write_configurations('best', best)
      trial = best.trial.iloc[0]
      num_finished = len(scores.with_status(results, scores.FINISHED))
      so_far = f' ({num_finished} of {len(results)} runs are finished)'
      lines = [
          f'# The best by {self.selection.label}: '
          f'{formatting.format_value(best.score_mean.iloc[0])}'
          f'{so_far * (num_finished < len(results))}. Its run:',
          f'# {command_line.build_command("train", trial.arguments)}',
          *_method_flags(trial),
      ]
      _files.write(best_flags, '\n'.join(lines) + '\n')
    else:
      # Files of an earlier call would be mistaken for the outcome of this one.
      for path in (best_csv, best_flags, self.transfer_csv):
        with _files.write_errors_of(path):
          path.unlink(missing_ok=True)

  def _write_configurations(self, name: str, found: pd.DataFrame):
    """Writes a row for each configuration; see `scores.rank`."""
    rows = found.drop(columns='trial').assign(
        metric=self.metric,
        evaluation_data=found.trial.map(scores.evaluation_data),
        runs=[trial.folder.parent for trial in found.trial],
    )
    place = rows.columns.get_loc('score_mean')
    rows.insert(place, 'selected_by', self.selection.label)
    formatting.write_csv_rows(
        self.home / f'{name}.csv', rows.to_dict('records')
    )


def build_search(
    assignments: Sequence[search_spaces.Assignment],
    given: trials_lib.GivenFlags,
    *,
    selection: scores.Selection,
    metric: str,
    best_per: Optional[str] = None,
    metric_mode: Optional[str] = None,
    transfer_to: Sequence[str] = (),
    **places: Any,
) -> Search:
  """Builds a search, after checking every trial.

  Args:
    assignments: The assignments to try.
    given: The flags of every trial.
    selection: The criterion for the best.
    metric: The evaluation metric.
    best_per: A swept flag, to choose the best for each of its values.
    metric_mode: 'max' or 'min'; see `Search`.
    transfer_to: Flagfiles or presets of other tasks.
    **places: Seeds and folders; see `trials.build_search_trials`.

  Returns:
    The search.

  Raises:
    HparamError: If the flags of a trial are invalid, on this or another task,
      the metric does not belong to the criterion, or its mode is unknown.
  """
  selection.check_metric(metric)
  scores.is_metric_higher_better(metric, metric_mode)
  names = [flag for flag, _ in assignments[0]]
  if best_per is not None and best_per not in names:
    raise hparams.HparamError(
        f'--best_per takes one of the swept flags {", ".join(names)}, found '
        f'{best_per!r}'
    )
  trials_lib.check_are_free(names)
  if 'output_dir' in names:
    raise hparams.HparamError('--output_dir cannot be swept')
  stems = [pathlib.Path(path).stem for path in transfer_to]
  if len(set(stems)) < len(stems):
    raise hparams.HparamError(
        '--transfer_to takes files or presets with distinct names, since they '
        f'name the folders of the runs, found {", ".join(transfer_to)}'
    )
  build = functools.partial(
      trials_lib.build_search_trials, assignments, given, **places
  )
  trials = build()
  scores.check(selection, trials)
  transfers = [t for path in transfer_to for t in build(transfer_to=path)]
  return Search(trials, transfers, selection, metric, best_per, metric_mode)


def run(search: Search, *, num_at_once: Optional[int] = None):
  """Runs a search, then its best on the other tasks, and prints the best.

  Args:
    search: The search.
    num_at_once: The number of parallel trials. Default: see
      `running.default_jobs`.

  Raises:
    EnvironmentalError: If trials failed; then the best is not transferred.
    UserError: If a record or a finished run is damaged.
    KeyboardInterrupt: After a signal.
  """
  run_trials = functools.partial(
      running.run_trials,
      num_at_once=num_at_once,
      measure_fn=functools.partial(
          scores.measure,
          metric=search.metric,
          higher_is_better=scores.is_metric_higher_better(
              search.metric, search.metric_mode
          ),
          selection=search.selection,
      ),
  )
  results = run_trials(search.trials, write=search.write)
  best = scores.choose_best(search.rank(results), search.best_per)
  chosen = {trial.configuration for trial in best.trial}
  transfers = [
      trial for trial in search.transfers if trial.configuration[1:] in chosen
  ]
  if transfers:
    run_trials(
        transfers,
        write=lambda found: write_results(
            search.transfer_csv, found, search.selection
        ),
    )
    print(f'other tasks: {search.transfer_csv}')
  if best.empty:
    print(
        'best: none, because no assignment has a finite '
        f'{search.selection.column_of(search.metric)} for every seed: '
        f'{search.home / "results.csv"}'
    )
  else:
    labels = best.trial.iloc[0].labels
    flags = ' '.join(f'--{flag}={value}' for flag, value in labels.items())
    chosen_by = f'best by {search.selection.label}: {flags}'
    if not flags:
      chosen_by = f'{len(search.trials)} runs of one setting'
    print(
        f'{chosen_by} ({best.score_mean.iloc[0]:.4g}): '
        f'{search.home / "best.csv"}'
    )
