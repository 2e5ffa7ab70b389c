# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedHyper: hypergradients set the learning rate of the server or clients."""

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_SCALE_KEY = 'scale'
_PREVIOUS_CHANGE_KEY = 'previous_change'
_MEAN_CHANGE_KEY = 'mean_change'
_PREVIOUS_STEP_KEY = 'previous_step'
_MOVED_KEY = 'moved'


class _FedHyper(vector_optimizer.VectorOptimizer):
  """A base class with the checks of hyperparameters."""

  name = 'FedHyper'
  checks = {'max_scale': optimizer.check_limit}

  def __init__(self, hparams: Any):
    super().__init__(hparams)
    if not hparams['min_scale'] <= hparams['max_scale']:
      raise ValueError(
          'FedHyper `min_scale` must be at most `max_scale`, found '
          f'{hparams["min_scale"]} and {hparams["max_scale"]}.'
      )


class _FedHyperServer(_FedHyper):
  """FedHyper's server rules, see the builders."""

  moment_keys = (_PREVIOUS_CHANGE_KEY,)

  def __init__(self, hparams: Any, *, scales_client_rate: bool):
    super().__init__(hparams)
    self.scales_client_rate = scales_client_rate

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
    rate = hparams['learning_rate'] if self.scales_client_rate else scale
    changed = {_SCALE_KEY: scale, _PREVIOUS_CHANGE_KEY: change}
    return changed, vectors.descend(x, g, rate)

  def client_rate_scale(self, state: Any) -> tf.Tensor:
    """Returns the factor on the clients' learning rate in the next round."""
    return state[_SCALE_KEY]


class _FedHyperClient(_FedHyper, federated_optimizer.FederatedOptimizer):
  """FedHyper's client rule, see `build_fedhyper_client_local`."""

  moment_keys = (_MEAN_CHANGE_KEY, _PREVIOUS_STEP_KEY, _MOVED_KEY)
  step_size_key = 'last_step_size'

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict(
        [
            (_SCALE_KEY, tf.ones([], dtype)),
            ('last_step_size', tf.zeros([], dtype)),
        ]
    )

  def initialize_shared(self, specs):
    # P / |S|, since P is used in no other form.
    return collections.OrderedDict(
        [(_MEAN_CHANGE_KEY, vectors.fill_moments(specs))]
    )

  def start_round(self, state, shared, kept, round_num):
    del kept, round_num  # Unused.
    return collections.OrderedDict(state, **shared)

  def finish_round(self, state):
    sent = collections.OrderedDict([(_MEAN_CHANGE_KEY, state[_MOVED_KEY])])
    return sent, collections.OrderedDict()

  def update_shared(self, shared, mean_sent, num_clients):
    del shared  # Unused.
    return vectors.divide(mean_sent, num_clients)

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    dtype = vectors.step_dtype(x)
    scale = state[_SCALE_KEY]
    step_size = hparams['learning_rate'] * scale
    step = tf.nest.map_structure(lambda g: -tf.cast(step_size, g.dtype) * g, g)
    product = vectors.inner(step, state[_PREVIOUS_STEP_KEY], dtype)
    product += hparams['epsilon'] * vectors.inner(
        step, state[_MEAN_CHANGE_KEY], dtype
    )
    growth = tf.minimum(
        hparams['max_growth'], 1.0 + hparams['hyper_learning_rate'] * product
    )
    grown = tf.clip_by_value(
        scale * growth, hparams['min_scale'], hparams['max_scale']
    )
    changed = {
        _SCALE_KEY: tf.where(self.is_first(state), scale, grown),
        'last_step_size': step_size,
        _PREVIOUS_STEP_KEY: step,
        _MOVED_KEY: tf.nest.map_structure(tf.add, state[_MOVED_KEY], step),
    }
    return changed, tf.nest.map_structure(tf.add, x, step)


def build_fedhyper_global(
    hyper_learning_rate: float = 1.0,
    min_scale: float = 0.2,
    max_scale: float = 5.0,
) -> tff.learning.optimizers.Optimizer:
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
    hyper_learning_rate: The step size of s, not negative; at 0 this is FedAvg.
    min_scale: The smallest s, not negative.
    max_scale: The largest s, above zero; may be infinite.

  Returns:
    A `tff.learning.optimizers.Optimizer` whose hyperparameters are the
    arguments. Its state has `scale`, s_t, and `previous_change`, D_t.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If an argument is out of its range.

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
  return _FedHyperServer(hparams, scales_client_rate=False)


