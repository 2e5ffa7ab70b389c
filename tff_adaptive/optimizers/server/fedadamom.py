# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedAdamom: a server momentum that adapts to each coordinate."""

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_MOMENTUM_KEY = 'accumulator'
_SECOND_MOMENT_KEY = 'preconditioner'


class _FedAdamom(vector_optimizer.VectorOptimizer):
  """FedAdamom, see `build_fedadamom`."""

  name = 'FedAdamom'
  moment_keys = (_MOMENTUM_KEY, _SECOND_MOMENT_KEY)
  step_size_key = 'learning_rate'

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    squares = tf.nest.map_structure(tf.square, g)
    v = vectors.average(hparams['beta_0'], state[_SECOND_MOMENT_KEY], squares)
    dtype = vectors.step_dtype(x)
    num_weights = sum(t.shape.num_elements() for t in tf.nest.flatten(x))
    ones = tf.nest.map_structure(tf.ones_like, v)
    mean = vectors.inner(v, ones, dtype) / max(num_weights, 1)

    def decay(m, v, g):
      share = 1.0 - tf.math.divide_no_nan(v, tf.cast(mean, v.dtype))
      largest = 1.0 - tf.cast(hparams['epsilon'], v.dtype)
      share = tf.clip_by_value(share, 0.0, largest)
      return share * m + (1.0 - share) * g

    m = tf.nest.map_structure(decay, state[_MOMENTUM_KEY], v, g)
    changed = {_MOMENTUM_KEY: m, _SECOND_MOMENT_KEY: v}
    return changed, vectors.descend(x, m, hparams['learning_rate'])


@arguments.checked
def build_fedadamom(
    learning_rate: ranges.NotNegative = 1.0,
    beta_0: ranges.Share = 0.1,
    epsilon: ranges.ClosedShare = 1e-3,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedAdamom.

  With D_t the weighted mean of the clients' updates, and `mean` the average of
  v over all coordinates of all tensors:

  ```
  v_t     = beta_0 v_{t-1} + (1 - beta_0) D_t^2                    (v_{-1} = 0)
  b_t     = min(max(1 - v_t / mean(v_t), 0), 1 - epsilon)
  m_t     = b_t m_{t-1} + (1 - b_t) D_t                            (m_{-1} = 0)
  x_{t+1} = x_t + learning_rate * m_t
  ```

  Coordinates whose squared updates are above average follow D_t, as in FedAvg;
  the smaller they are, the longer is their momentum. D_t is not divided by a
  root, so scaling it scales the steps. With a single weight, or updates of
  equal size, this is FedAvg. As the mean is over coordinates, a large layer
  with small updates makes the others plain FedAvg.

  The authors train with SGD at a client rate of 0.1 that decays by 0.998 each
  round, weight decay 1e-3, clipping at norm 10, and equal weights. Clients send
  nothing else. With differential privacy, v also accumulates the noise.

  Args:
    learning_rate: The server's step size, per round. Default 1.
    beta_0: The decay rate of v. Default 0.1, as in the published code.
    epsilon: The smallest weight of D_t in m_t; nothing is divided by it.
      Default 1e-3, as in the published code.

  Returns:
    A `tff.learning.optimizers.Optimizer` whose hyperparameters are the
    arguments. TFF hands it `-D_t`, so the state's `accumulator` is `-m_t`;
    `preconditioner` is v_t.

  Example:

    >>> optimizer = build_fedadamom()
    >>> state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
    >>> change = tf.constant([3.0, 1.0])  # The mean of v is 4.5, and b is 0.8.
    >>> _, x = optimizer.next(state, tf.zeros([2]), -change)
    >>> [round(float(v), 4) for v in x]
    [3.0, 0.2]

  References:
    FedAdamom: Adaptive Momentum for Improved Generalization in Federated
    Optimization, CVPR 2026, https://github.com/Tenshawn/FedAdamom, commit
    5c58646, `models/distributed_training_utils.py`. Deviation: clients are
    weighted by the surrounding algorithm, by default by their examples; the
    code weights them equally.
  """
  return _FedAdamom(
      dict(learning_rate=learning_rate, beta_0=beta_0, epsilon=epsilon)
  )
