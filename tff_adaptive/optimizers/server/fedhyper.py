# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedHyper on the server: hypergradients set its rate, or that of clients."""

import collections

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import server_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import fedhyper

_SCALE_KEY = 'scale'
_PREVIOUS_CHANGE_KEY = 'previous_change'


class _FedHyperServer(
    vector_optimizer.VectorOptimizer, server_optimizer.ServerOptimizer
):
  """FedHyper's server rules, see the builders."""

  name = 'FedHyper'
  moment_keys = (_PREVIOUS_CHANGE_KEY,)

  def __init__(self, hparams: dict[str, float], *, scales_clients: bool):
    super().__init__(hparams)
    fedhyper.check_scales(hparams)
    self._scales_clients = scales_clients

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict([(_SCALE_KEY, tf.ones([], dtype))])

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    change = tf.nest.map_structure(tf.negative, g)
    product = vectors.inner(
        change, state[_PREVIOUS_CHANGE_KEY], vectors.step_dtype(x)
    )
    scale = tf.clip_by_value(
        state[_SCALE_KEY] + hparams['hyper_learning_rate'] * product,
        hparams['min_scale'],
        hparams['max_scale'],
    )
    rate = hparams['learning_rate'] if self._scales_clients else scale
    changed = {_SCALE_KEY: scale, _PREVIOUS_CHANGE_KEY: change}
    return changed, vectors.descend(x, g, rate)

  def _check_module(self, module):
    if module is not None and self._scales_clients:
      raise ValueError(
          'FedHyper for the rate of clients needs a loop that scales it, and '
          'would be gradient descent in the algorithms of `tff.learning`: use '
          'it as the server optimizer of '
          '`tff_adaptive.algorithms.build_fed_opt`.'
      )
    super()._check_module(module)

  def client_rate_scale(self, state):
    return state[_SCALE_KEY] if self._scales_clients else None


@arguments.checked
def build_fedhyper_global(
    hyper_learning_rate: ranges.NotNegative = 1.0,
    min_scale: ranges.NotNegative = 0.2,
    max_scale: ranges.Limit = 5.0,
) -> server_optimizer.ServerOptimizer:
  """Builds FedHyper's rule for the server's learning rate.

  With D_t the weighted mean of the clients' updates:

  ```
  s_t     = clip(s_{t-1} + hyper_learning_rate * <D_t, D_{t-1}>,
                 min_scale, max_scale)                (s_{-1} = 1, D_{-1} = 0)
  x_{t+1} = x_t + s_t D_t
  ```

  The rate s_t grows while successive mean updates agree. Their product has the
  scale of the model and of the clients' rate, so large models need a tuned
  `hyper_learning_rate`. The defaults are those of the published code.

  Args:
    hyper_learning_rate: The step size of s; at 0 this is FedAvg.
    min_scale: The smallest s.
    max_scale: The largest s.

  Returns:
    A `ServerOptimizer` whose hyperparameters are the
    arguments. Its state has `scale`, s_t, and `previous_change`, D_t.

  Example:

    >>> rule = build_fedhyper_global()
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(0.0)
    >>> for _ in range(2):
    ...   state, x = rule.next(state, x, tf.constant(-0.5))
    >>> float(x)  # 0.5, then 0.5 (1 + 0.25).
    1.125

  References:
    Wang, Wang, Li, FedHyper: A Universal and Robust Learning Rate Scheduler for
    Federated Learning with Hypergradient Descent, ICLR 2024,
    https://arxiv.org/abs/2310.03156, FedHyper-G. Deviation: the bounds are
    those of the published code.
  """
  hparams = dict(
      hyper_learning_rate=hyper_learning_rate,
      min_scale=min_scale,
      max_scale=max_scale,
  )
  return _FedHyperServer(hparams, scales_clients=False)


@arguments.checked
def build_fedhyper_server_local(
    learning_rate: ranges.NotNegative = 1.0,
    hyper_learning_rate: ranges.NotNegative = 1.0,
    min_scale: ranges.NotNegative = 0.1,
    max_scale: ranges.Limit = 10.0,
) -> server_optimizer.ServerOptimizer:
  """Builds FedHyper's rule for the clients' learning rate, set by the server.

  With s_t and D_t as in `build_fedhyper_global`:

  ```
  x_{t+1}                       = x_t + learning_rate D_t
  rate of clients, round t + 1  = s_t * the rate of the client optimizer
  ```

  This rule needs a client optimizer with a learning rate, in
  `tff_adaptive.algorithms.build_fed_opt`. The algorithms of `tff.learning`,
  which do not scale the clients' rate, are refused; elsewhere it is gradient
  descent. The scale multiplies a schedule. The default bounds are those of the
  published code.

  Args:
    learning_rate: The server's step size.
    hyper_learning_rate: See `build_fedhyper_global`.
    min_scale: See `build_fedhyper_global`.
    max_scale: See `build_fedhyper_global`.

  Returns:
    A `ServerOptimizer` whose hyperparameters are the
    arguments. Its state has `scale`, s_t, and `previous_change`, D_t.

  Example:

    >>> rule = build_fedhyper_server_local()
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(0.0)
    >>> for _ in range(2):
    ...   state, x = rule.next(state, x, tf.constant(-0.5))
    >>> float(x), float(rule.client_rate_scale(state))
    (1.0, 1.25)

  References:
    Wang, Wang, Li, FedHyper: A Universal and Robust Learning Rate Scheduler for
    Federated Learning with Hypergradient Descent, ICLR 2024,
    https://arxiv.org/abs/2310.03156, FedHyper-SL. Deviations: the bounds are
    those of the published code, which overwrites its result before using it.
  """
  hparams = dict(
      learning_rate=learning_rate,
      hyper_learning_rate=hyper_learning_rate,
      min_scale=min_scale,
      max_scale=max_scale,
  )
  return _FedHyperServer(hparams, scales_clients=True)
