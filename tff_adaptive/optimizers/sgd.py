# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""SGD with and without momentum, and its server forms FedAvg and FedAvgM."""

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors

_State = collections.OrderedDict[str, Any]


class _SGD(optimizer.HparamsInState, tff.learning.optimizers.Optimizer):
  """Stochastic gradient descent, see `build_sgd`."""

  def __init__(self, learning_rate: Any, momentum: Any):
    optimizer.check_rate('learning_rate', learning_rate, 'SGD')
    optimizer.check_closed_share('momentum', momentum, 'SGD')
    hparams = {'learning_rate': learning_rate}
    # Without momentum there is neither an accumulator nor the hyperparameter.
    self._has_momentum = tf.is_symbolic_tensor(momentum) or momentum > 0.0
    if self._has_momentum:
      hparams['momentum'] = momentum
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

    accumulator = tf.nest.map_structure(accumulate, accumulator, gradients)
    # A weight without a gradient does not move, whatever its accumulator holds.
    direction = tf.nest.map_structure(
        lambda a, g: None if g is None else a, accumulator, gradients
    )
    new_state = collections.OrderedDict(state, accumulator=accumulator)
    moved = vectors.descend(weights, direction, state['learning_rate'])
    return new_state, moved


def is_sgd(value: Any) -> bool:
  """Returns whether an optimizer was built by `build_sgd`."""
  return isinstance(value, _SGD)


def steps_worth(
    state: _State, num_steps: tf.Tensor, proximal_mu: float
) -> tf.Tensor:
  """Returns the number of plain SGD steps that a client's steps amount to.

  This is the distance that SGD moves when all gradients are 1, divided by its
  learning rate. Momentum makes it larger than `num_steps`, a proximal term
  smaller.

  Args:
    state: A state of `build_sgd`.
    num_steps: The number of steps.
    proximal_mu: The strength of the proximal term in the loss.

  Returns:
    A float32 scalar.
  """
  momentum = tf.cast(state.get('momentum', 0.0), tf.float32)
  pull = tf.cast(state['learning_rate'], tf.float32) * proximal_mu

  def step(k, velocity, total):
    velocity = momentum * velocity + 1.0 - pull * total
    return k + 1, velocity, total + velocity

  zero = tf.zeros([])
  first = tf.zeros_like(num_steps)
  return tf.while_loop(lambda k, *_: k < num_steps, step, (first, zero, zero))[
      2
  ]


def build_sgd(
    learning_rate: float = 0.1, momentum: float = 0.0
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
    learning_rate: The step size, per step, not negative. The default is that of
      Delta-SGD's published code.
    momentum: The momentum coefficient, in [0, 1]. Delta-SGD's comparison uses
      0.9. At 0, the default, there is no accumulator.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate` and, if above 0, `momentum`.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If an argument is out of its range.

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
  return _SGD(learning_rate, momentum)


def build_fedavg(
    learning_rate: float = 1.0,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedAvg, with any server learning rate.

  ```
  x_{t+1} = x_t + learning_rate * D_t
  ```

  where `x_t` is the server's model before round t and `D_t` is the weighted
  mean of the clients' updates. TFF passes `-D_t` to a server optimizer as the
  gradient, so this is plain gradient descent.

  Args:
    learning_rate: The server's step size, per round, not negative. At 1, the
      default and the value of McMahan et al., the new model is the weighted
      mean of the clients' models.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameter
    `learning_rate` and no other state.

  Raises:
    TypeError: If `learning_rate` is not a number.
    ValueError: If `learning_rate` is negative or not finite.

  Example:

    >>> optimizer = build_fedavg(learning_rate=1.0)
    >>> state = optimizer.initialize(tf.TensorSpec([1], tf.float32))
    >>> _, x = optimizer.next(state, tf.ones([1]), tf.constant([0.25]))
    >>> x.numpy().tolist()
    [0.75]

  References:
    McMahan et al., Communication-Efficient Learning of Deep Networks from
    Decentralized Data, AISTATS 2017, https://arxiv.org/abs/1602.05629,
    Algorithm 1; Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Algorithm 1 with `ServerOpt` = SGD.
  """
  return build_sgd(learning_rate)


def build_fedavgm(
    learning_rate: float = 1.0, momentum: float = 0.9
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedAvgM.

  ```
  u_t     = momentum * u_{t-1} + D_t            (u_{-1} = 0)
  x_{t+1} = x_t + learning_rate * u_t
  ```

  where `D_t` is the weighted mean of the clients' updates. TFF passes `-D_t` to
  a server optimizer, so the state's `accumulator` is `-u_t`.

  Args:
    learning_rate: The server's step size, per round, not negative. Default 1.
    momentum: The momentum coefficient, in [0, 1]. Default 0.9, section 4 of
      Reddi et al.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate` and, if above 0, `momentum`.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If an argument is out of its range.

  Example:

    >>> optimizer = build_fedavgm()
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(0.0)
    >>> for _ in range(2):
    ...   state, x = optimizer.next(state, x, tf.constant(-1.0))
    >>> round(float(x), 4)  # 1, then 1.9 more.
    2.9

  References:
    Hsu, Qi, Brown, Measuring the Effects of Non-Identical Data Distribution
    for Federated Visual Classification, 2019, https://arxiv.org/abs/1909.06335,
    section 4.3; Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, section 4.
  """
  return build_sgd(learning_rate, momentum)
