# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Callbacks, which watch a training run, measure it and may end it.

A custom callback overrides the methods that it needs. This one reports the mean
training loss of all rounds so far as a column of `metrics.csv`, and ends the
run when that is low enough. Its sum is part of the checkpoint:

  >>> import numpy as np
  >>> from tff_adaptive import simulation
  >>> class MeanLoss(simulation.Callback):
  ...   def __init__(self, stop_below):
  ...     self._stop_below = stop_below
  ...     self._sum = np.float64(0)
  ...     self._mean = np.inf
  ...
  ...   def on_round_end(self, round_end):
  ...     self._sum += round_end.metrics['clients/loss']
  ...     self._mean = self._sum / round_end.round_num
  ...     return self._mean < self._stop_below
  ...
  ...   def measure(self, round_end):
  ...     return {'mean_loss': self._mean}
  ...
  ...   def get_state(self):
  ...     return {'sum': self._sum}
  ...
  ...   def set_state(self, state):
  ...     self._sum = state['sum']
  ...

Pass it to the training loop, here for a process whose clients' losses are 1,
1/2, 1/3 and so on:

  >>> result = simulation.run_training(
  ...     process,
  ...     cohort_fn=cohort_fn,
  ...     total_rounds=100,
  ...     callbacks=[MeanLoss(stop_below=0.5)],
  ... )
  >>> result.stopped, result.round_num
  (True, 5)
