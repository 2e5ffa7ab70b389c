# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedLion: Lion on the clients, with a momentum shared by all."""

import collections

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_MOMENTUM_KEY = 'momentum'


def _sign(tensor: tf.Tensor) -> tf.Tensor:
  # The sign of infinity is 1, which would hide that the client fails.
  return tf.where(tf.math.is_finite(tensor), tf.sign(tensor), tensor)


class _FedLion(
    vector_optimizer.VectorOptimizer, federated_optimizer.FederatedOptimizer
):
  """FedLion, see `build_fedlion`."""

  name = 'FedLion'
  moment_keys = (_MOMENTUM_KEY,)

  def initialize_shared(self, specs):
    return collections.OrderedDict(
        [(_MOMENTUM_KEY, vectors.fill_moments(specs))]
    )

  def finish_round(self, state):
    sent = collections.OrderedDict([(_MOMENTUM_KEY, state[_MOMENTUM_KEY])])
    return sent, collections.OrderedDict()

  def step(self, state, x, g, hparams, extra):
    held = state[_MOMENTUM_KEY]
    mixed = vectors.average(hparams['beta_1'], held, g)
    direction = vectors.combine(
        1.0,
        tf.nest.map_structure(_sign, mixed),
        hparams['weight_decay'],
        extra.decaying,
    )
    momentum = vectors.average(hparams['beta_2'], held, g)
    moved = vectors.descend(x, direction, hparams['learning_rate'])
    return {_MOMENTUM_KEY: momentum}, moved


@arguments.checked
def build_fedlion(
    learning_rate: ranges.NotNegative = 1e-3,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.9,
    weight_decay: ranges.NotNegative = 0.0,
) -> federated_optimizer.FederatedOptimizer:
  """Builds FedLion's client rule.

  A client starts the round with the momentum M that the server sends, 0 at
  first. In each local step, with sign(0) = 0:

  ```
  u = sign(beta_1 m + (1 - beta_1) g)
  m = beta_2 m + (1 - beta_2) g
  x = x - learning_rate * (u + weight_decay x)
  ```

  The server averages m to M. Clients receive M besides the model, and send m
  besides their update. Without weight decay, no weight moves by more than the
  number of local steps times `learning_rate`, in whole multiples of it, so that
  the update could be sent in a few bits; that is not done here.

  Args:
    learning_rate: The size of each step. Default 1e-3.
    beta_1: The share of m in the direction. Default 0.9.
    beta_2: The decay rate of m. Default 0.9.
    weight_decay: The strength of decoupled weight decay. Default 0.

  Returns:
    A `FederatedOptimizer` whose hyperparameters are the arguments. It shares
    `momentum`, M, with the structure of the weights, in float32 or float64.

  Example:

    >>> rule = build_fedlion(learning_rate=0.25)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> one = tf.constant(1.0)
    >>> _, x = rule.next(state, one, 8.0 * one, value=one)
    >>> float(x)
    0.75

  References:
    Tang, Chang, FedLion: Faster Adaptive Federated Optimization with Fewer
    Communication, ICASSP 2024, https://arxiv.org/abs/2402.09941, with published
    code https://github.com/TZW1998/FedLion, commit 22af20a,
    `avg_lion_cifar.py`, whose defaults these are. Deviations: updates are sent
    as they are; both means have the weights of `build_fed_opt`, by default the
    clients' examples, and not equal ones.
  """
  hparams = dict(
      learning_rate=learning_rate,
      beta_1=beta_1,
      beta_2=beta_2,
      weight_decay=weight_decay,
  )
  return _FedLion(hparams)
