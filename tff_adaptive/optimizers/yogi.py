# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Yogi: the clients' rule, and the server's, FedYogi."""

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
  """Builds Yogi, whose accumulator changes by at most a share of the square.

  With g the gradient of a local step, coordinate by coordinate:

  ```
  m = beta_1 m + (1 - beta_1) g
  v = v - (1 - beta_2) g^2 sign(v - g^2)                       (sign(0) = 0)
  x = x - learning_rate * m / (sqrt(v) + epsilon)
  ```

  On a client m and v start anew in every round. There is no bias correction;
  `tff.learning.optimizers.build_yogi` has one.

  Args:
    learning_rate: The step size, per step, not negative. Default 0.01, the
      paper's setting for its Adam and Yogi comparisons.
    beta_1: The share of the average of gradients that is kept, in [0, 1).
      Default 0.9, the paper's.
    beta_2: Slows the accumulator's changes, in [0, 1). Default 0.999, the
      paper's.
    epsilon: Added to the root, not negative. Default 1e-3, the paper's.
    initial_second_moment: The start of v, not negative. Default 1e-6, that of
      `tff.learning.optimizers.build_yogi`.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate`, `beta_1`, `beta_2` and `epsilon`.

  Raises:
    TypeError: If an argument is no number.
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
    Algorithm 2. Deviation: the paper starts v from a batch of gradients.
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
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedYogi.

  With D_t the weighted mean of the clients' changes, coordinate by coordinate:

  ```
  m_t     = beta_1 m_{t-1} + (1 - beta_1) D_t                      (m_{-1} = 0)
  v_t     = v_{t-1} - (1 - beta_2) D_t^2 sign(v_{t-1} - D_t^2)
                                                         (v_{-1} = epsilon^2)
  x_{t+1} = x_t + learning_rate * m_t / (sqrt(v_t) + epsilon)
  ```

  sign(0) is 0. This is not `tff.learning.optimizers.build_yogi`, which corrects
  the bias and starts v elsewhere.

  Args:
    learning_rate: The server's step size, per round, not negative. It depends
      on the task: Reddi et al. tune it over nine values from 1e-3 to 10.
      Default 0.1.
    beta_1: The share of m that is kept, in [0, 1). Default 0.9, section 4.
    beta_2: Slows v's changes, in [0, 1). Default 0.99, section 4.
    epsilon: tau of the paper, its degree of adaptivity: added to the root, not
      negative. Default 1e-3, section 5.2.
    initial_second_moment: v_{-1}, not negative. Default `None`: the square of
      `epsilon`, the smallest value that the paper's Algorithm 2 allows.
    second_moment_of: `'update'`, the default and what all code does, takes the
      square of D_t into v; `'momentum'` the square of m_t, as the first
      versions of the paper's Algorithm 2 read.
    bias_correction: Whether m_t is divided by 1 - beta_1^(t+1) and v_t by
      1 - beta_2^(t+1), as Kingma and Ba do; used with `initial_second_moment`
      0. Default False, as the paper.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate`, `beta_1` if it is above 0, `beta_2` and `epsilon`. TFF
    hands it `-D_t`, so the state's `accumulator` is `-m_t`; `preconditioner` is
    v_t.

  Raises:
    TypeError: If an argument is no number.
    ValueError: If an argument is out of its range.

  Example:

    >>> optimizer = build_fedyogi(learning_rate=1.0, beta_1=0.0)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(0.0), tf.constant(-1.0))
    >>> round(float(x), 2)
    9.9

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Algorithm 2. Deviation: clients are
    weighted by the algorithm that this is used in, by default by examples.
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
  )
