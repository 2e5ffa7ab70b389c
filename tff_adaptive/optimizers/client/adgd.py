# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""AdGD: gradient descent with the step sizes of Malitsky and Mishchenko."""

import collections
import math
from typing import Literal, Optional

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers.client import delta_sgd

_VERSIONS = ('2023', '2023_root', '2020')
# Stands for an infinite theta in the state, which must be finite.
_INFINITE = 1e30


class _AdGD(delta_sgd.DeltaSGD):
  """AdGD, see `build_adgd`."""

  name = 'AdGD'

  def __init__(self, hparams, version: str, previous_gradient: str):
    super().__init__(
        hparams,
        previous_gradient=previous_gradient,
        amplify_first=False,
        growth='always',
        max_step_size=math.inf,
    )
    self._version = version

  def step_size(self, state, changes, hparams):
    rate, first_theta = hparams['learning_rate'], hparams['theta']
    last, theta = state['last_step_size'], state['last_theta']
    added = 2.0 / 3.0 if self._version == '2023' else 1.0
    grown = tf.where(theta < _INFINITE, tf.sqrt(added + theta) * last, math.inf)
    new = tf.minimum(grown, self._limit(*changes, last))
    # With an infinite theta and no estimate there is nothing to go by.
    stays = tf.math.is_inf(new)
    new_theta = tf.where(stays, theta, tf.math.divide_no_nan(new, last))
    new = tf.where(stays, last, new)
    is_finite = tf.math.is_finite(changes[0] + changes[1])
    new = tf.where(is_finite, new, float('nan'))
    is_first = self.is_first(state)
    step_size = tf.where(is_first, rate, new)
    theta = tf.where(is_first, first_theta, new_theta)
    theta = tf.minimum(theta, tf.cast(_INFINITE, theta.dtype))
    return delta_sgd.StepSize(step_size, theta, step_size, step_size)

  def _limit(self, weight_change, gradient_change, last):
    """Returns the limit from the smoothness, infinite without an estimate."""
    if self._version == '2023':
      smoothness = tf.math.divide_no_nan(gradient_change, weight_change)
      bracket = 2.0 * tf.square(last * smoothness) - 1.0
      has_limit = bracket > 0.0
      # Not the root of what is not chosen, whose derivative is NaN.
      limit = last / tf.sqrt(tf.where(has_limit, bracket, 1.0))
    else:
      factor = 0.5 if self._version == '2020' else math.sqrt(0.5)
      has_limit = (weight_change > 0.0) & (gradient_change > 0.0)
      limit = factor * tf.math.divide_no_nan(weight_change, gradient_change)
    return tf.where(has_limit, limit, math.inf)

  def report(self, state):
    report = super().report(state)
    # Neither limits, which the state does not have, nor theta.
    names = ('step_size', 'relative_step_size', 'gradient_evaluations')
    return collections.OrderedDict((name, report[name]) for name in names)


@arguments.checked
def build_adgd(
    learning_rate: ranges.Positive = 1e-3,
    theta: Optional[ranges.Limit] = None,
    *,
    version: Literal['2023', '2023_root', '2020'] = '2023',
    previous_gradient: Literal['recompute', 'reuse'] = 'recompute',
) -> optimizer.ExtraArgsOptimizer:
  """Builds AdGD, the parent of Delta-SGD.

  With x_k, B_k, g_k and h_k as in `build_delta_sgd`:

  ```
  step 0:   eta     = learning_rate,  theta as given
  step k:   L       = |g_k - h_k| / |x_k - x_{k-1}|
    2020:       eta' = min(sqrt(1 + theta) eta, 1 / (2 L))
    2023_root:  eta' = min(sqrt(1 + theta) eta, 1 / (sqrt(2) L))
    2023:       eta' = min(sqrt(2/3 + theta) eta,
                           eta / sqrt(max(2 eta^2 L^2 - 1, 0)))
            theta   = eta' / eta,  eta = eta'
  always:   x_{k+1} = x_k - eta g_k
  ```

  Without an estimate, because a norm is zero, eta' is the first argument; if
  that is infinite, too, eta and theta stay. If a norm is not finite, eta' is
  NaN, and the client is rejected.

  `'2020'` is `build_delta_sgd(gamma=1, delta=1)` with the growth `'always'`,
  and `'2023_root'` the same with a gamma of sqrt(2); `'2023'` allows longer
  steps than both. The first step is short and hardly matters with an infinite
  theta, since step 1 is then 1 / (2 L) whatever `learning_rate` is; but it must
  move the weights visibly in float32. The history is reset in every round, and
  with one local step this is SGD. Clients send nothing but the model update.

  Args:
    learning_rate: The step size of each round's first step. Default 1e-3, ours;
      the published code has 1e-10.
    theta: The ratio assumed for the first step. Default `None`: 1/3, as in the
      published code of 2023, and infinite with `'2020'`, as in its paper.
    version: The rule: `'2023'`, the default and Algorithm 2 of that paper,
      `'2023_root'`, its Algorithm 1, or `'2020'`.
    previous_gradient: How h_k is found, see `build_delta_sgd`: `'recompute'`,
      the default, costs two gradients per step from the second on, `'reuse'`
      one.

  Returns:
    An `ExtraArgsOptimizer` with the hyperparameters `learning_rate` and
    `theta`. It reports `step_size` and `relative_step_size`, the step size
    divided by `learning_rate`.

  Example:

    >>> optimizer = build_adgd(0.01, version='2020', previous_gradient='reuse')
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> x, steps = tf.constant(1.0), []
    >>> for _ in range(3):  # f(x) = 5 x^2
    ...   state, x = optimizer.next(state, x, 10.0 * x)
    ...   steps.append(round(float(state['last_step_size']), 4))
    >>> steps  # 0.01, then 1 over twice the smoothness 10
    [0.01, 0.05, 0.05]

  References:
    Malitsky, Mishchenko, Adaptive Proximal Gradient Method for Convex
    Optimization, NeurIPS 2024, https://arxiv.org/abs/2308.02261, Algorithms 1
    and 2, with published code https://github.com/ymalitsky/AdProxGD (commit
    9f3d401, `alg.jl`); Malitsky, Mishchenko, Adaptive Gradient Descent without
    Descent, ICML 2020, https://arxiv.org/abs/1910.09529, Algorithm 1, with
    https://github.com/ymalitsky/adaptive_GD (commit aa3b86a, `optimizers.py`).
    Deviations: the search for the first step of the code of 2023 is left out.
  """
  if theta is None:
    theta = math.inf if version == '2020' else 1.0 / 3.0
  hparams = collections.OrderedDict(learning_rate=learning_rate, theta=theta)
  return _AdGD(hparams, version, previous_gradient)
