# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""SGD with the stochastic Polyak step size (SPS)."""

import collections
import math
from typing import Any

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors


class _SPS(vector_optimizer.VectorOptimizer):
  """SPS, see `build_sps`, `build_sps_max` and `build_sps_smooth`."""

  name = 'SPS'
  step_size_key = 'last_step_size'
  needs_value = True

  def __init__(self, hparams: dict[str, float]):
    super().__init__(hparams)
    self._is_smooth = 'gamma' in hparams
    self.scalar_keys = ('last_step_size',)
    if self._is_smooth:
      # Zero stands for `initial_step_size`, since `set_hparams` may change it.
      self.scalar_keys += ('last_positive_step_size',)

  def step(self, state, x, g, hparams, extra):
    dtype = vectors.step_dtype(x)
    loss = tf.cast(extra.value, dtype)
    gradient_norm = vectors.norm(g, dtype)
    step_size = tf.minimum(
        tf.math.divide_no_nan(
            loss - hparams['optimal_value'],
            hparams['c'] * tf.square(gradient_norm) + hparams['epsilon'],
        ),
        hparams['max_step_size'],
    )
    if self._is_smooth:
      step_size = tf.minimum(step_size, _growth_limit(state, hparams))
    stays = vectors.is_negligible(gradient_norm) | (
        loss < hparams['optimal_value']
    )
    step_size = tf.where(stays, tf.zeros([], dtype), step_size)
    step_size = tf.where(
        vectors.is_finite(loss, gradient_norm), step_size, float('nan')
    )
    changed = {'last_step_size': step_size}
    if self._is_smooth:
      changed['last_positive_step_size'] = tf.where(
          step_size > 0.0, step_size, state['last_positive_step_size']
      )
    return changed, vectors.descend(x, g, step_size)


def _growth_limit(state: Any, hparams: Any) -> tf.Tensor:
  """Returns the smooth variant's limit of this step, a scalar."""
  last = state['last_positive_step_size']
  return vectors.grow(
      tf.where(last > 0.0, last, hparams['initial_step_size']),
      hparams['gamma'],
      hparams['batches_per_epoch'],
  )


@arguments.checked
def build_sps(
    c: ranges.Positive = 0.5,
    epsilon: ranges.NotNegative = 1e-8,
    optimal_value: ranges.Finite = 0.0,
) -> optimizer.ExtraArgsOptimizer:
  """Builds SGD with the stochastic Polyak step size, without an upper bound.

  With f_k the loss on the batch of local step k, loss terms included, g_k its
  gradient, and the norm over the vector of all trainable weights:

  ```
  eta_k   = (f_k - optimal_value) / (c * |g_k|^2 + epsilon)
  eta_k   = 0          where |g_k| < 1e-8 or f_k < optimal_value
  x_{k+1} = x_k - eta_k * g_k
  ```

  Scaling the loss scales eta_k by the inverse and, but for epsilon, changes no
  iterate. On f = L/2 |x|^2 with c = 0.5 the step size is 1/L, which solves the
  problem in one step. If the loss or the gradient is not finite, eta_k is NaN,
  and the client is rejected.

  This is the variant in the comparisons of Delta-SGD's paper, where it diverges
  on some tasks: on a batch that the model fits badly, the step is as long as
  the ratio of the loss to the squared norm. `build_sps_max` bounds it.

  Each step costs one gradient. A client sends nothing but its model update and
  keeps nothing between rounds. Clipping and weight decay change g_k but not
  f_k; a loss term changes both.

  Args:
    c: Divides the step size. Default 0.5, as in the published code and best for
      strongly convex losses.
    epsilon: Added to the divisor. Default 1e-8, as in the published code.
    optimal_value: f*, the smallest possible loss of a batch. Default 0.0, a
      lower bound of the usual losses.

  Returns:
    An `ExtraArgsOptimizer` with the hyperparameters `c`, `epsilon`,
    `optimal_value` and `max_step_size`, which is infinite. It has no learning
    rate. It reports the `step_size` of each step.

  Example:

    >>> optimizer = build_sps()
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(3.0)  # f(x) = 2 x^2, the smoothness is 4
    >>> state, x = optimizer.next(state, x, 4.0 * x, value=2.0 * x**2)
    >>> round(float(state['last_step_size']), 4), round(float(x), 4)
    (0.25, 0.0)

  References:
    Loizou, Vaswani, Laradji, Lacoste-Julien, Stochastic Polyak Step-size for
    SGD: An Adaptive Learning Rate for Fast Convergence, AISTATS 2021,
    https://arxiv.org/abs/2002.10542, the step size SPS of section 2.
    Deviations: epsilon and the guard against small gradients are from the
    published code, not from the paper. The SPS published with the Delta-SGD
    paper disables the guard, so that the step is f/epsilon at a stationary
    point.
  """
  return build_sps_max(math.inf, c, epsilon, optimal_value)


