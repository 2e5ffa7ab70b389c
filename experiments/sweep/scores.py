# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Results of runs, selection criteria, and the choice of the best."""

from collections.abc import Iterable, Mapping, Sequence
import dataclasses
import math
from typing import Any, Optional

import numpy as np
import pandas as pd

from experiments import command_line
from experiments import hparams
from experiments import published
from experiments import registry
from experiments import settings as settings_lib
from experiments.run_results import run_folder
from experiments.run_results import statistics
from experiments.sweep import trials as trials_lib
from tff_adaptive import _metric_modes

_ESTIMATES = (run_folder.LAST_10_EVALUATIONS, run_folder.BEST)
# Reported for every run.
MEASURED = (*_ESTIMATES, *run_folder.TOTALS)


def is_metric_higher_better(metric: str, mode: Optional[str] = None) -> bool:
  """Returns whether higher values of the reported metric are better.

  Args:
    metric: The value of --metric.
    mode: The value of --metric_mode; None for what the name says.

  Raises:
    HparamError: If the name of the metric does not tell.
  """
  try:
    return _metric_modes.mode_of(metric, mode, '--metric_mode') == (
        _metric_modes.MAX
    )
  except _metric_modes.UnknownModeError as error:
    raise hparams.HparamError(f'--metric={metric}: {error}') from error


@dataclasses.dataclass(frozen=True)
class Selection:
  """A value of --select_by.

  Attributes:
    name: The value.
    column: The column of metrics.csv that it reads; if it ends with a slash,
      the value of --metric is appended.
    evaluation_data: The data of the evaluations, if it reads them.
    warning: A warning shown with every outcome.
    num_rounds: The number of rounds averaged, for columns with a value in every
      round; a single cohort says little.
    last_round: The last of these rounds; None for the last round of the run.
  """

  name: str
  column: str
  evaluation_data: Optional[str] = None
  warning: str = ''
  num_rounds: int = 0
  last_round: Optional[int] = None

  @property
  def label(self) -> str:
    """The description of the criterion in files."""
    return f'{self.name} ({self.warning})' if self.warning else self.name

  def column_of(self, metric: str) -> str:
    """Returns the column of a metric; a name with a slash is a column."""
    if not self.column.endswith('/'):
      return self.column
    return metric if '/' in metric else f'{self.column}{metric}'

  def is_higher_better(self, metric: str, mode: Optional[str] = None) -> bool:
    """Returns whether higher scores are better.

    Args:
      metric: The value of --metric.
      mode: The value of --metric_mode; None for what the name says.

    Raises:
      HparamError: If the name of the metric does not tell.
    """
    if not self.column.endswith('/'):  # Another column than that of --metric.
      return run_folder.is_higher_better(self.column)
    return is_metric_higher_better(metric, mode)

  def check_metric(self, metric: str):
    """Raises if a metric does not belong to this criterion.

    Args:
      metric: The value of --metric.

    Raises:
      HparamError: If the column of the metric is on other data.
    """
    column = self.column_of(metric)
    of_average = self.evaluation_data and column.startswith(
        settings_lib.AVERAGE
    )
    if not (column.startswith(self.column) or of_average):
      raise hparams.HparamError(
          f'--select_by={self.name} needs a column of {self.column}, found '
          f'--metric={metric}; change --metric or --select_by'
      )
    if self.evaluation_data == settings_lib.VALIDATION and (
        column.startswith(settings_lib.OF_CLIENTS)
    ):
      raise hparams.HparamError(
          f'--select_by={self.name} uses no test data, but --metric={metric} '
          "is measured on the clients' test examples; give a metric of "
          f'--evaluations={settings_lib.CENTRAL}'
      )


TRAIN_LOSS = Selection('train_loss_last100', 'clients/loss', num_rounds=100)
TRAIN_ACCURACY = Selection(
    'train_accuracy_round100', 'train/', num_rounds=10, last_round=100
)
VALIDATION = Selection(
    'validation', run_folder.EVALUATION, settings_lib.VALIDATION
)
POSTHOC_TEST = Selection(
    'posthoc_test',
    run_folder.EVALUATION,
    settings_lib.TEST,
    published.REPLICATION_ONLY,
)
SELECTIONS = {
    selection.name: selection
    for selection in (TRAIN_LOSS, TRAIN_ACCURACY, VALIDATION, POSTHOC_TEST)
}


def check(selection: Selection, trials: Sequence[trials_lib.Trial]):
  """Raises unless the trials will measure the criterion.

  Args:
    selection: The criterion.
    trials: The trials.

  Raises:
    HparamError: If a trial evaluates on other data or trains too few rounds.
  """
  for trial in trials:
    wanted, found = selection.evaluation_data, evaluation_data(trial)
    if wanted not in (None, found):
      raise hparams.HparamError(
          f'--select_by={selection.name} needs --evaluation_data={wanted}, but '
          f'the trial {trial.name} has {found}'
      )
    task = registry.ROWS[registry.TASK][trial.hparams[registry.TASK]]
    of_task = task.definition.protocol.total_rounds
    rounds = trial.hparams['total_rounds'] or of_task
    last = selection.last_round or 0
    if rounds < last:
      raise hparams.HparamError(
          f'--select_by={selection.name} needs --total_rounds of at least '
          f'{last}, but the trial {trial.name} has {rounds}'
      )


