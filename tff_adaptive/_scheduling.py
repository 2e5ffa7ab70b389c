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
"""Learning rates that depend on the round, for any process with hparams.

Client works and finalizers of TFF both tell and take their hyperparameters. So
one wrapper schedules either: its state is the inner state, whose learning rate
is the base rate, and a counter of rounds; in each round the inner process sees
the rate times the factor of the round. The counter moves on in every round,
also in one that changes nothing else.
"""

import collections
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import schedules

_LEARNING_RATE_KEY = tff.learning.optimizers.LEARNING_RATE_KEY
_ROUND_NUM_KEY = 'round_num'
_INNER_KEY = 'inner'


def _scale(hparams: Any, factor: tf.Tensor) -> Any:
  """The hyperparameters with the learning rate of one round."""
  rate = hparams[_LEARNING_RATE_KEY]
  return collections.OrderedDict(
      hparams, **{_LEARNING_RATE_KEY: rate * tf.cast(factor, rate.dtype)}
  )


def _check_has_rate(hparams_type: Any, what: str) -> None:
  names = [name for name, _ in tff.structure.iter_elements(hparams_type)]
  if _LEARNING_RATE_KEY not in names:
    raise ValueError(
        f'The {what} has no learning rate to schedule; its hyperparameters are '
        f'{names}. Leave the schedule out.'
    )


def schedule_process(
    inner: Any, schedule: schedules.Schedule, what: str, rebuild: Callable
) -> Any:
  """Schedules the learning rate of a client work or a finalizer.

  Args:
    inner: A `tff.learning.templates.ClientWorkProcess` or `FinalizerProcess`
      with a hyperparameter `learning_rate`.
    schedule: Maps the number of finished rounds to a factor.
    what: What is scheduled, for messages.
    rebuild: The constructor of the process.

  Returns:
    A process of the same kind. Its state is an ordered dictionary of
    `round_num`, an int32, and `inner`; its hyperparameters are the inner ones,
    with the base rate.

  Raises:
    ValueError: If the inner process has no learning rate.
  """
  state_type = inner.initialize.type_signature.result.member
  hparams_type = inner.get_hparams.type_signature.result
  _check_has_rate(hparams_type, what)

  @tff.tensorflow.computation(state_type)
  def wrap_initial(inner_state):
    return collections.OrderedDict(
        [
            (_ROUND_NUM_KEY, tf.zeros([], tf.int32)),
            (_INNER_KEY, inner_state),
        ]
    )

  wrapped_type = wrap_initial.type_signature.result

  @tff.tensorflow.computation(wrapped_type)
  def enter_round(state):
    hparams = _scale(
        inner.get_hparams(state[_INNER_KEY]), schedule(state[_ROUND_NUM_KEY])
    )
    return inner.set_hparams(state[_INNER_KEY], hparams)

  @tff.tensorflow.computation(wrapped_type, state_type)
  def leave_round(state, inner_state):
    hparams = inner.get_hparams(state[_INNER_KEY])
    return collections.OrderedDict(
        [
            (_ROUND_NUM_KEY, state[_ROUND_NUM_KEY] + 1),
            (_INNER_KEY, inner.set_hparams(inner_state, hparams)),
        ]
    )

  @tff.federated_computation
  def initialize():
    return tff.federated_map(wrap_initial, inner.initialize())

  parameter_type = inner.next.type_signature.parameter

  @tff.federated_computation(
      initialize.type_signature.result, parameter_type[1], parameter_type[2]
  )
  def next_fn(state, first, second):
    entered = tff.federated_map(enter_round, state)
    output = inner.next(entered, first, second)
    left = tff.federated_map(leave_round, (state, output.state))
    return tff.templates.MeasuredProcessOutput(
        left, output.result, output.measurements
    )

  @tff.tensorflow.computation(wrapped_type)
  def get_hparams(state):
    return inner.get_hparams(state[_INNER_KEY])

  @tff.tensorflow.computation(wrapped_type, hparams_type)
  def set_hparams(state, hparams):
    return collections.OrderedDict(
        state, inner=inner.set_hparams(state[_INNER_KEY], hparams)
    )

  return rebuild(
      initialize,
      next_fn,
      get_hparams_fn=get_hparams,
      set_hparams_fn=set_hparams,
  )