@arguments.checked
def build_sps_max(
    max_step_size: ranges.Limit = 1.0,
    c: ranges.Positive = 0.5,
    epsilon: ranges.NotNegative = 1e-8,
    optimal_value: ranges.Finite = 0.0,
) -> optimizer.ExtraArgsOptimizer:
  """Builds SGD with the bounded stochastic Polyak step size, as in FedSPS.

  ```
  eta_k = min(max_step_size, the step size of SPS)
  ```

  with the step size and everything else of `build_sps`, to which this is equal
  for an infinite `max_step_size`. With a weighted mean on the server it is
  FedSPS.

  Args:
    max_step_size: The largest step size, gamma_b of FedSPS. Default 1.0, the
      initial step of SPS's published code. Tune this first; FedCAda's
      comparison tunes it and `c`.
    c: See `build_sps`.
    epsilon: See `build_sps`.
    optimal_value: See `build_sps`. FedSPS calls it a lower bound, l_i*.

  Returns:
    An `ExtraArgsOptimizer` with the hyperparameters `c`, `epsilon`,
    `optimal_value` and `max_step_size`. It reports the `step_size` of each
    step.

  Example:

    >>> optimizer = build_sps_max(max_step_size=0.125)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(2.0)  # f(x) = 2 x^2, the smoothness is 4
    >>> state, x = optimizer.next(state, x, 4.0 * x, value=2.0 * x**2)
    >>> round(float(state['last_step_size']), 4), round(float(x), 4)
    (0.125, 1.0)

  References:
    Loizou et al., AISTATS 2021, https://arxiv.org/abs/2002.10542, the step size
    SPS_max of section 2; Mukherjee, Loizou, Stich, Locally Adaptive Federated
    Learning, TMLR 2024, https://arxiv.org/abs/2307.06306, Algorithm 1 (FedSPS).
    Deviations: those of `build_sps`.
  """
  return _SPS(
      collections.OrderedDict(
          c=c,
          epsilon=epsilon,
          optimal_value=optimal_value,
          max_step_size=max_step_size,
      )
  )


@arguments.checked
def build_sps_smooth(
    c: ranges.Positive = 0.5,
    epsilon: ranges.NotNegative = 1e-8,
    optimal_value: ranges.Finite = 0.0,
    gamma: ranges.Positive = 2.0,
    initial_step_size: ranges.Positive = 1.0,
    batches_per_epoch: ranges.PositiveSteps = 500,
    max_step_size: ranges.Limit = math.inf,
) -> optimizer.ExtraArgsOptimizer:
  """Builds SGD with a stochastic Polyak step size of bounded growth.

  ```
  eta_k = min(gamma^(1 / batches_per_epoch) * eta, max_step_size,
              the step size of SPS)
  ```

  where `eta` is the last positive step size, at first `initial_step_size`. The
  step size of SPS and everything else is that of `build_sps`. The history spans
  all epochs of a round and is reset between rounds.

  Args:
    c: See `build_sps`.
    epsilon: See `build_sps`.
    optimal_value: See `build_sps`.
    gamma: The largest growth of the step size in one epoch. Default 2.0,
      section 4 of the paper and the published code.
    initial_step_size: The step size before the first step. Default 1.0, as in
      the published code.
    batches_per_epoch: The number of local steps in an epoch; the mean if
      clients differ. Default 500, as in the published code: far more than most
      clients have, so that the step size hardly grows.
    max_step_size: The largest step size; infinite by default.

  Returns:
    An `ExtraArgsOptimizer` with all arguments as hyperparameters. It reports
    the `step_size` of each step.

  Example:

    >>> optimizer = build_sps_smooth(initial_step_size=0.1, batches_per_epoch=1)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> x, steps = tf.constant(1.0), []
    >>> for _ in range(3):  # f(x) = x^2, the smoothness is 2
    ...   state, x = optimizer.next(state, x, 2.0 * x, value=x**2)
    ...   steps.append(round(float(state['last_step_size']), 4))
    >>> steps  # Twice 0.1, twice that, then 1 over the smoothness.
    [0.2, 0.4, 0.5]

  References:
    Loizou et al., AISTATS 2021, https://arxiv.org/abs/2002.10542, section 4,
    the default of the published code, https://github.com/IssamLaradji/sps.
    Deviations: a step of zero does not become the next `eta`. In the published
    code it does, and all further steps are zero. That code also has no optimal
    value and no largest step size in this variant.
  """
  return _SPS(
      collections.OrderedDict(
          c=c,
          epsilon=epsilon,
          optimal_value=optimal_value,
          max_step_size=max_step_size,
          gamma=gamma,
          initial_step_size=initial_step_size,
          batches_per_epoch=batches_per_epoch,
      )
  )
