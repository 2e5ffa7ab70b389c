# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedPAC with Sophia: steps of bounded size, scaled by squared gradients."""

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import fedpac

_FIRST_MOMENT_KEY = 'first_moment'
_CURVATURE_KEY = 'mean_second_moment'


class _FedPACSophia(fedpac.FedPAC):
  """FedPAC with Sophia, see `build_fedpac_sophia`."""

  name = 'FedPAC with Sophia'
  preconditioner_keys = (_CURVATURE_KEY,)
  moment_keys = (
      _FIRST_MOMENT_KEY,
      _CURVATURE_KEY,
      *fedpac.FedPAC.moment_keys,
  )

  def start_round(self, state, shared, kept, round_num):
    state = super().start_round(state, shared, kept, round_num)
    state[_CURVATURE_KEY] = vectors.non_negative(state[_CURVATURE_KEY])
    return state

  def precondition(self, state, g, hparams, extra):
    squares = tf.nest.map_structure(tf.square, g)
    h = vectors.average(hparams['beta_2'], state[_CURVATURE_KEY], squares)
    m = vectors.average(hparams['beta_1'], state[_FIRST_MOMENT_KEY], g)

    def direct(m, h, w):
      rho, epsilon = (
          tf.cast(hparams[key], m.dtype) for key in ('rho', 'epsilon')
      )
      ratio = tf.math.divide_no_nan(m, rho * h + epsilon)
      # A bound would hide that the client fails.
      ratio = tf.where(
          tf.math.is_finite(m), tf.clip_by_value(ratio, -1.0, 1.0), m
      )
      return ratio + tf.cast(hparams['weight_decay'], m.dtype) * w

    changed = {_FIRST_MOMENT_KEY: m, _CURVATURE_KEY: h}
    return changed, tf.nest.map_structure(direct, m, h, extra.decaying)


@arguments.checked
def build_fedpac_sophia(
    learning_rate: ranges.NotNegative = 3e-4,
    alpha: ranges.ClosedShare = 0.5,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.99,
    rho: ranges.Positive = 0.5,
    weight_decay: ranges.NotNegative = 0.1,
    epsilon: ranges.NotNegative = 1e-15,
) -> federated_optimizer.FederatedOptimizer:
  """Builds the client rule of FedPAC with a kind of Sophia.

  A client starts the round with m = 0, and with h and the mean direction G of
  the last round, 0 at first:

  ```
  h = beta_2 h + (1 - beta_2) g^2       m = beta_1 m + (1 - beta_1) g
  u = sign(m) min(|m| / (rho h + epsilon), 1)
  x = x - learning_rate * ((1 - alpha) (u + weight_decay x) + alpha G)
  ```

  The server averages h, and G = -D / (K learning_rate) with D the mean update
  and K the mean number of steps. Clients receive h and G besides the model, and
  send h and their update twice, once for G. In the first round G is 0, so steps
  are 1 - alpha times as long.

  This is not quite Sophia: its estimate of the curvature samples labels from
  the model, and here h averages the squared gradients of the batches.

  Args:
    learning_rate: The step size. Default 3e-4.
    alpha: The weight of G, beta of the paper. Default 0.5, as there.
    beta_1: The decay rate of m. Default 0.9.
    beta_2: The decay rate of h. Default 0.99.
    rho: Scales h. Default 0.5: 0.01 times the batch size 50 of the published
      code.
    weight_decay: The strength of decoupled weight decay. Default 0.1.
    epsilon: Added to the divisor. Default 1e-15.

  Returns:
    A `FederatedOptimizer` whose hyperparameters are the arguments. It shares
    `mean_second_moment`, h, and `global_direction`, G, with the structure of
    the weights, and `num_steps`, a scalar.

  Example:

    >>> rule = build_fedpac_sophia(0.5, alpha=0.0, weight_decay=0.0)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> one = tf.constant(1.0)
    >>> _, x = rule.next(state, one, 0.1 * one, value=one)
    >>> float(x)  # The bound holds.
    0.5

  References:
    Liu, Shang, Liu, Liu, An, Liu, Taming Preconditioner Drift: Unlocking the
    Potential of Second-Order Optimizers for Federated Learning on Non-IID Data,
    ICML 2026, https://arxiv.org/abs/2602.19271, with published code (commit
    1011fd7, `main_FedPAC.py`). Deviations: the squared gradient of the batch as
    curvature is that of the code's local Sophia; its federated Sophia never
    updates h, which stays 0, so that its steps are signs of the momentum. Means
    have the weights of `build_fed_opt`, and G the mean number of steps.
  """
  hparams = dict(
      learning_rate=learning_rate,
      alpha=alpha,
      beta_1=beta_1,
      beta_2=beta_2,
      rho=rho,
      weight_decay=weight_decay,
      epsilon=epsilon,
  )
  return _FedPACSophia(hparams)
