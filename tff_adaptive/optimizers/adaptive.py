# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The common step of Adagrad, Adam and Yogi, on clients and on the server.

All of them divide a first moment, an average of the gradients, by the root of a
second moment, an accumulator of their squares, coordinate by coordinate. They
differ in the update of the second moment and its initial value, in the bias
correction, and in whether the root is of the second moment or of its maximum.
"""

import collections
from collections.abc import Callable
import dataclasses
import functools
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors

_MOMENTUM_KEY = 'accumulator'
_SECOND_MOMENT_KEY = 'preconditioner'
_MAX_SECOND_MOMENT_KEY = 'max_preconditioner'

_State = collections.OrderedDict[str, Any]

# Maps (second moment, square, beta_2) of a tensor to the new second moment.
Accumulate = Callable[[tf.Tensor, tf.Tensor, Optional[tf.Tensor]], tf.Tensor]


def accumulate_sum(v: tf.Tensor, square: tf.Tensor, beta_2: Any) -> tf.Tensor:
  """Returns `v + square`, as in Adagrad."""
  del beta_2  # Unused.
  return v + square


def accumulate_average(
    v: tf.Tensor, square: tf.Tensor, beta_2: tf.Tensor
) -> tf.Tensor:
  """Returns `beta_2 v + (1 - beta_2) square`, as in Adam."""
  return beta_2 * v + (1.0 - beta_2) * square


def accumulate_signed(
    v: tf.Tensor, square: tf.Tensor, beta_2: tf.Tensor
) -> tf.Tensor:
  """Returns `v - (1 - beta_2) square sign(v - square)`, as in Yogi."""
  return v - (1.0 - beta_2) * square * tf.sign(v - square)


# Not an attrs class, which `tf.nest` would flatten when TFF passes it on.
@dataclasses.dataclass(eq=False)
class Adaptive(optimizer.HparamsInState, tff.learning.optimizers.Optimizer):
  """An optimizer of the family of Adagrad, Adam and Yogi.

  Its state holds the hyperparameters; `num_steps` (int32) with bias correction;
  `accumulator`, the first moment, if `beta_1` is above 0; `preconditioner`, the
  second moment; and `max_preconditioner`, its maximum, if `keeps_maximum`. The
  last three have the weights' structure.

  Attributes:
    name: The rule's name, for messages.
    accumulate: The update of the second moment by a square.
    learning_rate: The step size, not negative.
    beta_1: The decay rate of the first moment, in [0, 1); at 0 the gradient
      takes its place.
    beta_2: The decay rate of the second moment, in [0, 1), or `None` for a rule
      without decay.
    epsilon: Added to the root in the denominator, not negative; see also
      `epsilon_is_floor`.
    initial_second_moment: The initial second moment, not negative; `None` for
      the square of `epsilon`.
    bias_correction: Whether to divide both moments by one minus their decay
      rate to the power of the number of steps.
    second_moment_of: Whether to accumulate the square of the gradient
      (`'update'`) or of the first moment (`'momentum'`).
    keeps_maximum: Whether the root is of the largest second moment so far, as
      in AMSGrad, which starts at 0.
    epsilon_is_floor: Whether `epsilon` is a lower bound under the root and is
      not added to the root.
    epsilon_hat: Whether the bias correction scales the learning rate alone, and
      `epsilon` is added to the root of the uncorrected second moment.
  """

  name: str
  accumulate: Accumulate
  learning_rate: Any
  beta_1: Any
  beta_2: Any
  epsilon: Any
  initial_second_moment: Any
  bias_correction: bool = False
  second_moment_of: str = 'update'
  keeps_maximum: bool = False
  epsilon_is_floor: bool = False
  epsilon_hat: bool = False

  def __post_init__(self):
    for key in ('learning_rate', 'epsilon'):
      optimizer.check_rate(key, getattr(self, key), self.name)
    if self.initial_second_moment is None:
      self.initial_second_moment = self.epsilon**2
    optimizer.check_rate(
        'initial_second_moment', self.initial_second_moment, self.name
    )
    for key in ('beta_1', 'beta_2'):
      if getattr(self, key) is not None:
        optimizer.check_share(key, getattr(self, key), self.name)
    optimizer.check_choice(
        'second_moment_of',
        self.second_moment_of,
        ('update', 'momentum'),
        self.name,
    )
    if self.epsilon_hat and not self.bias_correction:
      raise ValueError(
          f'{self.name} `epsilon_hat` is about the bias correction: add '
          '`bias_correction=True`.'
      )
    self._has_momentum = tf.is_symbolic_tensor(self.beta_1) or self.beta_1 > 0.0
    hparams = collections.OrderedDict(learning_rate=self.learning_rate)
    # The parts of the state with one tensor per weight.
    self._moment_keys = [_SECOND_MOMENT_KEY]
    if self._has_momentum:
      hparams['beta_1'] = self.beta_1
      self._moment_keys.insert(0, _MOMENTUM_KEY)
    if self.beta_2 is not None:
      hparams['beta_2'] = self.beta_2
    if self.keeps_maximum:
      self._moment_keys.append(_MAX_SECOND_MOMENT_KEY)
    super().__init__({**hparams, 'epsilon': self.epsilon})

  def initialize(self, specs: Any) -> _State:
    state = collections.OrderedDict(self._hparams)
    if self.bias_correction:
      state['num_steps'] = tf.zeros([], tf.int32)
    starts = {_SECOND_MOMENT_KEY: self.initial_second_moment}
    for key in self._moment_keys:
      state[key] = vectors.fill_moments(specs, starts.get(key, 0.0))
    return state

  def next(self, state: _State, weights: Any, gradients: Any):
    gradients = optimizer.dense_gradients(weights, gradients)
    optimizer.check_moments(weights, state, self._moment_keys)
    new_state = collections.OrderedDict(state)
    if self.bias_correction:
      new_state['num_steps'] = state['num_steps'] + 1
    new_weights, *new_moments = vectors.step_tensors(
        self._step_tensor,
        functools.partial(self._coefficients, new_state),
        weights,
        gradients,
        [state[key] for key in self._moment_keys],
    )
    new_state.update(zip(self._moment_keys, new_moments))
    return new_state, new_weights

  def _coefficients(
      self, state: _State, dtype: tf.DType
  ) -> dict[str, tf.Tensor]:
    """Returns the hyperparameters of a step, with the bias corrections.

    Dividing the moments m and v by c_1 and c_2 is the same as multiplying the
    learning rate by sqrt(c_2) / c_1 and epsilon by sqrt(c_2), which needs no
    pass over the weights. If epsilon is a floor or an epsilon hat, it applies
    to the uncorrected v and is not multiplied.
    """
    hparams = {key: tf.cast(state[key], dtype) for key in self._hparams}
    if not self.bias_correction:
      return hparams
    num_steps = tf.cast(state['num_steps'], dtype)
    if self._has_momentum:
      hparams['learning_rate'] /= 1.0 - tf.pow(hparams['beta_1'], num_steps)
    if self.beta_2 is not None:
      root = tf.sqrt(1.0 - tf.pow(hparams['beta_2'], num_steps))
      hparams['learning_rate'] *= root
      if not (self.epsilon_is_floor or self.epsilon_hat):
        hparams['epsilon'] *= root
    return hparams

  def _step_tensor(
      self,
      hparams: dict[str, tf.Tensor],
      w: tf.Tensor,
      g: tf.Tensor,
      *moments: tf.Tensor,
  ) -> tuple[tf.Tensor, ...]:
    """Returns the new weights and moments of one tensor."""
    held = dict(zip(self._moment_keys, moments))
    # Without a first moment, the gradient takes its place.
    new_m = g
    if self._has_momentum:
      beta_1 = hparams['beta_1']
      new_m = beta_1 * held[_MOMENTUM_KEY] + (1.0 - beta_1) * g
      held[_MOMENTUM_KEY] = new_m
    squared = new_m if self.second_moment_of == 'momentum' else g
    new_v = held[_SECOND_MOMENT_KEY] = self.accumulate(
        held[_SECOND_MOMENT_KEY], tf.square(squared), hparams.get('beta_2')
    )
    if self.epsilon_is_floor:
      new_v = tf.maximum(new_v, hparams['epsilon'])
    if self.keeps_maximum:
      new_v = tf.maximum(new_v, held[_MAX_SECOND_MOMENT_KEY])
      held[_MAX_SECOND_MOMENT_KEY] = new_v
    denominator = tf.sqrt(new_v)
    if not self.epsilon_is_floor:
      denominator += hparams['epsilon']
    # 0 / (0 + 0) is 0: a coordinate that has had no gradient does not move.
    direction = tf.math.divide_no_nan(new_m, denominator)
    return w - hparams['learning_rate'] * direction, *held.values()
