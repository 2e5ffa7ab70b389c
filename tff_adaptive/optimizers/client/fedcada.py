# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedCAda's client rule: Adam with an adjusted correction, shared moments."""

import collections
from collections.abc import Callable
from typing import Any, Literal

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_FIRST_MOMENT_KEY = 'first_moment'
_SECOND_MOMENT_KEY = 'second_moment'

TIMES = ('round', 'local_step', 'global_step')

# Maps beta to the power of t to the divisor of the moment.
CORRECTIONS: dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
    'option1': lambda power: 1.0 + power,
    'option2': lambda power: 1.0 + tf.square(power),
    'option3': lambda power: 1.0 + tf.sin(power),
    'option4': lambda power: 1.0 + tf.sqrt(power),
    'none': tf.ones_like,
    'adam': lambda power: 1.0 - power,
}


def correction(option: str, beta: Any, t: Any) -> tf.Tensor:
  """Returns c(beta, t), the divisor of a moment.

  Args:
    option: A name of `CORRECTIONS`.
    beta: The decay rate of the moment, a scalar.
    t: The time, from 1 on, a scalar.

  Returns:
    A scalar of the dtype of `beta`.
  """
  beta = tf.convert_to_tensor(beta)
  return CORRECTIONS[option](tf.pow(beta, tf.cast(t, beta.dtype)))


class _FedCAdaAdam(
    vector_optimizer.VectorOptimizer, federated_optimizer.FederatedOptimizer
):
  """FedCAda's client rule, see `build_fedcada_adam`."""

  name = 'FedCAda'
  client_weighting = tff.learning.ClientWeighting.UNIFORM
  moment_keys = (_FIRST_MOMENT_KEY, _SECOND_MOMENT_KEY)

  def __init__(
      self, hparams: dict[str, float], option: str, time: str, carry_state: bool
  ):
    super().__init__(hparams)
    self._option = option
    self._time = time
    self._carries_state = carry_state

  def initialize_rule(self, specs, dtype):
    return collections.OrderedDict(
        round_num=tf.zeros([], tf.int32),
        # A float, as it is averaged over clients.
        num_steps=tf.zeros([]),
    )

  def _divide_parts(self, state: Any) -> tuple[Any, Any]:
    """Returns the parts of the state that cross rounds: shared, and kept."""
    names: tuple[str, ...] = self.moment_keys
    if self._time == 'global_step':
      names += (vector_optimizer.NUM_STEPS_KEY,)
    parts = collections.OrderedDict((name, state[name]) for name in names)
    nothing: Any = collections.OrderedDict()
    return (nothing, parts) if self._carries_state else (parts, nothing)

  def initialize_shared(self, specs):
    return self._divide_parts(self.initialize(specs))[0]

  def initialize_kept(self, specs):
    return self._divide_parts(self.initialize(specs))[1]

  def start_round(self, state, shared, kept, round_num):
    state = super().start_round(state, shared, kept, round_num)
    state['round_num'] = round_num
    for key in (_SECOND_MOMENT_KEY, vector_optimizer.NUM_STEPS_KEY):
      state[key] = vectors.non_negative(state[key])
    return state

  def finish_round(self, state):
    return self._divide_parts(state)

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    t = state[vector_optimizer.NUM_STEPS_KEY]
    if self._time == 'round':
      t = state['round_num']
    # Dividing m by c_1 and v by c_2 is the same as multiplying the learning
    # rate by sqrt(c_2) / c_1 and epsilon by sqrt(c_2), which needs no pass over
    # the weights.
    c_1, c_2 = (
        correction(self._option, hparams[beta], t + 1)
        for beta in ('beta_1', 'beta_2')
    )
    root = tf.sqrt(c_2)
    corrected = dict(
        hparams,
        learning_rate=hparams['learning_rate'] * (root / c_1),
        epsilon=hparams['epsilon'] * root,
    )
    moments = {key: state[key] for key in self.moment_keys}
    return vectors.step_tensors(_step_tensor, moments, x, g, corrected)


def _step_tensor(moments, x, g, hparams):
  """Returns the new moments and weights of one tensor."""
  beta_1, beta_2 = hparams['beta_1'], hparams['beta_2']
  m = beta_1 * moments[_FIRST_MOMENT_KEY] + (1.0 - beta_1) * g
  v = beta_2 * moments[_SECOND_MOMENT_KEY] + (1.0 - beta_2) * tf.square(g)
  # 0 / (0 + 0) is 0: a coordinate that has had no gradient does not move.
  direction = tf.math.divide_no_nan(m, tf.sqrt(v) + hparams['epsilon'])
  moved = x - hparams['learning_rate'] * direction
  return {_FIRST_MOMENT_KEY: m, _SECOND_MOMENT_KEY: v}, moved


