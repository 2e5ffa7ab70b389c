# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""GPA: generalized primal averaging on the server."""

import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import vectors
from tff_adaptive.optimizers.client import schedule_free


class _GPA(schedule_free.Averaging):
  """GPA, see `build_gpa`."""

  name = 'GPA'
  step_size_key = 'learning_rate'

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    average, base = self.start(state, x)
    base = vectors.descend(base, g, hparams['learning_rate'])
    average = vectors.move_towards(
        average, base, vectors.complement(hparams['eval_coefficient'])
    )
    rest = vectors.complement(hparams['train_coefficient'])
    changed = {schedule_free.AVERAGE_KEY: average, schedule_free.BASE_KEY: base}
    return changed, vectors.move_towards(average, base, rest)


@arguments.checked
def build_gpa(
    learning_rate: ranges.NotNegative = 1.0,
    eval_coefficient: ranges.Share = 0.9,
    train_coefficient: ranges.PositiveShare = 0.9,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of GPA, generalized primal averaging.

  x, y and z start at the initial model. With D_t the weighted mean of the
  clients' updates of y, the model that they receive:

  ```
  z = z + learning_rate * D_t
  x = eval_coefficient * x + (1 - eval_coefficient) * z
  y = train_coefficient * x + (1 - train_coefficient) * z
  ```

  The model of the process is y. Evaluate x, which `final_weights` finds from
  the rule's state and y; the programs do. With both coefficients mu, y is the
  model of `build_fedavgm(learning_rate * (1 - mu), mu, nesterov=True)`; with
  `train_coefficient` 1, that of heavy-ball momentum; with `eval_coefficient` 0
  this is FedAvg.

  The defaults are those of the authors for a round of 32 steps: per step, the
  evaluation coefficient is 0.9967 = 0.9^(1/32). Clients send nothing else, and
  the server holds two more copies of the weights.

  Args:
    learning_rate: The server's step size, per round. Default 1.
    eval_coefficient: The share of the old x in the new one, mu_x. Default 0.9.
    train_coefficient: The share of x in y, mu_y. Default 0.9; the authors' is
      0.7 per step of one worker.

  Returns:
    A `tff.learning.optimizers.Optimizer` whose hyperparameters are the
    arguments. Its state holds x, `average`, and z, `base_weights`.

  Example:

    >>> optimizer = build_gpa(eval_coefficient=0.5, train_coefficient=0.5)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> state, y = optimizer.next(state, tf.constant(0.0), tf.constant(-1.0))
    >>> float(y), float(optimizer.final_weights(state, y))
    (0.75, 0.5)

  References:
    Defazio, Mishchenko, Raman, Shi, Xiao, Smoothing DiLoCo with Primal
    Averaging for Faster Training of LLMs, 2025,
    https://arxiv.org/abs/2512.17131; its published code is
    https://github.com/facebookresearch/optimizers, commit f606606,
    `gpa/gpa_adamw.py`. Deviation: the base optimizer, there AdamW with its own
    bias correction and weight decay, is that of the clients.
  """
  return _GPA(
      dict(
          learning_rate=learning_rate,
          eval_coefficient=eval_coefficient,
          train_coefficient=train_coefficient,
      )
  )
