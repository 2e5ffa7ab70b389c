# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Processes whose learning rates change from round to round.

A schedule scales the rate of the clients or of the server, and a server rule
may scale that of the clients.
"""

import collections
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _autograph
from tff_adaptive.optimizers import schedules
from tff_adaptive.optimizers import server_optimizer as server_optimizer_lib

_LEARNING_RATE_KEY = tff.learning.optimizers.LEARNING_RATE_KEY
_CLIENT_WORK_KEY = 'client_work'


def _scale(hparams: Any, factor: tf.Tensor) -> Any:
  """Returns hyperparameters with the learning rate multiplied by `factor`."""
  rate = hparams[_LEARNING_RATE_KEY]
  return collections.OrderedDict(
      hparams, **{_LEARNING_RATE_KEY: rate * tf.cast(factor, rate.dtype)}
  )


def _check_has_rate(hparams_type: Any, what: str) -> None:
  """Raises `ValueError` unless there is a learning rate that can be scaled."""
  types = dict(tff.structure.iter_elements(hparams_type))
  if _LEARNING_RATE_KEY not in types:
    raise ValueError(
        f'The {what} has no learning rate to scale; its hyperparameters are '
        f'{list(types)}. Leave out the schedule or the server rule that scales '
        'it.'
    )
  if tf.as_dtype(types[_LEARNING_RATE_KEY].dtype).is_integer:
    raise ValueError(
        f'The learning rate of the {what} is an integer, which cannot be '
        'scaled: give a float, such as 1.0.'
    )


def _check_schedule(schedule: Any, what: str) -> None:
  """Raises `TypeError` unless a schedule can be called with a round."""
  if not callable(schedule):
    raise TypeError(
        f'The schedule of the {what} must be a function from the number of '
        'finished rounds to a factor of the learning rate, found '
        f'{schedule!r}. See `tff_adaptive.optimizers.schedules`.'
    )
  name = getattr(schedule, '__name__', '')
  if name.startswith('build_'):
    raise TypeError(
        f'The schedule of the {what} must be a schedule, found the function '
        f'`{name}`. Call it: `{name}(...)`.'
    )


def _factor(
    schedule: schedules.Schedule, round_num: tf.Tensor, what: str
) -> tf.Tensor:
  """Returns the factor of a round, a scalar."""
  try:
    factor = tf.convert_to_tensor(_autograph.call(schedule, round_num))
  except TypeError as error:
    raise TypeError(
        f'The schedule of the {what} fails for a round, which is an int32 '
        'tensor: begin it with `round_num = tf.cast(round_num, tf.float32)`. '
        f'{error}'
    ) from error
  if factor.shape.rank:
    raise ValueError(
        f'The schedule of the {what} must return one number, found a tensor of '
        f'the shape {factor.shape}.'
    )
  return factor


def schedule_process(
    inner: Any, schedule: Optional[schedules.Schedule], what: str
) -> Any:
  """Schedules the learning rate of a client work or a finalizer.

  Args:
    inner: A `tff.learning.templates.ClientWorkProcess` or `FinalizerProcess`
      with a hyperparameter `learning_rate`.
    schedule: Maps the number of finished rounds to a factor, or `None`.
    what: The name of `inner`, for messages.

  Returns:
    A process of the same kind, or `inner` itself without a schedule. Its state
    is an ordered dictionary of `round_num`, an int32, and `inner`; its
    hyperparameters are those of `inner`, with the base rate.

  Raises:
    TypeError: If the schedule is no function of a round.
    ValueError: If `inner` has no learning rate, or an integer one, or a factor
      is not one number.
  """
  if schedule is None:
    return inner
  _check_schedule(schedule, what)
  state_type = inner.initialize.type_signature.result.member
  hparams_type = inner.get_hparams.type_signature.result
  _check_has_rate(hparams_type, what)

  @tff.tensorflow.computation(state_type)
  def wrap_initial(inner_state):
    return collections.OrderedDict(
        round_num=tf.zeros([], tf.int32), inner=inner_state
    )

  wrapped_type = wrap_initial.type_signature.result

  @tff.tensorflow.computation(np.int32)
  @tf.function
  def find_factor(round_num):
    return _factor(schedule, round_num, what)

  @tff.tensorflow.computation(wrapped_type)
  def enter_round(state):
    hparams = _scale(
        inner.get_hparams(state['inner']), find_factor(state['round_num'])
    )
    return inner.set_hparams(state['inner'], hparams)

  @tff.tensorflow.computation(wrapped_type, state_type)
  def leave_round(state, inner_state):
    hparams = inner.get_hparams(state['inner'])
    return collections.OrderedDict(
        round_num=state['round_num'] + 1,
        inner=inner.set_hparams(inner_state, hparams),
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
    return inner.get_hparams(state['inner'])

  @tff.tensorflow.computation(wrapped_type, hparams_type)
  def set_hparams(state, hparams):
    return collections.OrderedDict(
        state, inner=inner.set_hparams(state['inner'], hparams)
    )

  return type(inner)(
      initialize,
      next_fn,
      get_hparams_fn=get_hparams,
      set_hparams_fn=set_hparams,
  )


def _scales_clients(optimizer: server_optimizer_lib.ServerOptimizer) -> bool:

  @tf.function
  def find_scale():
    state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    return _autograph.call(optimizer.client_rate_scale, state)

  with tf.Graph().as_default():
    return find_scale() is not None


def scale_client_rate(
    process: tff.learning.templates.LearningProcess,
    server_optimizer: server_optimizer_lib.ServerOptimizer,
) -> tff.learning.templates.LearningProcess:
  """Multiplies the clients' learning rate by a factor from the server rule.

  Args:
    process: A process.
    server_optimizer: Its server rule.

  Returns:
    The process with the factor, or `process` if the rule has none. Its state
    holds the unscaled hyperparameters.

  Raises:
    ValueError: If there is a factor, but the client optimizer has no learning
      rate.
  """
  if not _scales_clients(server_optimizer):
    return process
  state_type = process.initialize.type_signature.result.member
  _check_has_rate(
      process.get_hparams.type_signature.result[_CLIENT_WORK_KEY],
      'client optimizer',
  )

  @tff.tensorflow.computation(state_type.finalizer)
  @tf.function
  def find_scale(finalizer):
    # A schedule of the server's rate wraps the state of the rule.
    finalizer = finalizer.get('inner', finalizer)
    return _autograph.call(server_optimizer.client_rate_scale, finalizer)

  @tff.tensorflow.computation(state_type)
  def enter_round(state):
    hparams = process.get_hparams(state)
    hparams[_CLIENT_WORK_KEY] = _scale(
        hparams[_CLIENT_WORK_KEY], find_scale(state.finalizer)
    )
    return process.set_hparams(state, hparams)

  @tff.tensorflow.computation(state_type, state_type)
  def leave_round(before, after):
    hparams = process.get_hparams(after)
    unscaled = process.get_hparams(before)[_CLIENT_WORK_KEY]
    hparams[_CLIENT_WORK_KEY] = unscaled
    return process.set_hparams(after, hparams)

  parameter_type = process.next.type_signature.parameter

  @tff.federated_computation(parameter_type[0], parameter_type[1])
  def next_fn(state, client_data):
    entered = tff.federated_map(enter_round, state)
    output = process.next(entered, client_data)
    left = tff.federated_map(leave_round, (state, output.state))
    return tff.learning.templates.LearningProcessOutput(left, output.metrics)

  return tff.learning.templates.LearningProcess(
      process.initialize,
      next_fn,
      process.get_model_weights,
      process.set_model_weights,
      get_hparams_fn=process.get_hparams,
      set_hparams_fn=process.set_hparams,
  )
