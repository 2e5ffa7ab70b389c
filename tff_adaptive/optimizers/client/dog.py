# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""DoG and DoWG: SGD with steps of distance travelled over gradients."""

import collections
from typing import Literal, Optional

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_AVERAGE_KEY = 'average'
_ROUND_STEPS_KEY = 'round_steps'


class _DoG(vector_optimizer.VectorOptimizer):
  """DoG, see `build_dog`."""

  name = 'DoG'
  is_anchored = True
  scalar_keys = ('distance', 'squared_gradients', 'last_step_size')
  step_size_key = 'last_step_size'

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    dtype = vectors.step_dtype(x)
    is_first = self.is_first(state)
    start = tf.zeros([], dtype)
    if 'relative_distance' in hparams:
      start = hparams['relative_distance'] * (1.0 + vectors.norm(x, dtype))
    distance = tf.maximum(
        tf.where(is_first, start, state['distance']),
        self.distance_from_anchor(state, x),
    )
    squares = state['squared_gradients'] + tf.square(vectors.norm(g, dtype))
    step_size = hparams['learning_rate'] * vectors.ratio(
        distance, tf.sqrt(squares + hparams['epsilon'])
    )
    if 'first_step_size' in hparams:
      step_size = tf.where(is_first, hparams['first_step_size'], step_size)
    moved = vectors.descend(x, g, step_size)
    changed = collections.OrderedDict(
        distance=distance, squared_gradients=squares, last_step_size=step_size
    )
    return changed, moved


class _AveragingDoG(_DoG):
  """DoG that ends with the polynomial-decay average of the iterates."""

  moment_keys = (_AVERAGE_KEY,)

  def initialize_rule(self, specs, dtype):
    state = super().initialize_rule(specs, dtype)
    state[_ROUND_STEPS_KEY] = tf.zeros([], tf.int32)
    return state

  def step(self, state, x, g, hparams, extra):
    changed, moved = super().step(state, x, g, hparams, extra)
    num_steps = state[_ROUND_STEPS_KEY] + 1
    c = hparams['average_gamma']
    share = (1.0 + c) / (tf.cast(num_steps, vectors.step_dtype(x)) + c)
    changed[_ROUND_STEPS_KEY] = num_steps
    changed[_AVERAGE_KEY] = vectors.move_towards(
        state[_AVERAGE_KEY], moved, share
    )
    return changed, moved

  def final_weights(self, state, weights):
    # Before the first step of the round, the average is empty.
    is_empty = tf.equal(state[_ROUND_STEPS_KEY], 0)
    return tf.nest.map_structure(
        lambda w, average: tf.where(is_empty, w, tf.cast(average, w.dtype)),
        weights,
        state[_AVERAGE_KEY],
    )


class _DoWG(vector_optimizer.VectorOptimizer):
  """DoWG, see `build_dowg`."""

  name = 'DoWG'
  is_anchored = True
  scalar_keys = (
      'squared_distance',
      'weighted_squared_gradients',
      'last_step_size',
  )
  step_size_key = 'last_step_size'

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    dtype = vectors.step_dtype(x)
    epsilon = hparams['epsilon']
    start = hparams.get('initial_squared_distance', epsilon)
    squared = tf.maximum(
        tf.where(self.is_first(state), start, state['squared_distance']),
        tf.square(self.distance_from_anchor(state, x)),
    )
    weighted = state['weighted_squared_gradients'] + squared * tf.square(
        vectors.norm(g, dtype)
    )
    step_size = hparams['learning_rate'] * vectors.ratio(
        squared, tf.sqrt(weighted) + epsilon
    )
    changed = collections.OrderedDict(
        squared_distance=squared,
        weighted_squared_gradients=weighted,
        last_step_size=step_size,
    )
    return changed, vectors.descend(x, g, step_size)


