# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Schedule-Free SGD and AdamW: averaging instead of a schedule."""

import collections
from typing import Any

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

# x, z and Adam's v; the loop holds the weights y.
AVERAGE_KEY = 'average'
BASE_KEY = 'base_weights'
_SECOND_MOMENT_KEY = 'second_moment'

_WEIGHT_SUM_KEY = 'weight_sum'
_MAX_RATE_KEY = 'max_rate'


class Averaging(vector_optimizer.VectorOptimizer):
  """A rule whose weights y lie between iterates z and their mean x.

  x and z are in the state, and x is the result.
  """

  moment_keys: tuple[str, ...] = (AVERAGE_KEY, BASE_KEY)

  def start(self, state: Any, y: Any) -> tuple[Any, Any]:
    """Returns x and z before a step: y before the first one."""
    is_first = self.is_first(state)
    return (
        vectors.choose(is_first, y, state[AVERAGE_KEY]),
        vectors.choose(is_first, y, state[BASE_KEY]),
    )

  def final_weights(self, state, weights):
    # Before the first step, x is not in the state.
    is_first = self.is_first(state)
    return tf.nest.map_structure(
        lambda w, average: tf.where(is_first, w, tf.cast(average, w.dtype)),
        weights,
        state[AVERAGE_KEY],
    )


class _ScheduleFree(Averaging):
  """Schedule-Free SGD and AdamW, see their builders."""

  scalar_keys = (_WEIGHT_SUM_KEY, _MAX_RATE_KEY)

  def __init__(self, hparams: Any, corrects_in_weight: bool = False):
    self._is_adam = 'beta_2' in hparams
    self.name = f'Schedule-Free {"AdamW" if self._is_adam else "SGD"}'
    super().__init__(hparams)
    self._corrects_in_weight = corrects_in_weight
    if self._is_adam:
      self.moment_keys += (_SECOND_MOMENT_KEY,)

  def step(self, state, x, g, hparams, extra):
    y = x
    num_steps = state[vector_optimizer.NUM_STEPS_KEY] + 1
    dtype = hparams['learning_rate'].dtype
    average, base = self.start(state, y)
    warm_up = tf.math.divide_no_nan(
        tf.cast(num_steps, dtype), hparams['warmup_steps']
    )
    warm_up = tf.where(hparams['warmup_steps'] > 0.0, warm_up, 1.0)
    rate = hparams['learning_rate'] * tf.minimum(warm_up, 1.0)
    changed = {}
    direction = g
    if self._is_adam:
      squares = tf.nest.map_structure(tf.square, g)
      v = vectors.average(hparams['beta_2'], state[_SECOND_MOMENT_KEY], squares)
      changed[_SECOND_MOMENT_KEY] = v
      root = tf.sqrt(vectors.complement(hparams['beta_2'], num_steps))
      if self._corrects_in_weight:
        rate, root = rate * root, 1.0
      direction = vectors.over_root(g, v, hparams['epsilon'], root)
    direction = vectors.combine(
        1.0, direction, hparams['weight_decay'], extra.decaying
    )
    base = vectors.combine(1.0, base, -rate, direction)
    max_rate = tf.maximum(state[_MAX_RATE_KEY], rate)
    weight = tf.cast(num_steps, dtype) ** hparams['r'] * (
        max_rate ** hparams['weight_lr_power']
    )
    weight_sum = state[_WEIGHT_SUM_KEY] + weight
    share = tf.math.divide_no_nan(weight, weight_sum)
    # Unlike a weighted sum, this keeps every bit of weights that do not move.
    average = vectors.move_towards(average, base, share)
    changed.update(
        {
            AVERAGE_KEY: average,
            BASE_KEY: base,
            _WEIGHT_SUM_KEY: weight_sum,
            _MAX_RATE_KEY: max_rate,
        }
    )
    rest = vectors.complement(hparams['beta'])
    return changed, vectors.move_towards(average, base, rest)


