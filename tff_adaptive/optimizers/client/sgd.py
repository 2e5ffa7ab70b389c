# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""SGD with and without momentum."""

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors

_State = collections.OrderedDict[str, Any]


class SGD(optimizer.HparamsInState, tff.learning.optimizers.Optimizer):
  """Stochastic gradient descent, see `build_sgd` and `build_fedavgm`.

  Attributes:
    is_nesterov: Whether the momentum is Nesterov's.
  """

  def __init__(self, learning_rate: Any, momentum: Any, nesterov: bool = False):
    hparams = {'learning_rate': learning_rate}
    # Without momentum there is neither an accumulator nor the hyperparameter.
    self._has_momentum = tf.is_symbolic_tensor(momentum) or momentum > 0.0
    if self._has_momentum:
      hparams['momentum'] = momentum
    self.is_nesterov = nesterov and self._has_momentum
    super().__init__(hparams)

  def initialize(self, specs: Any) -> _State:
    state = collections.OrderedDict(self._hparams)
    if self._has_momentum:
      state['accumulator'] = vectors.zeros(specs)
    return state

  def next(self, state: _State, weights: Any, gradients: Any):
    if not self._has_momentum:
      # Keep slices, so that only the rows with a gradient are written.
      dense = tf.nest.map_structure(
          lambda g: None if isinstance(g, tf.IndexedSlices) else g, gradients
      )
      tff.learning.optimizers.check_weights_gradients_match(weights, dense)
      return state, vectors.descend(weights, gradients, state['learning_rate'])
    gradients = optimizer.dense_gradients(weights, gradients)
    accumulator = state['accumulator']
    optimizer.check_weights_state_match(weights, accumulator, 'accumulator')

    def accumulate(a, g):
      if g is None:
        return a
      return tf.cast(state['momentum'], a.dtype) * a + g

    def direct(a, g):
      # A weight without a gradient does not move, whatever its accumulator
      # holds.
      if g is None:
        return None
      return accumulate(a, g) if self.is_nesterov else a

    accumulator = tf.nest.map_structure(accumulate, accumulator, gradients)
    direction = tf.nest.map_structure(direct, accumulator, gradients)
    new_state = collections.OrderedDict(state, accumulator=accumulator)
    moved = vectors.descend(weights, direction, state['learning_rate'])
    return new_state, moved


@arguments.checked
def build_sgd(
    learning_rate: ranges.NotNegative = 0.1, momentum: ranges.ClosedShare = 0.0
) -> tff.learning.optimizers.Optimizer:
  """Builds stochastic gradient descent, optionally with momentum.

  ```
  u_k     = momentum * u_{k-1} + g_k            (u_{-1} = 0)
  x_{k+1} = x_k - learning_rate * u_k
  ```

  where `x` are the weights and `g_k` is the gradient of local step k, without
  dampening or Nesterov correction. The results equal those of
  `tff.learning.optimizers.build_sgdm`, which with momentum raises on float64
  and bfloat16 weights; this one computes in the weights' dtype.

  Without momentum, gradients that are `tf.IndexedSlices`, such as those of
  embeddings and of `tff_adaptive.layers.BagOfWordsDense`, update only their
  rows.

  On a client the accumulator `u` starts at zero in every round.

  Args:
    learning_rate: The step size, per step. The default is that of Delta-SGD's
      published code.
    momentum: The momentum coefficient. Delta-SGD's comparison uses 0.9. At 0,
      the default, there is no accumulator.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate` and, if above 0, `momentum`.

  Example:

    >>> optimizer = build_sgd(learning_rate=0.5)
    >>> state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
    >>> _, x = optimizer.next(state, tf.ones([2]), tf.constant([1.0, 2.0]))
    >>> x.numpy().tolist()
    [0.5, 0.0]

  References:
    McMahan et al., Communication-Efficient Learning of Deep Networks from
    Decentralized Data, AISTATS 2017, https://arxiv.org/abs/1602.05629,
    Algorithm 1 (the client's step).
  """
  return SGD(learning_rate, momentum)
