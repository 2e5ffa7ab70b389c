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
"""The metric that a callback watches, and when it has become better."""

from collections.abc import Iterable
import math
from typing import Any, Optional

from tff_adaptive.simulation import metrics_writers
from tff_adaptive.simulation.callbacks import callback

DEFAULT_METRIC = f'{metrics_writers.EVALUATION_PREFIX}/accuracy'
MODES = ('max', 'min')


class UnknownMetricError(ValueError):
  """A callback is to watch a metric that the run does not have."""


class Monitor:
  """Reads one metric of every row that has it, and compares its values.

  Attributes:
    metric: The name of the metric.
    worst: What every number is better than.

  Example:
    >>> monitor = Monitor('evaluation/loss', 'min')
    >>> monitor.is_better(0.4, monitor.worst)
    True
  """

  def __init__(self, metric: str, mode: str, min_delta: float = 0.0):
    """Initializes the monitor.

    Args:
      metric: The name of a column of `metrics.csv`.
      mode: Whether a value is better if it is larger, 'max', or smaller, 'min'.
      min_delta: By more than this a value must be better, not negative.

    Raises:
      ValueError: If an argument is not as above.
    """
    if not isinstance(metric, str) or not metric:
      raise ValueError(
          f'`metric` must be the name of a column, found {metric!r}.'
      )
    if mode not in MODES:
      raise ValueError(f"`mode` must be 'max' or 'min', found {mode!r}.")
    if not (math.isfinite(min_delta) and min_delta >= 0.0):
      raise ValueError(
          '`min_delta` must be a finite number of at least 0, found '
          f'{min_delta}.'
      )
    self.metric = metric
    self._sign = 1.0 if mode == 'max' else -1.0
    self._min_delta = min_delta
    self.worst = -self._sign * math.inf

  def _raise_unknown(self, names: Iterable[str]):
    raise UnknownMetricError(
        f'there is no metric {self.metric!r} to watch; there are '
        f'{", ".join(names) or "none"}'
    )

  def _to_number(self, value: Any) -> float:
    try:
      return float(value)
    except (TypeError, ValueError):
      raise UnknownMetricError(
          f'the metric {self.metric!r} cannot be watched, as it is no number; '
          f'found {value!r}'
      ) from None

  def check(self, start: callback.TrainingStart):
    """Raises before the first round, if the name can be known to be wrong.

    Args:
      start: The start of the run. Its weights are evaluated if the metric is
        one of the evaluation.

    Raises:
      UnknownMetricError: If the metric is one of the evaluation, and the
        evaluation has no such metric.
    """
    prefix = f'{metrics_writers.EVALUATION_PREFIX}/'
    if not self.metric.startswith(prefix):
      return
    names = [f'{prefix}{name}' for name in start.get_evaluation() or ()]
    if self.metric not in names:
      self._raise_unknown(names)

  def read(self, round_end: callback.RoundEnd) -> Optional[float]:
    """Returns the value in a round, or None if it was not due.

    Args:
      round_end: The round.

    Returns:
      The value of the metric. None in rounds without evaluation whose row
      lacks it.

    Raises:
      UnknownMetricError: If a round with evaluation has no such metric, or it
        is no number.
    """
    if self.metric in round_end.metrics:
      return self._to_number(round_end.metrics[self.metric])
    if round_end.evaluate is None or round_end.evaluation is not None:
      self._raise_unknown(round_end.metrics)
    return None

  def is_better(self, value: float, best: float) -> bool:
    """Returns whether `value` is better than `best`; NaN never is."""
    return self._sign * (value - best) > self._min_delta
