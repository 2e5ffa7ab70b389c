# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Schedule-Free SGD on the server."""

import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers.client import schedule_free


@arguments.checked
def build_fed_schedule_free(
    learning_rate: ranges.NotNegative = 1.0, beta: ranges.PositiveShare = 0.9
) -> tff.learning.optimizers.Optimizer:
  """Builds Schedule-Free SGD as a server rule, a mean over all rounds.

  This is `build_schedule_free_sgd` on the mean update D_t, with constant
  weights:

  ```
  z = z + learning_rate * D_t,   x = x + (z - x) / (t + 1)
  y = beta x + (1 - beta) z
  ```

  The model of the process is y, which clients receive. Evaluate x, which
  `final_weights` finds from the rule's state and y; the programs do.
  `build_gpa` forgets early rounds instead.

  Args:
    learning_rate: The server's step size, per round. Default 1.
    beta: The share of x in y. Default 0.9.

  Returns:
    A `tff.learning.optimizers.Optimizer`, that of `build_schedule_free_sgd`.

  Example:

    >>> optimizer = build_fed_schedule_free()
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> y = tf.constant(0.0)
    >>> for _ in range(2):
    ...   state, y = optimizer.next(state, y, tf.constant(-1.0))
    >>> float(optimizer.final_weights(state, y))  # The mean of 1 and 2.
    1.5

  References:
    Defazio, Yang, Mehta, Mishchenko, Khaled, Cutkosky, The Road Less Scheduled,
    NeurIPS 2024, https://arxiv.org/abs/2405.15682, equations (1) to (3), of
    which the use on a server is ours.
  """
  return schedule_free.build_schedule_free_sgd(
      learning_rate, beta, weight_lr_power=0.0
  )