@arguments.checked
def build_fedcada_adam(
    learning_rate: ranges.NotNegative = 0.001,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.99,
    epsilon: ranges.NotNegative = 1e-8,
    *,
    option: Literal[
        'option1', 'option2', 'option3', 'option4', 'none', 'adam'
    ] = 'option1',
    time: Literal['round', 'local_step', 'global_step'] = 'round',
    carry_state: bool = False,
) -> federated_optimizer.FederatedOptimizer:
  """Builds FedCAda's client rule.

  A client starts the round with the moments that the server sends, 0 at first.
  With g the gradient of a local step, coordinate by coordinate:

  ```
  m = beta_1 m + (1 - beta_1) g
  v = beta_2 v + (1 - beta_2) g^2
  x = x - learning_rate * (m / c(beta_1, t))
                          / (sqrt(v / c(beta_2, t)) + epsilon)
  ```

  It sends m and v, uncorrected, with its model update, and the server averages
  them for the next round. c(beta, t) is 1 + beta^t (`'option1'`), 1 +
  (beta^t)^2 (`'option2'`), 1 + sin(beta^t) (`'option3'`), 1 + sqrt(beta^t)
  (`'option4'`), 1 (`'none'`) or Adam's 1 - beta^t (`'adam'`).

  Compared with `'none'`, a step is multiplied by sqrt(c(beta_2, t)) /
  c(beta_1, t). With option 1 and the defaults, this factor is 0.742 in the
  first round, above 1 from the tenth on, and at most 1.274; with `beta_1=0.1`
  it is never below 1.

  The moments triple the communication in both directions. They tell the server
  more about a client than the update alone: v is the size of its gradients,
  coordinate by coordinate.

  `build_fed_opt` weights clients equally unless told, as in Algorithm 2, also
  in the mean of the moments.

  Args:
    learning_rate: The step size. Default 0.001; the paper tunes it.
    beta_1: The decay rate of m. Default 0.9; section 4 takes the better of 0.1
      and 0.9.
    beta_2: The decay rate of v. Default 0.99, section 4.
    epsilon: Added to the root. Default 1e-8; the paper gives none.
    option: The form of c, the divisor of the moments. Default `'option1'`, the
      paper's proposal.
    time: The meaning of t: the number of the round, from 1 on, without rounds
      in which no client was healthy (`'round'`, the default); the number of the
      step in the round (`'local_step'`); or the latter plus the mean number of
      steps of all earlier rounds, which is then sent with the moments
      (`'global_step'`). The paper never increments t; its text ("as federated
      learning progresses") and Figure 3 suggest the round.
    carry_state: Whether clients keep their own moments until they participate
      again, and send none: the other reading of Algorithm 1, for clients that
      return. Default False.

  Returns:
    A `FederatedOptimizer` with the hyperparameters `learning_rate`, `beta_1`,
    `beta_2` and `epsilon`. It shares (or keeps) `first_moment` and
    `second_moment`, with the structure of the weights, in float32 or float64,
    and, with `'global_step'`, `num_steps`, a float32 scalar.

  Example:

    >>> rule = build_fedcada_adam(learning_rate=0.1, option='none', beta_1=0.0)
    >>> state = rule.initialize(tf.TensorSpec([], tf.float32))
    >>> loss = tf.constant(4.5)
    >>> _, x = rule.next(
    ...     state, tf.constant(2.0), tf.constant(3.0), value=loss)
    >>> round(float(x), 3)  # 2 - 0.1 * 3 / sqrt(0.01 * 9)
    1.0

  References:
    Zhou et al., FedCAda: Adaptive Client-Side Optimization for Accelerated and
    Stable Federated Learning, 2024, https://arxiv.org/abs/2405.11811, Algorithm
    2. Deviation: Algorithm 2 takes the gradient at one point and steps from the
    previous one; this rule takes an ordinary step.
  """
  hparams = dict(
      learning_rate=learning_rate, beta_1=beta_1, beta_2=beta_2, epsilon=epsilon
  )
  return _FedCAdaAdam(hparams, option, time, carry_state)
