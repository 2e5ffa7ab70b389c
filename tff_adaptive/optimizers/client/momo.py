# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""MoMo and MoMo-Adam: step sizes from a model of the loss."""

import collections
from typing import Any

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_MOMENT_KEY = 'first_moment'
_SECOND_MOMENT_KEY = 'second_moment'
# Averages of the losses, and of the inner products of gradients and weights.
_MEAN_LOSS_KEY = 'mean_loss'
_MEAN_PRODUCT_KEY = 'mean_product'
# The estimate of the lower bound minus `lower_bound`, a hyperparameter.
_RAISED_BOUND_KEY = 'raised_bound'
_LAST_STEP_SIZE_KEY = 'last_step_size'


class _Momo(vector_optimizer.VectorOptimizer):
  """MoMo and MoMo-Adam, see their builders."""

  needs_value = True

  def __init__(self, hparams: Any, corrects_bias: bool, estimates: bool):
    self._is_adam = 'beta_2' in hparams
    self.name = 'MoMo-Adam' if self._is_adam else 'MoMo'
    super().__init__(hparams)
    self._corrects_bias = corrects_bias
    self._estimates = estimates
    self.moment_keys = (_MOMENT_KEY,)
    if self._is_adam:
      self.moment_keys += (_SECOND_MOMENT_KEY,)
    self.scalar_keys = (_MEAN_LOSS_KEY, _MEAN_PRODUCT_KEY, _LAST_STEP_SIZE_KEY)
    if estimates:
      self.scalar_keys += (_RAISED_BOUND_KEY,)

  def step(self, state, x, g, hparams, extra):
    beta = hparams['beta_1' if self._is_adam else 'beta']
    power = state[vector_optimizer.NUM_STEPS_KEY] + 1
    rho = tf.ones_like(beta)
    if self._corrects_bias:
      rho = vectors.complement(beta, power)
    else:
      # The averages start at the first values instead of at 0.
      beta = tf.where(self.is_first(state), tf.zeros_like(beta), beta)
    new = {
        _MOMENT_KEY: g,
        _MEAN_LOSS_KEY: tf.cast(extra.value, beta.dtype),
        _MEAN_PRODUCT_KEY: vectors.inner(g, x, beta.dtype),
    }
    changed = {k: vectors.average(beta, state[k], new[k]) for k in new}
    directions = changed[_MOMENT_KEY]
    if self._is_adam:
      beta_2 = hparams['beta_2']
      squares = tf.nest.map_structure(tf.square, g)
      v = vectors.average(beta_2, state[_SECOND_MOMENT_KEY], squares)
      changed[_SECOND_MOMENT_KEY] = v
      root = tf.sqrt(vectors.complement(beta_2, power))
      directions = vectors.over_root(directions, v, hparams['epsilon'], root)
    moment = changed[_MOMENT_KEY]
    changed.update(
        self._model_step(
            {**state, **changed},
            vectors.inner(moment, directions, beta.dtype),
            vectors.inner(moment, x, beta.dtype),
            rho,
            hparams,
        )
    )
    decay = 1.0 + hparams['learning_rate'] * hparams['weight_decay']
    step_size = changed[_LAST_STEP_SIZE_KEY]
    moved = vectors.combine(1.0 / decay, x, -step_size / decay, directions)
    return changed, moved

  def _model_step(
      self,
      state: Any,
      squared: tf.Tensor,
      product: tf.Tensor,
      rho: tf.Tensor,
      hparams: vector_optimizer.Hparams,
  ) -> dict[str, tf.Tensor]:
    """Returns the truncated model's step size and the estimate of its bound."""
    rate, bound = hparams['learning_rate'], hparams['lower_bound']
    decay = 1.0 + rate * hparams['weight_decay']
    offset = state[_MEAN_LOSS_KEY] - state[_MEAN_PRODUCT_KEY]
    largest = decay * offset + product
    held = bound
    if self._estimates:
      held = bound + state[_RAISED_BOUND_KEY]
      held = tf.where(
          largest < decay * rho * held,
          tf.maximum(largest / (2.0 * decay * rho), bound),
          held,
      )
    step_size = tf.minimum(
        rate / rho,
        tf.math.divide_no_nan(
            tf.maximum(largest - decay * rho * held, 0.0), squared
        ),
    )
    # `minimum` and `maximum` may drop a NaN.
    is_finite = tf.math.is_finite(largest) & tf.math.is_finite(squared)
    step_size = tf.where(is_finite, step_size, float('nan'))
    changed = {_LAST_STEP_SIZE_KEY: step_size}
    if self._estimates:
      lowered = (offset + product - 0.5 * step_size * squared) / rho
      changed[_RAISED_BOUND_KEY] = tf.maximum(lowered, bound) - bound
    return changed

  def report(self, state):
    # Adam's steps have no size common to all coordinates.
    name = 'rate' if self._is_adam else optimizer.STEP_SIZE_KEY
    return collections.OrderedDict([(name, state[_LAST_STEP_SIZE_KEY])])


