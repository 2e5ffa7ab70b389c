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
"""The state of the client work, which the server keeps."""

import abc
import collections
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import reports as reports_lib
from tff_adaptive.aggregators import weighting
from tff_adaptive.client_works import client_update as client_update_lib
from tff_adaptive.optimizers import vectors

ROUND_NUM_KEY = 'round_num'
SHARED_KEY = 'shared'
AGGREGATOR_KEY = 'aggregator'


class SharedState:
  """What a `FederatedOptimizer` shares: its start, and how it is updated."""

  def __init__(
      self,
      update: client_update_lib.ClientUpdate,
      aggregators: Mapping[str, weighting.Aggregator],
      num_expected_clients: Optional[int] = None,
  ):
    """Initializes the part of the state that the server shares.

    Args:
      update: What clients do.
      aggregators: Aggregation factories by the names of what is shared.
      num_expected_clients: See `build_local_training_client_work`.
    """
    self._update = update
    self._num_expected_clients = num_expected_clients

    @tff.tensorflow.computation
    def initial():
      return tf.zeros([], tf.int32), update.initial_shared()

    self.initial = initial
    self.type_signature = initial.type_signature.result
    shared_type = self.type_signature[1]
    weighs_examples = (
        update.weighs_examples and not update.optimizer.averages_uniformly
    )
    names = [name for name, _ in tff.structure.iter_elements(shared_type)]
    self._aggregator = None
    if names:
      factory: tff.aggregators.WeightedAggregationFactory = (
          reports_lib.NamedFactory(
              {
                  name: weighting.to_weighted(
                      aggregators.get(name),
                      weighs_examples,
                      f'The aggregator of {name!r}',
                  )
                  for name in names
              }
          )
      )
      if num_expected_clients is None:
        factory = weighting.HealthyRoundsFactory(factory)
      self._aggregator = factory.create(
          shared_type, tff.TensorType(tf.float32.as_numpy_dtype)
      )

  def initialize_aggregator(self) -> Any:
    """The initial state of what aggregates, within a federated computation."""
    if self._aggregator is None:
      return tff.federated_value((), tff.SERVER)
    return self._aggregator.initialize()

  def next(self, state: Any, reported: Any, num_healthy: Any) -> Any:
    """The round number, what is shared, and the aggregator's state, updated.

    Args:
      state: The state of the client work, at the server.
      reported: What clients report, at the clients.
      num_healthy: How many of them are healthy, at the server.

    Returns:
      The triple, at the server.
    """
    optimizer = self._update.optimizer
    if self._aggregator is None:

      @tff.tensorflow.computation(np.int32)
      def advance(round_num):
        return round_num + 1

      round_num = tff.federated_map(advance, state[ROUND_NUM_KEY])
      return round_num, state[SHARED_KEY], state[AGGREGATOR_KEY]

    @tff.tensorflow.computation(
        np.int32,
        self.type_signature[1],
        self.type_signature[1],
        np.int64,
    )
    def update(round_num, shared, mean_sent, num_clients):
      if self._num_expected_clients is not None:
        num_clients = tf.constant(self._num_expected_clients, tf.int64)
      updated = optimizer.update_shared(shared, mean_sent, num_clients)
      # Without a healthy client the mean is NaN; noise or a sum may overflow.
      is_finite = vectors.all_finite(updated)
      kept = tf.nest.map_structure(
          lambda old, new: tf.where(is_finite, new, old), shared, updated
      )
      return round_num + 1, kept

    output = self._aggregator.next(
        state[AGGREGATOR_KEY], reported['sent'], reported['sent_weight']
    )
    updated = tff.federated_map(
        update,
        (state[ROUND_NUM_KEY], state[SHARED_KEY], output.result, num_healthy),
    )
    return updated[0], updated[1], output.state


_OrderedDict = collections.OrderedDict

_HPARAMS_KEY = 'hparams'


def _initial_hparams(optimizer: tff.learning.optimizers.Optimizer) -> Any:
  # Hyperparameters do not depend on the weights, so any spec will do.
  whimsy_spec = tf.TensorSpec([], tf.float32)
  return optimizer.get_hparams(optimizer.initialize(whimsy_spec))


