# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedSAM: clients descend along the gradients at perturbed weights."""

from typing import Any

import tensorflow as tf

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vector_optimizer
from tff_adaptive.optimizers import vectors


def perturbed_gradient(
    x: Any,
    g: Any,
    hparams: vector_optimizer.Hparams,
    extra: vector_optimizer.Extra,
) -> Any:
  """Returns the gradient at x + rho g / (|g| + epsilon), on the same batch.

  Args:
    x: The weights.
    g: Their gradient.
    hparams: The hyperparameters `rho` and `epsilon`.
    extra: Its `value_and_grad_fn` evaluates the perturbed gradient.

  Returns:
    A structure like `x`.
  """
  norm = vectors.norm(g, vectors.step_dtype(g))
  share = tf.math.divide_no_nan(hparams['rho'], norm + hparams['epsilon'])
  _, gradient = extra.value_and_grad_fn(vectors.combine(1.0, x, share, g))
  return gradient


class _FedSAM(vector_optimizer.VectorOptimizer):
  """FedSAM, see `build_fedsam`."""

  name = 'FedSAM'
  step_size_key = 'learning_rate'

  def __init__(self, hparams: Any):
    super().__init__(hparams)
    self.evaluates_again = hparams['rho'] > 0.0
    self.otherwise = ', or use `rho=0`'

  def step(self, state, x, g, hparams, extra):
    if self.evaluates_again:
      g = perturbed_gradient(x, g, hparams, extra)
    return {}, vectors.descend(x, g, hparams['learning_rate'])


@arguments.checked
def build_fedsam(
    learning_rate: ranges.NotNegative = 0.1,
    rho: ranges.NotNegative = 0.1,
    epsilon: ranges.NotNegative = 1e-7,
) -> optimizer.ExtraArgsOptimizer:
  """Builds FedSAM, sharpness-aware minimization on the clients.

  With g(x; B) the gradient of a batch and the norm over the vector of all
  trainable weights, in each local step:

  ```
  g_1 = g(x; B)
  g_2 = g(x + rho * g_1 / (|g_1| + epsilon); B)   (same batch and dropout mask)
  x   = x - learning_rate * g_2
  ```

  Each step costs two gradients. The client sends nothing but its model update,
  and keeps nothing between rounds.

  Args:
    learning_rate: The step size. Default 0.1, as in the paper's experiments.
    rho: The size of the perturbation of the weights. Default 0.1. At 0 this is
      SGD, one gradient per step, and `set_hparams` cannot change `rho`.
    epsilon: Added to the norm. Default 1e-7, as in published code.

  Returns:
    An `ExtraArgsOptimizer` whose hyperparameters are the arguments.

  Example:

    >>> optimizer = build_fedsam(learning_rate=0.5, rho=1.0, epsilon=0.0)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(3.0)  # f(x) = x^2 / 2
    >>> _, x = optimizer.next(
    ...     state, x, x, value_and_grad_fn=lambda at: (0.5 * at**2, at))
    >>> float(x)  # 3 - 0.5 * (3 + 1)
    1.0

  References:
    Qu, Li, Duan, Liu, Tang, Lu, Generalized Federated Learning via Sharpness
    Aware Minimization, ICML 2022, https://arxiv.org/abs/2206.02618, Algorithm
    1, FedSAM.
  """
  return _FedSAM(dict(learning_rate=learning_rate, rho=rho, epsilon=epsilon))
