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
"""The protocol of client optimizers whose state crosses rounds.

The state of a client optimizer is new in every round. The rules of this kind
are the exception: a part of it starts from what the server sends beside the
model and goes back to the server, or stays with the client until its next
participation.
"""

import abc
import collections
from typing import Any, Optional, TypeVar

import tensorflow as tf

from tff_adaptive.optimizers import optimizer

State = TypeVar('State')
Weights = TypeVar('Weights')
Hparams = TypeVar('Hparams')

# Names to structures of tensors.
Parts = collections.OrderedDict[str, Any]


def check_caller(name: str, value: Optional[tf.Tensor]):
  """Raises where `next` is called by a loop that starts and finishes no rounds.

  Stock TFF's loops make the state anew on every client in every round, without
  a word: SCAFFOLD would be SGD there. They never give a loss.

  Args:
    name: What the rule is called, for the error.
    value: What `next` was given.

  Raises:
    ValueError: If there is no value.
  """
  if value is None:
    raise ValueError(
        f'{name} begins each round from what the server or the client kept of '
        'the one before, which only the client work of this library brings; '
        'the caller of `next` gave no `value`, so it is another one: train '
        'with `tff_adaptive.algorithms`.'
    )


class FederatedOptimizer(optimizer.ExtraArgsOptimizer[State, Weights, Hparams]):
  """A client optimizer of whose state a part crosses rounds.

  In a round the client work calls, on every client,

  ```
  state = initialize(specs)
  state = start_round(state, shared, kept, round_num)
  state, weights = next(state, weights, gradients, ...)      # every local step
  sent, kept = finish_round(state)
  ```

  and then, on the server, `shared = update_shared(shared, mean of sent, ...)`.
  A client that is not healthy sends nothing and keeps what it had. In a round
  without a healthy client, or with a result that is not finite, `shared` stays;
  only the round number moves on. A rule calls `check_caller` in `next`, so that
  a loop that leaves out the other calls is not taken for a training.

  Attributes:
    averages_uniformly: Whether every healthy client counts the same in the mean
      of what is sent, however the model's change is weighted.
  """

  averages_uniformly: bool = False

  def initialize_shared(self, specs: Any) -> Parts:
    """What the server holds before the first round.

    Args:
      specs: A structure of `tf.TensorSpec`s, the trainable weights.

    Returns:
      An ordered dictionary of names to structures of tensors; empty, the
      default, for a rule that shares nothing.
    """
    del specs
    return collections.OrderedDict()

  def initialize_kept(self, specs: Any) -> Parts:
    """What a client holds before it takes part for the first time.

    Args:
      specs: A structure of `tf.TensorSpec`s, the trainable weights.

    Returns:
      An ordered dictionary of names to structures of tensors; empty, the
      default, for a rule that keeps nothing.
    """
    del specs
    return collections.OrderedDict()

  @abc.abstractmethod
  def start_round(
      self, state: State, shared: Parts, kept: Parts, round_num: tf.Tensor
  ) -> State:
    """The state that the first local step of a round sees.

    Args:
      state: What `initialize` returned, with the hyperparameters in force.
      shared: What the server sent, like `initialize_shared`.
      kept: What the client holds, like `initialize_kept`.
      round_num: The number of finished rounds, an int32 scalar.

    Returns:
      The state.
    """

  @abc.abstractmethod
  def finish_round(self, state: State) -> tuple[Parts, Parts]:
    """What the client sends and keeps.

    Args:
      state: The state after the last local step.

    Returns:
      The pair (sent, kept): ordered dictionaries like `initialize_shared` and
      `initialize_kept`.
    """

  def update_shared(
      self, shared: Parts, mean_sent: Parts, num_clients: tf.Tensor
  ) -> Parts:
    """What the server sends in the next round.

    Args:
      shared: What it has sent in this round.
      mean_sent: The mean of what healthy clients sent.
      num_clients: How many healthy clients there were, an int64 scalar above
        zero.

    Returns:
      An ordered dictionary like `shared`; by default `mean_sent`.
    """
    del shared, num_clients
    return mean_sent