@arguments.checked
def build_schedule_free_sgd(
    learning_rate: ranges.NotNegative = 1.0,
    beta: ranges.PositiveShare = 0.9,
    warmup_steps: ranges.Steps = 0,
    r: ranges.NotNegative = 0.0,
    weight_lr_power: ranges.NotNegative = 2.0,
    weight_decay: ranges.NotNegative = 0.0,
) -> optimizer.ExtraArgsOptimizer:
  """Builds Schedule-Free SGD, which averages instead of a schedule.

  x, y and z start at the received model, W and L at 0. With g the gradient at y
  in local step k:

  ```
  l = learning_rate * min(1, (k + 1) / warmup_steps)
  z = z - l (g + weight_decay y)
  L = max(L, l),   c = (k + 1)^r L^weight_lr_power,   W = W + c
  x = (1 - c / W) x + c / W z
  y = beta x + (1 - beta) z
  ```

  The client sends the update of x, a weighted mean of the iterates z; losses
  are those at y. The algorithms of `tff.learning`, which would send y, are
  refused. All state is reset in every round: with one local step this is SGD.
  Each step costs one gradient, and a client holds two more copies of the
  weights during a round.

  As a server rule, the model of the process is y, at which the clients train.
  Evaluate x, which `final_weights` finds from the rule's state and y.

  The defaults are those of the published code.

  Args:
    learning_rate: The step size. It should be larger than for SGD with a
      schedule.
    beta: The share of x in y.
    warmup_steps: The number of steps of a round in which the rate grows.
    r: The exponent of the step's number in the weights of the mean.
    weight_lr_power: The exponent of the rate in the weights of the mean.
    weight_decay: y times this is added to the gradients.

  Returns:
    An `ExtraArgsOptimizer` whose hyperparameters are the arguments.

  Example:

    >>> optimizer = build_schedule_free_sgd(learning_rate=0.5)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> y = tf.constant(1.0)
    >>> for _ in range(2):
    ...   state, y = optimizer.next(state, y, 2.0 * y)
    >>> float(optimizer.final_weights(state, y))  # The mean of 0 and 0.
    0.0

  References:
    Defazio, Yang, Mehta, Mishchenko, Khaled, Cutkosky, The Road Less Scheduled,
    NeurIPS 2024, https://arxiv.org/abs/2405.15682, equations (1) to (3), with
    the weights of the published code. Deviation: none; optax warms up z one
    step before the weights.
  """
  hparams = collections.OrderedDict(
      learning_rate=learning_rate,
      beta=beta,
      warmup_steps=warmup_steps,
      r=r,
      weight_lr_power=weight_lr_power,
      weight_decay=weight_decay,
  )
  return _ScheduleFree(hparams)


@arguments.checked
def build_schedule_free_adamw(
    learning_rate: ranges.NotNegative = 0.0025,
    beta: ranges.PositiveShare = 0.9,
    beta_2: ranges.Share = 0.999,
    epsilon: ranges.NotNegative = 1e-8,
    warmup_steps: ranges.Steps = 0,
    r: ranges.NotNegative = 0.0,
    weight_lr_power: ranges.NotNegative = 2.0,
    weight_decay: ranges.NotNegative = 0.0,
    *,
    bias_correction_in_weight: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds Schedule-Free AdamW, which averages instead of a schedule.

  This is `build_schedule_free_sgd` with Adam's direction instead of g:

  ```
  v = beta_2 v + (1 - beta_2) g^2
  u = g / (sqrt(v / (1 - beta_2^(k+1))) + epsilon)
  z = z - l (u + weight_decay y)
  ```

  with x and y as there, which replace Adam's first moment. The defaults are
  those of the published code.

  Args:
    learning_rate: The step size.
    beta: See `build_schedule_free_sgd`.
    beta_2: The decay rate of v.
    epsilon: Added to the root.
    warmup_steps: See `build_schedule_free_sgd`.
    r: See `build_schedule_free_sgd`.
    weight_lr_power: See `build_schedule_free_sgd`.
    weight_decay: y times this is added to u.
    bias_correction_in_weight: Whether to multiply l by sqrt(1 - beta_2^(k+1)),
      also in the weights of the mean, instead of correcting v, as in the code
      of the paper's experiments. Default False, as in the maintained code.

  Returns:
    An `ExtraArgsOptimizer` whose hyperparameters are the numeric arguments.

  Example:

    >>> optimizer = build_schedule_free_adamw(learning_rate=0.25)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, y = optimizer.next(state, tf.constant(1.0), tf.constant(8.0))
    >>> round(float(y), 4)  # The first step has the size of the learning rate.
    0.75

  References:
    Defazio, Yang, Mehta, Mishchenko, Khaled, Cutkosky, The Road Less Scheduled,
    NeurIPS 2024, https://arxiv.org/abs/2405.15682, Algorithm 1. Deviation:
    without `bias_correction_in_weight`, v is corrected as in the maintained
    code.
  """
  hparams = collections.OrderedDict(
      learning_rate=learning_rate,
      beta=beta,
      beta_2=beta_2,
      epsilon=epsilon,
      warmup_steps=warmup_steps,
      r=r,
      weight_lr_power=weight_lr_power,
      weight_decay=weight_decay,
  )
  return _ScheduleFree(hparams, bias_correction_in_weight)