class ServerState(abc.ABC):
  """What the server keeps, and sends to the clients of a round.

  Attributes:
    initialize: A `tff.federated_computation` of the state of the first round.
    hparams_type: The type of the optimizer's hyperparameters.
    shared_type: The type of what is sent besides, or None if nothing is.
  """

  initialize: Any
  hparams_type: tff.Type
  shared_type: Optional[tff.Type]

  @abc.abstractmethod
  def broadcast(self, state: Any) -> tuple[Any, ...]:
    """Sends the hyperparameters and, if there is any, what is shared.

    Called within a `federated_computation`, as is `next`.

    Args:
      state: The state, at the server.

    Returns:
      The one or two values, at the clients.
    """

  @abc.abstractmethod
  def next(self, state: Any, reported: Any, num_healthy: Any) -> Any:
    """The state after a round.

    Args:
      state: The state before it, at the server.
      reported: What clients report, at the clients.
      num_healthy: How many of them are healthy, at the server.

    Returns:
      The state, at the server.
    """

  @abc.abstractmethod
  def get_hparams(self, state: Any) -> Any:
    """The hyperparameters in a state, within a TensorFlow computation."""

  @abc.abstractmethod
  def set_hparams(self, state: Any, hparams: Any) -> Any:
    """The state with other hyperparameters."""


class _HparamsState(ServerState):
  """The hyperparameters alone."""

  def __init__(self, optimizer: tff.learning.optimizers.Optimizer):
    hparams = _initial_hparams(optimizer)

    @tff.federated_computation
    def initialize():
      return tff.federated_value(hparams, tff.SERVER)

    self.initialize = initialize
    self.hparams_type = initialize.type_signature.result.member
    self.shared_type = None

  def broadcast(self, state: Any) -> tuple[Any, ...]:
    return (tff.federated_broadcast(state),)

  def next(self, state: Any, reported: Any, num_healthy: Any) -> Any:
    del reported, num_healthy  # Unused.
    return state

  def get_hparams(self, state: Any) -> Any:
    return state

  def set_hparams(self, state: Any, hparams: Any) -> Any:
    del state  # Unused.
    return hparams


class _FederatedState(ServerState):
  """The hyperparameters, and what a `FederatedOptimizer` shares."""

  def __init__(
      self,
      optimizer: tff.learning.optimizers.Optimizer,
      shared: SharedState,
  ):
    hparams = _initial_hparams(optimizer)
    self._shared = shared

    @tff.federated_computation
    def initialize():
      round_and_shared = tff.federated_eval(shared.initial, tff.SERVER)
      return self._zip(
          tff.federated_value(hparams, tff.SERVER),
          round_and_shared[0],
          round_and_shared[1],
          shared.initialize_aggregator(),
      )

    self.initialize = initialize
    self.hparams_type = initialize.type_signature.result.member[_HPARAMS_KEY]
    self.shared_type = shared.type_signature

  def _zip(self, hparams, round_num, shared, aggregator):
    return tff.federated_zip(
        _OrderedDict(
            [
                (_HPARAMS_KEY, hparams),
                (ROUND_NUM_KEY, round_num),
                (SHARED_KEY, shared),
                (AGGREGATOR_KEY, aggregator),
            ]
        )
    )

  def broadcast(self, state: Any) -> tuple[Any, ...]:
    round_and_shared = tff.federated_zip(
        (state[ROUND_NUM_KEY], state[SHARED_KEY])
    )
    return (
        tff.federated_broadcast(state[_HPARAMS_KEY]),
        tff.federated_broadcast(round_and_shared),
    )

  def next(self, state: Any, reported: Any, num_healthy: Any) -> Any:
    return self._zip(
        state[_HPARAMS_KEY], *self._shared.next(state, reported, num_healthy)
    )

  def get_hparams(self, state: Any) -> Any:
    return state[_HPARAMS_KEY]

  def set_hparams(self, state: Any, hparams: Any) -> Any:
    return _OrderedDict(state, **{_HPARAMS_KEY: hparams})


def build_server_state(
    update: client_update_lib.ClientUpdate,
    aggregators: Mapping[str, weighting.Aggregator],
    num_expected_clients: Optional[int] = None,
) -> ServerState:
  """Builds what the server keeps for the optimizer of the clients.

  Args:
    update: What clients do.
    aggregators: Aggregation factories by the names of what a
      `FederatedOptimizer` shares.
    num_expected_clients: See `build_local_training_client_work`.

  Returns:
    The state's computations.

  Raises:
    ValueError: If an aggregator does not fit what is sent.
  """
  if not update.is_federated:
    return _HparamsState(update.optimizer)
  shared = SharedState(update, aggregators, num_expected_clients)
  return _FederatedState(update.optimizer, shared)
