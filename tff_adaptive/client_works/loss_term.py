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
"""Terms that are added to the loss of each local batch."""

import abc
from collections.abc import Callable
from typing import Any, Union

import tensorflow as tf

from tff_adaptive.client_works import model_adapter

# (trainable weights, weights that were received, batch) to a scalar.
PlainLossTerm = Callable[
    [model_adapter.Weights, model_adapter.Weights, Any], tf.Tensor
]


class PreviousModelLossTerm(abc.ABC):
  """A loss term that also sees the model of the client's last participation.

  The client work then keeps the model that each client ends a round with until
  the client takes part again; see `tff_adaptive.simulation.ClientStateStore`.
  """

  @abc.abstractmethod
  def __call__(
      self,
      weights: model_adapter.Weights,
      received: model_adapter.Weights,
      batch: Any,
      *,
      previous_model: model_adapter.Weights,
  ) -> tf.Tensor:
    """The term.

    Args:
      weights: The trainable weights, a flat tuple of tensors.
      received: The weights that were received in this round.
      batch: The batch of the step.
      previous_model: The weights that the client's last participation ended
        with; for a client that takes part for the first time, `received`.

    Returns:
      A scalar.
    """


LossTerm = Union[PlainLossTerm, PreviousModelLossTerm]
