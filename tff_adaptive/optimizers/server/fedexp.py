# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedExP: the server extrapolates by the disagreement of client updates."""

import collections

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import client_reports
from tff_adaptive.optimizers import server_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_STEP_SIZE_KEY = 'server_step_size'


class _FedExP(
    vector_optimizer.VectorOptimizer, server_optimizer.ServerOptimizer
):
  """FedExP, see `build_fedexp`."""

  name = 'FedExP'
  reported_keys = (_STEP_SIZE_KEY,)
  client_reports = {
      'squared_norm': client_reports.Report(client_reports.squared_norm)
  }

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict([(_STEP_SIZE_KEY, tf.ones([], dtype))])

  def step(self, state, x, g, hparams, extra):
    dtype = vectors.step_dtype(x)
    squared_norms = tf.cast(extra.reports['squared_norm'], dtype)
    squared_norm = tf.square(vectors.norm(g, dtype))
    # If all updates are 0, both norms are 0, and the step size is 1.
    ratio = tf.math.divide_no_nan(
        squared_norms, 2.0 * (squared_norm + hparams['epsilon'])
    )
    step_size = tf.maximum(tf.ones([], dtype), ratio)
    return {_STEP_SIZE_KEY: step_size}, vectors.descend(x, g, step_size)


@arguments.checked
def build_fedexp(
    epsilon: ranges.NotNegative = 1e-3,
) -> server_optimizer.ServerOptimizer:
  """Builds the server rule of FedExP.

  With delta_i the update of client i, w_i its share, D = sum_i w_i delta_i, and
  norms over the vector of all trainable weights:

  ```
  eta_g   = max(1, sum_i w_i |delta_i|^2 / (2 (|D|^2 + epsilon)))
  x_{t+1} = x_t + eta_g * D
  ```

  eta_g is 1 for equal updates and, up to epsilon, half the number of clients
  for orthogonal updates of equal length. Each client reports the squared norm
  of its update, one more number, as `squared_norm`. The round's metrics include
  `server_step_size`, eta_g.

  The reported norm is that of the update before aggregation. If the aggregator
  clips updates or adds noise, give `squared_norm` one, too, in
  `payload_aggregators` of `tff_adaptive.algorithms.build_fed_opt`.

  Args:
    epsilon: Bounds the step if updates cancel. Default 1e-3, as in the paper's
      experiments.

  Returns:
    A `ServerOptimizer` with the hyperparameter `epsilon`, for
    `tff_adaptive.algorithms.build_fed_opt`. Its state also has
    `server_step_size`, the last eta_g.

  Example:

    >>> rule = build_fedexp(epsilon=0.0)
    >>> state = rule.initialize(tf.TensorSpec([4], tf.float32))
    >>> _, x = rule.next(  # For updates (4, 0, 0, 0), (0, 4, 0, 0), ...
    ...     state, tf.zeros([4]), -tf.ones([4]),
    ...     reports={'squared_norm': tf.constant(16.0)})
    >>> x.numpy().tolist()
    [2.0, 2.0, 2.0, 2.0]

  References:
    Jhunjhunwala, Wang, Joshi, FedExP: Speeding Up Federated Averaging via
    Extrapolation, ICLR 2023, https://arxiv.org/abs/2301.09604, Algorithm 1.
    Deviations: clients are weighted by the surrounding algorithm, uniformly in
    the paper. The paper's code multiplies epsilon by the number of clients and
    evaluates the mean of the last two models; for the latter see
    `tff_adaptive.simulation.LastWeightsAverage`.
  """
  return _FedExP({'epsilon': epsilon})
