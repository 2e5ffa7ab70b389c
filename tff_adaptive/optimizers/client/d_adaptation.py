# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""D-Adaptation and Prodigy: step sizes from estimates of the distance."""

import collections
import math
from typing import Any, Optional

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_FIRST_MOMENT_KEY = 'first_moment'
_SECOND_MOMENT_KEY = 'second_moment'
_SUM_KEY = 'weighted_gradients'
# x_0 minus the last iterate.
_OFFSET_KEY = 'offset'
_ROUND_STEPS_KEY = 'round_steps'


class _DistanceEstimate(vector_optimizer.VectorOptimizer):
  """A base class of the three rules.

  They sum gradients weighted by their step sizes. Inner products of gradients
  with that sum bound the distance to the solution from below.
  """

  scalar_keys: tuple[str, ...] = ('distance', 'numerator')
  reported_keys = ('distance',)

  def __init__(self, hparams: Any, bias_correction: bool = False):
    super().__init__(hparams)
    self._corrects_bias = bias_correction

  def initialize_rule(self, specs, dtype):
    state = super().initialize_rule(specs, dtype)
    if self._corrects_bias:
      # Counts the steps that have moved: the first ones may have no gradient.
      state['num_moves'] = tf.zeros([], tf.int32)
    return state

  def _rate(self, state: Any, d: tf.Tensor, hparams: Any) -> tf.Tensor:
    """Returns the distance times the rate, with any bias correction."""
    if not self._corrects_bias:
      return d * hparams['learning_rate']
    power = state['num_moves'] + 1
    correction = tf.sqrt(vectors.complement(hparams['beta_2'], power))
    correction /= vectors.complement(hparams['beta_1'], power)
    return d * hparams['learning_rate'] * correction

  def _moments(self, state: Any, g: Any, m_scale: Any, v_scale: Any, hparams):
    """Returns Adam's moments of scaled gradients."""
    beta_1, beta_2 = hparams['beta_1'], hparams['beta_2']
    squares = tf.nest.map_structure(tf.square, g)
    return {
        _FIRST_MOMENT_KEY: vectors.combine(
            beta_1,
            state[_FIRST_MOMENT_KEY],
            vectors.complement(beta_1) * m_scale,
            g,
        ),
        _SECOND_MOMENT_KEY: vectors.combine(
            beta_2,
            state[_SECOND_MOMENT_KEY],
            vectors.complement(beta_2) * v_scale,
            squares,
        ),
    }

  def _count(self, state: Any, moves: tf.Tensor) -> dict[str, tf.Tensor]:
    if not self._corrects_bias:
      return {}
    return {'num_moves': state['num_moves'] + tf.cast(moves, tf.int32)}


def _limit_growth(estimate: tf.Tensor, d: tf.Tensor, hparams: Any) -> tf.Tensor:
  """Returns min(estimate, d * growth_rate).

  Infinity is not a factor of `d`: the derivative would be 0 times infinity.
  """
  growth_rate = hparams['growth_rate']
  is_infinite = tf.math.is_inf(growth_rate)
  factor = tf.where(is_infinite, tf.ones_like(growth_rate), growth_rate)
  return tf.where(is_infinite, estimate, tf.minimum(estimate, d * factor))


def _sum_of_absolutes(structure: Any, dtype: tf.DType) -> tf.Tensor:
  sums = [
      tf.reduce_sum(tf.abs(tf.cast(leaf, dtype)))
      for leaf in tf.nest.flatten(structure)
  ]
  return tf.add_n(sums) if sums else tf.zeros([], dtype)


