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
"""Adagrad, for clients."""

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
  return adaptive.build_adaptive(
      adaptive.Rule(
          name='Adagrad',
          accumulate=adaptive.accumulate_sum,
          learning_rate=learning_rate,
          beta_1=0.0,
          beta_2=None,
          epsilon=epsilon,
          initial_second_moment=0.0,
          bias_correction=False,
      )
  )
