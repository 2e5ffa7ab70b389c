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
"""The server rule of federated averaging."""

import tensorflow_federated as tff

from tff_adaptive.optimizers import sgd


def build_fedavg(
    learning_rate: float = 1.0,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedAvg, with any server learning rate.

  ```
  x_{t+1} = x_t + learning_rate * D_t
  ```

  where `x_t` is the server's model before round t and `D_t` the weighted mean
  of the clients' changes. TFF hands a server optimizer `-D_t` as the gradient,
  so this is plain gradient descent.

  Args:
    learning_rate: The server's step size, per round, not negative. At 1, the
      default and the value of McMahan et al., the new model is the weighted
      mean of the clients' models.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameter
    `learning_rate` and no other state.

  Raises:
    TypeError: If `learning_rate` is no number.
    ValueError: If `learning_rate` is negative or not finite.

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
