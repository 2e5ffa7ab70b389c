# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""AdaAlter's client rule: Adagrad with an averaged, frozen accumulator."""

import collections
import functools
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors

_MOMENT_KEYS = ('second_moment', 'accumulator')

_State = collections.OrderedDict[str, Any]


class _AdaAlter(
    optimizer.HparamsInState, federated_optimizer.FederatedOptimizer
):
  """AdaAlter's client rule, see `build_adaalter`."""

  client_weighting = tff.learning.ClientWeighting.UNIFORM

  def __init__(self, hparams: _State, initial_second_moment: float):
    for name, value in hparams.items():
      optimizer.check_rate(name, value, 'AdaAlter')
    optimizer.check_rate(
        'initial_second_moment', initial_second_moment, 'AdaAlter'
    )
    super().__init__(hparams)
    self._initial_second_moment = initial_second_moment

  def initialize_shared(self, specs):
    moment = vectors.fill_moments(specs, self._initial_second_moment)
    return collections.OrderedDict(second_moment=moment)

  def initialize(self, specs):
    moment = vectors.fill_moments(specs, self._initial_second_moment)
    return collections.OrderedDict(
        self._hparams,
        num_steps=tf.zeros([], tf.int32),
        **dict.fromkeys(_MOMENT_KEYS, moment),
    )

  def start_round(self, state, shared, kept, round_num):
    del kept, round_num  # Unused.
    moment = vectors.non_negative(shared['second_moment'])
    return collections.OrderedDict(state, **dict.fromkeys(_MOMENT_KEYS, moment))

  def finish_round(self, state):
    sent = collections.OrderedDict(second_moment=state['accumulator'])
    return sent, collections.OrderedDict()

  def next(
      self, state, weights, gradients, *, value=None, value_and_grad_fn=None
  ):
    del value_and_grad_fn  # Unused.
    federated_optimizer.check_caller(value, 'AdaAlter')
    gradients = optimizer.dense_gradients(weights, gradients)
    optimizer.check_moments(weights, state, _MOMENT_KEYS)
    new_state = collections.OrderedDict(state, num_steps=state['num_steps'] + 1)
    new_weights, new_state['accumulator'] = vectors.step_tensors(
        _step_tensor,
        functools.partial(_coefficients, new_state),
        weights,
        gradients,
        [state['accumulator']],
        [state['second_moment']],
    )
    return new_state, new_weights


def _coefficients(state: _State, dtype: tf.DType) -> tuple[tf.Tensor, ...]:
  """Returns the learning rate and the summand of the frozen accumulator."""
  learning_rate, epsilon, num_steps = (
      tf.cast(state[key], dtype)
      for key in ('learning_rate', 'epsilon', 'num_steps')
  )
  return learning_rate, num_steps * tf.square(epsilon)


def _step_tensor(
    coefficients: tuple[tf.Tensor, ...],
    w: tf.Tensor,
    g: tf.Tensor,
    accumulator: tf.Tensor,
    frozen: tf.Tensor,
) -> tuple[tf.Tensor, ...]:
  """Returns the new weights and accumulator of one tensor."""
  learning_rate, added = coefficients
  direction = tf.math.divide_no_nan(g, tf.sqrt(frozen + added))
  return w - learning_rate * direction, accumulator + tf.square(g)


def build_adaalter(
    learning_rate: float = 0.1,
    epsilon: float = 1.0,
    *,
    initial_second_moment: float = 1.0,
) -> federated_optimizer.FederatedOptimizer:
  """Builds AdaAlter's client rule.

  A client starts the round with the accumulator B that the server sends, and
  A = B. In local step k = 0, 1, ..., with gradient g, coordinate by coordinate:

  ```
  x = x - learning_rate * g / sqrt(B + (k + 1) epsilon^2)
  A = A + g^2
  ```

  B is frozen in the round. The client sends A with its model update, and the
  server averages A to the next round's B. This doubles the communication in
  both directions, and A tells the server the size of a client's gradients,
  coordinate by coordinate.

  AdaAlter is the special case of FedOpt with a client optimizer that uses
  statistics of all clients and server SGD with rate 1, see Reddi et al.,
  sections 1.1 and 2.

  `build_fed_opt` weights clients equally unless told, as in the paper.

  Args:
    learning_rate: The step size, not negative. Default 0.1, ours.
    epsilon: Stands for the squares that B lacks during the round, not negative.
      Default 1.0, as in the paper.
    initial_second_moment: b_0^2, the initial B, not negative. Default 1.0, as
      in the paper.

  Returns:
    A `FederatedOptimizer` with the hyperparameters `learning_rate` and
    `epsilon`. It shares `second_moment`, with the structure of the weights, in
    float32 or float64.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If an argument is negative or not finite.

  Example:

    >>> rule = build_adaalter(learning_rate=1.0, initial_second_moment=3.0)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> one = tf.constant(1.0)
    >>> _, x = rule.next(state, one, one, value=one)
    >>> float(x)  # 1 - 1 / sqrt(3 + 1)
    0.5

  References:
    Xie, Koyejo, Gupta, Lin, Local AdaAlter: Communication-Efficient Stochastic
    Gradient Descent with Adaptive Learning Rates, 2019,
    https://arxiv.org/abs/1911.09030, Algorithm 4.
  """
  hparams = collections.OrderedDict(
      learning_rate=learning_rate, epsilon=epsilon
  )
  return _AdaAlter(hparams, initial_second_moment)