class _DAdaptationSGD(_DistanceEstimate):
  """D-Adaptation's SGD, see `build_d_adaptation_sgd`."""

  name = 'D-Adaptation'
  is_anchored = True
  moment_keys: tuple[str, ...] = (_SUM_KEY,)
  scalar_keys = ('distance', 'numerator', 'first_gradient_norm')

  def step(self, state, x, g, hparams, extra):
    dtype = vectors.step_dtype(x)
    d = tf.where(
        self.is_first(state), hparams['initial_distance'], state['distance']
    )
    g = vectors.combine(1.0, g, hparams['weight_decay'], extra.decaying)
    first_norm = state['first_gradient_norm']
    first_norm = tf.where(
        tf.equal(first_norm, 0.0), vectors.norm(g, dtype), first_norm
    )
    rate = vectors.ratio(d * hparams['learning_rate'], first_norm)
    numerator = state['numerator'] + rate * vectors.inner(
        g, state[_SUM_KEY], dtype
    )
    total = vectors.combine(1.0, state[_SUM_KEY], rate, g)
    norm = vectors.norm(total, dtype)
    estimate = vectors.ratio(2.0 * numerator, norm)
    new_d = tf.maximum(d, _limit_growth(estimate, d, hparams))
    momentum = hparams['momentum']
    restarted = vectors.combine(
        1.0, state[vector_optimizer.ANCHOR_KEY], -1.0, total
    )
    # Unlike a weighted sum, this keeps every bit of weights that do not move.
    moved = vectors.move_towards(restarted, x, momentum)
    changed = {
        'distance': tf.where(norm > 0.0, new_d, d),
        'numerator': numerator,
        'first_gradient_norm': first_norm,
        _SUM_KEY: total,
    }
    # Nothing moves before the first gradient.
    return changed, vectors.choose(tf.equal(first_norm, 0.0), x, moved)


class _CarriedDAdaptationSGD(_DAdaptationSGD):
  """The same for clients that return: x_0 moves with the received model.

  The iterate is x_0 minus a sum over all rounds of the client. With an x_0 that
  stays, a client that returns would step from its own last iterate and undo
  what all others have done.
  """

  moment_keys = (_SUM_KEY, _OFFSET_KEY)

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict(
        super().initialize_rule(specs, dtype),
        **{_ROUND_STEPS_KEY: tf.zeros([], tf.int32)},
    )

  def _anchor(self, state, x):
    is_first = tf.equal(state[_ROUND_STEPS_KEY], 0)
    moved = tf.nest.map_structure(tf.add, x, state[_OFFSET_KEY])
    return vectors.choose(is_first, moved, state[vector_optimizer.ANCHOR_KEY])

  def step(self, state, x, g, hparams, extra):
    changed, moved = super().step(state, x, g, hparams, extra)
    anchor = state[vector_optimizer.ANCHOR_KEY]
    changed[_OFFSET_KEY] = tf.nest.map_structure(tf.subtract, anchor, moved)
    changed[_ROUND_STEPS_KEY] = state[_ROUND_STEPS_KEY] + 1
    return changed, moved


class _DAdaptationAdam(_DistanceEstimate):
  """D-Adaptation's Adam, see `build_d_adaptation_adam`."""

  name = 'D-Adaptation'
  moment_keys = (_FIRST_MOMENT_KEY, _SECOND_MOMENT_KEY, _SUM_KEY)

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    dtype = vectors.step_dtype(x)
    d = tf.where(
        self.is_first(state), hparams['initial_distance'], state['distance']
    )
    rate = self._rate(state, d, hparams)
    q = tf.sqrt(hparams['beta_2'])
    # 1 - q, without subtracting almost equal numbers.
    rest = vectors.complement(hparams['beta_2']) / (1.0 + q)
    epsilon = hparams['epsilon']
    scaled = vectors.over_root(
        state[_SUM_KEY], state[_SECOND_MOMENT_KEY], epsilon
    )
    numerator = q * state['numerator'] + rest * rate * vectors.inner(
        g, scaled, dtype
    )
    moments = self._moments(state, g, rate, 1.0, hparams)
    total = vectors.combine(q, state[_SUM_KEY], rest * rate, g)
    size = _sum_of_absolutes(total, dtype)
    estimate = tf.math.divide_no_nan(numerator, rest * size)
    new_d = tf.maximum(d, _limit_growth(estimate, d, hparams))
    direction = vectors.over_root(*moments.values(), epsilon)
    moved = vectors.combine(
        1.0 - hparams['weight_decay'] * rate, x, -1.0, direction
    )
    stays = tf.equal(size, 0.0)
    changed = {
        'distance': tf.where(stays, d, new_d),
        'numerator': numerator,
        **moments,
        _SUM_KEY: total,
        **self._count(state, ~stays),
    }
    return changed, vectors.choose(stays, x, moved)