def build_fedhyper_server_local(
    learning_rate: float = 1.0,
    hyper_learning_rate: float = 1.0,
    min_scale: float = 0.1,
    max_scale: float = 10.0,
) -> tff.learning.optimizers.Optimizer:
  """Builds FedHyper's rule for the clients' learning rate, set by the server.

  With s_t and D_t as in `build_fedhyper_global`:

  ```
  x_{t+1}                       = x_t + learning_rate D_t
  rate of clients, round t + 1  = s_t * the rate of the client optimizer
  ```

  This rule needs a client optimizer with a learning rate, in
  `tff_adaptive.algorithms.build_fed_opt`; in other algorithms, which do not
  scale the clients' rate, it is gradient descent. The scale multiplies a
  schedule. The default bounds are those of the published code.

  Args:
    learning_rate: The server's step size, not negative.
    hyper_learning_rate: See `build_fedhyper_global`.
    min_scale: See `build_fedhyper_global`.
    max_scale: See `build_fedhyper_global`.

  Returns:
    A `tff.learning.optimizers.Optimizer` whose hyperparameters are the
    arguments. Its state has `scale`, s_t, and `previous_change`, D_t.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If an argument is out of its range.

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
  return _FedHyperServer(hparams, scales_client_rate=True)


def build_fedhyper_client_local(
    learning_rate: float = 0.1,
    epsilon: float = 0.1,
    hyper_learning_rate: float = 1.0,
    max_growth: float = 1.1,
    min_scale: float = 0.1,
    max_scale: float = 10.0,
) -> federated_optimizer.FederatedOptimizer:
  """Builds FedHyper's rule for the clients' learning rate, set by each client.

  With P the mean update of the last round, 0 at first, and S its clients:

  ```
  p_k = -learning_rate * r * g_k,   x = x + p_k                 (r = 1 at first)
  q   = <p_k, p_{k-1}> + epsilon <p_k, P> / |S|                     (from k = 1)
  r   = clip(r min(max_growth, 1 + hyper_learning_rate q), min_scale, max_scale)
  ```

  r changes after the step, so the first two steps of a round have r = 1. The
  products scale with the square of the learning rate, so r stays near 1 unless
  `hyper_learning_rate` is large. Clients receive P besides the model, and send
  their update twice, once for P. The defaults are those of the published code,
  except for both learning rates.

  Args:
    learning_rate: The step size, not negative.
    epsilon: The weight of the last round, not negative.
    hyper_learning_rate: The step size of r, not negative; at 0 this is SGD.
    max_growth: The largest factor of r in a step, not negative.
    min_scale: The smallest r, not negative.
    max_scale: The largest r, above zero; may be infinite.

  Returns:
    A `FederatedOptimizer` whose hyperparameters are the arguments. It shares
    `mean_change`, P / |S|, with the structure of the weights, in float32 or
    float64. It reports the `step_size` of each step.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If an argument is out of its range.

  Example:

    >>> rule = build_fedhyper_client_local(0.5, hyper_learning_rate=0.1)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> x, one = tf.constant(3.0), tf.constant(1.0)
    >>> for _ in range(3):  # The first two steps are 1 each: r is 1 + 0.1.
    ...   state, x = rule.next(state, x, tf.constant(2.0), value=one)
    >>> round(float(x), 3)
    -0.1

  References:
    Wang, Wang, Li, FedHyper: A Universal and Robust Learning Rate Scheduler for
    Federated Learning with Hypergradient Descent, ICLR 2024,
    https://arxiv.org/abs/2310.03156, FedHyper-CL in the form of the published
    code. Deviations: |S| is that of the last round, since clients do not know
    the size of the current one: for cohorts that change in size, set `epsilon`
    before a round to epsilon |S_{t-1}| / |S_t|. Every epoch's first step is not
    compared with P, and no batch is skipped, unlike in the code.
  """
  return _FedHyperClient(
      dict(
          learning_rate=learning_rate,
          epsilon=epsilon,
          hyper_learning_rate=hyper_learning_rate,
          max_growth=max_growth,
          min_scale=min_scale,
          max_scale=max_scale,
      )
  )
