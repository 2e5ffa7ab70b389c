# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedCM and MoFedSAM: client momentum from the last round's direction."""

import collections
from typing import Any

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import fedsam

DIRECTION_KEY = 'global_direction'
SUM_KEY = 'direction_sum'


def move(
    state: Any, x: Any, direction: Any, rate: tf.Tensor
) -> tuple[dict[str, Any], Any]:
  """Returns the changed entries of the state, and x, after a step."""
  total = tf.nest.map_structure(tf.add, state[SUM_KEY], direction)
  return {SUM_KEY: total}, vectors.descend(x, direction, rate)


class _ClientMomentum(
    vector_optimizer.VectorOptimizer, federated_optimizer.FederatedOptimizer
):
  """FedCM and MoFedSAM, see the builders."""

  moment_keys = (DIRECTION_KEY, SUM_KEY)
  step_size_key = 'learning_rate'

  def __init__(self, hparams: Any):
    self.name = 'MoFedSAM' if 'rho' in hparams else 'FedCM'
    super().__init__(hparams)
    self.evaluates_again = hparams.get('rho', 0.0) > 0.0
    self.otherwise = ', or use `rho=0`'

  def initialize_shared(self, specs):
    return collections.OrderedDict(
        [(DIRECTION_KEY, vectors.fill_moments(specs))]
    )

  def finish_round(self, state):
    # The mean direction is -delta_i / (K_i learning_rate).
    num_steps = tf.maximum(state[vector_optimizer.NUM_STEPS_KEY], 1)
    mean = vectors.divide(state[SUM_KEY], num_steps)
    sent = collections.OrderedDict([(DIRECTION_KEY, mean)])
    return sent, collections.OrderedDict()

  def step(self, state, x, g, hparams, extra):
    if self.evaluates_again:
      g = fedsam.perturbed_gradient(x, g, hparams, extra)
    direction = vectors.average(hparams['alpha'], g, state[DIRECTION_KEY])
    return move(state, x, direction, hparams['learning_rate'])


@arguments.checked
def build_fedcm(
    learning_rate: ranges.NotNegative = 0.1, alpha: ranges.ClosedShare = 0.1
) -> federated_optimizer.FederatedOptimizer:
  """Builds FedCM, SGD with the momentum of all clients.

  With M the mean direction of the last round, 0 at first:

  ```
  x = x - learning_rate * (alpha * g + (1 - alpha) * M)       (each local step)
  M = -sum_i w_i delta_i / (K_i * learning_rate)                   (each round)
  ```

  with delta_i the update of client i in K_i steps. In the first round, steps
  have the size alpha * learning_rate. Clients receive M besides the model, and
  send delta_i / K_i besides delta_i, as they differ in K_i.

  Args:
    learning_rate: The step size. Default 0.1, as in the paper's experiments.
    alpha: The weight of the gradient. Default 0.1, as in the paper's
      experiments. At 1 this is SGD.

  Returns:
    A `FederatedOptimizer` whose hyperparameters are the arguments. It shares
    `global_direction`, M, with the structure of the weights, in float32 or
    float64.

  Example:

    >>> rule = build_fedcm(learning_rate=0.5, alpha=0.5)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> one = tf.constant(1.0)
    >>> state, x = rule.next(state, one, one, value=one)
    >>> sent, _ = rule.finish_round(state)
    >>> float(x), float(sent['global_direction'])
    (0.75, 0.5)

  References:
    Xu, Wang, Wang, Yao, FedCM: Federated Learning with Client-level Momentum,
    2021, https://arxiv.org/abs/2106.10874, Algorithm 1. Deviation: each client
    divides by its own number of steps, where the paper has a common one.
  """
  return _ClientMomentum(dict(learning_rate=learning_rate, alpha=alpha))


@arguments.checked
def build_mofedsam(
    learning_rate: ranges.NotNegative = 0.1,
    alpha: ranges.ClosedShare = 0.1,
    rho: ranges.NotNegative = 0.1,
    epsilon: ranges.NotNegative = 1e-7,
) -> federated_optimizer.FederatedOptimizer:
  """Builds MoFedSAM, FedSAM with the momentum of all clients.

  This is `build_fedcm` with the gradient of `build_fedsam`, at
  x + rho g / (|g| + epsilon), instead of g. Each step costs two gradients.

  Args:
    learning_rate: See `build_fedcm`.
    alpha: See `build_fedcm`.
    rho: The size of the perturbation of the weights. Default 0.1; at 0 this is
      FedCM, and `set_hparams` cannot change `rho`.
    epsilon: Added to the norm. Default 1e-7, as in published code.

  Returns:
    A `FederatedOptimizer` whose hyperparameters are the arguments. It shares
    `global_direction`, as FedCM does.

  Example:

    >>> rule = build_mofedsam(0.5, alpha=1.0, rho=1.0, epsilon=0.0)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(3.0)  # f(x) = x^2 / 2
    >>> _, x = rule.next(
    ...     state, x, x, value=0.5 * x**2,
    ...     value_and_grad_fn=lambda at: (0.5 * at**2, at))
    >>> float(x)
    1.0

  References:
    Qu, Li, Duan, Liu, Tang, Lu, Generalized Federated Learning via Sharpness
    Aware Minimization, ICML 2022, https://arxiv.org/abs/2206.02618, Algorithm
    1, MoFedSAM. Deviation: that of `build_fedcm`.
  """
  return _ClientMomentum(
      dict(learning_rate=learning_rate, alpha=alpha, rho=rho, epsilon=epsilon)
  )
