# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedHyper on clients: hypergradients set the learning rate of each."""

import collections
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_SCALE_KEY = 'scale'
_MEAN_CHANGE_KEY = 'mean_change'
_PREVIOUS_STEP_KEY = 'previous_step'
_MOVED_KEY = 'moved'


def check_scales(hparams: Mapping[str, float]) -> None:
  """Raises unless `min_scale` is at most `max_scale`."""
  if not hparams['min_scale'] <= hparams['max_scale']:
    raise ValueError(
        'FedHyper `min_scale` must be at most `max_scale`, found '
        f'{hparams["min_scale"]} and {hparams["max_scale"]}.'
    )


class _FedHyperClient(
    vector_optimizer.VectorOptimizer, federated_optimizer.FederatedOptimizer
):
  """FedHyper's client rule, see `build_fedhyper_client_local`."""

  name = 'FedHyper'
  moment_keys = (_MEAN_CHANGE_KEY, _PREVIOUS_STEP_KEY, _MOVED_KEY)
  step_size_key = 'last_step_size'

  def __init__(self, hparams: Any):
    super().__init__(hparams)
    check_scales(hparams)

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


@arguments.checked
def build_fedhyper_client_local(
    learning_rate: ranges.NotNegative = 0.1,
    epsilon: ranges.NotNegative = 0.1,
    hyper_learning_rate: ranges.NotNegative = 1.0,
    max_growth: ranges.NotNegative = 1.1,
    min_scale: ranges.NotNegative = 0.1,
    max_scale: ranges.Limit = 10.0,
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
    learning_rate: The step size.
    epsilon: The weight of the last round.
    hyper_learning_rate: The step size of r; at 0 this is SGD.
    max_growth: The largest factor of r in a step.
    min_scale: The smallest r.
    max_scale: The largest r.

  Returns:
    A `FederatedOptimizer` whose hyperparameters are the arguments. It shares
    `mean_change`, P / |S|, with the structure of the weights, in float32 or
    float64. It reports the `step_size` of each step.

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
