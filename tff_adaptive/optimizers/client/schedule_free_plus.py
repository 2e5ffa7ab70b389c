# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""ScheduleFree+: Schedule-Free Adam with Polyak steps in the 1-norm."""

import math

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import schedule_free

_FIRST_MOMENT_KEY = 'first_moment'
_SECOND_MOMENT_KEY = 'second_moment'
_MEAN_NORM_KEY = 'mean_norm'
_MAX_RATE_KEY = 'max_rate'
_WEIGHT_SUM_KEY = 'weight_sum'


class _ScheduleFreePlus(schedule_free.Averaging):
  """ScheduleFree+, see `build_schedule_free_plus`."""

  name = 'ScheduleFree+'
  moment_keys = (
      *schedule_free.Averaging.moment_keys,
      _FIRST_MOMENT_KEY,
      _SECOND_MOMENT_KEY,
  )
  scalar_keys = (_MEAN_NORM_KEY, _MAX_RATE_KEY, _WEIGHT_SUM_KEY, 'rate')
  reported_keys = ('rate',)
  needs_value = True

  def step(self, state, x, g, hparams, extra):
    y = x
    x, z = self.start(state, y)
    k = state[vector_optimizer.NUM_STEPS_KEY]
    beta = self._beta(k, hparams)
    dtype = beta.dtype
    changed = self._rate(state, extra, beta, g, (x, z), hparams)
    rate = changed['rate']
    beta_1, beta_2 = hparams['beta_1'], hparams['beta_2']
    squares = tf.nest.map_structure(tf.square, g)
    m = vectors.average(beta_1, state[_FIRST_MOMENT_KEY], g)
    v = vectors.average(beta_2, state[_SECOND_MOMENT_KEY], squares)
    root = tf.sqrt(vectors.complement(beta_2, k + 1))
    adam = vectors.over_root(m, v, hparams['epsilon'], root)
    direction = vectors.combine(
        1.0 / vectors.complement(beta_1, k + 1),
        adam,
        rate * hparams['weight_decay'],
        extra.decaying,
    )
    z = vectors.descend(z, direction, rate)
    max_rate = tf.maximum(state[_MAX_RATE_KEY], rate)
    weight = tf.cast(k + 1, dtype) ** hparams['r'] * (
        max_rate ** hparams['weight_lr_power']
    )
    averages = tf.cast(k, dtype) >= hparams['averaging_delay']
    weight = tf.where(averages, weight, 0.0)
    total = state[_WEIGHT_SUM_KEY] + weight
    share = tf.where(averages, tf.math.divide_no_nan(weight, total), 1.0)
    x = vectors.move_towards(x, z, share)
    changed.update(
        {
            schedule_free.AVERAGE_KEY: x,
            schedule_free.BASE_KEY: z,
            _FIRST_MOMENT_KEY: m,
            _SECOND_MOMENT_KEY: v,
            _MAX_RATE_KEY: max_rate,
            _WEIGHT_SUM_KEY: total,
        }
    )
    return changed, vectors.move_towards(x, z, 1.0 - beta)

  def _beta(self, k, hparams):
    """Returns the share of x in y, which grows from `beta` to `max_beta`."""
    steps = hparams['anneal_steps']
    time = tf.math.divide_no_nan(tf.cast(k, steps.dtype), steps)
    time = tf.minimum(time, 1.0)
    first = vectors.complement(hparams['beta'])
    last = vectors.complement(hparams['max_beta'])
    return 1.0 - first ** (1.0 - time) * last**time

  def _rate(self, state, extra, beta, g, points, hparams):
    """Returns the new mean norm and the rate, l."""
    dtype = beta.dtype
    signs = tf.nest.map_structure(tf.sign, g)
    norm = math.sqrt(math.pi / 2.0) * vectors.inner(g, signs, dtype)
    decay = hparams['norm_decay']
    mean = decay * state[_MEAN_NORM_KEY] + vectors.complement(decay) * norm
    corrected = mean / vectors.complement(
        decay, state[vector_optimizer.NUM_STEPS_KEY] + 1
    )
    apart = tf.nest.map_structure(tf.subtract, points[1], points[0])
    bound = tf.cast(extra.value, dtype) + beta * vectors.inner(g, apart, dtype)
    rate = tf.math.divide_no_nan(
        hparams['learning_rate'] * tf.maximum(bound, 0.0), corrected
    )
    # `maximum` may drop a NaN, and a division by infinity gives 0.
    rate = tf.where(vectors.is_finite(bound, corrected), rate, float('nan'))
    return {_MEAN_NORM_KEY: mean, 'rate': rate}


