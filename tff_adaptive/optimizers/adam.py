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
"""Adam, for clients."""

import tensorflow_federated as tff

from tff_adaptive.optimizers import adaptive


def build_adam(
    learning_rate: float = 0.001,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-8,
) -> tff.learning.optimizers.Optimizer:
  """Builds Adam as Kingma and Ba define it, with bias correction.

  With g the gradient of local step k and s = k + 1, coordinate by coordinate:

  ```
  m = beta_1 m + (1 - beta_1) g         v = beta_2 v + (1 - beta_2) g^2
  x = x - learning_rate * (m / (1 - beta_1^s))
                        / (sqrt(v / (1 - beta_2^s)) + epsilon)
  ```

  On a client m, v and s start at zero in every round.
  `tff.learning.optimizers.build_adam` does not divide v under the root, so its
  epsilon weighs more in early steps; with 1e-8 the difference is about 1e-6.

  Args:
    learning_rate: The step size, per step, not negative. Default 0.001, as
      Delta-SGD's published comparison runs it.
    beta_1: The share of the average of gradients that is kept, in [0, 1).
      Default 0.9, PyTorch's.
    beta_2: The share of the accumulator of squares that is kept, in [0, 1).
      Default 0.999, PyTorch's.
    epsilon: Added to the root, not negative. Default 1e-8, PyTorch's.

  Returns:
    A `tff.learning.optimizers.Optimizer` whose hyperparameters are the
    arguments.

  Raises:
    TypeError: If an argument is no number.
    ValueError: If an argument is out of its range.

  Example:

    >>> optimizer = build_adam(learning_rate=0.5)
    >>> state = optimizer.initialize(tf.TensorSpec([2], tf.float32))
    >>> _, x = optimizer.next(state, tf.zeros([2]), tf.constant([3.0, -0.1]))
    >>> x.numpy().round(4).tolist()  # The first step is the rate.
    [-0.5, 0.5]

  References:
    Kingma and Ba, Adam: A Method for Stochastic Optimization, ICLR 2015,
    https://arxiv.org/abs/1412.6980, Algorithm 1.
  """
  return adaptive.build_adaptive(
      adaptive.Rule(
          name='Adam',
          accumulate=adaptive.accumulate_average,
          learning_rate=learning_rate,
          beta_1=beta_1,
          beta_2=beta_2,
          epsilon=epsilon,
          initial_second_moment=0.0,
          bias_correction=True,
      )
  )
