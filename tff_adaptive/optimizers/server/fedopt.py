# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The adaptive server rules FedAdagrad, FedAdam, FedYogi and FedAMS."""

from typing import Literal, Optional

import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import adaptive
from tff_adaptive.optimizers import arguments


@arguments.checked
def build_fedadagrad(
    learning_rate: ranges.NotNegative = 0.1,
    beta_1: ranges.Share = 0.0,
    epsilon: ranges.NotNegative = 1e-3,
    *,
    initial_second_moment: Optional[ranges.NotNegative] = None,
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
    learning_rate: See `build_fedadam`.
    beta_1: The decay rate of m. Default 0.0, section 4.
    epsilon: See `build_fedadam`.
    initial_second_moment: See `build_fedadam`.
    second_moment_of: See `build_fedadam`.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate`, `beta_1` if above 0, and `epsilon`, and the state of
    `build_fedadam`.

  Example:

    >>> optimizer = build_fedadagrad(learning_rate=1.0, beta_1=0.0)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(0.0), tf.constant(-1.0))
    >>> round(float(x), 2)
    1.0

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Algorithm 2, as `build_fedadam`.
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


@arguments.checked
def build_fedadam(
    learning_rate: ranges.NotNegative = 0.1,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.99,
    epsilon: ranges.NotNegative = 1e-3,
    *,
    initial_second_moment: Optional[ranges.NotNegative] = None,
    second_moment_of: Literal['update', 'momentum'] = 'update',
    bias_correction: bool = False,
    epsilon_hat: bool = False,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedAdam.

  With D_t the weighted mean of the clients' updates, coordinate by coordinate:

  ```
  m_t     = beta_1 m_{t-1} + (1 - beta_1) D_t                      (m_{-1} = 0)
  v_t     = beta_2 v_{t-1} + (1 - beta_2) D_t^2            (v_{-1} = epsilon^2)
  x_{t+1} = x_t + learning_rate * m_t / (sqrt(v_t) + epsilon)
  ```

  This is not `tff.learning.optimizers.build_adam`, which corrects the bias,
  starts v at zero and places epsilon differently. The "FedAdam" of Delta-SGD's
  Table 4 is PyTorch's Adam: `build_fedadam(1e-3, 0.9, 0.999, 1e-8,
  initial_second_moment=0.0, bias_correction=True)`.

  Args:
    learning_rate: The server's step size, per round. Default 0.1; Reddi et al.
      tune it per task over nine values from 1e-3 to 10.
    beta_1: The decay rate of m. Default 0.9, section 4.
    beta_2: The decay rate of v. Default 0.99, section 4.
    epsilon: Added to the root: tau, the paper's degree of adaptivity. Default
      1e-3, section 5.2.
    initial_second_moment: v_{-1}. Default `None`: the square of `epsilon`, the
      smallest value that the paper's Algorithm 2 allows.
    second_moment_of: Whether v accumulates the square of D_t (`'update'`, the
      default, as all implementations do) or of m_t (`'momentum'`, as in the
      first versions of the paper's Algorithm 2).
    bias_correction: Whether to divide m_t by 1 - beta_1^(t+1) and v_t by
      1 - beta_2^(t+1), as Kingma and Ba do. Use it with `initial_second_moment`
      0. Default False, as in the paper.
    epsilon_hat: Whether the correction instead multiplies the learning rate by
      sqrt(1 - beta_2^(t+1)) / (1 - beta_1^(t+1)), and `epsilon` is added to the
      root of v_t itself: the epsilon hat of Kingma and Ba, Section 2. Keras'
      Adam, which the paper's published code calls, and
      `tff.learning.optimizers.build_adam` do the same. Needs
      `bias_correction`. Default False.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate`, `beta_1` if above 0, `beta_2` and `epsilon`. TFF
    hands it `-D_t`, so the state's `accumulator` is `-m_t`; `preconditioner` is
    v_t.

  Raises:
    ValueError: If `epsilon_hat` lacks `bias_correction`.

  Example:

    >>> optimizer = build_fedadam(learning_rate=1.0, beta_1=0.0)
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
      name='FedAdam',
      accumulate=adaptive.accumulate_average,
      learning_rate=learning_rate,
      beta_1=beta_1,
      beta_2=beta_2,
      epsilon=epsilon,
      initial_second_moment=initial_second_moment,
      bias_correction=bias_correction,
      second_moment_of=second_moment_of,
      epsilon_hat=epsilon_hat,
  )