@arguments.checked
def build_schedule_free_plus(
    learning_rate: ranges.NotNegative = 1.0,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.95,
    beta: ranges.Share = 0.9,
    max_beta: ranges.Share = 0.965,
    anneal_steps: ranges.Steps = 0,
    averaging_delay: ranges.Steps = 0,
    r: ranges.NotNegative = 0.0,
    weight_lr_power: ranges.NotNegative = 2.0,
    norm_decay: ranges.Share = 0.0,
    weight_decay: ranges.NotNegative = 0.0,
    epsilon: ranges.NotNegative = 1e-8,
) -> optimizer.ExtraArgsOptimizer:
  """Builds ScheduleFree+, Schedule-Free Adam with Polyak steps.

  x, y and z start at the received model, all else at 0. With f and g the loss
  and the gradient at y in local step k, loss terms included:

  ```
  t = min(k / anneal_steps, 1)                          (0 without anneal_steps)
  B = 1 - (1 - beta)^(1-t) (1 - max_beta)^t
  e = norm_decay e + (1 - norm_decay) sqrt(pi/2) |g|_1
  l = learning_rate max(f + B <g, z - x>, 0) / (e / (1 - norm_decay^(k+1)))
  L = max(L, l),   c = (k + 1)^r L^weight_lr_power,   W = W + c
  m, v: Adam's moments of g with beta_1 and beta_2, u: its direction
  z = z - l u - l^2 weight_decay y
  x = x + c / W (z - x)                 (x = z, W stays if k < averaging_delay)
  y = B x + (1 - B) z
  ```

  The client sends the update of x. Scaling the loss changes no step. The rate l
  falls with the number of coordinates that have a gradient, since |g|_1 sums
  over them, so `learning_rate` may need a larger value in large models.

  The state is reset in every round. Each step costs one gradient, and a client
  holds four more copies of the weights during a round. If the loss or the
  gradient is not finite, the rate is NaN, and the client is rejected.

  Args:
    learning_rate: Multiplies the rate. Default 1.
    beta_1: The decay rate of m. Default 0.9.
    beta_2: The decay rate of v. Default 0.95.
    beta: The first share of x in y. Default 0.9.
    max_beta: Its last value. Default 0.965.
    anneal_steps: The number of steps in which it grows. Default 0: it stays.
    averaging_delay: The number of steps before averaging begins.
    r: The exponent of the step's number in the weights of the mean.
    weight_lr_power: The exponent of the rate in these weights.
    norm_decay: The decay rate of e, `polyak_beta` of the published code.
    weight_decay: The strength of decoupled weight decay, which l^2 scales; 20
      to 50 in the paper.
    epsilon: Added to Adam's root. Default 1e-8.

  Returns:
    An `ExtraArgsOptimizer` whose hyperparameters are the arguments. It reports
    l, the `rate` of each step.

  Example:

    >>> optimizer = build_schedule_free_plus()
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> y = tf.constant(3.0)  # f(y) = y^2
    >>> state, y = optimizer.next(state, y, 2.0 * y, value=y**2)
    >>> round(float(state['rate']), 4)  # 9 / (1.2533 * 6)
    1.1968

  References:
    Defazio, ScheduleFree+: Scaling Learning-Rate-Free & Schedule-Free Learning
    to Large Language Models, 2026, https://arxiv.org/abs/2605.19095, with
    published code https://github.com/facebookresearch/schedule_free, commit
    70785b5, `adamc_schedulefree_plus_paper.py`. Deviation: with `norm_decay`
    above 0 that code stores the corrected mean of the norms and corrects it
    again in the next step; here it is corrected once.
  """
  hparams = dict(
      learning_rate=learning_rate,
      beta_1=beta_1,
      beta_2=beta_2,
      beta=beta,
      max_beta=max_beta,
      anneal_steps=anneal_steps,
      averaging_delay=averaging_delay,
      r=r,
      weight_lr_power=weight_lr_power,
      norm_decay=norm_decay,
      weight_decay=weight_decay,
      epsilon=epsilon,
  )
  return _ScheduleFreePlus(hparams)
