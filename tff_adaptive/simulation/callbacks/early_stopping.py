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
"""Ends a run that does not get better any more."""

import numpy as np

from tff_adaptive.simulation.callbacks import callback
from tff_adaptive.simulation.callbacks import monitor as monitor_lib


class EarlyStopping(callback.Callback):
  """Ends the training when a metric has not improved for some evaluations.

  An evaluation counts as an improvement if its value is better than the best
  one so far by more than `min_delta`; NaN never is. The training ends after
  `patience` evaluations in a row without improvement. A metric that every round
  has, such as `clients/loss`, counts in every round.

  Example:
    >>> early_stopping = EarlyStopping('evaluation/loss', 10, mode='min')
    >>> early_stopping.num_bad
    0
  """

  def __init__(
      self,
      metric: str = monitor_lib.DEFAULT_METRIC,
      patience: int = 5,
      *,
      min_delta: float = 0.0,
      mode: str = 'max',
  ):
    """Initializes the callback.

    Args:
      metric: The name of a column of `metrics.csv`. For what another callback
        measures, that one has to come first. Defaults to 'evaluation/accuracy'.
      patience: How many evaluations in a row without improvement end the
        training, a positive integer. Defaults to 5.
      min_delta: By more than this a value must be better, in the unit of the
        metric, not negative. Defaults to 0.
      mode: Whether a value is better if it is larger, 'max', the default, or
        smaller, 'min'.

    Raises:
      ValueError: If an argument is not as above.
    """
    if patience < 1:
      raise ValueError(f'`patience` must be positive, found {patience}.')
    self._monitor = monitor_lib.Monitor(metric, mode, min_delta)
    self._patience = patience
    self._best = np.float64(self._monitor.worst)
    self._num_bad = np.int64(0)

  @property
  def num_bad(self) -> int:
    """The number of evaluations since the last improvement."""
    return int(self._num_bad)

  def on_training_start(self, start: callback.TrainingStart):
    self._monitor.check(start)

  def on_round_end(self, round_end: callback.RoundEnd) -> bool:
    value = self._monitor.read(round_end)
    if value is None:
      return False
    if self._monitor.is_better(value, self._best):
      self._best = np.float64(value)
      self._num_bad = np.int64(0)
    else:
      self._num_bad += np.int64(1)
    return self.num_bad >= self._patience

  def get_state(self):
    return {'best': self._best, 'num_bad': self._num_bad}

  def set_state(self, state):
    self._best = state['best']
    self._num_bad = state['num_bad']
