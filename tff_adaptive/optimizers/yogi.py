# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Yogi for clients, and FedYogi for the server."""

from typing import Literal, Optional

import tensorflow_federated as tff

from tff_adaptive.optimizers import adaptive


def build_yogi(
    learning_rate: float = 0.01,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-3,
    initial_second_moment: float = 1e-6,
) -> tff.learning.optimizers.Optimizer:
  """Builds Yogi, Adam with bounded changes of the second moment.

  With g the gradient of a local step, coordinate by coordinate:

  ```
  m = beta_1 m + (1 - beta_1) g
  v = v - (1 - beta_2) g^2 sign(v - g^2)                       (sign(0) = 0)
  x = x - learning_rate * m / (sqrt(v) + epsilon)
  ```

  On a client m and v are reset in every round. Unlike
  `tff.learning.optimizers.build_yogi`, this does not correct the bias.

  Args:
    learning_rate: The step size, per step, not negative. Default 0.01, as in
      the paper's comparisons of Adam and Yogi.
    beta_1: The decay rate of m, in [0, 1). Default 0.9, as in the paper.
    beta_2: The decay rate of v, in [0, 1). Default 0.999, as in the paper.
    epsilon: Added to the root, not negative. Default 1e-3, as in the paper.
    initial_second_moment: The initial value of v, not negative. Default 1e-6,
      as in `tff.learning.optimizers.build_yogi`.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate`, `beta_1`, `beta_2` and `epsilon`.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If an argument is out of its range.

  Example:

    >>> optimizer = build_yogi(1.0, beta_1=0.0, beta_2=0.0, epsilon=0.0)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(0.0), tf.constant(2.0))
    >>> round(float(x), 4)
    -1.0

  References:
    Zaheer et al., Adaptive Methods for Nonconvex Optimization, NeurIPS 2018,
    https://papers.nips.cc/paper/2018/hash/90365351ccc7437a1309dc64e4db32a3-Abstract.html,
    Algorithm 2. Deviation: the paper initializes v from a batch of gradients.
  """
  return adaptive.Adaptive(
      name='Yogi',
      accumulate=adaptive.accumulate_signed,
      learning_rate=learning_rate,
      beta_1=beta_1,
      beta_2=beta_2,
      epsilon=epsilon,
      initial_second_moment=initial_second_moment,
  )


def build_fedyogi(
    learning_rate: float = 0.1,
    beta_1: float = 0.9,
    beta_2: float = 0.99,
    epsilon: float = 1e-3,
    *,
    initial_second_moment: Optional[float] = None,
    second_moment_of: Literal['update', 'momentum'] = 'update',
    bias_correction: bool = False,
    epsilon_hat: bool = False,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedYogi.

  With D_t the weighted mean of the clients' updates, coordinate by coordinate:

  ```
  m_t     = beta_1 m_{t-1} + (1 - beta_1) D_t                      (m_{-1} = 0)
  v_t     = v_{t-1} - (1 - beta_2) D_t^2 sign(v_{t-1} - D_t^2)
                                                         (v_{-1} = epsilon^2)
  x_{t+1} = x_t + learning_rate * m_t / (sqrt(v_t) + epsilon)
  ```

  where sign(0) is 0. This is not `tff.learning.optimizers.build_yogi`, which
  corrects the bias and has another initial v.

  Args:
    learning_rate: The server's step size, per round, not negative. Default 0.1;
      Reddi et al. tune it per task over nine values from 1e-3 to 10.
    beta_1: The decay rate of m, in [0, 1). Default 0.9, section 4.
    beta_2: The decay rate of v, in [0, 1). Default 0.99, section 4.
    epsilon: Added to the root, not negative: tau, the paper's degree of
      adaptivity. Default 1e-3, section 5.2.
    initial_second_moment: v_{-1}, not negative. Default `None`: the square of
      `epsilon`, the smallest value that the paper's Algorithm 2 allows.
    second_moment_of: Whether v accumulates the square of D_t (`'update'`, the
      default, as all implementations do) or of m_t (`'momentum'`, as in the
      first versions of the paper's Algorithm 2).
    bias_correction: Whether to divide m_t by 1 - beta_1^(t+1) and v_t by
      1 - beta_2^(t+1), as Kingma and Ba do. Use it with `initial_second_moment`
      0. Default False, as in the paper.
    epsilon_hat: Whether the correction instead multiplies the learning rate by
      sqrt(1 - beta_2^(t+1)) / (1 - beta_1^(t+1)), and `epsilon` is added to the
      root of v_t itself: the epsilon hat of Kingma and Ba, Section 2. The
      paper's published code and `tff.learning.optimizers.build_yogi` do the
      same. Needs `bias_correction`. Default False.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate`, `beta_1` if above 0, `beta_2` and `epsilon`. TFF
    hands it `-D_t`, so the state's `accumulator` is `-m_t`; `preconditioner` is
    v_t.

  Raises:
    TypeError: If an argument is not a number.
    ValueError: If an argument is out of its range, or `epsilon_hat` lacks
      `bias_correction`.

  Example:

    >>> optimizer = build_fedyogi(learning_rate=1.0, beta_1=0.0)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(0.0), tf.constant(-1.0))
    >>> round(float(x), 2)
    9.9

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Algorithm 2. Deviation: clients are
    weighted by the surrounding algorithm, by default by their examples.
  """
  return adaptive.Adaptive(
      name='FedYogi',
      accumulate=adaptive.accumulate_signed,
      learning_rate=learning_rate,
      beta_1=beta_1,
      beta_2=beta_2,
      epsilon=epsilon,
      initial_second_moment=initial_second_moment,
      bias_correction=bias_correction,
      second_moment_of=second_moment_of,
      epsilon_hat=epsilon_hat,
  )
