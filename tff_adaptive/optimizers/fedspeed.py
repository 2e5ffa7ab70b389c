# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedSpeed: duals and perturbed gradients, with long local intervals."""

from typing import Any, Literal

import tensorflow as tf

from tff_adaptive.optimizers import fedcm
from tff_adaptive.optimizers import feddyn
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import fedsam
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors


class _FedSpeed(feddyn.DualOptimizer):
  """FedSpeed, see `build_fedspeed`."""

  name = 'FedSpeed'

  def __init__(self, num_clients: int, hparams: Any, dual_mean: str):
    checks = {
        'alpha': fedcm.check_alpha,
        'proximal_lambda': optimizer.check_positive,
    }
    super().__init__(num_clients, hparams, checks)
    if dual_mean not in ('participants', 'all'):
      raise ValueError(
          "FedSpeed `dual_mean` must be 'participants' or 'all', found "
          f'{dual_mean!r}.'
      )
    self.corrects_server = dual_mean == 'all'
    self.evaluates_again = hparams['rho'] > 0.0

  def step(self, state, x, g, hparams, extra):
    if self.evaluates_again:
      perturbed = fedsam.perturbed_gradient(x, g, hparams, extra, self.name)
      g = vectors.average(hparams['alpha'], perturbed, g)
    direction = vectors.combine(
        1.0, g, 1.0 / hparams['proximal_lambda'], state[feddyn.OFFSET_KEY]
    )
    return self.move(state, x, direction, hparams['learning_rate'])

  def final_weights(self, state, weights):
    if self.corrects_server:
      return weights
    # The dual, with this round's change in it, goes with the change.
    return tf.nest.map_structure(
        lambda w, h: w + tf.cast(h, w.dtype), weights, state[feddyn.OFFSET_KEY]
    )


def build_fedspeed(
    num_clients: int,
    learning_rate: float = 0.1,
    proximal_lambda: float = 10.0,
    rho: float = 0.1,
    alpha: float = 1.0,
    epsilon: float = 1e-7,
    *,
    dual_mean: Literal['participants', 'all'] = 'participants',
) -> federated_optimizer.FederatedOptimizer:
  """Builds FedSpeed, which corrects proximal steps and flattens the loss.

  With h_i the sum of the past changes of client i, 0 at first, x_t the received
  model, g_1 the gradient of a batch and norms over the vector of all trainable
  weights, in each local step:

  ```
  g_2 = the gradient at y + rho * g_1 / (|g_1| + epsilon)      (the same batch)
  y   = y - learning_rate * ((1 - alpha) g_1 + alpha g_2
                             + (h_i + y - x_t) / proximal_lambda)
  ```

  and after them h_i = h_i + delta_i. Clients send delta_i + h_i in the place of
  delta_i, so the server's step is along the mean of both. h_i stays with the
  client, as in `build_feddyn`, which this is with rho = 0 and alpha = 1 /
  proximal_lambda if all take part. Two gradients a step.

  Args:
    num_clients: The number of all clients, sampled or not, positive. Used with
      `dual_mean='all'` alone.
    learning_rate: The step size, not negative. Default 0.1, of the paper's
      experiments.
    proximal_lambda: lambda of the paper, divides the pull to the received
      model, above zero. Default 10.0, as there.
    rho: How far the weights are perturbed, not negative. Default 0.1. At 0
      there is one gradient a step.
    alpha: How much the perturbed gradient counts, in [0, 1]. Default 1.0.
    epsilon: Added to the norm, not negative. Default 1e-7, of published code.
    dual_mean: Whose duals correct the server's step: `'participants'`, the
      default and the paper's; or `'all'`, as the published code and FedDyn,
      where clients send delta_i alone and must count the same.

  Returns:
    A `FederatedOptimizer` whose hyperparameters are the numbers among the
    arguments but for `num_clients`. It keeps `dual`, h_i, with the structure of
    the weights, in float32 at least; with `'all'` the state of the server's
    rule has `mean_dual`.

  Raises:
    TypeError: If `num_clients` is no integer, or another argument no number.
    ValueError: If an argument is out of its range, or, from `next`, if it is
      used by a loop that cannot evaluate a batch again.

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
    https://arxiv.org/abs/2302.10429, Algorithm 1. Deviation: the gradient that
    perturbs is normalized, as in the paper's experiments and the published
    code.
  """
  hparams = dict(
      learning_rate=learning_rate,
      proximal_lambda=proximal_lambda,
      rho=rho,
      alpha=alpha,
      epsilon=epsilon,
  )
  return _FedSpeed(num_clients, hparams, dual_mean)
