# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""AdaAlter's client rule: Adagrad with an averaged, frozen accumulator."""

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors

_FROZEN_KEY = 'second_moment'
_ACCUMULATOR_KEY = 'accumulator'


class _AdaAlter(
    vector_optimizer.VectorOptimizer, federated_optimizer.FederatedOptimizer
):
  """AdaAlter's client rule, see `build_adaalter`."""

  name = 'AdaAlter'
  client_weighting = tff.learning.ClientWeighting.UNIFORM
  moment_keys = (_FROZEN_KEY, _ACCUMULATOR_KEY)

  def __init__(self, hparams: dict[str, float], initial_second_moment: float):
    super().__init__(hparams)
    self._initial_second_moment = initial_second_moment

  def initialize_shared(self, specs):
    moment = vectors.fill_moments(specs, self._initial_second_moment)
    return collections.OrderedDict([(_FROZEN_KEY, moment)])

  def initialize(self, specs):
    return self._freeze(
        super().initialize(specs), self.initialize_shared(specs)
    )

  def start_round(self, state, shared, kept, round_num):
    del kept, round_num  # Unused.
    return self._freeze(state, vectors.non_negative(shared))

  def _freeze(self, state: Any, shared: Any) -> Any:
    """Returns the state before the first step of a round."""
    return collections.OrderedDict(
        state, **dict.fromkeys(self.moment_keys, shared[_FROZEN_KEY])
    )

  def finish_round(self, state):
    sent = collections.OrderedDict([(_FROZEN_KEY, state[_ACCUMULATOR_KEY])])
    return sent, collections.OrderedDict()

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    num_steps = state[vector_optimizer.NUM_STEPS_KEY] + 1
    epsilon = hparams['epsilon']
    added = tf.cast(num_steps, epsilon.dtype) * tf.square(epsilon)
    moments = {key: state[key] for key in self.moment_keys}
    return vectors.step_tensors(
        _step_tensor, moments, x, g, dict(hparams, added=added)
    )


def _step_tensor(moments, x, g, hparams):
  """Returns the new accumulator and weights of one tensor."""
  root = tf.sqrt(moments[_FROZEN_KEY] + hparams['added'])
  moved = x - hparams['learning_rate'] * tf.math.divide_no_nan(g, root)
  return {_ACCUMULATOR_KEY: moments[_ACCUMULATOR_KEY] + tf.square(g)}, moved


@arguments.checked
def build_adaalter(
    learning_rate: ranges.NotNegative = 0.1,
    epsilon: ranges.NotNegative = 1.0,
    *,
    initial_second_moment: ranges.NotNegative = 1.0,
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
    learning_rate: The step size. Default 0.1, ours.
    epsilon: Stands for the squares that B lacks during the round. Default 1.0,
      as in the paper.
    initial_second_moment: b_0^2, the initial B. Default 1.0, as in the paper.

  Returns:
    A `FederatedOptimizer` with the hyperparameters `learning_rate` and
    `epsilon`. It shares `second_moment`, with the structure of the weights, in
    float32 or float64.

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
  hparams = dict(learning_rate=learning_rate, epsilon=epsilon)
  return _AdaAlter(hparams, initial_second_moment)