@arguments.checked
def build_dog(
    learning_rate: ranges.NotNegative = 1.0,
    relative_distance: ranges.NotNegative = 1e-6,
    epsilon: ranges.NotNegative = 1e-8,
    *,
    first_step_size: Optional[ranges.NotNegative] = None,
    send: Literal['last', 'average'] = 'last',
    average_gamma: ranges.NotNegative = 8.0,
    carry_state: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds DoG, distance over gradients: SGD without a tuned learning rate.

  With x_0 the received model, g_k the gradient of local step k, and norms over
  the vector of all trainable weights:

  ```
  r_k     = max(r_{k-1}, |x_k - x_0|)
  G_k     = G_{k-1} + |g_k|^2                                      (G_{-1} = 0)
  x_{k+1} = x_k - learning_rate * r_k / sqrt(G_k + epsilon) * g_k
  ```

  where r_{-1} = relative_distance (1 + |x_0|). Scaling the loss changes no
  iterate, but for epsilon.

  The state is reset in every round, so the distance grows from
  `relative_distance` each time. With the default this takes tens of local
  steps; if there are few, use about 1e-2 or `carry_state`.

  Each step costs one gradient. A client sends nothing but its model update, and
  holds one more copy of the weights (two with `'average'`) during a round. The
  default numbers are those of the published code.

  Args:
    learning_rate: Multiplies the step, c of the paper. 0.5 is safer if losses
      are unbounded.
    relative_distance: The first estimate of the distance, as a share of 1 +
      |x_0|, `reps_rel` of the published code.
    epsilon: Added to the sum of squares.
    first_step_size: The size of the very first step, `init_eta` of the
      published code. If given, the distance starts at 0 instead of from
      `relative_distance`.
    send: Whether a client sends its last iterate (`'last'`, the default) or
      the mean of the round's iterates (`'average'`), in which iterate
      j = 1, 2, ... enters with the share (1 + average_gamma) / (j +
      average_gamma). The authors evaluate such a mean; the server's mean over
      clients has some of its effect. With `'average'`, the algorithms of
      `tff.learning`, which send the last iterate, are refused.
    average_gamma: How strongly the mean favors later iterates. Unused with
      `'last'`.
    carry_state: Whether a client keeps the state, x_0 included, until it
      participates again, for clients that return; the mean is reset in every
      round. Default False.

  Returns:
    An `ExtraArgsOptimizer` with the hyperparameters `learning_rate`,
    `relative_distance` or `first_step_size`, `epsilon` and, with `'average'`,
    `average_gamma`. It reports the `step_size` of each step.

  Example:

    >>> optimizer = build_dog(relative_distance=0.1, epsilon=0.0)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(1.0)
    >>> state, x = optimizer.next(state, x, tf.constant(4.0))
    >>> round(float(x), 4)  # r is 0.1 (1 + 1), and so is the step length.
    0.8

  References:
    Ivgi, Hinder, Carmon, DoG is SGD's Best Friend: A Parameter-Free Dynamic
    Step Size Schedule, ICML 2023, https://arxiv.org/abs/2302.12022, equation
    (1), and section 4 for the initial distance and the mean.
    Deviation: the paper evaluates the mean of the iterates by default; here the
    server averages over clients.
  """
  has_first_step = first_step_size is not None
  averages = send == 'average'
  rule = (_AveragingDoG if averages else _DoG)(
      dict(
          learning_rate=learning_rate,
          relative_distance=None if has_first_step else relative_distance,
          first_step_size=first_step_size,
          epsilon=epsilon,
          average_gamma=average_gamma if averages else None,
      )
  )
  if carry_state:
    return federated_optimizer.KeptOptimizer(
        rule, starts_anew=(_ROUND_STEPS_KEY, _AVERAGE_KEY)
    )
  return rule


@arguments.checked
def build_dowg(
    learning_rate: ranges.NotNegative = 1.0,
    epsilon: ranges.NotNegative = 1e-4,
    *,
    initial_squared_distance: Optional[ranges.NotNegative] = None,
    carry_state: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds DoWG, distance over weighted gradients.

  With x_0 the received model, g_k the gradient of local step k, and norms over
  the vector of all trainable weights:

  ```
  R_k     = max(R_{k-1}, |x_k - x_0|^2)      (R_{-1} = initial_squared_distance)
  V_k     = V_{k-1} + R_k |g_k|^2                                  (V_{-1} = 0)
  x_{k+1} = x_k - learning_rate * R_k / (sqrt(V_k) + epsilon) * g_k
  ```

  Early gradients weigh less than in DoG, which makes the steps longer. The
  state is reset in every round, unless `carry_state`. Each step costs one
  gradient. A client sends nothing but its model update, and holds one more copy
  of the weights during a round.

  Args:
    learning_rate: Multiplies the step; 1.0 is the paper's rule.
    epsilon: Added to the root. Default 1e-4, as in the published code.
    initial_squared_distance: The first estimate of the squared distance.
      Default `None`: epsilon, as in the published code.
    carry_state: Whether a client keeps the state, x_0 included, until it
      participates again, for clients that return. Default False.

  Returns:
    An `ExtraArgsOptimizer` with the hyperparameters `learning_rate`, `epsilon`
    and, if given, `initial_squared_distance`. It reports the `step_size` of
    each step.

  Example:

    >>> optimizer = build_dowg(epsilon=0.0, initial_squared_distance=0.25)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(1.0), tf.constant(4.0))
    >>> float(x)  # The step has the length of the root of R.
    0.5

  References:
    Khaled, Mishchenko, Jin, DoWG Unleashed: An Efficient Universal
    Parameter-Free Gradient Descent Method, NeurIPS 2023,
    https://arxiv.org/abs/2305.16284, Algorithm 1. Deviation: epsilon is from
    the published code; the paper has none.
  """
  rule = _DoWG(
      dict(
          learning_rate=learning_rate,
          epsilon=epsilon,
          initial_squared_distance=initial_squared_distance,
      )
  )
  return federated_optimizer.KeptOptimizer(rule) if carry_state else rule
