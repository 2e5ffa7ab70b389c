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
"""The interface of what watches a training run and may end it."""

from collections.abc import Callable, Mapping
from typing import Any, Optional

import attrs
import tensorflow_federated as tff


@attrs.frozen
class RoundEnd:
  """What a callback sees of a finished round.

  Attributes:
    round_num: The number of finished rounds, counted from 1.
    state: The state of the learning process after the round.
    get_weights: Returns the global model weights of `state`.
    metrics: The flat row of the round, as in `metrics.csv`, without seconds.
    evaluation: The central evaluation after the round, or None.
  """

  round_num: int
  state: Any
  get_weights: Callable[[], tff.learning.models.ModelWeights]
  metrics: Mapping[str, Any]
  evaluation: Optional[Mapping[str, float]]


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

  def on_training_start(self, state: Any):
    """Called once, with the initial state of the process, before `set_state`.

    Args:
      state: The initial state of the learning process, also if the run is
        resumed later on.
    """

  def on_round_end(self, round_end: RoundEnd) -> Optional[bool]:
    """Called after every round.

    Args:
      round_end: What happened.

    Returns:
      True to end the training after this round.
    """

  def get_state(self) -> Any:
    """Returns a nest of arrays; its structure must not change in a run."""
    return ()

  def set_state(self, state: Any):
    """Takes back what `get_state` returned when the checkpoint was saved.

    Args:
      state: The structure from the checkpoint.
    """
