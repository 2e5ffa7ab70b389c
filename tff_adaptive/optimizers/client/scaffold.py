# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""SCAFFOLD's client rule: gradient descent with control variates."""

import abc
import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors


class ControlledOptimizer(
    vector_optimizer.VectorOptimizer, federated_optimizer.FederatedOptimizer
):
  """A rule with a control variate at each client, and their mean at the server.

  Its state holds both of the round: c_i and the correction c - c_i.
  """

  client_weighting = tff.learning.ClientWeighting.UNIFORM
  moment_keys: tuple[str, ...] = ('client_control', 'correction')
  # The controls also move weights that have no gradient.
  moves_all = True
  # The server control is a mean over clients, whatever their examples.
  averages_uniformly = True

  def __init__(self, num_clients: int, hparams: Any):
    super().__init__(hparams)
    self._num_clients = num_clients

  @abc.abstractmethod
  def new_control(self, state: Any) -> Any:
    """Returns the client's control after its last step."""

  def initialize_shared(self, specs):
    return collections.OrderedDict(control=vectors.fill_moments(specs))

  def initialize_kept(self, specs):
    return self.initialize_shared(specs)

  def start_round(self, state, shared, kept, round_num):
    del round_num  # Unused.
    correction = tf.nest.map_structure(
        tf.subtract, shared['control'], kept['control']
    )
    return collections.OrderedDict(
        state, client_control=kept['control'], correction=correction
    )

  def finish_round(self, state):
    control = self.new_control(state)
    change = tf.nest.map_structure(
        tf.subtract, control, state['client_control']
    )
    return (
        collections.OrderedDict(control=change),
        collections.OrderedDict(control=control),
    )

  def update_shared(self, shared, mean_sent, num_clients):
    def add(control, mean_change):
      share = tf.cast(num_clients, control.dtype) / self._num_clients
      return control + share * mean_change

    return tf.nest.map_structure(add, shared, mean_sent)


class _ScaffoldSGD(ControlledOptimizer):
  """SCAFFOLD's client rule, see `build_scaffold_sgd`."""

  name = 'SCAFFOLD'
  moment_keys = (*ControlledOptimizer.moment_keys, 'gradient_sum')
  step_size_key = 'learning_rate'

  def new_control(self, state):
    # c_i - c + (x_t - y_K) / (K eta) is the mean gradient of the local steps,
    # each of which moves the model by -eta (g - c_i + c).
    num_steps = tf.maximum(state['num_steps'], 1)
    return vectors.divide(state['gradient_sum'], num_steps)

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    total = tf.nest.map_structure(tf.add, state['gradient_sum'], g)
    directions = tf.nest.map_structure(tf.add, g, state['correction'])
    moved = vectors.descend(x, directions, hparams['learning_rate'])
    return {'gradient_sum': total}, moved


@arguments.checked
def build_scaffold_sgd(
    num_clients: ranges.Count, learning_rate: ranges.NotNegative = 0.1
) -> federated_optimizer.FederatedOptimizer:
  """Builds SCAFFOLD's client rule, with option II for the control variates.

  With c the control of the server and c_i that of client i, 0 at first, x_t
  the received model and K the number of local steps:

  ```
  y    = y - learning_rate * (g(y) - c_i + c)                 (each local step)
  c_i+ = c_i - c + (x_t - y_K) / (K * learning_rate)
  c    = c + 1 / num_clients * sum over the cohort of (c_i+ - c_i)
  ```

  c_i+ is the mean of the local gradients, and is computed as such. A client
  that is not sampled, or not healthy, keeps its c_i.

  The server sends c with the model, and clients return c_i+ - c_i with their
  update. The client keeps c_i; in a simulation it is in the client state store.
  A client's message reveals its mean gradient.

  `build_fed_opt` weights the updates equally unless told, as in Algorithm 1;
  controls always have equal weights. `tff_adaptive.simulation.run_training`
  with a `ClientStateStore` keeps the clients' controls.

  Args:
    num_clients: The number of all clients, sampled or not.
    learning_rate: The step size. Default 0.1, ours.

  Returns:
    A `FederatedOptimizer` with the hyperparameter `learning_rate`. It shares
    and keeps `control`, with the structure of the weights, in float32 or
    float64.

  Example:

    >>> rule = build_scaffold_sgd(num_clients=10, learning_rate=0.5)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> one = tf.constant(1.0)
    >>> state, x = rule.next(state, one, one, value=one)
    >>> _, kept = rule.finish_round(state)
    >>> float(x), float(kept['control'])
    (0.5, 1.0)

  References:
    Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated
    Learning, ICML 2020, https://arxiv.org/abs/1910.06378, Algorithm 1.
  """
  return _ScaffoldSGD(num_clients, {'learning_rate': learning_rate})
