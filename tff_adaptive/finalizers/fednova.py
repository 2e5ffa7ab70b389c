# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedNova: the server averages changes that are normalized by their steps."""

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
    if tau_eff not in ('normalizer', 'steps'):
      raise ValueError(
          "FedNova `tau_eff` must be 'normalizer' or 'steps', found "
          f'{tau_eff!r}.'
      )
    super().__init__({'learning_rate': learning_rate})
    # Clients divide by the normalizer if it is asked for.
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
  """Builds the server rule of FedNova, for clients of unequal numbers of steps.

  With delta_i the change of client i, w_i its share and K_i its number of local
  steps of SGD with momentum rho, rate eta and a proximal term of strength mu:

  ```
  a_i: c = a = 0, then K_i times  c = rho c + 1 - eta mu a,  a = a + c
  tau     = sum_i w_i a_i                                     (or sum_i w_i K_i)
  x_{t+1} = x_t + learning_rate * tau * sum_i w_i delta_i / a_i
  ```

  a_i is how many plain steps of one gradient the change is worth: K_i of plain
  SGD. With equal K_i this is FedAvg. Clients send delta_i / a_i in the place of
  delta_i, and a_i (and K_i), one number more each. The round's metrics have
  `tau_eff`, tau.

  The client optimizer is `tff_adaptive.optimizers.build_sgd`; of others there
  is no a_i, and they are refused. The loss term is FedProx's or none; other
  terms count as a part of the loss.

  Args:
    learning_rate: Multiplies the step, not negative. Default 1.0, the paper's.
    tau_eff: What tau is the mean of: `'normalizer'`, the default, of a_i;
      `'steps'` of K_i, as the published code has it with a proximal term.

  Returns:
    A `ReportsOptimizer` with the hyperparameter `learning_rate`, for
    `tff_adaptive.algorithms.build_fed_opt`. Its state also has `tau_eff`.

  Raises:
    TypeError: If `learning_rate` is no number.
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
    and a proximal term a_i is that of a term in the loss; the published code
    adds the term after the momentum.
  """
  return _FedNova(learning_rate, tau_eff)
