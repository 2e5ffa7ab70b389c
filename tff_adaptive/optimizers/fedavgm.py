# Copyright 2026 The tff_adaptive Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The server rule of federated averaging with server momentum."""

import tensorflow_federated as tff

from tff_adaptive.optimizers import sgd


def build_fedavgm(
    learning_rate: float = 1.0, momentum: float = 0.9
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedAvgM.

  ```
  u_t     = momentum * u_{t-1} + D_t            (u_{-1} = 0)
  x_{t+1} = x_t + learning_rate * u_t
  ```

  where `D_t` is the weighted mean of the clients' changes. TFF hands a server
  optimizer `-D_t`, so the state's `accumulator` is `-u_t`.

  Args:
    learning_rate: The server's step size, per round, not negative. Default 1.
    momentum: The share of `u` that is kept, in [0, 1]. Default 0.9, section 5
      of Reddi et al.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate` and, if it is above 0, `momentum`.

  Raises:
    TypeError: If an argument is no number.
    ValueError: If an argument is out of its range.

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
    https://arxiv.org/abs/2003.00295, section 5.
  """
  return sgd.build_sgd(learning_rate, momentum)
