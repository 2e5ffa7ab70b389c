# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedNova: the server averages updates normalized by local progress."""

from typing import Literal

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import client_reports
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import server_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import sgd

_TAU_KEY = 'tau_eff'


def steps_worth(end: client_reports.ClientRoundEnd) -> tf.Tensor:
  """Returns the number of plain SGD steps that a client's steps amount to.

  This is the distance that SGD moves when all gradients are 1, divided by its
  learning rate. Momentum makes it larger than the number of steps, a proximal
  term smaller.

  Args:
    end: The end of a round with `build_sgd`.

  Returns:
    A float32 scalar.
  """
  state = end.optimizer_state
  momentum = tf.cast(state.get('momentum', 0.0), tf.float32)
  proximal_mu = getattr(end.loss_term, 'proximal_mu', 0.0)
  pull = tf.cast(state['learning_rate'], tf.float32) * proximal_mu

  def step(k, velocity, total):
    velocity = momentum * velocity + 1.0 - pull * total
    return k + 1.0, velocity, total + velocity

  zero = tf.zeros([])
  return tf.while_loop(
      lambda k, *_: k < end.num_steps, step, (zero, zero, zero)
  )[2]


class _FedNova(
    vector_optimizer.VectorOptimizer, server_optimizer.ServerOptimizer
):
  """FedNova, see `build_fednova`."""

  name = 'FedNova'
  scalar_keys = (_TAU_KEY,)
  reported_keys = (_TAU_KEY,)

  def __init__(self, learning_rate: float, tau_eff: str):
    super().__init__({'learning_rate': learning_rate})
    self.client_reports = {'normalizer': client_reports.Report(steps_worth)}
    if tau_eff == 'steps':
      self.client_reports['num_steps'] = client_reports.Report(
          lambda end: end.num_steps
      )
    self._tau_name = list(self.client_reports)[-1]

  def check_client(self, optimizer):
    found = optimizer_lib.name_of(optimizer)
    if isinstance(optimizer, sgd.SGD):
      if not optimizer.is_nesterov:
        return
      found += " with Nesterov's momentum"
    raise ValueError(
        'FedNova needs the number of plain steps that an update amounts to, '
        'which is known only for SGD with or without momentum, found the '
        f'client optimizer {found}. Use `tff_adaptive.optimizers.build_sgd`.'
    )

  def client_update(self, end):
    worth = steps_worth(end)
    return tuple(
        tf.math.divide_no_nan(u, tf.cast(worth, u.dtype)) for u in end.update
    )

  def step(self, state, x, g, hparams, extra):
    rate = hparams['learning_rate']
    # Noise can make it negative.
    tau = tf.maximum(tf.cast(extra.reports[self._tau_name], rate.dtype), 0.0)
    return {_TAU_KEY: tau}, vectors.descend(x, g, rate * tau)


@arguments.checked
def build_fednova(
    learning_rate: ranges.NotNegative = 1.0,
    *,
    tau_eff: Literal['normalizer', 'steps'] = 'normalizer',
) -> server_optimizer.ServerOptimizer:
  """Builds the server rule of FedNova, for clients with unequal step counts.

  With delta_i the update of client i, w_i its share and K_i its number of local
  steps of SGD with momentum rho, rate eta and a proximal term of strength mu:

  ```
  a_i: c = a = 0, then K_i times  c = rho c + 1 - eta mu a,  a = a + c
  tau     = sum_i w_i a_i                                     (or sum_i w_i K_i)
  x_{t+1} = x_t + learning_rate * tau * sum_i w_i delta_i / a_i
  ```

  a_i is the number of plain SGD steps that the update amounts to, K_i for plain
  SGD. With equal K_i this is FedAvg, but with `'steps'` for plain SGD alone.
  Clients send delta_i / a_i instead of delta_i, and one more number for each of
  a_i and, if used, K_i. The round's metrics include `tau_eff`, tau.

  The client optimizer must be `tff_adaptive.optimizers.build_sgd`, since a_i is
  not known for others. The loss term must be FedProx's or none; other terms
  count as part of the loss.

  Args:
    learning_rate: Multiplies the step. Default 1.0, as in the paper.
    tau_eff: Whether tau is the mean of a_i (`'normalizer'`, the default) or of
      K_i (`'steps'`), as in the published code with a proximal term.

  Returns:
    A `ServerOptimizer` with the hyperparameter `learning_rate`, for
    `tff_adaptive.algorithms.build_fed_opt`. Its state also has `tau_eff`.

  Example:

    >>> rule = build_fednova()
    >>> state = rule.initialize(tf.TensorSpec([1], tf.float32))
    >>> _, x = rule.next(
    ...     state, tf.zeros([1]), -tf.ones([1]),
    ...     reports={'normalizer': tf.constant(5.0)})
    >>> x.numpy().tolist()
    [5.0]

  References:
    Wang, Liu, Liang, Joshi, Poor, Tackling the Objective Inconsistency Problem
    in Heterogeneous Federated Optimization, NeurIPS 2020,
    https://arxiv.org/abs/2007.07481, equation (13). Deviation: with momentum
    and a proximal term, a_i treats the term as part of the loss; the published
    code adds the term after the momentum.
  """
  return _FedNova(learning_rate, tau_eff)
