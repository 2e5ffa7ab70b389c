# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mechanic: a learned scale of another rule's steps."""

import collections
from typing import Any

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

# What the base has moved since the round began, before scaling.
_OFFSET_KEY = 'offset'
_FIRST_MOMENT_KEY = 'first_moment'
_SECOND_MOMENT_KEY = 'second_moment'
_BASE_STEPS_KEY = 'base_steps'
# One number for each decay rate: s, m, v and r of the formula.
_SCALES_KEYS = ('scales', 'largest', 'variance', 'reward')


class _Mechanic(vector_optimizer.VectorOptimizer):
  """Mechanic around SGD and Adam, see the builders."""

  is_anchored = True
  scalar_keys = ('scale',)
  reported_keys = ('scale',)

  def __init__(self, hparams: Any, num_betas: int):
    self._is_adam = 'beta_2' in hparams
    self.name = f'Mechanic with {"Adam" if self._is_adam else "SGD"}'
    super().__init__(hparams)
    self._num_betas = num_betas
    self.moment_keys = (_OFFSET_KEY, _FIRST_MOMENT_KEY)
    if self._is_adam:
      self.moment_keys += (_SECOND_MOMENT_KEY,)

  def initialize_rule(self, specs, dtype):
    zeros = tf.zeros([self._num_betas], dtype)
    return collections.OrderedDict(
        super().initialize_rule(specs, dtype),
        **dict.fromkeys(_SCALES_KEYS, zeros),
        **{_BASE_STEPS_KEY: tf.zeros([], tf.int32)},
    )

  def step(self, state, x, g, hparams, extra):
    dtype = vectors.step_dtype(x)
    is_new = tf.equal(state[_BASE_STEPS_KEY], 0)
    initial = hparams['initial_scale'] / self._num_betas
    old = tf.where(is_new, initial, state['scales'])
    decay = hparams['weight_decay'] * tf.reduce_sum(old)
    decay *= vectors.norm(g, dtype)
    decay /= vectors.norm(x, dtype) + hparams['epsilon']
    pulled = vectors.combine(1.0, g, decay, extra.decaying)
    gain = -vectors.inner(pulled, state[_OFFSET_KEY], dtype)
    scales = self._scales(state, old, gain, hparams)
    changed, direction = self._base(state, g, hparams)
    offset = vectors.descend(
        state[_OFFSET_KEY], direction, hparams['learning_rate']
    )
    scale = tf.reduce_sum(scales['scales'])
    moved = vectors.combine(
        1.0, state[vector_optimizer.ANCHOR_KEY], scale, offset
    )
    changed.update(scales, scale=scale)
    changed[_OFFSET_KEY] = offset
    changed[_BASE_STEPS_KEY] = state[_BASE_STEPS_KEY] + 1
    return changed, moved

  def _scales(self, state: Any, old: Any, gain: Any, hparams: Any) -> Any:
    """Returns s, m, v and r after a step; `gain` is h."""
    epsilon = hparams['epsilon']
    powers = tf.range(1, self._num_betas + 1, dtype=tf.float64)
    beta = tf.cast(1.0 - 10.0**-powers, gain.dtype)
    last = state['largest']
    clipped = tf.maximum(tf.minimum(gain, last), -last)
    largest = tf.maximum(beta * last, tf.abs(gain) + epsilon)
    variance = tf.square(beta) * state['variance'] + tf.square(gain)
    reward = beta * state['reward'] + clipped * old
    wealth = hparams['initial_scale'] / self._num_betas * largest
    scales = wealth + tf.maximum(reward, 0.0)
    scales /= tf.sqrt(variance) + epsilon
    return dict(zip(_SCALES_KEYS, (scales, largest, variance, reward)))

  def _base(self, state: Any, g: Any, hparams: Any) -> tuple[Any, Any]:
    """Returns the moments and the direction of the base rule."""
    if not self._is_adam:
      m = vectors.combine(hparams['momentum'], state[_FIRST_MOMENT_KEY], 1.0, g)
      return {_FIRST_MOMENT_KEY: m}, m
    num_steps = state[_BASE_STEPS_KEY] + 1
    beta_1, beta_2 = hparams['beta_1'], hparams['beta_2']
    squares = tf.nest.map_structure(tf.square, g)
    m = vectors.average(beta_1, state[_FIRST_MOMENT_KEY], g)
    v = vectors.average(beta_2, state[_SECOND_MOMENT_KEY], squares)
    direction = vectors.over_root(
        vectors.divide(m, vectors.complement(beta_1, num_steps)),
        v,
        hparams['base_epsilon'],
        tf.sqrt(vectors.complement(beta_2, num_steps)),
    )
    return {_FIRST_MOMENT_KEY: m, _SECOND_MOMENT_KEY: v}, direction


def _build(hparams: Any, num_betas: int, carry_state: bool) -> Any:
  rule = _Mechanic(hparams, num_betas)
  if not carry_state:
    return rule
  return federated_optimizer.KeptOptimizer(
      rule,
      starts_anew=(
          vector_optimizer.ANCHOR_KEY,
          vector_optimizer.NUM_STEPS_KEY,
          _OFFSET_KEY,
      ),
  )


