# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learning rate schedules over rounds.

A schedule maps the number of finished rounds, t = 0, 1, ... (an int32 scalar
tensor), to the factor (a float32 scalar tensor) that multiplies the learning
rate of round t. `tff_adaptive.algorithms.build_fed_opt` takes one for the
clients and one for the server.
"""

import collections
from collections.abc import Callable, Mapping
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.optimizers import optimizer

# Maps the number of finished rounds, an int32 scalar, to the factor of the
# learning rate in the next round, a float32 scalar.
Schedule = Callable[[tf.Tensor], tf.Tensor]


def build_constant() -> Schedule:
  """Builds the constant schedule, whose factor is always 1.

  Returns:
    A schedule.

  Example:

    >>> float(build_constant()(tf.constant(7)))
    1.0
  """
  return lambda round_num: tf.ones_like(round_num, tf.float32)


def build_step_decay(total_rounds: int, decay_rate: float = 0.1) -> Schedule:
  """Builds a schedule that decays after one half and three quarters of a run.

  ```
  factor(t) = decay_rate^([t >= floor(T / 2)] + [t >= floor(3 T / 4)])
  ```

  Args:
    total_rounds: T, the number of rounds of the whole run, positive.
    decay_rate: The factor of each of the two decays, not negative. Default 0.1,
      section 4 of the paper.

  Returns:
    A schedule.

  Raises:
    TypeError: If `decay_rate` is not a number or `total_rounds` not an integer.
    ValueError: If an argument is out of its range.

  Example:

    >>> schedule = build_step_decay(total_rounds=8)
    >>> [round(float(schedule(tf.constant(t))), 4) for t in (3, 4, 5, 6)]
    [1.0, 0.1, 0.1, 0.01]

  References:
    Kim et al., Adaptive Federated Learning with Auto-Tuned Clients, ICLR 2024,
    https://arxiv.org/abs/2306.11201, section 4 ("after 50%, and again by 10
    after 75% of the total training rounds"). Deviation: the published code
    decays one round later.
  """
  optimizer.check_count('total_rounds', total_rounds, 'A schedule')
  optimizer.check_rate('decay_rate', decay_rate, 'A schedule')
  boundaries = (total_rounds // 2, 3 * total_rounds // 4)

  def schedule(round_num):
    passed = [tf.cast(round_num >= b, tf.float32) for b in boundaries]
    return tf.pow(tf.constant(decay_rate, tf.float32), tf.add_n(passed))

  return schedule


def build_exp_decay(
    decay_rate: float = 0.1, rounds_per_decay: int = 500
) -> Schedule:
  """Builds a staircase schedule of exponential decay.

  ```
  factor(t) = decay_rate^floor(t / rounds_per_decay)
  ```

  Args:
    decay_rate: The factor of each decay, not negative. Default 0.1.
    rounds_per_decay: The number of rounds between decays, positive. Default
      500.

  Returns:
    A schedule.

  Raises:
    TypeError: If `decay_rate` is not a number or `rounds_per_decay` not an
      integer.
    ValueError: If an argument is out of its range.

  Example:

    >>> schedule = build_exp_decay(decay_rate=0.5, rounds_per_decay=2)
    >>> [float(schedule(tf.constant(t))) for t in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, section 5.4 (ExpDecay), the source of the
    defaults.
  """
  optimizer.check_count('rounds_per_decay', rounds_per_decay, 'A schedule')
  optimizer.check_rate('decay_rate', decay_rate, 'A schedule')

  def schedule(round_num):
    num_steps = tf.cast(round_num // rounds_per_decay, tf.float32)
    return tf.pow(tf.constant(decay_rate, tf.float32), num_steps)

  return schedule


def build_inverse_sqrt() -> Schedule:
  """Builds the schedule 1 / sqrt(t + 1), common in convergence theorems.

  Returns:
    A schedule.

  Example:

    >>> float(build_inverse_sqrt()(tf.constant(3)))
    0.5
  """
  return lambda round_num: tf.math.rsqrt(tf.cast(round_num, tf.float32) + 1.0)


def parse_factors(text: str) -> dict[int, float]:
  """Parses the argument of `build_table` from a flag's text.

  Args:
    text: Pairs of a round and a factor, such as '0:1,100:0.5'.

  Returns:
    A dictionary from rounds to factors.

  Raises:
    ValueError: If the text has another form.

  Example:

    >>> parse_factors('0:1,100:0.5')
    {0: 1.0, 100: 0.5}
  """
  try:
    pairs = [pair.split(':') for pair in text.split(',')]
    table = {int(round_num): float(factor) for round_num, factor in pairs}
  except ValueError as error:
    raise ValueError(
        'A table of factors must look like 0:1,100:0.5 (round:factor), found '
        f'{text!r}.'
    ) from error
  if len(table) < len(pairs):
    raise ValueError(f'A table must name each round once, found {text!r}.')
  return table


def build_table(factors: Mapping[int, float]) -> Schedule:
  """Builds a schedule from a table.

  Args:
    factors: Maps a round to the factor from that round on, not negative. It
      must have an entry for round 0.

  Returns:
    A schedule.

  Raises:
    TypeError: If a factor is not a number.
    ValueError: If there is no entry for round 0, or one for a negative round,
      or a factor is negative or not finite.

  Example:

    >>> schedule = build_table({0: 1.0, 10: 0.5})
    >>> [float(schedule(tf.constant(t))) for t in (0, 9, 10, 99)]
    [1.0, 1.0, 0.5, 0.5]
  """
  rounds = sorted(factors)
  if not rounds or rounds[0] != 0:
    raise ValueError(
        '`factors` must begin with an entry for round 0, found rounds '
        f'{rounds}.'
    )
  if rounds[-1] > tf.int32.max:
    raise ValueError(
        f'`factors` must have rounds up to {tf.int32.max}, found {rounds[-1]}.'
    )
  for factor in factors.values():
    optimizer.check_rate('factors', factor, 'A schedule')
  values = [float(factors[r]) for r in rounds]

  def schedule(round_num):
    num_begun = tf.reduce_sum(
        tf.cast(tf.constant(rounds) <= round_num, tf.int32)
    )
    return tf.gather(tf.constant(values, tf.float32), num_begun - 1)

  return schedule


_LEARNING_RATE_KEY = tff.learning.optimizers.LEARNING_RATE_KEY


def scale(hparams: Any, factor: tf.Tensor) -> Any:
  """Returns hyperparameters with the learning rate multiplied by `factor`."""
  rate = hparams[_LEARNING_RATE_KEY]
  return collections.OrderedDict(
      hparams, **{_LEARNING_RATE_KEY: rate * tf.cast(factor, rate.dtype)}
  )


def check_has_rate(hparams_type: Any, what: str) -> None:
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


def schedule_process(
    inner: Any, schedule: Optional[Schedule], what: str
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
    ValueError: If `inner` has no learning rate, or an integer one.
  """
  if schedule is None:
    return inner
  state_type = inner.initialize.type_signature.result.member
  hparams_type = inner.get_hparams.type_signature.result
  check_has_rate(hparams_type, what)

  @tff.tensorflow.computation(state_type)
  def wrap_initial(inner_state):
    return collections.OrderedDict(
        round_num=tf.zeros([], tf.int32), inner=inner_state
    )

  wrapped_type = wrap_initial.type_signature.result

  @tff.tensorflow.computation(wrapped_type)
  def enter_round(state):
    hparams = scale(
        inner.get_hparams(state['inner']), schedule(state['round_num'])
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
