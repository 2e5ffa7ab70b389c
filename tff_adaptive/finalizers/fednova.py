# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedNova: the server averages updates normalized by local progress."""

import collections
from typing import Any, Literal

import tensorflow as tf

from tff_adaptive.aggregators import reports as reports_lib
from tff_adaptive.finalizers import measured_update
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors

_Report = reports_lib.ClientReport


class _FedNova(optimizer.HparamsInState, measured_update.ReportsOptimizer):
  """FedNova, see `build_fednova`."""

  def __init__(self, learning_rate: float, tau_eff: str):
    optimizer.check_rate('learning_rate', learning_rate, 'FedNova')
    optimizer.check_choice(
        'tau_eff', tau_eff, ('normalizer', 'steps'), 'FedNova'
    )
    super().__init__({'learning_rate': learning_rate})
    # Clients that report the normalizer also divide by it.
    self.client_reports = (_Report.NORMALIZER,)
    if tau_eff == 'steps':
      self.client_reports += (_Report.NUM_STEPS,)

  def initialize(self, specs: Any) -> Any:
    return collections.OrderedDict(
        self._hparams, tau_eff=tf.zeros([], vectors.step_dtype(specs))
    )

  def step(self, state, weights, gradients, reports):
    tau_eff = tf.cast(
        reports[self.client_reports[-1].value], vectors.step_dtype(weights)
    )
    # Noise can make it negative.
    tau_eff = tf.maximum(tau_eff, 0.0)
    rate = tf.cast(state['learning_rate'], tau_eff.dtype)
    moved = vectors.descend(weights, gradients, rate * tau_eff)
    return collections.OrderedDict(state, tau_eff=tau_eff), moved

  def report(self, state):
    return collections.OrderedDict(tau_eff=state['tau_eff'])


def build_fednova(
    learning_rate: float = 1.0,
    *,
    tau_eff: Literal['normalizer', 'steps'] = 'normalizer',
) -> measured_update.ReportsOptimizer:
  """Builds the server rule of FedNova, for clients with unequal step counts.

  With delta_i the update of client i, w_i its share and K_i its number of local
  steps of SGD with momentum rho, rate eta and a proximal term of strength mu:

  ```
  a_i: c = a = 0, then K_i times  c = rho c + 1 - eta mu a,  a = a + c
  tau     = sum_i w_i a_i                                     (or sum_i w_i K_i)
  x_{t+1} = x_t + learning_rate * tau * sum_i w_i delta_i / a_i
  ```

  a_i is the number of plain SGD steps that the update amounts to, K_i for plain
  SGD. With equal K_i this is FedAvg. Clients send delta_i / a_i instead of
  delta_i, and one more number for each of a_i and, if used, K_i. The round's
  metrics include `tau_eff`, tau.

  The client optimizer must be `tff_adaptive.optimizers.build_sgd`, since a_i is
  not known for others. The loss term must be FedProx's or none; other terms
  count as part of the loss.

  Args:
    learning_rate: Multiplies the step, not negative. Default 1.0, as in the
      paper.
    tau_eff: Whether tau is the mean of a_i (`'normalizer'`, the default) or of
      K_i (`'steps'`), as in the published code with a proximal term.

  Returns:
    A `ReportsOptimizer` with the hyperparameter `learning_rate`, for
    `tff_adaptive.algorithms.build_fed_opt`. Its state also has `tau_eff`.

  Raises:
    TypeError: If `learning_rate` is not a number.
    ValueError: If an argument is out of its range.

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
