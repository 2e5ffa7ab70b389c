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
"""The number by which a sweep chooses, and what else is said of a run."""

from collections.abc import Mapping, Sequence
import dataclasses
import math
import pathlib
from typing import Optional

from experiments import evaluation_flags
from experiments import hparam_errors
from experiments.sweeps import trials as trials_lib

DEFAULT_METRIC = 'accuracy'
_REPLICATION_ONLY = 'replication only: chosen on the test data'
_TRAINING_LOSS = 'clients/loss'
_EVALUATION = 'evaluation/'
_SMALLER_IS_BETTER = ('loss', 'error')
# The round up to which the training accuracy is compared, and the mean of how
# many rounds it is: a single cohort says little.
_COMPARED_ROUND = 100
_NUM_COMPARED_ROUNDS = 10
_NUM_LAST_ROUNDS = 100
# Totals over the rounds, by their columns in a metrics.csv.
_TOTALS = {
    'seconds': 'seconds',
    'gradient_evaluations': 'clients/num_gradient_evaluations',
    'bytes_up': 'clients/bytes_up',
    'bytes_down': 'clients/bytes_down',
}

_ESTIMATES = ('last_10_evaluations', 'best')
# What `measure` returns.
MEASURED = (*_ESTIMATES, *_TOTALS)

_Columns = Mapping[str, tuple[list[int], list[float]]]


@dataclasses.dataclass(frozen=True)
class Selection:
  """A value of --select_by.

  Attributes:
    name: The value.
    column: The column of metrics.csv that it reads; with a slash at the end
      the value of --metric follows.
    evaluation_data: What the evaluations must be on, if it reads them.
    warning: What is to stand wherever the outcome is shown.
    num_rounds: Of a column of every round: how many rounds it is the mean of.
  """

  name: str
  column: str
  evaluation_data: Optional[str] = None
  warning: str = ''
  num_rounds: int = 0

  @property
  def label(self) -> str:
    """What the files say about how was chosen."""
    return f'{self.name} ({self.warning})' if self.warning else self.name

  def column_of(self, metric: str) -> str:
    """Returns the column for a metric."""
    return _find_column(self.column, metric)

  def is_higher_better(self, metric: str) -> bool:
    """Returns whether the largest score is the best."""
    return is_higher_better(self.column_of(metric))


def _find_column(column: str, metric: str) -> str:
  """Returns a column; a metric with a slash is one itself."""
  if not column.endswith('/'):
    return column
  return metric if '/' in metric else f'{column}{metric}'


TRAIN_LOSS = Selection(
    'train_loss_last100', _TRAINING_LOSS, num_rounds=_NUM_LAST_ROUNDS
)
TRAIN_ACCURACY = Selection(
    'train_accuracy_round100', 'train/', num_rounds=_NUM_COMPARED_ROUNDS
)
VALIDATION = Selection('validation', _EVALUATION, evaluation_flags.VALIDATION)
POSTHOC_TEST = Selection(
    'posthoc_test',
    _EVALUATION,
    evaluation_flags.TEST,
    _REPLICATION_ONLY,
)
SELECTIONS = {
    selection.name: selection
    for selection in (TRAIN_LOSS, TRAIN_ACCURACY, VALIDATION, POSTHOC_TEST)
}


def is_higher_better(metric: str) -> bool:
  """Returns whether the largest value of a metric is the best.

  Args:
    metric: Its name, or that of its column.

  Returns:
    False for losses and errors.
  """
  return not metric.endswith(_SMALLER_IS_BETTER)


def check(selection: Selection, trials: Sequence[trials_lib.Trial]):
  """Raises unless the trials will measure what is compared.

  Args:
    selection: How is chosen.
    trials: The trials.

  Raises:
    HparamError: If one evaluates other data, or ends too soon.
  """
  for trial in trials:
    wanted, found = selection.evaluation_data, evaluation_data(trial)
    if wanted not in (None, found):
      raise hparam_errors.HparamError(
          f'--select_by={selection.name} needs --evaluation_data={wanted}, but '
          f'the trial {trial.name} has {found}'
      )
    rounds = trial.hparams['total_rounds']
    if selection is TRAIN_ACCURACY and (rounds or math.inf) < _COMPARED_ROUND:
      raise hparam_errors.HparamError(
          f'--select_by={selection.name} needs --total_rounds of at least '
          f'{_COMPARED_ROUND}, but the trial {trial.name} has {rounds}'
      )


def evaluation_data(trial: trials_lib.Trial) -> str:
  """Returns the data that the evaluations of a trial are on."""
  return trial.hparams['evaluation_data'] or evaluation_flags.TEST


def read_columns(folder: pathlib.Path) -> _Columns:
  """Returns the columns of a run's metrics.csv; none if it has no such file.

  Args:
    folder: The folder of the run.

  Returns:
    Rounds and finite values by the name of the column.
  """
  # It brings TensorFlow, and is needed once a run has ended.
  from tff_adaptive import analysis  # pylint: disable=import-outside-toplevel

  try:
    return analysis.read_columns(folder / 'metrics.csv')
  except OSError:
    return {}


def compute_score(
    selection: Selection, columns: _Columns, metric: str
) -> float:
  """Returns the number by which a run is compared.

  Args:
    selection: How is chosen.
    columns: What `read_columns` returned.
    metric: The value of --metric.

  Returns:
    The number; NaN if it was not measured or is not finite.
  """
  series = columns.get(selection.column_of(metric))
  all_rounds = columns.get('round_num', ([], []))[0]
  if series is None or not all_rounds:
    return math.nan
  if selection.evaluation_data:
    # The last round is always evaluated; a value that is missing there was not
    # finite.
    is_whole = series[0][-1] == all_rounds[-1]
    return _estimate(series, _ESTIMATES[0]) if is_whole else math.nan
  last, count = all_rounds[-1], selection.num_rounds
  if selection is TRAIN_ACCURACY:
    last = _COMPARED_ROUND
  window = [r for r in all_rounds if last - count < r <= last]
  values = {r: v for r, v in zip(*series) if last - count < r <= last}
  # A round that is missing here had no finite value.
  if window[-1:] != [last] or len(values) < len(window):
    return math.nan
  return math.fsum(values.values()) / len(values)


def _estimate(
    series: Optional[tuple[list[int], list[float]]],
    estimate: str,
    higher_is_better: bool = True,
) -> float:
  """Returns one number of a series; NaN if there are no values."""
  from tff_adaptive import analysis  # pylint: disable=import-outside-toplevel

  if series is None:
    return math.nan
  return analysis.summarize(series, estimate, higher_is_better=higher_is_better)


def measure(
    columns: _Columns, metric: str, *, higher_is_better: bool
) -> dict[str, float]:
  """Returns what is said of a run beside its score.

  Args:
    columns: What `read_columns` returned.
    metric: The metric of an evaluation, or a column.
    higher_is_better: Whether its largest value is the best.

  Returns:
    The mean of the last ten evaluations, the best one, and totals over the
    rounds; NaN for what was not measured.
  """
  series = columns.get(_find_column(_EVALUATION, metric))
  found = {
      estimate: _estimate(series, estimate, higher_is_better)
      for estimate in _ESTIMATES
  }
  for name, column in _TOTALS.items():
    values = columns.get(column, ([], [math.nan]))[1]
    found[name] = math.fsum(values)
  return found
