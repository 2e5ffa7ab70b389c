# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedSpeed: dual variables and perturbed gradients, for many local steps."""

from typing import Any, Literal

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import feddyn
from tff_adaptive.optimizers.client import fedsam


class _FedSpeed(feddyn.DualOptimizer):
  """FedSpeed, see `build_fedspeed`."""

  name = 'FedSpeed'

  def __init__(self, num_clients: int, hparams: Any, dual_mean: str):
    super().__init__(num_clients, hparams)
    self._adds_mean_dual = dual_mean == 'all'
    if self._adds_mean_dual:
      self.client_weighting = tff.learning.ClientWeighting.UNIFORM
    self.evaluates_again = hparams['rho'] > 0.0
    self.otherwise = ', or use `rho=0`'

  def step(self, state, x, g, hparams, extra):
    if self.evaluates_again:
      perturbed = fedsam.perturbed_gradient(x, g, hparams, extra)
      g = vectors.average(hparams['alpha'], perturbed, g)
    direction = vectors.combine(
        1.0, g, 1.0 / hparams['proximal_lambda'], state[feddyn.OFFSET_KEY]
    )
    return self.move(state, x, direction, hparams['learning_rate'])

  def at_server(self, server_optimizer, client_weighting):
    if not self._adds_mean_dual:
      return server_optimizer
    return self.add_mean_dual(server_optimizer, client_weighting)

  def sent_update(self, state, update):
    if self._adds_mean_dual:
      return update
    # The dual, with this round's update in it, is added to the update.
    return tf.nest.map_structure(
        lambda u, h: u - tf.cast(h, u.dtype), update, state[feddyn.OFFSET_KEY]
    )


@arguments.checked
def build_fedspeed(
    num_clients: ranges.Count,
    learning_rate: ranges.NotNegative = 0.1,
    proximal_lambda: ranges.Positive = 10.0,
    rho: ranges.NotNegative = 0.1,
    alpha: ranges.ClosedShare = 1.0,
    epsilon: ranges.NotNegative = 1e-7,
    *,
    dual_mean: Literal['participants', 'all'] = 'participants',
) -> federated_optimizer.FederatedOptimizer:
  """Builds FedSpeed, which corrects proximal steps and flattens the loss.

  With h_i the sum of the past updates of client i, 0 at first, x_t the received
  model, g_1 the gradient of a batch and norms over the vector of all trainable
  weights, in each local step:

  ```
  g_2 = the gradient at y + rho * g_1 / (|g_1| + epsilon)      (the same batch)
  y   = y - learning_rate * ((1 - alpha) g_1 + alpha g_2
                             + (h_i + y - x_t) / proximal_lambda)
  ```

  followed by h_i = h_i + delta_i. Clients send delta_i + h_i instead of
  delta_i, so the server's step is along the mean of both. The client keeps h_i,
  as in `build_feddyn`, to which this is equal for rho = 0 and alpha = 1 /
  proximal_lambda if all clients participate with equal weights. Each step costs
  two gradients.

  Args:
    num_clients: The number of all clients, sampled or not. Only
      `dual_mean='all'` uses it.
    learning_rate: The step size. Default 0.1, as in the paper's experiments.
    proximal_lambda: Divides the pull to the received model, lambda of the
      paper. Default 10.0, as in its experiments.
    rho: The size of the perturbation of the weights. Default 0.1. At 0 a step
      costs one gradient, and `set_hparams` cannot change `rho`.
    alpha: The weight of the perturbed gradient. Default 1.0.
    epsilon: Added to the norm. Default 1e-7, as in published code.
    dual_mean: The clients whose duals correct the server's step:
      `'participants'`, the default and as in the paper, or `'all'`, as in the
      published code and FedDyn; then clients send delta_i alone and must have
      equal weights.

  Returns:
    A `FederatedOptimizer` whose hyperparameters are the numeric arguments but
    `num_clients`. It keeps `dual`, h_i, with the structure of the weights, in
    float32 or float64; with `'all'` the state of the server's rule has
    `mean_dual`.

  Example:

    >>> rule = build_fedspeed(10, learning_rate=0.5, rho=1.0, epsilon=0.0)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(3.0)  # f(x) = x^2 / 2
    >>> _, x = rule.next(
    ...     state, x, x, value=0.5 * x**2,
    ...     value_and_grad_fn=lambda at: (0.5 * at**2, at))
    >>> float(x)
    1.0

  References:
    Sun, Shen, Huang, Ding, Tao, FedSpeed: Larger Local Interval, Less
    Communication Round, and Higher Generalization Accuracy, ICLR 2023,
    https://arxiv.org/abs/2302.10429, Algorithm 1. Deviation: the gradient in
    the perturbation is normalized, as in the paper's experiments and the
    published code.
  """
  hparams = dict(
      learning_rate=learning_rate,
      proximal_lambda=proximal_lambda,
      rho=rho,
      alpha=alpha,
      epsilon=epsilon,
  )
  return _FedSpeed(num_clients, hparams, dual_mean)