@arguments.checked
def build_momo(
    learning_rate: ranges.NotNegative = 1.0,
    beta: ranges.Share = 0.9,
    lower_bound: ranges.Finite = 0.0,
    weight_decay: ranges.NotNegative = 0.0,
    *,
    bias_correction: bool = False,
    estimate_lower_bound: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds MoMo, momentum SGD with step sizes from a model of the loss.

  With f_k and g_k the loss and the gradient of local step k, loss terms
  included, and products over the vector of all trainable weights:

  ```
  d = beta d + (1 - beta) g_k               (in the first step, averages d, f, c
  f = beta f + (1 - beta) f_k                are the values themselves)
  c = beta c + (1 - beta) <g_k, x>
  w = 1 + learning_rate * weight_decay
  tau = min(learning_rate, max(w (f - lower_bound - c) + <d, x>, 0) / |d|^2)
  x = (x - tau d) / w
  ```

  The model of the loss is its averaged linearization, truncated at the lower
  bound; `learning_rate` is the largest step size. With beta = 0 it is
  `build_sps_max` with c = 1. Losses that can become negative need a lower bound
  below zero. If the loss or a product is not finite, the step is not finite,
  and the client is rejected.

  The state is reset in every round. Each step costs one gradient, and a client
  sends nothing but its model update. The defaults are those of the published
  code.

  Args:
    learning_rate: The largest step size. It matters little unless it is too
      small.
    beta: The decay rate of the averages.
    lower_bound: A lower bound of the losses.
    weight_decay: The strength of decoupled weight decay.
    bias_correction: Whether to start the averages at zero and correct the bias:
      with rho = 1 - beta^(k+1), the largest step size becomes
      learning_rate / rho, and the bound rho * lower_bound. Default False.
    estimate_lower_bound: Whether to estimate the bound, from `lower_bound`
      upwards: MoMo*. With momentum the estimate can exceed the smallest loss,
      and the iterates then do not reach it, even on a quadratic. Default False.

  Returns:
    An `ExtraArgsOptimizer` with the hyperparameters `learning_rate`, `beta`,
    `lower_bound` and `weight_decay`. It reports the `step_size` of each step,
    tau, which multiplies the averaged gradient.

  Example:

    >>> optimizer = build_momo()
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(3.0)  # f(x) = 2 x^2
    >>> state, x = optimizer.next(state, x, 4.0 * x, value=2.0 * x**2)
    >>> round(float(state['last_step_size']), 4)  # 18 / 12^2
    0.125

  References:
    Schaipp, Ohana, Eickenberg, Defazio, Gower, MoMo: Momentum Models for
    Adaptive Learning Rates, ICML 2024, https://arxiv.org/abs/2305.07583,
    Algorithm 1, and section 4 for the estimate of the bound. Deviation: none;
    optax's implementation decays the weights alone and not the step.
  """
  hparams = collections.OrderedDict(
      learning_rate=learning_rate,
      beta=beta,
      lower_bound=lower_bound,
      weight_decay=weight_decay,
  )
  return _Momo(hparams, bias_correction, estimate_lower_bound)


@arguments.checked
def build_momo_adam(
    learning_rate: ranges.NotNegative = 0.01,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.999,
    epsilon: ranges.NotNegative = 1e-8,
    lower_bound: ranges.Finite = 0.0,
    weight_decay: ranges.NotNegative = 0.0,
    *,
    estimate_lower_bound: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds MoMo-Adam, Adam with learning rates from a model of the loss.

  This is `build_momo` with bias correction, in the norm of Adam's
  preconditioner:

  ```
  v   = beta_2 v + (1 - beta_2) g_k^2
  P   = epsilon + sqrt(v / (1 - beta_2^(k+1)))            rho = 1 - beta_1^(k+1)
  tau = min(learning_rate / rho,
            max(w (f - rho lower_bound - c) + <d, x>, 0) / <d, d / P>)
  x   = (x - tau d / P) / w
  ```

  with d, f and c the averages of MoMo with beta_1, which start at zero. While
  the first argument is the minimum, this is Adam. The defaults are those of the
  published code.

  Args:
    learning_rate: The largest learning rate of Adam.
    beta_1: The decay rate of the averages.
    beta_2: The decay rate of v.
    epsilon: Added to the root.
    lower_bound: See `build_momo`.
    weight_decay: See `build_momo`.
    estimate_lower_bound: See `build_momo`.

  Returns:
    An `ExtraArgsOptimizer` with the hyperparameters `learning_rate`, `beta_1`,
    `beta_2`, `epsilon`, `lower_bound` and `weight_decay`. It reports tau, the
    `rate` of each step.

  Example:

    >>> optimizer = build_momo_adam(learning_rate=0.5)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(10.0)
    >>> _, x = optimizer.next(state, x, 2.0 * x, value=x**2)
    >>> round(float(x), 4)  # The model would allow a larger rate.
    9.5

  References:
    Schaipp, Ohana, Eickenberg, Defazio, Gower, MoMo: Momentum Models for
    Adaptive Learning Rates, ICML 2024, https://arxiv.org/abs/2305.07583,
    Algorithm 2.
  """
  hparams = collections.OrderedDict(
      learning_rate=learning_rate,
      beta_1=beta_1,
      beta_2=beta_2,
      epsilon=epsilon,
      lower_bound=lower_bound,
      weight_decay=weight_decay,
  )
  return _Momo(hparams, True, estimate_lower_bound)
