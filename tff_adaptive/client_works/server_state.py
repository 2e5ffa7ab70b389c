# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The server's state of the client work."""

import collections
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.aggregators import reports as reports_lib
from tff_adaptive.aggregators import weighting
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import vectors

_OrderedDict = collections.OrderedDict


def _initial_hparams(optimizer: tff.learning.optimizers.Optimizer) -> Any:
  # Hyperparameters do not depend on the weights, so any spec will do.
  whimsy_spec = tf.TensorSpec([], tf.float32)
  hparams = optimizer.get_hparams(optimizer.initialize(whimsy_spec))
  if any(map(tf.is_tensor, tf.nest.flatten(hparams))):
    raise TypeError(
        f'`get_hparams` of {optimizer_lib.name_of(optimizer)} must return '
        f'numbers, found tensors in {hparams}: leave out state that is not a '
        'hyperparameter, and give hyperparameters as Python numbers.'
    )
  return hparams


class ServerState:
  """A state that consists of the hyperparameters alone.

  Attributes:
    initialize: A `tff.federated_computation` of the initial state.
    hparams_type: The type of the optimizer's hyperparameters.
    shared_type: The type of the shared parts, or `None` if there are none.
  """

  shared_type: Optional[tff.Type] = None

  def __init__(self, optimizer: tff.learning.optimizers.Optimizer):
    """Initializes the state.

    Args:
      optimizer: The optimizer of the clients.
    """
    hparams = _initial_hparams(optimizer)

    @tff.federated_computation
    def initialize():
      return tff.federated_value(hparams, tff.SERVER)

    self.initialize = initialize
    self.hparams_type = initialize.type_signature.result.member

  def broadcast(self, state: Any) -> tuple[Any, ...]:
    """Sends the hyperparameters and any shared parts to the clients.

    Call this and `next` within a `federated_computation`.

    Args:
      state: The state, at the server.

    Returns:
      The one or two values, at the clients.
    """
    return (tff.federated_broadcast(state),)

  def next(
      self, state: Any, reported: Any, num_healthy: Any
  ) -> tuple[Any, dict[str, Any]]:
    """Returns the state after a round, and the measurements.

    Args:
      state: The state before the round, at the server.
      reported: The clients' results, at the clients.
      num_healthy: The number of healthy clients, at the server.

    Returns:
      The state and the measurements by name, at the server.
    """
    del reported, num_healthy  # Unused.
    return state, {}

  def get_hparams(self, state: Any) -> Any:
    """Returns the hyperparameters, within a TensorFlow computation."""
    return state

  def set_hparams(self, state: Any, hparams: Any) -> Any:
    """Returns the state with other hyperparameters."""
    del state  # Unused.
    return hparams