def evaluation_data(trial: trials_lib.Trial) -> str:
  """Returns the data on which a trial is evaluated."""
  return trial.hparams['evaluation_data'] or settings_lib.TEST


def compute_score(
    selection: Selection, run: run_folder.Run, metric: str
) -> float:
  """Returns the score of a run.

  Args:
    selection: The criterion.
    run: The run.
    metric: The value of --metric.

  Returns:
    The score; NaN if it was not measured or is not finite.
  """
  column = selection.column_of(metric)
  if selection.evaluation_data:
    return run.summarize(column, run_folder.LAST_10_EVALUATIONS)
  last = selection.last_round or run.rounds_done
  count = selection.num_rounds
  rounds, _ = run.series(run_folder.ROUND_NUM)
  window = {r for r in rounds if last - count < r <= last}
  window -= run.idle_rounds()
  values = [v for r, v in zip(*run.series(column)) if r in window]
  # Any other missing round had no finite value.
  if run.rounds_done < last or not window or len(values) < len(window):
    return math.nan
  return math.fsum(values) / len(values)


STATUSES = (FINISHED, RUNNING, FAILED, WAITING) = (
    'finished',
    'running',
    'failed',
    'waiting',
)


@dataclasses.dataclass(frozen=True)
class RunResult:
  """The result of a run.

  Attributes:
    trial: The trial.
    status: One of the constants of this module.
    metric: The evaluation metric; empty until the run is finished.
    score: The score by the sweep's criterion; NaN if there is none.
    measured: The estimates and totals named in `MEASURED`.
  """

  trial: trials_lib.Trial
  status: str
  metric: str = ''
  score: float = math.nan
  measured: Mapping[str, float] = dataclasses.field(default_factory=dict)


def with_status(
    results: Iterable[RunResult], status: str
) -> list[trials_lib.Trial]:
  """Returns the trials that have a status."""
  return [result.trial for result in results if result.status == status]


def rank(
    results: Sequence[RunResult], *, higher_is_better: bool
) -> pd.DataFrame:
  """Returns the configurations, the best first.

  Args:
    results: The results of the runs, whose trials have the same kinds of
      labels.
    higher_is_better: Whether higher scores are better.

  Returns:
    A row for each configuration: `rank`, 1 for the best; its labels;
    `num_seeds` and `num_finished`; of the score and of the mean of the last ten
    evaluations `NAME_mean`, NaN unless every run has it, and `NAME_std`; and
    `trial`, that of its first seed. Those without a finite score come last.
  """
  labels = list(results[0].trial.labels)
  last_10 = run_folder.LAST_10_EVALUATIONS
  runs = pd.DataFrame(
      [
          {
              **result.trial.labels,
              'configuration': result.trial.configuration,
              'trial': result.trial,
              'is_finished': result.status == FINISHED,
              'score': result.score,
              last_10: result.measured.get(last_10, math.nan),
          }
          for result in results
      ]
  )
  aggregated: dict[str, Any] = {name: (name, 'first') for name in labels}
  aggregated['num_seeds'] = ('trial', 'size')
  aggregated['num_finished'] = ('is_finished', 'sum')
  aggregated['trial'] = ('trial', 'first')
  for name in ('score', last_10):
    aggregated[f'{name}_mean'] = (name, lambda v: v.mean(skipna=False))
    aggregated[f'{name}_std'] = (name, statistics.std)
  found = runs.groupby('configuration', sort=False).agg(**aggregated)
  key = found.score_mean.where(np.isfinite(found.score_mean))
  order = key.sort_values(
      ascending=not higher_is_better, kind='stable', na_position='last'
  )
  found = found.loc[order.index].reset_index(drop=True)
  found.insert(0, 'rank', range(1, len(found) + 1))
  return found


def choose_best(
    ranked: pd.DataFrame, best_per: Optional[str] = None
) -> pd.DataFrame:
  """Returns the best configuration, or the best for each value of a flag.

  Args:
    ranked: The configurations as returned by `rank`.
    best_per: A swept flag, to choose the best for each of its values.

  Returns:
    The best configurations with a finite score, best first; may be empty.
  """
  finite = ranked[np.isfinite(ranked.score_mean)]
  return finite.drop_duplicates(best_per) if best_per else finite[:1]


def measure(
    trial: trials_lib.Trial,
    *,
    metric: str,
    higher_is_better: bool,
    selection: Optional[Selection] = None,
) -> RunResult:
  """Returns the result of a finished trial.

  Args:
    trial: The trial.
    metric: The reported metric: an evaluation metric or a column of
      metrics.csv.
    higher_is_better: Whether higher values of the metric are better.
    selection: The criterion for the best; None for no score.

  Returns:
    The result, with the mean of the last ten evaluations, the best one, and
    totals over the rounds; NaN if not measured or if the run diverged.

  Raises:
    UserError: If a file of the run is damaged.
    EnvironmentalError: If a file of the run cannot be read.
  """
  with command_line.reporting(run_folder.RunError):
    run = run_folder.read_run(trial.folder)
  measured = {
      estimate: run.summarize(
          metric, estimate, higher_is_better=higher_is_better
      )
      for estimate in _ESTIMATES
  }
  measured |= {n: run.total(of) for n, of in run_folder.TOTALS.items()}
  score = compute_score(selection, run, metric) if selection else math.nan
  return RunResult(trial, FINISHED, metric, score, measured)
