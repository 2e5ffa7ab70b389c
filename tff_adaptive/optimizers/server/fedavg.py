# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedAvg and FedAvgM: gradient descent along the mean update."""

import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers.client import sgd


@arguments.checked
def build_fedavg(
    learning_rate: ranges.NotNegative = 1.0,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedAvg, with any server learning rate.

  ```
  x_{t+1} = x_t + learning_rate * D_t
  ```

  where `x_t` is the server's model before round t and `D_t` is the weighted
  mean of the clients' updates. TFF passes `-D_t` to a server optimizer as the
  gradient, so this is plain gradient descent.

  Args:
    learning_rate: The server's step size, per round. At 1, the default and the
      value of McMahan et al., the new model is the weighted mean of the
      clients' models.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameter
    `learning_rate` and no other state.

  Example:

    >>> optimizer = build_fedavg(learning_rate=1.0)
    >>> state = optimizer.initialize(tf.TensorSpec([1], tf.float32))
    >>> _, x = optimizer.next(state, tf.ones([1]), tf.constant([0.25]))
    >>> x.numpy().tolist()
    [0.75]

  References:
    McMahan et al., Communication-Efficient Learning of Deep Networks from
    Decentralized Data, AISTATS 2017, https://arxiv.org/abs/1602.05629,
    Algorithm 1; Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Algorithm 1 with `ServerOpt` = SGD.
  """
  return sgd.build_sgd(learning_rate)


@arguments.checked
def build_fedavgm(
    learning_rate: ranges.NotNegative = 1.0,
    momentum: ranges.ClosedShare = 0.9,
    *,
    nesterov: bool = False,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedAvgM.

  ```
  u_t     = momentum * u_{t-1} + D_t            (u_{-1} = 0)
  x_{t+1} = x_t + learning_rate * u_t
            x_t + learning_rate * (momentum * u_t + D_t)             (nesterov)
  ```

  where `D_t` is the weighted mean of the clients' updates. TFF passes `-D_t` to
  a server optimizer, so the state's `accumulator` is `-u_t`.

  With `nesterov` and AdamW on the clients this is DiLoCo, whose server rate is
  0.7; with one client it is SNOO.

  Args:
    learning_rate: The server's step size, per round. Default 1.
    momentum: The momentum coefficient. Default 0.9, section 4 of Reddi et al.
    nesterov: Whether to look one round ahead, as DiLoCo does. Default False.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate` and, if above 0, `momentum`.

  Example:

    >>> optimizer = build_fedavgm()
    >>> state = optimizer.initialize(tf.TensorSpec([], tf.float32))
    >>> x = tf.constant(0.0)
    >>> for _ in range(2):
    ...   state, x = optimizer.next(state, x, tf.constant(-1.0))
    >>> round(float(x), 4)  # 1, then 1.9 more.
    2.9

  References:
    Hsu, Qi, Brown, Measuring the Effects of Non-Identical Data Distribution
    for Federated Visual Classification, 2019, https://arxiv.org/abs/1909.06335,
    section 4.3; Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, section 4. Nesterov's form: Douillard et
    al., DiLoCo: Distributed Low-Communication Training of Language Models,
    2023, https://arxiv.org/abs/2311.08105, Algorithm 1; SNOO, 2025,
    https://arxiv.org/abs/2510.15830; it equals that of `torch.optim.SGD` and
    `optax.sgd`.
  """
  return sgd.SGD(learning_rate, momentum, nesterov)
