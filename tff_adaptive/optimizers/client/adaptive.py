# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Adagrad, Adam and Yogi, reset in every round."""

import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import adaptive
from tff_adaptive.optimizers import arguments


@arguments.checked
def build_adagrad(
    learning_rate: ranges.NotNegative = 0.01,
    epsilon: ranges.NotNegative = 1e-10,
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
    learning_rate: The step size, per step. Default 0.01, as in Delta-SGD's
      published comparison.
    epsilon: Added to the root. Default 1e-10, PyTorch's.

  Returns:
    A `tff.learning.optimizers.Optimizer` whose hyperparameters are the
    arguments.

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


@arguments.checked
def build_adam(
    learning_rate: ranges.NotNegative = 0.001,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.999,
    epsilon: ranges.NotNegative = 1e-8,
) -> tff.learning.optimizers.Optimizer:
  """Builds Adam as Kingma and Ba define it, with bias correction.

  With g the gradient of local step k and s = k + 1, coordinate by coordinate:

  ```
  m = beta_1 m + (1 - beta_1) g         v = beta_2 v + (1 - beta_2) g^2
  x = x - learning_rate * (m / (1 - beta_1^s))
                        / (sqrt(v / (1 - beta_2^s)) + epsilon)
  ```

  On a client m, v and s start at zero in every round. In
  `tff.learning.optimizers.build_adam`, which does not divide v under the root,
  epsilon weighs more in early steps; with 1e-8 the difference is about 1e-6.

  Args:
    learning_rate: The step size, per step. Default 0.001, as in Delta-SGD's
      published comparison.
    beta_1: The decay rate of m. Default 0.9, as in PyTorch.
    beta_2: The decay rate of v. Default 0.999, as in PyTorch.
    epsilon: Added to the root. Default 1e-8, as in PyTorch.

  Returns:
    A `tff.learning.optimizers.Optimizer` whose hyperparameters are the
    arguments.

  Example:

    >>> optimizer = build_adam(learning_rate=0.5)
    >>> state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
    >>> _, x = optimizer.next(state, tf.zeros([2]), tf.constant([3.0, -0.1]))
    >>> x.numpy().round(4).tolist()  # A first step of size learning_rate.
    [-0.5, 0.5]

  References:
    Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015,
    https://arxiv.org/abs/1412.6980, Algorithm 1.
  """
  return adaptive.Adaptive(
      name='Adam',
      accumulate=adaptive.accumulate_average,
      learning_rate=learning_rate,
      beta_1=beta_1,
      beta_2=beta_2,
      epsilon=epsilon,
      initial_second_moment=0.0,
      bias_correction=True,
  )


@arguments.checked
def build_yogi(
    learning_rate: ranges.NotNegative = 0.01,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.999,
    epsilon: ranges.NotNegative = 1e-3,
    initial_second_moment: ranges.NotNegative = 1e-6,
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
    learning_rate: The step size, per step. Default 0.01, as in the paper's
      comparisons of Adam and Yogi.
    beta_1: The decay rate of m. Default 0.9, as in the paper.
    beta_2: The decay rate of v. Default 0.999, as in the paper.
    epsilon: Added to the root. Default 1e-3, as in the paper.
    initial_second_moment: The initial value of v. Default 1e-6, as in
      `tff.learning.optimizers.build_yogi`.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate`, `beta_1`, `beta_2` and `epsilon`.

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
