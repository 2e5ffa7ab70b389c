# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Mime and MimeLite: server momentum, frozen while clients train."""

import collections
from typing import Any

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_MOMENTUM_KEY = 'momentum'
_GRADIENT_KEY = 'received_gradient'
_CORRECTS_KEY = 'corrects'


class _MimeLite(
    vector_optimizer.VectorOptimizer, federated_optimizer.FederatedOptimizer
):
  """MimeLite, see `build_mimelite`."""

  name = 'MimeLite'
  moment_keys = (_MOMENTUM_KEY, _GRADIENT_KEY)
  step_size_key = 'learning_rate'

  def __init__(self, learning_rate: float, momentum: float):
    super().__init__({'learning_rate': learning_rate})
    self._momentum = momentum

  def initialize_shared(self, specs):
    return collections.OrderedDict(
        [(_MOMENTUM_KEY, vectors.fill_moments(specs))]
    )

  def survey(self, data):
    return collections.OrderedDict([(_GRADIENT_KEY, data.mean_gradient())])

  def finish_round(self, state):
    sent = collections.OrderedDict([(_MOMENTUM_KEY, state[_GRADIENT_KEY])])
    return sent, collections.OrderedDict()

  def update_shared(self, shared, mean_sent, num_clients):
    del num_clients  # Unused.
    momentum = self._average(shared[_MOMENTUM_KEY], mean_sent[_MOMENTUM_KEY])
    return collections.OrderedDict([(_MOMENTUM_KEY, momentum)])

  def _average(self, momentum: Any, gradient: Any) -> Any:
    return vectors.average(tf.constant(self._momentum), momentum, gradient)

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    direction = self._average(state[_MOMENTUM_KEY], g)
    return {}, vectors.descend(x, direction, hparams['learning_rate'])


class _Mime(_MimeLite):
  """Mime, see `build_mime`."""

  name = 'Mime'
  averages_surveys = True
  is_anchored = True
  evaluates_again = True

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict([(_CORRECTS_KEY, tf.zeros([]))])

  def start_round(self, state, shared, kept, round_num):
    state = super().start_round(state, shared, kept, round_num)
    state[_CORRECTS_KEY] = tf.ones([])
    return state

  def step(self, state, x, g, hparams, extra):
    _, at_start = extra.value_and_grad_fn(state[vector_optimizer.ANCHOR_KEY])
    # Outside of rounds there is no mean gradient to correct by.
    share = state[_CORRECTS_KEY]
    corrected = tf.nest.map_structure(
        lambda g, s, c: g + tf.cast(share, g.dtype) * (c - s),
        g,
        at_start,
        state[_GRADIENT_KEY],
    )
    return super().step(state, x, corrected, hparams, extra)


@arguments.checked
def build_mime(
    learning_rate: ranges.NotNegative = 0.1, momentum: ranges.Share = 0.9
) -> federated_optimizer.FederatedOptimizer:
  """Builds Mime, SGD with the server's momentum and corrected gradients.

  This is `build_mimelite` with, instead of the gradient g(y) of a batch,

  ```
  u = g(y) - g(x_t) + c,    c = sum_i w_i grad f_i(x_t)     (of the same batch)
  ```

  so that clients do not drift to their own minima. c is the mean over the
  clients of the round, which they need before they train. A round therefore has
  two exchanges: m and c are sent to the clients, a gradient and the update are
  returned, and c is returned once more. The gradients at x_t are averaged in
  the clear, so Mime is rejected under differential privacy. Each step costs two
  gradients, and each round one more pass over the data.

  Args:
    learning_rate: See `build_mimelite`.
    momentum: See `build_mimelite`.

  Returns:
    A `FederatedOptimizer` with the hyperparameter `learning_rate`. It shares
    `momentum`, m, with the structure of the weights, in float32 or float64.

  Example:

    >>> rule = build_mime(learning_rate=0.5, momentum=0.0)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(3.0)
    >>> _, x = rule.next(  # Outside of a round this is SGD.
    ...     state, x, x, value=x, value_and_grad_fn=lambda at: (at, at))
    >>> float(x)
    1.5

  References:
    Karimireddy et al., Breaking the Centralized Barrier for Cross-Device
    Federated Learning, NeurIPS 2021, https://arxiv.org/abs/2008.03606,
    Algorithm 1 with Mime and SGD with momentum. Deviation: none; FedJAX does
    not dampen the momentum.
  """
  return _Mime(learning_rate, momentum)


@arguments.checked
def build_mimelite(
    learning_rate: ranges.NotNegative = 0.1, momentum: ranges.Share = 0.9
) -> federated_optimizer.FederatedOptimizer:
  """Builds MimeLite, SGD with momentum kept by the server.

  With m the momentum, 0 at first, and f_i the loss of all examples of client i:

  ```
  y = y - learning_rate * ((1 - momentum) * g(y) + momentum * m)  (local steps)
  m = momentum * m + (1 - momentum) * sum_i w_i grad f_i(x_t)      (each round)
  ```

  m is frozen while the clients train. A client evaluates the gradient of all
  its examples at the received model, in one more pass over its data, and sends
  it. This doubles the communication in both directions.

  Args:
    learning_rate: The step size. Default 0.1, ours.
    momentum: The decay rate of m. Default 0.9, as in the paper's experiments.
      At 0 this is SGD.

  Returns:
    A `FederatedOptimizer` with the hyperparameter `learning_rate`. It shares
    `momentum`, m, with the structure of the weights, in float32 or float64.

  Example:

    >>> rule = build_mimelite(learning_rate=0.5, momentum=0.75)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> one = tf.constant(1.0)
    >>> _, x = rule.next(state, one, one, value=one)
    >>> float(x)
    0.875

  References:
    Karimireddy et al., Breaking the Centralized Barrier for Cross-Device
    Federated Learning, NeurIPS 2021, https://arxiv.org/abs/2008.03606,
    Algorithm 1 with MimeLite and SGD with momentum. Adam as the base optimizer
    is not implemented: its second moment is 0 in the first round.
  """
  return _MimeLite(learning_rate, momentum)
