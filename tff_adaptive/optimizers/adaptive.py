# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The common step of Adagrad, Adam and Yogi, on clients and on the server.

All of them divide a first moment, an average of the gradients, by the root of a
second moment, an accumulator of their squares, coordinate by coordinate. They
differ in the update of the second moment and its initial value, in the bias
correction, and in whether the root is of the second moment or of its maximum.
"""

from collections.abc import Callable
import dataclasses
from typing import Any, Optional

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_MOMENTUM_KEY = 'accumulator'
_SECOND_MOMENT_KEY = 'preconditioner'
_MAX_SECOND_MOMENT_KEY = 'max_preconditioner'

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
@dataclasses.dataclass(eq=False, kw_only=True)
class Adaptive(vector_optimizer.VectorOptimizer):
  """An optimizer of the family of Adagrad, Adam and Yogi.

  Its state holds the hyperparameters; `num_steps` (int32); `accumulator`, the
  first moment, if `beta_1` is above 0; `preconditioner`, the second moment; and
  `max_preconditioner`, its maximum, if `keeps_maximum`. The last three have the
  weights' structure.

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

  step_size_key = 'learning_rate'

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
    self._has_momentum = (
        tf.is_symbolic_tensor(self.beta_1) or self.beta_1 != 0.0
    )
    super().__init__(
        dict(
            learning_rate=self.learning_rate,
            beta_1=self.beta_1 if self._has_momentum else None,
            beta_2=self.beta_2,
            epsilon=self.epsilon,
        )
    )
    if self.initial_second_moment is None:
      self.initial_second_moment = self.epsilon**2
      arguments.check(
          'epsilon, squared,',
          self.initial_second_moment,
          self.name,
          ranges.NotNegative,
      )
    if self.epsilon_hat and not self.bias_correction:
      raise ValueError(
          f'{self.name} `epsilon_hat` is about the bias correction: add '
          '`bias_correction=True`.'
      )
    self.moment_keys = (
        *([_MOMENTUM_KEY] if self._has_momentum else []),
        _SECOND_MOMENT_KEY,
        *([_MAX_SECOND_MOMENT_KEY] if self.keeps_maximum else []),
    )

  def initialize(self, specs):
    state = super().initialize(specs)
    state[_SECOND_MOMENT_KEY] = vectors.fill_moments(
        specs, self.initial_second_moment
    )
    return state

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    moments = {key: state[key] for key in self.moment_keys}
    return vectors.step_tensors(
        self._step_tensor, moments, x, g, self._correct_bias(state, hparams)
    )

  def _correct_bias(self, state, hparams):
    """Returns the hyperparameters of a step, with the bias corrections.

    Dividing the moments m and v by c_1 and c_2 is the same as multiplying the
    learning rate by sqrt(c_2) / c_1 and epsilon by sqrt(c_2), which needs no
    pass over the weights. If epsilon is a floor or an epsilon hat, it applies
    to the uncorrected v and is not multiplied.
    """
    if not self.bias_correction:
      return hparams
    corrected = dict(hparams)
    rate = hparams['learning_rate']
    num_steps = tf.cast(state[vector_optimizer.NUM_STEPS_KEY] + 1, rate.dtype)
    if self._has_momentum:
      rate /= 1.0 - tf.pow(hparams['beta_1'], num_steps)
    if self.beta_2 is not None:
      root = tf.sqrt(1.0 - tf.pow(hparams['beta_2'], num_steps))
      rate *= root
      if not (self.epsilon_is_floor or self.epsilon_hat):
        corrected['epsilon'] *= root
    corrected['learning_rate'] = rate
    return corrected

  def _step_tensor(self, moments, x, g, hparams):
    """Returns the new moments and weights of one tensor."""
    held = dict(moments)
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
    return held, x - hparams['learning_rate'] * direction
