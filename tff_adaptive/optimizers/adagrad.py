# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adagrad for clients, and FedAdagrad for the server."""

from typing import Literal, Optional

import tensorflow_federated as tff

from tff_adaptive.optimizers import adaptive


def build_adagrad(
    learning_rate: float = 0.01, epsilon: float = 1e-10
) -> tff.learning.optimizers.Optimizer:
  """Builds Adagrad as defined in PyTorch.

  With g the gradient of a local step, coordinate by coordinate:

  ```
  v = v + g^2             x = x - learning_rate * g / (sqrt(v) + epsilon)
  ```

  On a client v starts at zero in every round.
  `tff.learning.optimizers.build_adagrad` starts it at 0.1 and adds its epsilon
  under the root.

  Args:
    learning_rate: The step size, per step, not negative. Default 0.01, as in
      Delta-SGD's published comparison.
    epsilon: Added to the root, not negative. Default 1e-10, PyTorch's.

  Returns:
    A `tff.learning.optimizers.Optimizer` whose hyperparameters are the
    arguments.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If an argument is out of its range.

  Example:

    >>> optimizer = build_adagrad(learning_rate=0.5)
    >>> state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
    >>> _, x = optimizer.next(state, tf.zeros([2]), tf.constant([3.0, -0.1]))
    >>> x.numpy().tolist()  # The first step has the size of the learning rate.
    [-0.5, 0.5]

  References:
    Duchi, Hazan, Singer, Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization, JMLR 12, 2011,
    https://jmlr.org/papers/v12/duchi11a.html, section 1.1 (the diagonal form).
  """
  return adaptive.Adaptive(
      name='Adagrad',
      accumulate=adaptive.accumulate_sum,
      learning_rate=learning_rate,
      beta_1=0.0,
      beta_2=None,
      epsilon=epsilon,
      initial_second_moment=0.0,
  )


def build_fedadagrad(
    learning_rate: float = 0.1,
    beta_1: float = 0.0,
    epsilon: float = 1e-3,
    *,
    initial_second_moment: Optional[float] = None,
    second_moment_of: Literal['update', 'momentum'] = 'update',
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedAdagrad.

  With D_t the weighted mean of the clients' updates, coordinate by coordinate:

  ```
  m_t     = beta_1 m_{t-1} + (1 - beta_1) D_t                      (m_{-1} = 0)
  v_t     = v_{t-1} + D_t^2                                (v_{-1} = epsilon^2)
  x_{t+1} = x_t + learning_rate * m_t / (sqrt(v_t) + epsilon)
  ```

  This is not `tff.learning.optimizers.build_adagrad`, which starts v at 0.1 and
  adds its epsilon under the root.

  Args:
    learning_rate: The server's step size, per round, not negative. Default 0.1;
      Reddi et al. tune it per task over nine values from 1e-3 to 10.
    beta_1: The decay rate of m, in [0, 1). Default 0.0, section 4.
    epsilon: Added to the root, not negative: tau, the paper's degree of
      adaptivity. Default 1e-3, section 5.2.
    initial_second_moment: v_{-1}, not negative. Default `None`: the square of
      `epsilon`, the smallest value that the paper's Algorithm 2 allows.
    second_moment_of: Whether v accumulates the square of D_t (`'update'`, the
      default, as all implementations do) or of m_t (`'momentum'`, as in the
      first versions of the paper's Algorithm 2).

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate`, `beta_1` if above 0, and `epsilon`. TFF passes it
    `-D_t`, so the state's `accumulator` is `-m_t`; `preconditioner` is v_t.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If an argument is out of its range.

  Example:

    >>> optimizer = build_fedadagrad(learning_rate=1.0, beta_1=0.0)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(0.0), tf.constant(-1.0))
    >>> round(float(x), 2)
    1.0

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Algorithm 2. Deviation: clients are
    weighted by the surrounding algorithm, by default by their examples.
  """
  return adaptive.Adaptive(
      name='FedAdagrad',
      accumulate=adaptive.accumulate_sum,
      learning_rate=learning_rate,
      beta_1=beta_1,
      beta_2=None,
      epsilon=epsilon,
      initial_second_moment=initial_second_moment,
      second_moment_of=second_moment_of,
  )