class _Prodigy(_DistanceEstimate):
  """Prodigy, see `build_prodigy`."""

  name = 'Prodigy'
  is_anchored = True
  moment_keys = (_FIRST_MOMENT_KEY, _SECOND_MOMENT_KEY, _SUM_KEY)
  scalar_keys = ('distance', 'max_distance', 'numerator')

  def __init__(self, hparams: Any, bias_correction: bool, safeguard: bool):
    super().__init__(hparams, bias_correction)
    self._safeguards_warmup = safeguard

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    dtype = vectors.step_dtype(x)
    initial = hparams['initial_distance']
    d, max_d = (
        tf.where(self.is_first(state), initial, state[key])
        for key in ('distance', 'max_distance')
    )
    rate = self._rate(state, d, hparams)
    beta_3 = hparams.get('beta_3', tf.sqrt(hparams['beta_2']))
    travelled = vectors.combine(
        1.0, state[vector_optimizer.ANCHOR_KEY], -1.0, x
    )
    numerator = beta_3 * state['numerator'] + (d / initial) * rate * (
        vectors.inner(g, travelled, dtype)
    )
    moments = self._moments(state, g, d, tf.square(d), hparams)
    share = (d / initial) * (d if self._safeguards_warmup else rate)
    total = vectors.combine(beta_3, state[_SUM_KEY], share, g)
    size = _sum_of_absolutes(total, dtype)
    estimate = hparams['distance_factor'] * tf.math.divide_no_nan(
        numerator, size
    )
    grown = tf.where(tf.equal(d, initial), tf.maximum(d, estimate), d)
    new_max = tf.maximum(max_d, estimate)
    new_d = _limit_growth(new_max, grown, hparams)
    direction = vectors.over_root(*moments.values(), new_d * hparams['epsilon'])
    moved = vectors.combine(
        1.0 - hparams['weight_decay'] * rate, x, -rate, direction
    )
    stays = tf.equal(size, 0.0)
    changed = {
        'distance': tf.where(stays, d, new_d),
        'max_distance': tf.where(stays, max_d, new_max),
        'numerator': numerator,
        **moments,
        _SUM_KEY: total,
        **self._count(state, ~stays),
    }
    return changed, vectors.choose(stays, x, moved)


@arguments.checked
def build_d_adaptation_sgd(
    learning_rate: ranges.NotNegative = 1.0,
    initial_distance: ranges.Positive = 1e-6,
    momentum: ranges.Share = 0.0,
    growth_rate: ranges.Limit = math.inf,
    weight_decay: ranges.NotNegative = 0.0,
    *,
    carry_state: bool = False,
    moves_anchor: bool = True,
) -> optimizer.ExtraArgsOptimizer:
  """Builds D-Adaptation's SGD, which estimates the distance to the solution.

  With x_0 the received model, g_k the gradient of local step k plus
  weight_decay x_k, and norms over the vector of all trainable weights:

  ```
  l = d * learning_rate / |g_0|                     (d = initial_distance first)
  n = n + l <g_k, s>                                               (n = 0 first)
  s = s + l g_k                                                    (s = 0 first)
  d = max(d, min(2 n / |s|, d * growth_rate))
  x = momentum x + (1 - momentum) (x_0 - s)
  ```

  where g_0 is the first nonzero gradient, before which nothing moves. Scaling
  the loss changes no iterate.

  The estimate is reset to `initial_distance` in every round, unless
  `carry_state`. With few local steps, use a larger `initial_distance`. Each
  step costs one gradient. A client sends nothing but its model update, and
  holds two more copies of the weights during a round. The defaults are those of
  the published code.

  Args:
    learning_rate: Multiplies the steps. 0.1 is safer on hard problems.
    initial_distance: The first estimate, d0 of the published code. It must be
      below the true distance.
    momentum: The momentum coefficient.
    growth_rate: The largest factor by which the estimate grows in a step.
    weight_decay: The weights times this are added to the gradients.
    carry_state: Whether a client keeps the state until it participates again,
      for clients that return. A client keeps two copies of the weights between
      rounds, and holds a third in a round. Default False.
    moves_anchor: Whether x_0 of a client that returns moves with the model, by
      the received one minus its own last iterate; without `carry_state` of no
      effect. Default True. Otherwise all of the state is kept to the letter: a
      client then steps from its own last iterate and undoes what the others
      have done.

  Returns:
    An `ExtraArgsOptimizer` whose hyperparameters are the numeric arguments. It
    reports `distance`, the estimate after each step.

  Example:

    >>> optimizer = build_d_adaptation_sgd(initial_distance=0.25)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(1.0), tf.constant(4.0))
    >>> float(x)  # The first step has the length of the estimate.
    0.75

  References:
    Defazio, Mishchenko, Learning-Rate-Free Learning by D-Adaptation, ICML 2023,
    https://arxiv.org/abs/2301.07733, Algorithm 4. Deviations: as in the
    published code, the numerator is not halved; unlike there, |g_0| includes
    the weight decay.
  """
  hparams = dict(
      learning_rate=learning_rate,
      initial_distance=initial_distance,
      momentum=momentum,
      growth_rate=growth_rate,
      weight_decay=weight_decay,
  )
  if not carry_state:
    return _DAdaptationSGD(hparams)
  if not moves_anchor:
    return federated_optimizer.KeptOptimizer(_DAdaptationSGD(hparams))
  return federated_optimizer.KeptOptimizer(
      _CarriedDAdaptationSGD(hparams),
      starts_anew=(vector_optimizer.ANCHOR_KEY, _ROUND_STEPS_KEY),
  )