class FederatedState(ServerState):
  """A state of hyperparameters and a `FederatedOptimizer`'s shared parts."""

  def __init__(
      self,
      optimizer: federated_optimizer.FederatedOptimizer,
      specs: tuple[tf.TensorSpec, ...],
      aggregators: Mapping[str, weighting.Aggregator],
      weighs_examples: bool,
      num_expected_clients: Optional[int],
  ):
    """Initializes the state.

    Args:
      optimizer: The optimizer of the clients.
      specs: The specs of the trainable weights.
      aggregators: Aggregation factories by the names of the shared parts.
      weighs_examples: Whether clients are weighted by their examples.
      num_expected_clients: As in `build_local_training_client_work`.

    Raises:
      ValueError: If an unweighted aggregator would ignore the examples, or an
        aggregator is given for a part that is not shared.
    """
    self._optimizer = optimizer
    self._num_expected_clients = num_expected_clients
    hparams = _initial_hparams(optimizer)

    @tff.tensorflow.computation
    def initial():
      return tf.zeros([], tf.int32), optimizer.initialize_shared(specs)

    self.shared_type = initial.type_signature.result
    _, self._shared_type = initial.type_signature.result
    self._aggregator = _build_aggregator(
        self._shared_type,
        aggregators,
        weighs_examples and not optimizer.averages_uniformly,
        is_private=num_expected_clients is not None,
    )

    @tff.federated_computation
    def initialize():
      round_and_shared = tff.federated_eval(initial, tff.SERVER)
      aggregator = tff.federated_value((), tff.SERVER)
      if self._aggregator is not None:
        aggregator = self._aggregator.initialize()
      return _zip(
          tff.federated_value(hparams, tff.SERVER), round_and_shared, aggregator
      )

    self.initialize = initialize
    self.hparams_type = initialize.type_signature.result.member['hparams']

  def broadcast(self, state: Any) -> tuple[Any, ...]:
    round_and_shared = tff.federated_zip((state['round_num'], state['shared']))
    return (
        tff.federated_broadcast(state['hparams']),
        tff.federated_broadcast(round_and_shared),
    )

  def next(
      self, state: Any, reported: Any, num_healthy: Any
  ) -> tuple[Any, dict[str, Any]]:
    round_num, shared = state['round_num'], state['shared']
    if self._aggregator is None:

      @tff.tensorflow.computation(np.int32, np.int64)
      def advance(round_num, num_clients):
        return _advance(round_num, self._count(num_clients) > 0)

      advanced = tff.federated_map(advance, (round_num, num_healthy))
      advanced_state = _zip(
          state['hparams'], (advanced, shared), state['aggregator']
      )
      return advanced_state, {}

    shared_type = self._shared_type

    @tff.tensorflow.computation(np.int32, shared_type, shared_type, np.int64)
    @tf.function
    def update(round_num, shared, mean_sent, num_clients):
      updated = _autograph.call(
          self._optimizer.update_shared,
          shared,
          mean_sent,
          self._count(num_clients),
      )
      # The mean is NaN without a healthy client; noise or a sum may overflow.
      is_finite = vectors.all_finite(updated)
      kept = tf.nest.map_structure(
          lambda old, new: tf.where(is_finite, new, old), shared, updated
      )
      return _advance(round_num, is_finite), kept

    output = self._aggregator.next(
        state['aggregator'], reported['sent'], reported['sent_weight']
    )
    updated = tff.federated_map(
        update, (round_num, shared, output.result, num_healthy)
    )
    new_state = _zip(state['hparams'], updated, output.state)
    return new_state, {'shared': output.measurements}

  def _count(self, num_clients: tf.Tensor) -> tf.Tensor:
    """Returns the number of healthy clients that the server may see."""
    if self._num_expected_clients is None:
      return num_clients
    return tf.constant(self._num_expected_clients, tf.int64)

  def get_hparams(self, state: Any) -> Any:
    return state['hparams']

  def set_hparams(self, state: Any, hparams: Any) -> Any:
    return _OrderedDict(state, hparams=hparams)


def _advance(round_num: tf.Tensor, counts: tf.Tensor) -> tf.Tensor:
  """Returns the number of rounds that changed the clients' state.

  Warm-ups and bias corrections depend on it, so a round that left the shared
  parts as they were must not count.

  Args:
    round_num: The number before the round.
    counts: Whether the round counts.
  """
  return round_num + tf.cast(counts, tf.int32)


def _zip(hparams: Any, round_and_shared: Any, aggregator: Any) -> Any:
  """Returns the state at the server, zipped from its parts."""
  round_num, shared = round_and_shared
  return tff.federated_zip(
      _OrderedDict(
          hparams=hparams,
          round_num=round_num,
          shared=shared,
          aggregator=aggregator,
      )
  )


def _build_aggregator(
    shared_type: tff.Type,
    aggregators: Mapping[str, weighting.Aggregator],
    weighs_examples: bool,
    is_private: bool,
) -> Optional[tff.templates.AggregationProcess]:
  """Returns the aggregator of the shared parts, `None` if there are none."""
  names = [name for name, _ in tff.structure.iter_elements(shared_type)]
  weighting.check_names(aggregators, names, '`shared_aggregators`')
  factories = {
      name: weighting.WidenedFactory(
          weighting.to_weighted(
              aggregators.get(name),
              weighs_examples,
              f'The aggregator of {name!r}',
          )
      )
      for name in names
  }
  if not factories:
    return None
  factory: Any = reports_lib.NamedFactory(factories)
  if not is_private:
    factory = weighting.HealthyRoundsFactory(factory)
  return factory.create(shared_type, tff.TensorType(np.float32))
