# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FAFED's client rule: recursive momentum and a shared adaptive scale."""

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors

_SHARED_KEYS = ('momentum', 'second_moment')

_State = collections.OrderedDict[str, Any]


class _FAFED(optimizer.HparamsInState, federated_optimizer.FederatedOptimizer):
  """FAFED's client rule, see `build_fafed`."""

  client_weighting = tff.learning.ClientWeighting.UNIFORM
  evaluates_again = True

  def __init__(self, hparams: _State):
    optimizer.check_rate('learning_rate', hparams['learning_rate'], 'FAFED')
    optimizer.check_positive('rho', hparams['rho'], 'FAFED')
    for name in ('alpha', 'beta'):
      optimizer.check_closed_share(name, hparams[name], 'FAFED')
    super().__init__(hparams)

  def initialize_shared(self, specs):
    return collections.OrderedDict(
        (key, vectors.fill_moments(specs)) for key in _SHARED_KEYS
    )

  def initialize(self, specs):
    return collections.OrderedDict(
        self._hparams,
        is_warm_up=tf.constant(True),
        num_steps=tf.zeros([], tf.int32),
        **self.initialize_shared(specs),
        scale=vectors.fill_moments(specs),
        previous_weights=vectors.zeros(specs),
    )

  def start_round(self, state, shared, kept, round_num):
    del kept  # Unused.
    second_moment = vectors.non_negative(shared['second_moment'])
    return collections.OrderedDict(
        state,
        momentum=shared['momentum'],
        second_moment=second_moment,
        scale=tf.nest.map_structure(
            lambda v: tf.sqrt(v) + tf.cast(state['rho'], v.dtype),
            second_moment,
        ),
        is_warm_up=tf.equal(round_num, 0),
    )

  def finish_round(self, state):
    sent = collections.OrderedDict((key, state[key]) for key in _SHARED_KEYS)
    return sent, collections.OrderedDict()

  def next(
      self, state, weights, gradients, *, value=None, value_and_grad_fn=None
  ):
    del value  # Unused.
    optimizer.check_value_and_grad_fn(value_and_grad_fn, 'FAFED')
    gradients = optimizer.dense_gradients(weights, gradients)
    optimizer.check_moments(weights, state, _SHARED_KEYS)
    is_first = tf.equal(state['num_steps'], 0)

    def warm_up():
      # The warm-up is one step and skips the remaining batches.
      return tf.cond(
          is_first,
          lambda: _warm_up_step(state, weights, gradients),
          lambda: (weights, *(state[key] for key in _SHARED_KEYS)),
      )

    def evaluate():
      _, old = value_and_grad_fn(state['previous_weights'])
      return vectors.with_zeros(
          weights, optimizer.dense_gradients(weights, old)
      )

    def step():
      old_gradients = tf.cond(
          is_first, lambda: vectors.with_zeros(weights, gradients), evaluate
      )
      return vectors.step_tensors(
          _step_tensor,
          lambda dtype: {k: tf.cast(state[k], dtype) for k in self._hparams},
          weights,
          gradients,
          [state[key] for key in _SHARED_KEYS],
          [state['scale'], old_gradients],
      )

    new_weights, *moments = tf.cond(state['is_warm_up'], warm_up, step)
    new_state = collections.OrderedDict(
        state,
        num_steps=state['num_steps'] + 1,
        previous_weights=tf.nest.map_structure(tf.convert_to_tensor, weights),
        **dict(zip(_SHARED_KEYS, moments)),
    )
    return new_state, new_weights

  def report(self, state):
    # The warm-up costs one gradient in all. Later rounds cost two gradients
    # per step, but one in the first.
    is_first = tf.equal(state['num_steps'], 1)
    later = tf.where(state['is_warm_up'], 0, 2)
    return collections.OrderedDict(
        gradient_evaluations=tf.where(is_first, 1, later)
    )


def _warm_up_step(
    state: _State, weights: Any, gradients: Any
) -> tuple[Any, ...]:
  """Returns weights, momentum and second moment after the warm-up step."""

  def first(fn):
    return tf.nest.map_structure(
        lambda m, g: m if g is None else fn(tf.cast(g, m.dtype)),
        state['momentum'],
        gradients,
    )

  moved = vectors.descend(weights, gradients, state['learning_rate'])
  return moved, first(tf.identity), first(tf.square)


def _step_tensor(
    hparams: dict[str, tf.Tensor],
    w: tf.Tensor,
    g: tf.Tensor,
    m: tf.Tensor,
    v: tf.Tensor,
    scale: tf.Tensor,
    old_g: tf.Tensor,
) -> tuple[tf.Tensor, ...]:
  """Returns the new weights and moments of one tensor."""
  new_m = g + (1.0 - hparams['alpha']) * (m - tf.cast(old_g, m.dtype))
  new_v = hparams['beta'] * v + (1.0 - hparams['beta']) * tf.square(g)
  return w - hparams['learning_rate'] * new_m / scale, new_m, new_v


def build_fafed(
    learning_rate: float = 0.01,
    alpha: float = 0.1,
    beta: float = 0.99,
    rho: float = 0.01,
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
    learning_rate: The step size, not negative. Default 0.01, ours.
    alpha: The decay of the momentum's correction, in [0, 1]; at 1 the momentum
      is the gradient. Default 0.1, ours, as for `beta` and `rho`: the published
      defaults are not known.
    beta: The decay rate of v, in [0, 1]. Default 0.99.
    rho: Added to the root, above zero. Default 0.01.

  Returns:
    A `FederatedOptimizer` with the hyperparameters `learning_rate`, `alpha`,
    `beta` and `rho`. It shares `momentum` and `second_moment`, with the
    structure of the weights, in float32 or float64.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If an argument is out of its range, or, from `next`, if the loop
      cannot evaluate a batch again.

  Example:

    >>> rule = build_fafed(learning_rate=0.5)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = rule.next(  # The warm-up.
    ...     state, tf.constant(1.0), tf.constant(1.0),
    ...     value_and_grad_fn=lambda x: (x**2 / 2, x))
    >>> float(x)
    0.5

  References:
    Wu, Huang, Hu, Huang, Faster Adaptive Federated Learning, AAAI 2023,
    https://arxiv.org/abs/2212.00974, Algorithm 1. Deviation: the paper is
    cross-silo, and each silo keeps its last point between rounds; here clients
    keep nothing.
  """
  return _FAFED(
      collections.OrderedDict(
          learning_rate=learning_rate, alpha=alpha, beta=beta, rho=rho
      )
  )
