# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""SPS: the step size of Polyak, from the loss and the gradient of a batch."""

import collections
import math
from typing import Any

import tensorflow as tf

from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors

_State = collections.OrderedDict[str, Any]


def _check_hparams(hparams: _State) -> None:
  optimizer.check_rate('epsilon', hparams['epsilon'], 'SPS')
  for name in ('c', 'gamma', 'initial_step_size', 'batches_per_epoch'):
    if name in hparams:
      optimizer.check_positive(name, hparams[name], 'SPS')
  optimizer.check_finite('optimal_value', hparams['optimal_value'], 'SPS')
  optimizer.check_limit('max_step_size', hparams['max_step_size'], 'SPS')


class _SPS(optimizer.HparamsInState, optimizer.ExtraArgsOptimizer):
  """SPS, see `build_sps`, `build_sps_max` and `build_sps_smooth`."""

  def __init__(self, hparams: _State):
    _check_hparams(hparams)
    super().__init__(hparams)
    self._is_smooth = 'gamma' in hparams

  def initialize(self, specs: Any) -> _State:
    dtype = vectors.step_dtype(specs)
    zero = tf.zeros([], dtype)
    state = collections.OrderedDict(self._hparams, last_step_size=zero)
    if self._is_smooth:
      # Zero stands for the initial step size, which may yet be set.
      state['last_positive_step_size'] = zero
    return state

  def next(
      self, state, weights, gradients, *, value=None, value_and_grad_fn=None
  ):
    del value_and_grad_fn  # Unused.
    optimizer.check_value(value, 'SPS')
    gradients = optimizer.dense_gradients(weights, gradients)
    step_size = self._step_size(state, weights, gradients, value)
    new_state = collections.OrderedDict(state, last_step_size=step_size)
    if self._is_smooth:
      new_state['last_positive_step_size'] = tf.where(
          step_size > 0.0, step_size, state['last_positive_step_size']
      )
    return new_state, vectors.descend(weights, gradients, step_size)

  def _step_size(
      self, state: _State, weights: Any, gradients: Any, value: tf.Tensor
  ) -> tf.Tensor:
    """The step size at a point, a scalar."""
    dtype = vectors.step_dtype(weights)
    c, epsilon, optimal_value, max_step_size = (
        tf.cast(state[key], dtype)
        for key in ('c', 'epsilon', 'optimal_value', 'max_step_size')
    )
    loss = tf.cast(value, dtype)
    gradient_norm = vectors.norm(gradients, dtype)
    step_size = tf.minimum(
        tf.math.divide_no_nan(
            loss - optimal_value, c * tf.square(gradient_norm) + epsilon
        ),
        max_step_size,
    )
    if self._is_smooth:
      step_size = tf.minimum(step_size, self._growth_limit(state, dtype))
    stays = optimizer.is_negligible(gradient_norm) | (loss < optimal_value)
    step_size = tf.where(stays, tf.zeros([], dtype), step_size)
    return tf.where(
        optimizer.is_finite(loss, gradient_norm), step_size, float('nan')
    )

  def _growth_limit(self, state: _State, dtype: tf.DType) -> tf.Tensor:
    """What the smooth variant limits this step to."""
    initial, gamma, batches_per_epoch = (
        tf.cast(state[key], dtype)
        for key in ('initial_step_size', 'gamma', 'batches_per_epoch')
    )
    last = state['last_positive_step_size']
    return optimizer.grow(
        tf.where(last > 0.0, last, initial), gamma, batches_per_epoch
    )

  def report(self, state: _State) -> _State:
    return collections.OrderedDict(step_size=state['last_step_size'])


