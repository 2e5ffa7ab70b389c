# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""AdaGrad-Norm: one accumulator for all weights."""

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors


class _AdagradNorm(vector_optimizer.VectorOptimizer):
  """AdaGrad-Norm, see `build_adagrad_norm`."""

  name = 'AdaGrad-Norm'
  scalar_keys = ('squared_gradients', 'last_step_size')
  step_size_key = 'last_step_size'

  def step(self, state, x, g, hparams, extra):
    del extra  # Unused.
    # Without b_0^2, since `set_hparams` may change it.
    squares = state['squared_gradients'] + tf.square(
        vectors.norm(g, vectors.step_dtype(g))
    )
    step_size = vectors.ratio(
        hparams['learning_rate'],
        tf.sqrt(tf.square(hparams['initial_norm']) + squares),
    )
    changed = dict(squared_gradients=squares, last_step_size=step_size)
    return changed, vectors.descend(x, g, step_size)


@arguments.checked
def build_adagrad_norm(
    learning_rate: ranges.NotNegative = 1.0,
    initial_norm: ranges.NotNegative = 0.1,
    *,
    carry_state: bool = False,
) -> optimizer.ExtraArgsOptimizer:
  """Builds AdaGrad-Norm, SGD with one adaptive learning rate for all weights.

  With g_k the gradient of local step k and the norm over the vector of all
  trainable weights:

  ```
  b_k^2   = b_{k-1}^2 + |g_k|^2                  (b_{-1} = initial_norm)
  x_{k+1} = x_k - learning_rate / b_k * g_k      (0 where b_k = 0)
  ```

  The accumulator is reset in every round, unless `carry_state`. Each step costs
  one gradient, and the client sends nothing but its model update.

  Args:
    learning_rate: The numerator of the step size. Default 1.0, ours; in theory
      it is the initial loss minus the optimal one.
    initial_norm: b_0 of the paper. Default 0.1, ours; at 0 the first step has
      length `learning_rate`.
    carry_state: Whether a client keeps its accumulator until it participates
      again, for clients that return. Default False.

  Returns:
    An `ExtraArgsOptimizer` with the hyperparameters `learning_rate` and
    `initial_norm`. It reports the `step_size` of each step,
    learning_rate / b_k.

  Example:

    >>> optimizer = build_adagrad_norm(initial_norm=3.0)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(1.0), tf.constant(4.0))
    >>> round(float(x), 4)  # 1 - 4 / sqrt(9 + 16)
    0.2

  References:
    Ward, Wu, Bottou, AdaGrad Stepsizes: Sharp Convergence over Nonconvex
    Landscapes, ICML 2019, https://arxiv.org/abs/1806.01811, Algorithm 1.
  """
  rule = _AdagradNorm(
      dict(learning_rate=learning_rate, initial_norm=initial_norm)
  )
  return federated_optimizer.KeptOptimizer(rule) if carry_state else rule
