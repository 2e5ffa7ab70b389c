# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writers that send the metrics of rounds to an experiment tracker.

Weights & Biases and MLflow are optional packages, imported when a run starts.
Both read their own environment variables, such as WANDB_PROJECT, WANDB_MODE,
MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME.

The id of the tracker's run is stored in the folder of ours, so that a resumed
run continues the tracker's run; a run that starts again gets a new id.
"""

import abc
from collections.abc import Iterator, Mapping
import contextlib
import importlib
import pathlib
import re
import sys
from typing import Any, Optional

from absl import logging

from tff_adaptive import _files
from tff_adaptive import _stack
from tff_adaptive.simulation import metrics_writers

# Older versions refuse colons, too.
_REFUSED_BY_MLFLOW = re.compile(r'[^/\w.\- ]')


class TrackerError(Exception):
  """A tracker refused a run or its metrics; the text has its message."""


class _Tracker(metrics_writers.MetricsWriter):
  """A writer that sends rows to a tracker's run."""

  _package: str

  def __init__(
      self,
      directory: _files.PathLike,
      hparams: Mapping[str, Any],
      name: Optional[str] = None,
  ):
    """Initializes the writer; nothing is sent yet.

    Args:
      directory: The folder of the run, which exists when training starts.
      hparams: The hyperparameters of the run.
      name: The name of the run in the tracker. None (the default) for the name
        of the folder.

    Raises:
      ImportError: If the package is not installed; says how to install it.
    """
    _stack.check_installed(self._package)
    self._directory = pathlib.Path(directory)
    self._hparams = dict(hparams)
    self._name = name or self._directory.name
    self._id_file = self._directory / f'{self._package}_run_id'
    self._run: Any = None
    # The exception that the caller handles, as in a retry.
    self._handled: Optional[BaseException] = None

  def resume(self, round_num: int):
    """Starts a run of the tracker at round 0; continues it in later rounds.

    Args:
      round_num: The number of finished rounds.

    Raises:
      TrackerError: If the tracker refuses, for example because of a login.
      OSError: If the id cannot be stored; names its file.
    """
    self._handled = sys.exc_info()[1]
    run_id = None
    if round_num > 0 and self._id_file.is_file():
      run_id = self._id_file.read_text(encoding='utf-8').strip()
    tracker = importlib.import_module(self._package)
    with self._errors_named():
      found = self._start(tracker, run_id)
    _files.write(self._id_file, f'{found}\n')

  @contextlib.contextmanager
  def _errors_named(self) -> Iterator[None]:
    """Converts errors of the tracker, which may be of any kind."""
    try:
      yield
    except Exception as error:  # pylint: disable=broad-exception-caught
      raise TrackerError(f'{self._package}: {error}') from error

  def write(self, round_num: int, row: Mapping[str, Any]):
    """Sends the numbers of a row, with `round_num` as the step.

    Args:
      round_num: The round number.
      row: The scalars by name; values that are not numbers are not sent.

    Raises:
      TrackerError: If the tracker refuses, for example because of the network.
    """
    with self._errors_named():
      self._log(round_num, metrics_writers.numbers_of(row))

  def close(self):
    """Ends the tracker's run; marks it as failed if an exception ends ours.

    If the tracker refuses, there is a warning: the training is over.
    """
    if self._run is not None:
      failed = sys.exc_info()[1] is not self._handled
      try:
        with self._errors_named():
          self._end(failed)
      except TrackerError as error:
        logging.warning('The run of the tracker could not be ended: %s', error)
      self._run = None
    self._handled = None

  @abc.abstractmethod
  def _start(self, tracker: Any, run_id: Optional[str]) -> str:
    """Starts a run, or continues the one with an id; returns its id."""

  @abc.abstractmethod
  def _log(self, round_num: int, numbers: Mapping[str, float]):
    """Sends the numbers of a round."""

  @abc.abstractmethod
  def _end(self, failed: bool):
    """Ends the run."""


class WandbWriter(_Tracker):
  """Sends every row to Weights & Biases, with the round as the step.

  A resumed run may resend rounds, which the server ignores.

  Example:

    ```python
    from tff_adaptive import simulation

    simulation.run_training(
        process,
        cohort_fn=cohort_fn,
        total_rounds=100,
        writers=[
            simulation.WandbWriter('runs/sgd', {'client_learning_rate': 0.1})
        ],
    )
    ```
  """

  _package = 'wandb'

  def _start(self, tracker, run_id):
    self._run = tracker.init(
        id=run_id,
        resume=None if run_id is None else 'allow',
        name=self._name,
        config=self._hparams,
        # A resumed run may have more rounds.
        allow_val_change=True,
        dir=self._directory,
    )
    return self._run.id

  def _log(self, round_num, numbers):
    self._run.log(numbers, step=round_num)

  def _end(self, failed):
    self._run.finish(exit_code=int(failed))


# The numbers of entries that MLflow takes at once.
_MAX_PARAMS = 100
_MAX_METRICS = 1000


def _in_parts(
    entries: Mapping[str, Any], size: int
) -> Iterator[dict[str, Any]]:
  """Yields the entries of a mapping in parts of a size at most."""
  items = list(entries.items())
  for start in range(0, len(items), size):
    yield dict(items[start : start + size])


class MLflowWriter(_Tracker):
  """Sends every row to MLflow, with the round as the step.

  Hyperparameters become the parameters of the run. MLflow cannot change
  parameters, so a larger number of rounds in a resumed run becomes a tag.
  Characters that it refuses in names of metrics become `_`.

  Example:

    ```python
    from tff_adaptive import simulation

    simulation.run_training(
        process,
        cohort_fn=cohort_fn,
        total_rounds=100,
        writers=[
            simulation.MLflowWriter('runs/sgd', {'client_learning_rate': 0.1})
        ],
    )
    ```
  """

  _package = 'mlflow'

  def _start(self, tracker, run_id):
    self._names: dict[str, str] = {}
    self._tracker = tracker
    self._run = tracker.start_run(
        run_id=run_id, run_name=None if run_id else self._name
    )
    given = {name: str(value) for name, value in self._hparams.items()}
    known = self._run.data.params
    new = {n: v for n, v in given.items() if n not in known}
    for part in _in_parts(new, _MAX_PARAMS):
      tracker.log_params(part)
    tracker.set_tags({n: v for n, v in given.items() if known.get(n, v) != v})
    found = self._run.info.run_id
    history = tracker.MlflowClient().get_metric_history(
        found, metrics_writers.SECONDS_KEY
    )
    self._last_round = max((metric.step for metric in history), default=0)
    return found

  def _log(self, round_num, numbers):
    # Rounds after the checkpoint are trained again, and were logged already.
    if round_num > self._last_round:
      named = {self._to_name(name): value for name, value in numbers.items()}
      for part in _in_parts(named, _MAX_METRICS):
        self._tracker.log_metrics(part, step=round_num)

  def _to_name(self, name: str) -> str:
    """Returns the name of a metric in MLflow, of which no other has it."""
    if name not in self._names:
      new = _REFUSED_BY_MLFLOW.sub('_', name)
      # Names are paths there, and must not have such parts.
      new = '/'.join(
          part if part.strip('.') and not part.startswith('..') else f'_{part}'
          for part in new.split('/')
      )
      while new in self._names.values():
        new += '_0'
      self._names[name] = new
    return self._names[name]

  def _end(self, failed):
    self._tracker.end_run('FAILED' if failed else 'FINISHED')
