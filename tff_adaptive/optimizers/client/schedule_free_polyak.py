# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Schedule-Free SGD and Adam with Polyak step sizes."""

import collections
import math
from typing import Any

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import schedule_free

_SECOND_MOMENT_KEY = 'second_moment'
_LAST_STEP_SIZE_KEY = 'last_step_size'


class _ScheduleFreePolyak(schedule_free.Averaging):
  """Both rules, see their builders."""

  scalar_keys = (_LAST_STEP_SIZE_KEY,)
  needs_value = True

  def __init__(self, hparams: Any):
    self._is_adam = 'beta_2' in hparams
    self.name = f'Schedule-Free Polyak {"Adam" if self._is_adam else "SGD"}'
    super().__init__(hparams)
    if self._is_adam:
      self.moment_keys += (_SECOND_MOMENT_KEY,)

  def step(self, state, x, g, hparams, extra):
    average, base = self.start(state, x)
    num_steps = state[vector_optimizer.NUM_STEPS_KEY] + 1
    beta = hparams['beta']
    dtype = beta.dtype
    changed, direction = {}, g
    if self._is_adam:
      squares = tf.nest.map_structure(tf.square, g)
      v = vectors.average(hparams['beta_2'], state[_SECOND_MOMENT_KEY], squares)
      changed[_SECOND_MOMENT_KEY] = v
      root = tf.sqrt(vectors.complement(hparams['beta_2'], num_steps))
      direction = vectors.over_root(g, v, hparams['epsilon'], root)
    apart = tf.nest.map_structure(tf.subtract, base, average)
    bound = tf.cast(extra.value, dtype) - hparams['lower_bound']
    bound += beta * vectors.inner(g, apart, dtype)
    squared = vectors.inner(g, direction, dtype)
    step_size = tf.math.divide_no_nan(
        tf.maximum(bound, 0.0), tf.maximum(squared, hparams['min_squared_norm'])
    )
    step_size = tf.minimum(step_size, hparams['max_step_size'])
    # `minimum` and `maximum` may drop a NaN.
    step_size = tf.where(
        vectors.is_finite(bound, squared), step_size, float('nan')
    )
    base = vectors.descend(base, direction, step_size)
    average = vectors.move_towards(average, base, 1 / num_steps)
    changed.update(
        {
            schedule_free.AVERAGE_KEY: average,
            schedule_free.BASE_KEY: base,
            _LAST_STEP_SIZE_KEY: step_size,
        }
    )
    return changed, vectors.move_towards(
        average, base, vectors.complement(beta)
    )

  def report(self, state):
    # Adam's steps have no size common to all coordinates.
    name = 'rate' if self._is_adam else optimizer.STEP_SIZE_KEY
    return collections.OrderedDict([(name, state[_LAST_STEP_SIZE_KEY])])


