# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""COCOB: coin betting in place of a learning rate."""

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors


def _step_tensor(moments, x, g, hparams):
  """Returns the new moments and weights of one tensor."""
  anchor = moments[vector_optimizer.ANCHOR_KEY]
  scale = tf.maximum(
      tf.maximum(moments['scale'], hparams['epsilon']), tf.abs(g)
  )
  total = moments['absolute_sum'] + tf.abs(g)
  reward = tf.maximum(moments['reward'] - g * (x - anchor), 0.0)
  bet = moments['negative_sum'] - g
  held = dict(scale=scale, absolute_sum=total, reward=reward, negative_sum=bet)
  divisor = scale * tf.maximum(total + scale, hparams['alpha'] * scale)
  return held, anchor + bet / divisor * (scale + reward)


class _COCOB(vector_optimizer.VectorOptimizer):
  """COCOB, see `build_cocob`."""

  name = 'COCOB'
  is_anchored = True
  moment_keys = ('scale', 'absolute_sum', 'reward', 'negative_sum')

  def step(self, state, x, g, hparams, extra):
    g = vectors.combine(1.0, g, hparams['weight_decay'], extra.decaying)
    keys = (vector_optimizer.ANCHOR_KEY, *self.moment_keys)
    moments = {key: state[key] for key in keys}
    return vectors.step_tensors(_step_tensor, moments, x, g, hparams)


@arguments.checked
def build_cocob(
    alpha: ranges.Positive = 100.0,
    epsilon: ranges.Positive = 1e-8,
    weight_decay: ranges.NotNegative = 0.0,
) -> optimizer.ExtraArgsOptimizer:
  """Builds COCOB, which bets on coordinates and has no learning rate.

  Coordinate by coordinate, with x_0 the received model and g the gradient plus
  weight_decay x:

  ```
  L = max(L, |g|)                                            (L = epsilon first)
  G = G + |g|,   R = max(R - g (x - x_0), 0),   C = C - g      (all are 0 first)
  x = x_0 + C / (L max(G + L, alpha L)) (L + R)
  ```

  The first step moves every coordinate by 1 / alpha, so a client with few local
  steps is sign descent with that rate: `alpha` is what a user feels, and 100 is
  for thousands of steps. Scaling the loss changes nothing while gradients
  exceed epsilon.

  The state is reset in every round, and cannot be carried: x is set from x_0,
  so that a client that kept x_0 would discard the received model. Each step
  costs one gradient. A client sends nothing but its model update, and holds
  five more copies of the weights during a round.

  Args:
    alpha: The inverse of the first steps' size. Default 100, as in the paper.
    epsilon: The smallest L. Default 1e-8.
    weight_decay: The weights times this are added to the gradients. Default 0.

  Returns:
    An `ExtraArgsOptimizer` whose hyperparameters are the arguments.

  Example:

    >>> optimizer = build_cocob(alpha=4.0)
    >>> state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
    >>> _, x = optimizer.next(state, tf.ones([2]), tf.constant([3.0, -0.1]))
    >>> x.numpy().tolist()
    [0.75, 1.25]

  References:
    Orabona, Tommasi, Training Deep Networks without Learning Rates Through Coin
    Betting, NeurIPS 2017, https://arxiv.org/abs/1705.07795, Algorithm 2.
    Deviations: none; optax's learning rate scales g alone, changes nothing but
    epsilon, and is left out.
  """
  return _COCOB(dict(alpha=alpha, epsilon=epsilon, weight_decay=weight_decay))
