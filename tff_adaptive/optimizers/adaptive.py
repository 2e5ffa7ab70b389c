# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The common step of Adagrad, Adam and Yogi, on clients and on the server.

All of them divide an average of the gradients by the root of an accumulator of
their squares, coordinate by coordinate. They differ in how the accumulator
takes in a square, where it starts, whether the start is corrected for, and
whether the root is of the accumulator or of its maximum so far.
"""

import collections
from collections.abc import Callable
import functools
from typing import Any, Optional

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors

_LEARNING_RATE_KEY = tff.learning.optimizers.LEARNING_RATE_KEY
_BETA_1_KEY = 'beta_1'
_BETA_2_KEY = 'beta_2'
_EPSILON_KEY = 'epsilon'
_NUM_STEPS_KEY = 'num_steps'
MOMENTUM_KEY = 'accumulator'
SECOND_MOMENT_KEY = 'preconditioner'
MAX_SECOND_MOMENT_KEY = 'max_preconditioner'

UPDATE = 'update'
MOMENTUM = 'momentum'

State = collections.OrderedDict[str, Any]
Hparams = collections.OrderedDict[str, Any]

# (accumulator, square, beta_2) to the new accumulator, of one tensor.
Accumulate = Callable[[tf.Tensor, tf.Tensor, Optional[tf.Tensor]], tf.Tensor]


def accumulate_sum(v: tf.Tensor, square: tf.Tensor, beta_2: Any) -> tf.Tensor:
  """Adagrad: `v + square`."""
  del beta_2  # Nothing is forgotten.
  return v + square


def accumulate_average(
    v: tf.Tensor, square: tf.Tensor, beta_2: tf.Tensor
) -> tf.Tensor:
  """Adam: `beta_2 v + (1 - beta_2) square`."""
  return beta_2 * v + (1.0 - beta_2) * square


def accumulate_signed(
    v: tf.Tensor, square: tf.Tensor, beta_2: tf.Tensor
) -> tf.Tensor:
  """Yogi: `v - (1 - beta_2) square sign(v - square)`."""
  return v - (1.0 - beta_2) * square * tf.sign(v - square)


@attrs.frozen(kw_only=True)
class Rule:
  """What tells one adaptive rule from another.

  Attributes:
    name: The rule's name, for messages.
    accumulate: How the accumulator takes in a square.
    learning_rate: The step size, not negative.
    beta_1: The share of the average of gradients that is kept, in [0, 1); at 0
      no average is held.
    beta_2: The share of the accumulator that is kept, in [0, 1), or `None` for
      a rule that forgets nothing.
    epsilon: Added to the root in the denominator, not negative; see also
      `epsilon_is_floor`.
    initial_second_moment: The start of the accumulator, not negative.
    bias_correction: Whether both moments are divided by one minus their share
      to the power of the number of steps.
    second_moment_of: Whether the accumulator takes in the square of the
      gradient (`'update'`) or of the average of gradients (`'momentum'`).
    keeps_maximum: Whether the root is of the largest value that the accumulator
      has had, as in AMSGrad; that starts at 0.
    epsilon_is_floor: Whether `epsilon` is the least value of what the root is
      taken of, and is not added to the root.
  """

  name: str
  accumulate: Accumulate
  learning_rate: Any
  beta_1: Any
  beta_2: Any
  epsilon: Any
  initial_second_moment: float
  bias_correction: bool
  second_moment_of: str = UPDATE
  keeps_maximum: bool = False
  epsilon_is_floor: bool = False

  def __attrs_post_init__(self):
    optimizer.check_rate('learning_rate', self.learning_rate, self.name)
    optimizer.check_rate('epsilon', self.epsilon, self.name)
    optimizer.check_rate(
        'initial_second_moment', self.initial_second_moment, self.name
    )
    for key in (_BETA_1_KEY, _BETA_2_KEY):
      if getattr(self, key) is not None:
        optimizer.check_share(key, getattr(self, key), self.name)
    if self.second_moment_of not in (UPDATE, MOMENTUM):
      raise ValueError(
          f"{self.name} `second_moment_of` must be '{UPDATE}' or '{MOMENTUM}', "
          f'found {self.second_moment_of!r}.'
      )

  @property
  def has_momentum(self) -> bool:
    return tf.is_symbolic_tensor(self.beta_1) or self.beta_1 > 0.0

  def hparams(self) -> Hparams:
    """The hyperparameters that the rule has, by name."""
    return collections.OrderedDict(
        (key, getattr(self, key)) for key in self.hparams_keys
    )

  @property
  def hparams_keys(self) -> list[str]:
    keys = [_LEARNING_RATE_KEY]
    if self.has_momentum:
      keys.append(_BETA_1_KEY)
    if self.beta_2 is not None:
      keys.append(_BETA_2_KEY)
    return keys + [_EPSILON_KEY]

  @property
  def moment_keys(self) -> list[str]:
    """The parts of the state that have one tensor a weight."""
    keys = [MOMENTUM_KEY] if self.has_momentum else []
    keys.append(SECOND_MOMENT_KEY)
    return keys + [MAX_SECOND_MOMENT_KEY] * self.keeps_maximum


class _Adaptive(optimizer.HparamsInState, tff.learning.optimizers.Optimizer):
  """An adaptive rule, see the builders."""

  def __init__(self, rule: Rule):
    super().__init__(rule.hparams())
    self._rule = rule

  def initialize(self, specs: Any) -> State:
    rule = self._rule
    state = collections.OrderedDict(self._hparams)
    if rule.bias_correction:
      state[_NUM_STEPS_KEY] = tf.zeros([], tf.int32)
    starts = {SECOND_MOMENT_KEY: rule.initial_second_moment}
    for key in rule.moment_keys:
      state[key] = vectors.fill_moments(specs, starts.get(key, 0.0))
    return state

  def next(
      self, state: State, weights: Any, gradients: Any
  ) -> tuple[State, Any]:
    gradients = optimizer.dense_gradients(weights, gradients)
    optimizer.check_moments(weights, state, self._rule.moment_keys)
    new_state = collections.OrderedDict(state)
    if self._rule.bias_correction:
      new_state[_NUM_STEPS_KEY] = state[_NUM_STEPS_KEY] + 1

    new_weights, *new_moments = vectors.step_tensors(
        self._step_tensor,
        functools.partial(self._coefficients, new_state),
        weights,
        gradients,
        [state[key] for key in self._rule.moment_keys],
    )
    new_state.update(zip(self._rule.moment_keys, new_moments))
    return new_state, new_weights

  def _coefficients(
      self, state: State, dtype: tf.DType
  ) -> dict[str, tf.Tensor]:
    """The hyperparameters of a step, with the corrections of the start.

    Dividing the moments m and v by c_1 and c_2 is the same as multiplying the
    learning rate by sqrt(c_2) / c_1 and epsilon by sqrt(c_2): no pass over the
    weights. As a floor, epsilon is below v before it is corrected.
    """
    rule = self._rule
    hparams = {key: tf.cast(state[key], dtype) for key in rule.hparams_keys}
    if not rule.bias_correction:
      return hparams
    num_steps = tf.cast(state[_NUM_STEPS_KEY], dtype)
    if rule.has_momentum:
      hparams[_LEARNING_RATE_KEY] /= 1.0 - tf.pow(
          hparams[_BETA_1_KEY], num_steps
      )
    if rule.beta_2 is not None:
      root = tf.sqrt(1.0 - tf.pow(hparams[_BETA_2_KEY], num_steps))
      hparams[_LEARNING_RATE_KEY] *= root
      if not rule.epsilon_is_floor:
        hparams[_EPSILON_KEY] *= root
    return hparams

  def _step_tensor(
      self,
      hparams: dict[str, tf.Tensor],
      w: tf.Tensor,
      g: tf.Tensor,
      *moments: tf.Tensor,
  ) -> tuple[tf.Tensor, ...]:
    """The new weights and moments of one tensor."""
    rule = self._rule
    held = dict(zip(rule.moment_keys, moments))
    # Without an average of gradients, the gradient takes its place.
    new_m = g
    if rule.has_momentum:
      beta_1 = hparams[_BETA_1_KEY]
      new_m = held[MOMENTUM_KEY] = (
          beta_1 * held[MOMENTUM_KEY] + (1.0 - beta_1) * g
      )
    squared = new_m if rule.second_moment_of == MOMENTUM else g
    new_v = held[SECOND_MOMENT_KEY] = rule.accumulate(
        held[SECOND_MOMENT_KEY], tf.square(squared), hparams.get(_BETA_2_KEY)
    )
    if rule.epsilon_is_floor:
      new_v = tf.maximum(new_v, hparams[_EPSILON_KEY])
    if rule.keeps_maximum:
      new_v = tf.maximum(new_v, held[MAX_SECOND_MOMENT_KEY])
      held[MAX_SECOND_MOMENT_KEY] = new_v
    denominator = tf.sqrt(new_v)
    if not rule.epsilon_is_floor:
      denominator += hparams[_EPSILON_KEY]
    # A coordinate without any gradient yet does not move: 0 / (0 + 0) is 0.
    direction = tf.math.divide_no_nan(new_m, denominator)
    return w - hparams[_LEARNING_RATE_KEY] * direction, *held.values()


def build_adaptive(rule: Rule) -> tff.learning.optimizers.Optimizer:
  """Builds the optimizer of an adaptive rule.

  Args:
    rule: The rule.

  Returns:
    A `tff.learning.optimizers.Optimizer`. Its state holds the hyperparameters,
    `num_steps` (int32) if the start is corrected for, `accumulator`, the
    average of gradients, if `beta_1` is above 0, `preconditioner`, the
    accumulator of squares, and `max_preconditioner`, its maximum, if the rule
    keeps that; the last three have the weights' structure.
  """
  return _Adaptive(rule)
