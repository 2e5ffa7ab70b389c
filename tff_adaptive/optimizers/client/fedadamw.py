# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedAdamW: AdamW on the clients, with second moments shared by all."""

import collections
from typing import Any, Literal

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import fedpac

FIRST_MOMENT_KEY = 'first_moment'
SECOND_MOMENT_KEY = 'second_moment'

_MEAN_SECOND_MOMENT_KEY = 'mean_second_moment'
_START_KEY = 'global_steps'


def _mean(tensor: tf.Tensor) -> tf.Tensor:
  """Returns the mean of a tensor, 0 of an empty one."""
  if tensor.shape.num_elements() == 0:
    return tf.zeros([], tensor.dtype)
  return tf.reduce_mean(tensor)


class _FedAdamW(fedpac.FedPAC):
  """FedAdamW, see `build_fedadamw`."""

  name = 'FedAdamW'
  moment_keys = (
      FIRST_MOMENT_KEY,
      SECOND_MOMENT_KEY,
      *fedpac.FedPAC.moment_keys,
  )

  def __init__(self, hparams: Any, second_moment: str, blend: bool):
    super().__init__(hparams)
    self._sends_means = second_moment == 'tensor_mean'
    self.blends = blend

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict([(_START_KEY, tf.zeros([]))])

  def initialize_shared(self, specs):
    return collections.OrderedDict(
        super().initialize_shared(specs),
        **{
            _MEAN_SECOND_MOMENT_KEY: self._summarize(
                vectors.fill_moments(specs)
            )
        },
    )

  def _summarize(self, second_moment: Any) -> Any:
    if not self._sends_means:
      return second_moment
    return tf.nest.map_structure(_mean, second_moment)

  def start_round(self, state, shared, kept, round_num):
    state = super().start_round(state, shared, kept, round_num)
    state[SECOND_MOMENT_KEY] = tf.nest.map_structure(
        lambda v, mean: tf.zeros_like(v) + tf.maximum(mean, 0.0),
        state[SECOND_MOMENT_KEY],
        shared[_MEAN_SECOND_MOMENT_KEY],
    )
    state[_START_KEY] = shared[fedpac.NUM_STEPS_KEY]
    return state

  def finish_round(self, state):
    sent, kept = super().finish_round(state)
    sent[_MEAN_SECOND_MOMENT_KEY] = self._summarize(state[SECOND_MOMENT_KEY])
    return sent, kept

  def precondition(self, state, g, hparams, extra):
    beta_1, beta_2 = hparams['beta_1'], hparams['beta_2']
    num_steps = state[vector_optimizer.NUM_STEPS_KEY] + 1
    m = vectors.average(beta_1, state[FIRST_MOMENT_KEY], g)
    squares = tf.nest.map_structure(tf.square, g)
    v = vectors.average(beta_2, state[SECOND_MOMENT_KEY], squares)
    time = state[_START_KEY] + tf.cast(num_steps, tf.float32)
    root = tf.sqrt(vectors.complement(beta_2, time))
    adam = vectors.over_root(m, v, hparams['epsilon'], root)
    direction = vectors.combine(
        1.0 / vectors.complement(beta_1, num_steps),
        adam,
        hparams['weight_decay'],
        extra.decaying,
    )
    return {FIRST_MOMENT_KEY: m, SECOND_MOMENT_KEY: v}, direction


@arguments.checked
def build_fedadamw(
    learning_rate: ranges.NotNegative = 3e-4,
    alpha: ranges.ClosedShare = 0.5,
    weight_decay: ranges.NotNegative = 0.01,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.999,
    epsilon: ranges.NotNegative = 1e-8,
    *,
    second_moment: Literal['tensor_mean', 'full'] = 'tensor_mean',
    blend: bool = False,
) -> federated_optimizer.FederatedOptimizer:
  """Builds FedAdamW's client rule.

  A client starts the round with m = 0, with v of each tensor filled with the
  mean V that the server sends, and with the mean direction G of the last round;
  V and G are 0 at first. With g the gradient of local step k, t_0 the mean
  number of steps of all earlier rounds, and q = 1, or 1 - alpha with `blend`:

  ```
  m = beta_1 m + (1 - beta_1) g         v = beta_2 v + (1 - beta_2) g^2
  u = (m / (1 - beta_1^(k+1)))
      / (sqrt(v / (1 - beta_2^(t_0+k+1))) + epsilon)
  x = x - learning_rate * (q u + q weight_decay x + alpha G)
  ```

  The server averages each tensor's mean of v, and G = -D / (K learning_rate)
  with D the mean update and K the mean number of steps. Clients receive G
  besides the model, and send their update twice, once for G.

  Args:
    learning_rate: The step size. Default 3e-4, as in the paper.
    alpha: The weight of G. Default 0.5, as in the paper.
    weight_decay: The strength of decoupled weight decay. Default 0.01, as in
      the paper.
    beta_1: The decay rate of m. Default 0.9.
    beta_2: The decay rate of v. Default 0.999.
    epsilon: Added to the root. Default 1e-8.
    second_moment: Whether clients send the mean of v of each tensor
      (`'tensor_mean'`, the default) or all of v (`'full'`, as in the published
      code).
    blend: Whether to scale Adam's part of the step by 1 - alpha, as in releases
      of the published code. With `'full'` this is FedPAC with AdamW. Default
      False.

  Returns:
    A `FederatedOptimizer` whose hyperparameters are the numeric arguments. It
    shares `global_direction`, G, with the structure of the weights;
    `mean_second_moment`, V, one number per tensor or, with `'full'`, per
    weight; and `num_steps`, t_0, a scalar.

  Example:

    >>> rule = build_fedadamw(learning_rate=0.5, weight_decay=0.0)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> one = tf.constant(1.0)
    >>> _, x = rule.next(state, one, 8.0 * one, value=one)
    >>> round(float(x), 4)  # Adam's first step.
    0.5

  References:
    Liu et al., FedAdamW: A Communication-Efficient Optimizer with Convergence
    and Generalization Guarantees for Federated Large Models, 2025,
    https://arxiv.org/abs/2510.27486, Algorithm 2. Deviations: the blocks in
    which v is averaged are the tensors; the published code uses one counter in
    both corrections.
  """
  hparams = dict(
      learning_rate=learning_rate,
      alpha=alpha,
      weight_decay=weight_decay,
      beta_1=beta_1,
      beta_2=beta_2,
      epsilon=epsilon,
  )
  return _FedAdamW(hparams, second_moment, blend)