"""

from collections.abc import Callable, Iterable, Mapping
import math
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow_federated as tff

from tff_adaptive import _metric_modes
from tff_adaptive import _run_metrics
from tff_adaptive.data import specs
from tff_adaptive.privacy import accounting
from tff_adaptive.privacy import differential_privacy
from tff_adaptive.simulation import metrics_writers


@attrs.frozen
class TrainingStart:
  """The input of callbacks before the first round.

  Attributes:
    state: The initial state of the learning process, even if the run is resumed
      later.
    get_weights: Returns the global model weights of `state`.
    get_evaluation: Returns the central evaluation of these weights, or None if
      the loop has no evaluation function.
  """

  state: Any
  get_weights: Callable[[], tff.learning.models.ModelWeights]
  get_evaluation: Callable[[], Optional[Mapping[str, float]]]


@attrs.frozen
class RoundEnd:
  """The input of callbacks after a round.

  Attributes:
    round_num: The number of finished rounds, counted from 1.
    state: The state of the learning process after the round.
    get_weights: Returns the global model weights of `state`.
    metrics: The flat row of the round, as in `metrics.csv`, without seconds;
      with the measurements of earlier callbacks.
    evaluation: The central evaluation after the round, or None if it is not
      due.
    evaluate: Evaluates other weights in the same way; None if the loop has no
      evaluation function.
    cohort: The clients of the round, as returned by `cohort_fn`; None (the
      default) without one.
  """

  round_num: int
  state: Any
  get_weights: Callable[[], tff.learning.models.ModelWeights]
  metrics: Mapping[str, Any]
  evaluation: Optional[Mapping[str, float]]
  evaluate: Optional[
      Callable[[tff.learning.models.ModelWeights], Mapping[str, float]]
  ] = None
  cohort: Any = None


class Callback:
  """Watches a training run; subclasses override the methods they need.

  A callback with state returns it from `get_state`, so that it is part of the
  checkpoint and a resumed run equals an uninterrupted one.

  Example:
    >>> class StopAtAccuracy(Callback):
    ...   def on_round_end(self, round_end):
    ...     evaluation = round_end.evaluation
    ...     return evaluation is not None and evaluation['accuracy'] >= 0.9
  """

  def on_training_start(self, start: TrainingStart):
    """Observes the start of a run; called once, before `set_state`.

    Reset the state here, so that one object can serve several runs.

    Args:
      start: The start of the run, even if the run is resumed later.
    """

  def on_round_end(self, round_end: RoundEnd) -> Optional[bool]:
    """Observes a finished round; called in the order of the callbacks.

    Args:
      round_end: The result of the round.

    Returns:
      True to end training after this round.
    """

  def measure(self, round_end: RoundEnd) -> Mapping[str, Any]:
    """Returns measurements; called after `on_round_end`, without side effects.

    If a callback ends training in a round without evaluation, the round is
    evaluated after all, and every callback measures again.

    Args:
      round_end: The result of the round.

    Returns:
      Scalars for the row of the round, with new names.
    """
    return {}

  def get_state(self) -> Any:
    """Returns a nest of arrays and numbers, of one structure during the run.

    Their shapes and dtypes may change, but not the names of a mapping, the
    length of a list, or None into a value.
    """
    return ()

  def set_state(self, state: Any):
    """Restores the state that `get_state` returned at the checkpoint.

    Args:
      state: The structure from the checkpoint.
    """


DEFAULT_METRIC = f'{metrics_writers.EVALUATION_PREFIX}/accuracy'


class UnknownMetricError(ValueError):
  """A callback monitors a metric that the run does not have."""


class Monitor:
  """Reads one metric of every row that has it and keeps its best value.

  Attributes:
    metric: The name of the metric.
    best: The best value so far; at first one that any number is better than.

  Example:
    >>> monitor = Monitor('evaluation/loss', 'min')
    >>> monitor.improve(0.4), monitor.improve(0.5)
    (True, False)
  """

  def __init__(
      self, metric: str, mode: Optional[str] = None, min_delta: float = 0.0
  ):
    """Initializes the monitor.

    Args:
      metric: The name of a column of `metrics.csv`.
      mode: 'max' if larger values are better, 'min' if smaller ones are; None
        for what the name says.
      min_delta: The minimum improvement, non-negative.

    Raises:
      ValueError: If an argument is invalid, or `mode` is None and the name does
        not tell.
    """
    if not isinstance(metric, str) or not metric:
      raise ValueError(
          f'`metric` must be the name of a column, found {metric!r}.'
      )
    if mode is None:
      mode = _metric_modes.mode_of(metric)
    if mode not in _metric_modes.MODES:
      raise ValueError(f"`mode` must be 'max' or 'min', found {mode!r}.")
    if not (math.isfinite(min_delta) and min_delta >= 0.0):
      raise ValueError(
          '`min_delta` must be a finite number of at least 0, found '
          f'{min_delta}.'
      )
    self.metric = metric
    self._sign = 1.0 if mode == 'max' else -1.0
    self._min_delta = min_delta
    self.best = np.float64(-self._sign * math.inf)

  def _unknown(self, names: Iterable[str]) -> UnknownMetricError:
    return UnknownMetricError(
        f'there is no metric {self.metric!r} to monitor; there are '
        f'{", ".join(names) or "none"}'
    )

  def start(self, start: TrainingStart):
    """Forgets the best value; raises if the name is known to be wrong.

    Args:
      start: The start of the run. Its weights are evaluated if the metric
        belongs to the evaluation.

    Raises:
      UnknownMetricError: If the metric belongs to the evaluation, and the
        evaluation does not have it.
    """
    self.best = np.float64(-self._sign * math.inf)
    prefix = f'{metrics_writers.EVALUATION_PREFIX}/'
    if self.metric.startswith(prefix):
      names = [f'{prefix}{name}' for name in start.get_evaluation() or ()]
      if self.metric not in names:
        raise self._unknown(names)

  def read(self, round_end: RoundEnd) -> Optional[float]:
    """Returns the value in a round, or None if it is not due.

    Args:
      round_end: The round.

    Returns:
      The value of the metric; NaN for one of the model on training examples, if
      there were none. None in rounds without evaluation whose row does not have
      it.

    Raises:
      UnknownMetricError: If a round with evaluation does not have the metric,
        or it is not a number.
    """
    if self.metric not in round_end.metrics:
      if round_end.evaluate is None or round_end.evaluation is not None:
        raise self._unknown(round_end.metrics)
      return None
    value = round_end.metrics[self.metric]
    sizes = [
        round_end.metrics.get(name)
        for name in (_run_metrics.NUM_EXAMPLES, _run_metrics.NUM_MODEL_EXAMPLES)
    ]
    if self.metric.startswith(_run_metrics.TRAIN) and 0 in sizes:
      return math.nan
    try:
      return float(value)
    except (TypeError, ValueError):
      raise UnknownMetricError(
          f'the metric {self.metric!r} cannot be monitored: it must be a '
          f'number, found {value!r}'
      ) from None

  def improve(self, value: float) -> bool:
    """Keeps a value that is better than the best one; NaN never is.

    Args:
      value: The value.

    Returns:
      Whether it is better, by more than `min_delta`.
    """
    is_better = self._sign * (value - self.best) > self._min_delta
    if is_better:
      self.best = np.float64(value)
    return bool(is_better)


class EarlyStopping(Callback):
  """Ends training when the monitored metric stops improving.

  An evaluation counts as an improvement if its value is better than the best
  one so far by more than `min_delta`; NaN never is. Training ends after
  `patience` consecutive evaluations without improvement. For a metric of every
  round, such as `clients/loss`, rounds count instead of evaluations.

  Example:
    >>> early_stopping = EarlyStopping('evaluation/loss', 10)
    >>> early_stopping.num_bad
    0
  """

  def __init__(
      self,
      metric: str = DEFAULT_METRIC,
      patience: int = 5,
      *,
      min_delta: float = 0.0,
      mode: Optional[str] = None,
  ):
    """Initializes the callback.

    Args:
      metric: The name of a column of `metrics.csv`. If another callback
        measures it, list that callback first. Defaults to
        'evaluation/accuracy'.
      patience: The number of consecutive evaluations without improvement that
        ends training, a positive integer. Defaults to 5.
      min_delta: The minimum improvement, in the unit of the metric,
        non-negative. Defaults to 0.
      mode: 'max' if larger values are better, or 'min'. Defaults to what the
        name says: 'min' for losses and errors, such as 'evaluation/loss' or
        'clients/false_positives', 'max' for such as 'evaluation/recall'.

    Raises:
      TypeError: If `patience` is not an integer.
      ValueError: If an argument is invalid, or `mode` is None and the name does
        not tell.
    """
    specs.check_positive('patience', patience)
    self._monitor = Monitor(metric, mode, min_delta)
    self._patience = patience
    self._num_bad = np.int64(0)

  @property
  def num_bad(self) -> int:
    """The number of evaluations since the last improvement."""
    return int(self._num_bad)

  def on_training_start(self, start: TrainingStart):
    self._monitor.start(start)
    self._num_bad = np.int64(0)

  def on_round_end(self, round_end: RoundEnd) -> bool:
    value = self._monitor.read(round_end)
    if value is None:
      return False
    is_better = self._monitor.improve(value)
    self._num_bad = np.int64(0 if is_better else self._num_bad + 1)
    return self.num_bad >= self._patience

  def get_state(self):
    return {'best': self._monitor.best, 'num_bad': self._num_bad}

  def set_state(self, state):
    self._monitor.best = state['best']
    self._num_bad = state['num_bad']


_EPSILON_KEY = 'privacy/epsilon'
_CLIP_NORM_KEY = 'privacy/clip_norm'


class PrivacySpent(Callback):
  """Adds epsilon, and the norms of adaptive clipping, to every round's row.

  `privacy/epsilon` covers all rounds so far, at a fixed delta. With adaptive
  clipping, `privacy/clip_norm` is the clipping norm of the model update in the
  next round, and for example `privacy/clip_norm_of_second_moment` that of a
  payload.

  Example:
    >>> accountant = privacy.RoundAccountant(
    ...     noise_multiplier=1.0, num_clients=1000, clients_per_round=10,
    ...     sampling=privacy.CohortSampling.POISSON)
    >>> callback = PrivacySpent(accountant, delta=1e-5)
  """

  def __init__(self, accountant: accounting.RoundAccountant, delta: float):
    """Initializes the callback.

    Args:
      accountant: The accountant of the run.
      delta: The delta of (epsilon, delta), in (0, 1).

    Raises:
      ValueError: If `delta` is out of range.
    """
    self._accountant = accountant
    self._delta = delta
    accountant.get_epsilon(1, delta)

  def measure(self, round_end: RoundEnd) -> Mapping[str, float]:
    epsilon = self._accountant.get_epsilon(round_end.round_num, self._delta)
    row = {_EPSILON_KEY: epsilon}
    bounds = differential_privacy.get_clip_norms(round_end.state)
    for name, bound in bounds.items():
      is_change = name == differential_privacy.CHANGE
      row[_CLIP_NORM_KEY if is_change else f'{_CLIP_NORM_KEY}_of_{name}'] = (
          bound
      )
    return row
