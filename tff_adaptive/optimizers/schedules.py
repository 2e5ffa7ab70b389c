# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Learning rate schedules over rounds.

A schedule maps the number of finished rounds, t = 0, 1, ... (an int32 scalar
tensor), to the factor (a float32 scalar tensor) that multiplies the learning
rate of round t. `tff_adaptive.algorithms.build_fed_opt` takes one for the
clients and one for the server.
"""

from collections.abc import Callable, Mapping
import numbers

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments

# Maps the number of finished rounds, an int32 scalar, to the factor of the
# learning rate in the next round, a float32 scalar.
Schedule = Callable[[tf.Tensor], tf.Tensor]


@arguments.checked
def build_step_decay(
    total_rounds: ranges.Count, decay_rate: ranges.NotNegative = 0.1
) -> Schedule:
  """Builds a schedule that decays after one half and three quarters of a run.

  ```
  factor(t) = decay_rate^([t >= floor(T / 2)] + [t >= floor(3 T / 4)])
  ```

  Args:
    total_rounds: T, the number of rounds of the whole run.
    decay_rate: The factor of each of the two decays. Default 0.1, section 4 of
      the paper.

  Returns:
    A schedule.

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
  boundaries = (total_rounds // 2, 3 * total_rounds // 4)

  def schedule(round_num):
    passed = [tf.cast(round_num >= b, tf.float32) for b in boundaries]
    return tf.pow(tf.constant(decay_rate, tf.float32), tf.add_n(passed))

  return schedule


@arguments.checked
def build_exp_decay(
    decay_rate: ranges.NotNegative = 0.1, rounds_per_decay: ranges.Count = 500
) -> Schedule:
  """Builds a staircase schedule of exponential decay.

  ```
  factor(t) = decay_rate^floor(t / rounds_per_decay)
  ```

  Args:
    decay_rate: The factor of each decay. Default 0.1.
    rounds_per_decay: The number of rounds between decays. Default 500.

  Returns:
    A schedule.

  Example:

    >>> schedule = build_exp_decay(decay_rate=0.5, rounds_per_decay=2)
    >>> [float(schedule(tf.constant(t))) for t in range(5)]
    [1.0, 1.0, 0.5, 0.5, 0.25]

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, section 5.4 (ExpDecay), the source of the
    defaults.
  """

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


def build_table(factors: Mapping[int, float]) -> Schedule:
  """Builds a schedule from a table.

  Args:
    factors: Maps a round to the factor from that round on, not negative. It
      must have an entry for round 0.

  Returns:
    A schedule.

  Raises:
    TypeError: If a factor is not a number, or a round not an integer.
    ValueError: If there is no entry for round 0, or one for a round that is
      negative or above int32, or a factor is negative or not finite.

  Example:

    >>> schedule = build_table({0: 1.0, 10: 0.5})
    >>> [float(schedule(tf.constant(t))) for t in (0, 9, 10, 99)]
    [1.0, 1.0, 0.5, 0.5]
  """
  for round_num in factors:
    if not isinstance(round_num, numbers.Integral):
      raise TypeError(
          f'`factors` must have integers as rounds, found {round_num!r}.'
      )
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
    arguments.check('factors', factor, 'A schedule', ranges.NotNegative)
  values = [float(factors[r]) for r in rounds]

  def schedule(round_num):
    num_begun = tf.reduce_sum(
        tf.cast(tf.constant(rounds) <= round_num, tf.int32)
    )
    return tf.gather(tf.constant(values, tf.float32), num_begun - 1)

  return schedule