@arguments.checked
def build_schedule_free_polyak_sgd(
    beta: ranges.Share = 0.9,
    lower_bound: ranges.Finite = 0.0,
    min_squared_norm: ranges.NotNegative = 1e-8,
    max_step_size: ranges.Limit = math.inf,
) -> optimizer.ExtraArgsOptimizer:
  """Builds Schedule-Free SGD with Polyak steps: neither schedule nor rate.

  x, y and z start at the received model. With f and g the loss and the gradient
  at y in local step k, loss terms included:

  ```
  gamma = max(f - lower_bound + beta <g, z - x>, 0)
          / max(|g|^2, min_squared_norm),   at most max_step_size
  z = z - gamma g
  x = x + (z - x) / (k + 1)
  y = beta x + (1 - beta) z
  ```

  The client sends the update of x, the mean of the iterates z. Since
  y = beta x + (1 - beta) z, the first maximum bounds <g, z - x*> from below,
  and gamma minimizes the distance to x* under that bound. With beta = 0 this is
  the mean of the iterates of SPS with c = 1, and with one local step SPS
  itself.

  The loss of a client is rarely zero at the server's solution, where uncapped
  steps are as wild as those of `build_sps`: set `max_step_size`. The state is
  reset in every round. Each step costs one gradient, and a client holds two
  more copies of the weights during a round. Losses that can become negative
  need a lower bound below zero. If the loss or the gradient is not finite,
  gamma is NaN, and the client is rejected.

  Args:
    beta: The share of x in y. Default 0.9.
    lower_bound: A lower bound of the losses. Default 0.
    min_squared_norm: The smallest divisor, M. Default 1e-8, ours.
    max_step_size: The largest step size; infinite by default. Ours.

  Returns:
    An `ExtraArgsOptimizer` whose hyperparameters are the arguments. It has no
    learning rate. It reports the `step_size` of each step, gamma.

  Example:

    >>> optimizer = build_schedule_free_polyak_sgd()
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> y = tf.constant(3.0)  # f(y) = 2 y^2
    >>> state, y = optimizer.next(state, y, 4.0 * y, value=2.0 * y**2)
    >>> float(state['last_step_size'])  # 18 / 12^2
    0.125

  References:
    Oikonomou, Buchholz, Pun, Gower, Loizou, Taking the Road Less Scheduled with
    Adaptive Polyak Steps, 2025, https://arxiv.org/abs/2511.07767, the
    safeguarded variant. Deviations: M's value and `max_step_size` are ours; no
    published code was found.
  """
  hparams = collections.OrderedDict(
      beta=beta,
      lower_bound=lower_bound,
      min_squared_norm=min_squared_norm,
      max_step_size=max_step_size,
  )
  return _ScheduleFreePolyak(hparams)


@arguments.checked
def build_schedule_free_polyak_adam(
    beta: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.999,
    epsilon: ranges.NotNegative = 1e-8,
    lower_bound: ranges.Finite = 0.0,
    min_squared_norm: ranges.NotNegative = 1e-8,
    max_step_size: ranges.Limit = math.inf,
) -> optimizer.ExtraArgsOptimizer:
  """Builds Schedule-Free Adam with Polyak steps: neither schedule nor rate.

  This is `build_schedule_free_polyak_sgd` in the norm of Adam's preconditioner:

  ```
  v = beta_2 v + (1 - beta_2) g^2
  P = sqrt(v / (1 - beta_2^(k+1))) + epsilon
  gamma = max(f - lower_bound + beta <g, z - x>, 0)
          / max(<g, g / P>, min_squared_norm),   at most max_step_size
  z = z - gamma g / P
  ```

  Args:
    beta: See `build_schedule_free_polyak_sgd`.
    beta_2: The decay rate of v. Default 0.999.
    epsilon: Added to the root. Default 1e-8.
    lower_bound: See `build_schedule_free_polyak_sgd`.
    min_squared_norm: See `build_schedule_free_polyak_sgd`.
    max_step_size: See `build_schedule_free_polyak_sgd`.

  Returns:
    An `ExtraArgsOptimizer` whose hyperparameters are the arguments. It reports
    gamma, the `rate` of each step.

  Example:

    >>> optimizer = build_schedule_free_polyak_adam(max_step_size=0.5)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> y = tf.constant(10.0)
    >>> _, y = optimizer.next(state, y, 2.0 * y, value=y**2)
    >>> round(float(y), 4)
    9.5

  References:
    Oikonomou, Buchholz, Pun, Gower, Loizou, Taking the Road Less Scheduled with
    Adaptive Polyak Steps, 2025, https://arxiv.org/abs/2511.07767, as
    `build_schedule_free_polyak_sgd`.
  """
  hparams = collections.OrderedDict(
      beta=beta,
      beta_2=beta_2,
      epsilon=epsilon,
      lower_bound=lower_bound,
      min_squared_norm=min_squared_norm,
      max_step_size=max_step_size,
  )
  return _ScheduleFreePolyak(hparams)