@arguments.checked
def build_fedams(
    learning_rate: ranges.NotNegative = 1.0,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.99,
    epsilon: ranges.NotNegative = 1e-3,
    *,
    option: Literal[1, 2] = 1,
    bias_correction: bool = False,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedAMS: AMSGrad with max stabilization.

  With D_t the weighted mean of the clients' updates, coordinate by coordinate:

  ```
  m_t = beta_1 m_{t-1} + (1 - beta_1) D_t                          (m_{-1} = 0)
  v_t = beta_2 v_{t-1} + (1 - beta_2) D_t^2                        (v_{-1} = 0)
  option 1:  vhat_t  = max(vhat_{t-1}, v_t, epsilon)            (vhat_{-1} = 0)
             x_{t+1} = x_t + learning_rate * m_t / sqrt(vhat_t)
  option 2:  vhat_t  = max(vhat_{t-1}, v_t)                     (vhat_{-1} = 0)
             x_{t+1} = x_t + learning_rate * m_t / (sqrt(vhat_t) + epsilon)
  ```

  vhat never decreases, so no coordinate's step size grows. Option 1 is option 2
  with epsilon 0 and an initial vhat of epsilon. Its denominator is at least
  sqrt(epsilon), 0.032 by default, where FedAdam and option 2 add 0.001. The
  default numbers are those of the published code, which uses a learning rate of
  0.01 on the clients.

  Args:
    learning_rate: The server's step size, per round.
    beta_1: The decay rate of m.
    beta_2: The decay rate of v.
    epsilon: The lower bound of vhat in option 1, added to the root in option 2.
    option: 1, the default and the proposed rule, or 2, which is AMSGrad.
    bias_correction: Whether to divide m_t by 1 - beta_1^(t+1), and vhat_t under
      the root by 1 - beta_2^(t+1), as the published code does. Default False,
      as in the paper.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate`, `beta_1` if above 0, `beta_2` and `epsilon`. Its state is
    that of `build_fedadam` and `max_preconditioner`, vhat_t, which is never
    divided by the correction.

  Example:

    >>> optimizer = build_fedams()
    >>> state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
    >>> change = tf.constant([1.0, 0.1])
    >>> _, x = optimizer.next(state, tf.zeros([2]), -change)
    >>> [round(float(v), 4) for v in x]  # The second vhat is epsilon.
    [1.0, 0.3162]

  References:
    Wang, Lin, Chen, Communication-Efficient Adaptive Federated Learning, ICML
    2022, https://arxiv.org/abs/2205.02719, Algorithm 1. Its compressed form,
    FedCAMS, with error feedback on the clients, is not implemented. Deviation:
    clients are weighted by the surrounding algorithm, by default by their
    examples; the paper weights them equally.
  """
  return adaptive.Adaptive(
      name='FedAMS',
      accumulate=adaptive.accumulate_average,
      learning_rate=learning_rate,
      beta_1=beta_1,
      beta_2=beta_2,
      epsilon=epsilon,
      initial_second_moment=0.0,
      bias_correction=bias_correction,
      keeps_maximum=True,
      epsilon_is_floor=option == 1,
  )


@arguments.checked
def build_fedyogi(
    learning_rate: ranges.NotNegative = 0.1,
    beta_1: ranges.Share = 0.9,
    beta_2: ranges.Share = 0.99,
    epsilon: ranges.NotNegative = 1e-3,
    *,
    initial_second_moment: Optional[ranges.NotNegative] = None,
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
    learning_rate: See `build_fedadam`.
    beta_1: See `build_fedadam`.
    beta_2: See `build_fedadam`.
    epsilon: See `build_fedadam`.
    initial_second_moment: See `build_fedadam`.
    second_moment_of: See `build_fedadam`.
    bias_correction: See `build_fedadam`.
    epsilon_hat: See `build_fedadam`. The paper's published code and
      `tff.learning.optimizers.build_yogi` do the same.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters and the state
    of `build_fedadam`.

  Example:

    >>> optimizer = build_fedyogi(learning_rate=1.0, beta_1=0.0)
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> _, x = optimizer.next(state, tf.constant(0.0), tf.constant(-1.0))
    >>> round(float(x), 2)
    9.9

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Algorithm 2, as `build_fedadam`.
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