@arguments.checked
def build_d_adaptation_adam(
    learning_rate: ranges.NotNegative = 1.0,
    initial_distance: ranges.Positive = 1e-6,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.999,
    epsilon: ranges.NotNegative = 1e-8,
    growth_rate: ranges.Limit = math.inf,
    weight_decay: ranges.NotNegative = 0.0,
    *,
    bias_correction: bool = False,
    carry_state: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds D-Adaptation's Adam, which estimates the distance to the solution.

  With g the gradient of local step k, q = sqrt(beta_2), and b = 1 or Adam's
  bias correction:

  ```
  l = d * learning_rate * b                         (d = initial_distance first)
  n = q n + (1 - q) l <g, s / (sqrt(v) + epsilon)>
  m = beta_1 m + (1 - beta_1) l g
  v = beta_2 v + (1 - beta_2) g^2
  s = q s + (1 - q) l g
  d = max(d, min(n / ((1 - q) |s|_1), d * growth_rate))
  x = x - weight_decay l x - m / (sqrt(v) + epsilon)
  ```

  Nothing moves before the first nonzero gradient. The estimate can grow
  thirty-fold in a few steps and overshoot; `growth_rate` limits it. The state
  is reset in every round, unless `carry_state`. Each step costs one gradient,
  and a client sends nothing but its model update.

  Args:
    learning_rate: See `build_d_adaptation_sgd`.
    initial_distance: See `build_d_adaptation_sgd`.
    beta_1: The decay rate of m. Default 0.9.
    beta_2: The decay rate of v. Default 0.999.
    epsilon: Added to the root. Default 1e-8.
    growth_rate: See `build_d_adaptation_sgd`.
    weight_decay: The strength of decoupled weight decay. Default 0.0.
    bias_correction: Whether b is sqrt(1 - beta_2^(k+1)) / (1 - beta_1^(k+1)).
      Default False.
    carry_state: Whether a client keeps the state until it participates again,
      for clients that return. Default False.

  Returns:
    An `ExtraArgsOptimizer` whose hyperparameters are the numeric arguments. It
    reports `distance`, the estimate after each step.

  Example:

    >>> optimizer = build_d_adaptation_adam(initial_distance=0.5, beta_1=0.0)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(9.0), tf.constant(4.0))
    >>> round(float(x), 3)  # 9 - 0.5 * 4 / sqrt(0.001 * 16)
    -6.811

  References:
    Defazio, Mishchenko, Learning-Rate-Free Learning by D-Adaptation, ICML 2023,
    https://arxiv.org/abs/2301.07733, Algorithm 5, with the estimate of version
    3 of the published code, which differs from the first preprint.
  """
  rule = _DAdaptationAdam(
      dict(
          learning_rate=learning_rate,
          initial_distance=initial_distance,
          beta_1=beta_1,
          beta_2=beta_2,
          epsilon=epsilon,
          growth_rate=growth_rate,
          weight_decay=weight_decay,
      ),
      bias_correction,
  )
  return federated_optimizer.KeptOptimizer(rule) if carry_state else rule


@arguments.checked
def build_prodigy(
    learning_rate: ranges.NotNegative = 1.0,
    initial_distance: ranges.Positive = 1e-6,
    distance_factor: ranges.NotNegative = 1.0,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.999,
    epsilon: ranges.NotNegative = 1e-8,
    growth_rate: ranges.Limit = math.inf,
    weight_decay: ranges.NotNegative = 0.0,
    *,
    beta_3: Optional[ranges.Share] = None,
    safeguard_warmup: bool = False,
    bias_correction: bool = False,
    carry_state: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds Prodigy, Adam that estimates the distance to the solution.

  With x_0 the received model, g the gradient of local step k, d_0 the
  `initial_distance`, and b = 1 or Adam's bias correction:

  ```
  l = d * learning_rate * b                                      (d = d_0 first)
  n = beta_3 n + (d / d_0) l <g, x_0 - x>
  m = beta_1 m + (1 - beta_1) d g
  v = beta_2 v + (1 - beta_2) d^2 g^2
  s = beta_3 s + (d / d_0) l g
  h = distance_factor * n / |s|_1
  d = max(d, h)                                                  (while d = d_0)
  d = min(the largest of d_0 and all h so far, d * growth_rate)
  x = x - weight_decay l x - l m / (sqrt(v) + d epsilon)
  ```

  Nothing moves before the first nonzero gradient. Scaling the loss changes no
  iterate, but for epsilon. The estimate is reset to `initial_distance` in every
  round, unless `carry_state`. With few local steps, use a larger
  `initial_distance`. Each step costs one gradient. A client sends nothing but
  its model update, and holds four more copies of the weights during a round.
  The defaults are those of the published code.

  Args:
    learning_rate: Multiplies the steps. Usually not tuned.
    initial_distance: d_0, the first estimate. It must be below the true
      distance.
    distance_factor: Multiplies the estimates, d_coef of the published code. Use
      0.5 to 2 to change the rate.
    beta_1: The decay rate of m.
    beta_2: The decay rate of v.
    epsilon: Added to the root, times d.
    growth_rate: The largest factor by which the estimate grows in a step, after
      its first growth from d_0, which has no limit.
    weight_decay: The strength of decoupled weight decay. Default 0.0.
    beta_3: The decay rate of n and s. Default `None`: the root of beta_2.
    safeguard_warmup: Whether s is weighted by d instead of l, so that a small
      rate does not raise the estimate. Default False.
    bias_correction: Whether b is sqrt(1 - beta_2^(k+1)) / (1 - beta_1^(k+1)).
      Default False.
    carry_state: Whether a client keeps the state, x_0 included, until it
      participates again, for clients that return. Default False.

  Returns:
    An `ExtraArgsOptimizer` whose hyperparameters are the numeric arguments. It
    reports `distance`, the estimate after each step.

  Example:

    >>> optimizer = build_prodigy(initial_distance=0.5, beta_1=0.0, beta_2=0.0)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(9.0), tf.constant(4.0))
    >>> round(float(x), 4)  # Adam's step, with the estimate as learning rate.
    8.5

  References:
    Mishchenko, Defazio, Prodigy: An Expeditiously Adaptive Parameter-Free
    Learner, ICML 2024, https://arxiv.org/abs/2306.06101, Algorithm 4, in the
    order of the published code. Deviation: while all gradients are zero there
    is no step, where optax divides 0 by 0.
  """
  rule = _Prodigy(
      dict(
          learning_rate=learning_rate,
          initial_distance=initial_distance,
          distance_factor=distance_factor,
          beta_1=beta_1,
          beta_2=beta_2,
          beta_3=beta_3,
          epsilon=epsilon,
          growth_rate=growth_rate,
          weight_decay=weight_decay,
      ),
      bias_correction,
      safeguard_warmup,
  )
  return federated_optimizer.KeptOptimizer(rule) if carry_state else rule