def build_sps(
    c: float = 0.5, epsilon: float = 1e-8, optimal_value: float = 0.0
) -> optimizer.ExtraArgsOptimizer:
  """Builds SGD with the stochastic Polyak step size, without a limit to it.

  With f_k the loss of the batch of local step k, loss terms included, g_k its
  gradient and the norm over the vector of all trainable weights:

  ```
  eta_k   = (f_k - optimal_value) / (c * |g_k|^2 + epsilon)
  eta_k   = 0          where |g_k| < 1e-8 or f_k < optimal_value
  x_{k+1} = x_k - eta_k * g_k
  ```

  A constant factor of the loss divides eta_k and changes no iterate, but for
  epsilon. On f = L/2 |x|^2 with c = 0.5 the step is 1/L, which solves the
  problem at once. Where the loss or the gradient is not finite, eta_k is NaN,
  so the client is counted as rejected instead of training on.

  This is the variant of the comparisons in Delta-SGD's paper, which see it
  diverge on some tasks: on a batch that the model does not fit, the step is as
  long as the loss over the squared norm is large. `build_sps_max` limits it.

  Each step costs one gradient. A client sends the model's change alone, and
  nothing is kept from one round to the next. Clipping and weight decay change
  g_k and not f_k; a loss term changes both.

  Args:
    c: Divides the step, above zero: twice the c is half the step. Default 0.5,
      of the published code; 0.5 is best for strongly convex losses.
    epsilon: Added to the divisor, not negative. Default 1e-8, of the published
      code.
    optimal_value: f*, the smallest loss that a batch can have; any finite
      number. Default 0.0, which is a lower bound of the usual losses.

  Returns:
    An `ExtraArgsOptimizer` with the hyperparameters `c`, `epsilon`,
    `optimal_value` and `max_step_size`, which is infinite. It has no learning
    rate. It reports the `step_size` of each step.

  Raises:
    TypeError: If an argument is no number.
    ValueError: If an argument is out of its range, or, from `next`, if it is
      used by a loop that does not give the loss.

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
    Deviations: epsilon and the guard of small gradients are those of the
    published code, and are not in the paper. The code that the Delta-SGD paper
    published for its SPS has the guard switched off, which makes the step
    f/epsilon at a stationary point.
  """
  return build_sps_max(math.inf, c, epsilon, optimal_value)


def build_sps_max(
    max_step_size: float = 1.0,
    c: float = 0.5,
    epsilon: float = 1e-8,
    optimal_value: float = 0.0,
) -> optimizer.ExtraArgsOptimizer:
  """Builds SGD with the bounded stochastic Polyak step size, as FedSPS has it.

  ```
  eta_k = min(max_step_size, the step size of SPS)
  ```

  with the step size and everything else of `build_sps`, which this is for an
  infinite `max_step_size`. With the weighted mean on the server it is FedSPS.

  Args:
    max_step_size: The largest step, gamma_b of FedSPS, above zero; may be
      infinite. Default 1.0, the step that the published code of SPS begins
      with. It is the one thing to tune: FedCAda's comparison tunes it and `c`.
    c: See `build_sps`.
    epsilon: See `build_sps`.
    optimal_value: See `build_sps`. FedSPS calls it a lower bound, l_i*.

  Returns:
    An `ExtraArgsOptimizer` with the hyperparameters `c`, `epsilon`,
    `optimal_value` and `max_step_size`. It reports the `step_size` of each
    step.

  Raises:
    TypeError: See `build_sps`.
    ValueError: See `build_sps`.

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


def build_sps_smooth(
    c: float = 0.5,
    epsilon: float = 1e-8,
    optimal_value: float = 0.0,
    gamma: float = 2.0,
    initial_step_size: float = 1.0,
    batches_per_epoch: int = 500,
    max_step_size: float = math.inf,
) -> optimizer.ExtraArgsOptimizer:
  """Builds SGD with the stochastic Polyak step size that grows smoothly.

  ```
  eta_k = min(gamma^(1 / batches_per_epoch) * eta, max_step_size,
              the step size of SPS)
  ```

  where `eta` is the last step size above zero, `initial_step_size` before there
  is one. The step size of SPS and everything else is that of `build_sps`. The
  history starts anew in every round and goes on over the epochs of a round.

  Args:
    c: See `build_sps`.
    epsilon: See `build_sps`.
    optimal_value: See `build_sps`.
    gamma: How much the step may grow in one epoch, above zero. Default 2.0, of
      section 4 of the paper and of the published code.
    initial_step_size: The step before the first, above zero. Default 1.0, of
      the published code.
    batches_per_epoch: How many local steps an epoch has, above zero; where the
      clients differ, the mean. Default 500, of the published code, which is far
      above what most clients have: the step then hardly grows.
    max_step_size: The largest step, above zero. Default: infinite.

  Returns:
    An `ExtraArgsOptimizer` with all arguments as hyperparameters. It reports
    the `step_size` of each step.

  Raises:
    TypeError: See `build_sps`.
    ValueError: See `build_sps`.

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
    Loizou et al., AISTATS 2021, https://arxiv.org/abs/2002.10542, section 4; it
    is the default of the published code, https://github.com/IssamLaradji/sps.
    Deviations: a step of zero does not become the `eta` of the next one. In the
    published code it does, and all further steps are zero. That code also
    leaves the optimal value and the largest step out of this variant.
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