@arguments.checked
def build_mechanic_sgd(
    learning_rate: ranges.NotNegative = 1.0,
    momentum: ranges.Share = 0.0,
    initial_scale: ranges.Positive = 1e-6,
    weight_decay: ranges.NotNegative = 0.01,
    epsilon: ranges.Positive = 1e-8,
    *,
    num_betas: ranges.Count = 6,
    carry_state: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds Mechanic around SGD, which learns the scale of its steps.

  With x_0 the received model, Delta = 0 at first, u the step of the base rule,
  n = num_betas, and for each j from 1 to n: b = 1 - 10^-j, s = initial_scale/n
  and m = v = r = 0 at first:

  ```
  q = g + weight_decay (sum of s) |g| / (|x| + epsilon) x
  h = -<q, Delta>,   c = min(max(h, -m), m)
  m = max(b m, |h| + epsilon),   v = b^2 v + h^2,   r = b r + c s
  s = (initial_scale/n m + max(r, 0)) / (sqrt(v) + epsilon)
  Delta = Delta + u,   x = x_0 + (sum of s) Delta
  ```

  Here u is -learning_rate times the momentum buffer, as in `build_sgd`. Weight
  decay acts only through h. The first step is initial_scale times that of the
  base, and a scale of 1e-6 needs tens of steps to grow: with few local steps
  use an `initial_scale` of 0.01, or `carry_state`.

  The state is reset in every round unless `carry_state`. Each step costs one
  gradient. A client sends nothing but its model update, and holds three more
  copies of the weights during a round.

  Args:
    learning_rate: The rate of the base. Default 1. Without weight decay,
      multiplying it and dividing `initial_scale` by the same changes no step,
      but for epsilon.
    momentum: The momentum coefficient of the base.
    initial_scale: The first scale. Default 1e-6.
    weight_decay: The strength of the decay, lambda of the paper. Default 0.01.
    epsilon: Added to divisors. Default 1e-8.
    num_betas: The number of decay rates. Default 6.
    carry_state: Whether clients keep the scales and the base's moments until
      they participate again; x_0 and Delta always start anew, as x is set from
      them. Default False.

  Returns:
    An `ExtraArgsOptimizer`, with `carry_state` a `FederatedOptimizer`, whose
    hyperparameters are the numeric arguments but `num_betas`. It reports the
    `scale` of each step, the sum of s.

  Example:

    >>> optimizer = build_mechanic_sgd(initial_scale=0.125)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(1.0), tf.constant(2.0))
    >>> float(x)
    0.75

  References:
    Cutkosky, Defazio, Mehta, Mechanic: A Learning Rate Tuner, NeurIPS 2023,
    https://arxiv.org/abs/2306.00144, Algorithm 1, with the authors' code in
    `optax.contrib` 0.2.8, which has the defaults; their PyTorch package has
    1e-8 for the first scale. Deviations: c is the clipped h, as in optax, which
    notes that the paper does not clip. Delta is kept, as in the paper; optax
    recomputes it as (x - x_0) / (sum of s + epsilon), of which float32 keeps
    one digit at a scale of 1e-6.
  """
  hparams = dict(
      learning_rate=learning_rate,
      momentum=momentum,
      initial_scale=initial_scale,
      weight_decay=weight_decay,
      epsilon=epsilon,
  )
  return _build(hparams, num_betas, carry_state)


@arguments.checked
def build_mechanic_adam(
    learning_rate: ranges.NotNegative = 1.0,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.999,
    base_epsilon: ranges.NotNegative = 1e-8,
    initial_scale: ranges.Positive = 1e-6,
    weight_decay: ranges.NotNegative = 0.01,
    epsilon: ranges.Positive = 1e-8,
    *,
    num_betas: ranges.Count = 6,
    carry_state: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds Mechanic around Adam, which learns the scale of its steps.

  This is `build_mechanic_sgd` with u = -learning_rate times Adam's direction,
  with bias correction, as in `build_adam`.

  Args:
    learning_rate: See `build_mechanic_sgd`.
    beta_1: The decay rate of Adam's m. Default 0.9.
    beta_2: The decay rate of Adam's v. Default 0.999.
    base_epsilon: Added to Adam's root. Default 1e-8.
    initial_scale: See `build_mechanic_sgd`.
    weight_decay: See `build_mechanic_sgd`.
    epsilon: See `build_mechanic_sgd`.
    num_betas: See `build_mechanic_sgd`.
    carry_state: See `build_mechanic_sgd`.

  Returns:
    An `ExtraArgsOptimizer`, as from `build_mechanic_sgd`.

  Example:

    >>> optimizer = build_mechanic_adam(initial_scale=0.125)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(1.0), tf.constant(9.0))
    >>> round(float(x), 4)
    0.875

  References:
    Cutkosky, Defazio, Mehta, Mechanic: A Learning Rate Tuner, NeurIPS 2023,
    https://arxiv.org/abs/2306.00144, as `build_mechanic_sgd`.
  """
  hparams = dict(
      learning_rate=learning_rate,
      beta_1=beta_1,
      beta_2=beta_2,
      base_epsilon=base_epsilon,
      initial_scale=initial_scale,
      weight_decay=weight_decay,
      epsilon=epsilon,
  )
  return _build(hparams, num_betas, carry_state)
