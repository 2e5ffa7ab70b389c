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
"""The interface of what watches a training run, measures it and may end it.

A callback of one's own overrides the methods that it needs. This one reports
the mean training loss of all rounds so far as a column of `metrics.csv`, and
ends the run when that is low enough. Its sum is part of the checkpoint:

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

It is handed to the training loop, here for a process whose clients' losses are
1, 1/2, 1/3 and so on:

  >>> result = simulation.run_training(
  ...     process,
  ...     cohort_fn=cohort_fn,
  ...     total_rounds=100,
  ...     callbacks=[MeanLoss(stop_below=0.5)],
  ... )
  >>> result.stopped, result.round_num
  (True, 5)
"""

from collections.abc import Callable, Mapping
from typing import Any, Optional

import attrs
import tensorflow_federated as tff


@attrs.frozen
class TrainingStart:
  """What a callback sees before the first round.

  Attributes:
    state: The initial state of the learning process, also if the run is resumed
      later on.
    get_weights: Returns the global model weights of `state`.
    get_evaluation: Returns the central evaluation of these weights, or None if
      the loop has no evaluation function.
  """

  state: Any
  get_weights: Callable[[], tff.learning.models.ModelWeights]
  get_evaluation: Callable[[], Optional[Mapping[str, float]]]


@attrs.frozen
class RoundEnd:
  """What a callback sees of a finished round.

  Attributes:
    round_num: The number of finished rounds, counted from 1.
    state: The state of the learning process after the round.
    get_weights: Returns the global model weights of `state`.
    metrics: The flat row of the round, as in `metrics.csv`, without seconds;
      with what callbacks that come before have measured.
    evaluation: The central evaluation after the round, or None if it is not
      due.
    evaluate: Evaluates other weights in the same way; None if the loop has no
      evaluation function.
    cohort: The clients of the round, as `cohort_fn` has given them; None (the
      default) where there is none.
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
  """Watches a training run; subclasses override what they need.

  A callback that keeps something from round to round returns it from
  `get_state`, so that it is part of the checkpoint and a resumed run equals an
  uninterrupted one.

  Example:
    >>> class StopAtAccuracy(Callback):
    ...   def on_round_end(self, round_end):
    ...     evaluation = round_end.evaluation
    ...     return evaluation is not None and evaluation['accuracy'] >= 0.9
  """

  def on_training_start(self, start: TrainingStart):
    """Called once, before `set_state`.

    Args:
      start: The start of the run, also if it is resumed later on.
    """

  def on_round_end(self, round_end: RoundEnd) -> Optional[bool]:
    """Called after every round, in the order of the callbacks.

    Args:
      round_end: What happened.

    Returns:
      True to end the training after this round.
    """

  def measure(self, round_end: RoundEnd) -> Mapping[str, Any]:
    """Called after `on_round_end`; must change nothing.

    If a callback ends the training where no evaluation was due, the round is
    evaluated after all, and every callback measures once more.

    Args:
      round_end: What happened.

    Returns:
      Scalars for the row of the round, by names that it does not have yet.
    """
    return {}

  def get_state(self) -> Any:
    """Returns a nest of arrays; its structure must not change in a run."""
    return ()

  def set_state(self, state: Any):
    """Takes back what `get_state` returned when the checkpoint was saved.

    Args:
      state: The structure from the checkpoint.
    """
