# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adagrad: the clients' rule, and the server's, FedAdagrad."""

from typing import Literal, Optional

import tensorflow_federated as tff

from tff_adaptive.optimizers import adaptive


def build_adagrad(
    learning_rate: float = 0.01, epsilon: float = 1e-10
) -> tff.learning.optimizers.Optimizer:
  """Builds Adagrad as PyTorch has it.

  With g the gradient of a local step, coordinate by coordinate:

  ```
  v = v + g^2             x = x - learning_rate * g / (sqrt(v) + epsilon)
  ```

  On a client v starts at zero in every round.
  `tff.learning.optimizers.build_adagrad` starts it at 0.1 and adds its epsilon
  under the root.

  Args:
    learning_rate: The step size, per step, not negative. Default 0.01, as
      Delta-SGD's published comparison runs it.
    epsilon: Added to the root, not negative. Default 1e-10, PyTorch's.

  Returns:
    A `tff.learning.optimizers.Optimizer` whose hyperparameters are the
    arguments.

  Raises:
    TypeError: If an argument is no number.
    ValueError: If an argument is out of its range.

  Example:

    >>> optimizer = build_adagrad(learning_rate=0.5)
    >>> state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
    >>> _, x = optimizer.next(state, tf.zeros([2]), tf.constant([3.0, -0.1]))
    >>> x.numpy().tolist()  # The first step is the rate.
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

  With D_t the weighted mean of the clients' changes, coordinate by coordinate:

  ```
  m_t     = beta_1 m_{t-1} + (1 - beta_1) D_t                      (m_{-1} = 0)
  v_t     = v_{t-1} + D_t^2                                (v_{-1} = epsilon^2)
  x_{t+1} = x_t + learning_rate * m_t / (sqrt(v_t) + epsilon)
  ```

  This is not `tff.learning.optimizers.build_adagrad`, which starts v at 0.1 and
  adds its epsilon under the root.

  Args:
    learning_rate: The server's step size, per round, not negative. It depends
      on the task: Reddi et al. tune it over nine values from 1e-3 to 10.
      Default 0.1.
    beta_1: The share of m that is kept, in [0, 1). Default 0.0, section 4.
    epsilon: tau of the paper, its degree of adaptivity: added to the root, not
      negative. Default 1e-3, section 5.2.
    initial_second_moment: v_{-1}, not negative. Default `None`: the square of
      `epsilon`, the smallest value that the paper's Algorithm 2 allows.
    second_moment_of: `'update'`, the default and what all code does, takes the
      square of D_t into v; `'momentum'` the square of m_t, as the first
      versions of the paper's Algorithm 2 read.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate`, `beta_1` if it is above 0, and `epsilon`. TFF hands it
    `-D_t`, so the state's `accumulator` is `-m_t`; `preconditioner` is v_t.

  Raises:
    TypeError: If an argument is no number.
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
    weighted by the algorithm that this is used in, by default by examples.
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
