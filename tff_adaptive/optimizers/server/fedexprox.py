# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedExProx: the server extrapolates the clients' proximal steps."""

import collections
import math

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import client_reports
from tff_adaptive.optimizers import server_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_STEP_SIZE_KEY = 'server_step_size'


class _FedExProx(
    vector_optimizer.VectorOptimizer, server_optimizer.ServerOptimizer
):
  """FedExProx with either of its adaptive step sizes, see the builders."""

  name = 'FedExProx'
  reported_keys = (_STEP_SIZE_KEY,)

  def __init__(self, hparams: dict[str, float]):
    super().__init__(hparams)
    self.client_reports = {
        'squared_norm': client_reports.Report(client_reports.squared_norm)
    }
    if 'gamma' in hparams:
      self.client_reports['final_loss'] = client_reports.Report(
          lambda end: end.mean_loss(end.trained)
      )

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict([(_STEP_SIZE_KEY, tf.ones([], dtype))])

  def step(self, state, x, g, hparams, extra):
    dtype = vectors.step_dtype(x)
    squared_norms, *losses = (
        tf.cast(extra.reports[name], dtype) for name in self.client_reports
    )
    squared_norm = tf.square(vectors.norm(g, dtype))
    if losses:
      gamma = hparams['gamma']
      envelope = losses[0] + squared_norms / (2.0 * gamma)
      numerator = gamma * tf.maximum(envelope - hparams['optimal_value'], 0.0)
    else:
      # It is never less, unless noise is added to it.
      numerator = tf.maximum(squared_norms, squared_norm)
    step_size = tf.minimum(
        tf.math.divide_no_nan(numerator, squared_norm), hparams['max_scale']
    )
    step_size = tf.where(squared_norm > 0.0, step_size, tf.ones([], dtype))
    return {_STEP_SIZE_KEY: step_size}, vectors.descend(x, g, step_size)


@arguments.checked
def build_fedexprox_grads(
    max_scale: ranges.Limit = math.inf,
) -> server_optimizer.ServerOptimizer:
  """Builds the server rule of FedExProx with the gradient diversity step.

  With delta_i the update of client i, w_i its share, D = sum_i w_i delta_i, and
  norms over the vector of all trainable weights:

  ```
  a       = min(sum_i w_i |delta_i|^2 / |D|^2, max_scale)        (1 where D = 0)
  x_{t+1} = x_t + a * D
  ```

  a is at least 1, unless `max_scale` is less. Clients should solve their
  proximal problems: use the loss term `tff_adaptive.client_works.build_fedprox`
  and enough local steps. Each client reports the squared norm of its update,
  one more number. The round's metrics include `server_step_size`, a. Unlike
  FedExP, this has no factor of one half, no epsilon and no maximum with 1.

  Args:
    max_scale: The largest a.

  Returns:
    A `ServerOptimizer` with the hyperparameter `max_scale`, for
    `tff_adaptive.algorithms.build_fed_opt`. Its state also has
    `server_step_size`, the last a.

  Example:

    >>> rule = build_fedexprox_grads()
    >>> state = rule.initialize(tf.TensorSpec([2], tf.float32))
    >>> _, x = rule.next(  # For updates (2, 0) and (0, 2).
    ...     state, tf.zeros([2]), -tf.ones([2]),
    ...     reports={'squared_norm': tf.constant(4.0)})
    >>> x.numpy().round(4).tolist()
    [2.0, 2.0]

  References:
    Li, Acharya, Richtarik, The Power of Extrapolation in Federated Learning,
    NeurIPS 2024, https://arxiv.org/abs/2405.13766, Algorithm 1, with the step
    size FedExProx-GraDS of section 5. Deviations: clients are weighted by the
    surrounding algorithm, uniformly in the paper; `max_scale` is not in the
    paper.
  """
  return _FedExProx({'max_scale': max_scale})


@arguments.checked
def build_fedexprox_stops(
    gamma: ranges.Positive = 1.0,
    optimal_value: ranges.Finite = 0.0,
    max_scale: ranges.Limit = math.inf,
) -> server_optimizer.ServerOptimizer:
  """Builds the server rule of FedExProx with the stochastic Polyak step.

  With delta_i the update of client i, w_i its share, D = sum_i w_i delta_i, f_i
  the loss of client i, and norms over the vector of all trainable weights:

  ```
  M       = sum_i w_i (f_i(x_t + delta_i) + |delta_i|^2 / (2 gamma))
  a       = min(gamma * max(M - optimal_value, 0) / |D|^2, max_scale)
  x_{t+1} = x_t + a * D                                      (a = 1 where D = 0)
  ```

  M is the mean of the Moreau envelopes if clients solve their proximal problems
  exactly: use `tff_adaptive.client_works.build_fedprox(mu=1 / gamma)` and
  enough local steps. Inexact solutions make a too large, so set `max_scale`.
  Each client evaluates the plain loss of all its examples at its final model,
  in one more pass over its data, and reports it and the squared norm of its
  update: two numbers. The round's metrics include `server_step_size`, a.

  Args:
    gamma: The step size of the proximal problems, 1 / mu. Default 1.0, ours.
    optimal_value: A lower bound of M. Default 0.0.
    max_scale: See `build_fedexprox_grads`.

  Returns:
    A `ServerOptimizer` with the hyperparameters `max_scale`, `gamma` and
    `optimal_value`, for `tff_adaptive.algorithms.build_fed_opt`. Its state also
    has `server_step_size`, the last a.

  Example:

    >>> rule = build_fedexprox_stops(gamma=0.5)
    >>> state = rule.initialize(tf.TensorSpec([2], tf.float32))
    >>> _, x = rule.next(
    ...     state, tf.zeros([2]), -tf.ones([2]), reports={
    ...       'squared_norm': tf.constant(2.0), 'final_loss': tf.constant(2.0)})
    >>> x.numpy().round(4).tolist()  # 0.5 * (2 + 2) / 2
    [1.0, 1.0]

  References:
    Li, Acharya, Richtarik, The Power of Extrapolation in Federated Learning,
    NeurIPS 2024, https://arxiv.org/abs/2405.13766, Algorithm 1, with the step
    size FedExProx-StoPS of section 5. Deviations: those of
    `build_fedexprox_grads`.
  """
  hparams = dict(max_scale=max_scale, gamma=gamma, optimal_value=optimal_value)
  return _FedExProx(hparams)
