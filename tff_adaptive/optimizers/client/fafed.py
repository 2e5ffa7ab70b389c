# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FAFED's client rule: recursive momentum and a shared adaptive scale."""

import collections

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_MOMENTUM_KEY = 'momentum'
_SECOND_MOMENT_KEY = 'second_moment'
_SHARED_KEYS = (_MOMENTUM_KEY, _SECOND_MOMENT_KEY)
_SCALE_KEY = 'scale'
_PREVIOUS_KEY = 'previous_weights'
_WARM_UP_KEY = 'is_warm_up'
# The gradient of the batch at the previous weights, which is not in the state.
_OLD_KEY = 'old_gradient'


class _FAFED(
    vector_optimizer.VectorOptimizer, federated_optimizer.FederatedOptimizer
):
  """FAFED's client rule, see `build_fafed`."""

  name = 'FAFED'
  client_weighting = tff.learning.ClientWeighting.UNIFORM
  moment_keys = (*_SHARED_KEYS, _SCALE_KEY, _PREVIOUS_KEY)
  evaluates_again = True

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict([(_WARM_UP_KEY, tf.constant(True))])

  def initialize_shared(self, specs):
    return collections.OrderedDict(
        (key, vectors.fill_moments(specs)) for key in _SHARED_KEYS
    )

  def start_round(self, state, shared, kept, round_num):
    state = super().start_round(state, shared, kept, round_num)
    state[_SECOND_MOMENT_KEY] = vectors.non_negative(state[_SECOND_MOMENT_KEY])
    state[_SCALE_KEY] = tf.nest.map_structure(
        lambda v: tf.sqrt(v) + tf.cast(state['rho'], v.dtype),
        state[_SECOND_MOMENT_KEY],
    )
    state[_WARM_UP_KEY] = tf.equal(round_num, 0)
    return state

  def finish_round(self, state):
    sent = collections.OrderedDict((key, state[key]) for key in _SHARED_KEYS)
    return sent, collections.OrderedDict()

  def step(self, state, x, g, hparams, extra):
    is_first = self.is_first(state)
    held = {key: state[key] for key in _SHARED_KEYS}

    def warm_up():
      squares = tf.nest.map_structure(tf.square, g)
      taken = {_MOMENTUM_KEY: g, _SECOND_MOMENT_KEY: squares}
      moved = vectors.descend(x, g, hparams['learning_rate'])
      # The warm-up is one step and skips the remaining batches.
      return tf.cond(is_first, lambda: (taken, moved), lambda: (held, x))

    def after_warm_up():
      old = tf.cond(
          is_first,
          lambda: g,
          lambda: extra.value_and_grad_fn(state[_PREVIOUS_KEY])[1],
      )
      moments = {**held, _SCALE_KEY: state[_SCALE_KEY], _OLD_KEY: old}
      return vectors.step_tensors(_step_tensor, moments, x, g, hparams)

    changed, moved = tf.cond(state[_WARM_UP_KEY], warm_up, after_warm_up)
    return {**changed, _PREVIOUS_KEY: x}, moved

  def report(self, state):
    # The warm-up costs one gradient in all. Later rounds cost two gradients
    # per step, but one in the first.
    is_first = tf.equal(state[vector_optimizer.NUM_STEPS_KEY], 1)
    later = tf.where(state[_WARM_UP_KEY], 0, 2)
    return collections.OrderedDict(
        gradient_evaluations=tf.where(is_first, 1, later)
    )


def _step_tensor(moments, x, g, hparams):
  """Returns the new momentum, second moment and weights of one tensor."""
  beta = hparams['beta']
  m = g + (1.0 - hparams['alpha']) * (
      moments[_MOMENTUM_KEY] - moments[_OLD_KEY]
  )
  v = beta * moments[_SECOND_MOMENT_KEY] + (1.0 - beta) * tf.square(g)
  moved = x - hparams['learning_rate'] * m / moments[_SCALE_KEY]
  return {_MOMENTUM_KEY: m, _SECOND_MOMENT_KEY: v}, moved


@arguments.checked
def build_fafed(
    learning_rate: ranges.NotNegative = 0.01,
    alpha: ranges.ClosedShare = 0.1,
    beta: ranges.ClosedShare = 0.99,
    rho: ranges.Positive = 0.01,
) -> federated_optimizer.FederatedOptimizer:
  """Builds FAFED's client rule.

  In the first round that has a healthy client, the warm-up, each client takes
  one step with the gradient g of its first batch and skips the remaining ones:

  ```
  m = g,  v = g^2,  x = x - learning_rate * m
  ```

  In later rounds a client starts with the averages m and v that the server
  sends, and with H = sqrt(v) + rho, which is frozen in the round. In local step
  k on batch B_k:

  ```
  m = g(x_k; B_k) + (1 - alpha) (m - g(x_{k-1}; B_k))
  v = beta v + (1 - beta) g(x_k; B_k)^2
  x = x - learning_rate * m / H
  ```

  where the point before the first step is the received model, so that there
  m = g + (1 - alpha) (m - g). From the second step on, a step costs two
  gradients. Clients send m and v with their update. This triples the
  communication in both directions, and the server learns the averages of a
  client's gradients and of their squares.

  `build_fed_opt` weights clients equally unless told, as in the paper.

  Args:
    learning_rate: The step size. Default 0.01, ours.
    alpha: The decay of the momentum's correction; at 1 the momentum is the
      gradient. Default 0.1, ours, as for `beta` and `rho`: the published
      defaults are not known.
    beta: The decay rate of v. Default 0.99.
    rho: Added to the root. Default 0.01.

  Returns:
    A `FederatedOptimizer` with the hyperparameters `learning_rate`, `alpha`,
    `beta` and `rho`. It shares `momentum` and `second_moment`, with the
    structure of the weights, in float32 or float64.

  Example:

    >>> rule = build_fafed(learning_rate=0.5)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = rule.next(  # The warm-up.
    ...     state, tf.constant(1.0), tf.constant(1.0), value=tf.constant(0.5),
    ...     value_and_grad_fn=lambda x: (x**2 / 2, x))
    >>> float(x)
    0.5

  References:
    Wu, Huang, Hu, Huang, Faster Adaptive Federated Learning, AAAI 2023,
    https://arxiv.org/abs/2212.00974, Algorithm 1. Deviation: the paper is
    cross-silo, and each silo keeps its last point between rounds; here clients
    keep nothing.
  """
  hparams = dict(learning_rate=learning_rate, alpha=alpha, beta=beta, rho=rho)
  return _FAFED(hparams)
