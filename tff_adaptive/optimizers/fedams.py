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
"""The server rule of FedAMS."""

import tensorflow_federated as tff

from tff_adaptive.optimizers import adaptive


def build_fedams(
    learning_rate: float = 1.0,
    beta_1: float = 0.9,
    beta_2: float = 0.99,
    epsilon: float = 1e-3,
    *,
    option: int = 1,
    bias_correction: bool = False,
) -> tff.learning.optimizers.Optimizer:
  """Builds the server rule of FedAMS: AMSGrad with max stabilization.

  With D_t the weighted mean of the clients' changes, coordinate by coordinate:

  ```
  m_t = beta_1 m_{t-1} + (1 - beta_1) D_t                          (m_{-1} = 0)
  v_t = beta_2 v_{t-1} + (1 - beta_2) D_t^2                        (v_{-1} = 0)
  option 1:  vhat_t  = max(vhat_{t-1}, v_t, epsilon)            (vhat_{-1} = 0)
             x_{t+1} = x_t + learning_rate * m_t / sqrt(vhat_t)
  option 2:  vhat_t  = max(vhat_{t-1}, v_t)                     (vhat_{-1} = 0)
             x_{t+1} = x_t + learning_rate * m_t / (sqrt(vhat_t) + epsilon)
  ```

  vhat never falls, so no coordinate's step size ever rises again. Option 1 is
  option 2 with epsilon 0 and vhat started at epsilon. The root of its vhat is
  at least that of epsilon: with the defaults 0.032, where FedAdam and option 2
  add 0.001 to the root.

  Args:
    learning_rate: The server's step size, per round, not negative. Default 1.0,
      as the published code runs it (with 0.01 on the clients).
    beta_1: The share of m that is kept, in [0, 1). Default 0.9, the published
      code's.
    beta_2: The share of v that is kept, in [0, 1). Default 0.99, the published
      code's.
    epsilon: The least value of vhat in option 1, what is added to the root in
      option 2; not negative. Default 1e-3, as the published code runs it.
    option: 1, the default and the proposed rule, or 2, which is AMSGrad.
    bias_correction: Whether m_t is divided by 1 - beta_1^(t+1), and vhat_t
      under the root by 1 - beta_2^(t+1), as the published code does. Default
      False, as the paper.

  Returns:
    A `tff.learning.optimizers.Optimizer` with the hyperparameters
    `learning_rate`, `beta_1` if it is above 0, `beta_2` and `epsilon`. TFF
    hands it `-D_t`, so the state's `accumulator` is `-m_t`; `preconditioner` is
    v_t and `max_preconditioner` vhat_t, never divided by the correction.

  Raises:
    TypeError: If an argument is no number.
    ValueError: If an argument is out of its range.

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
    FedCAMS, whose clients keep what compression has cut off, is not here.
    Deviation: clients are weighted by the algorithm that this is used in, by
    default by examples; the paper weighs them alike.
  """
  if option not in (1, 2):
    raise ValueError(f'FedAMS `option` must be 1 or 2, found {option}.')
  return adaptive.build_adaptive(
      adaptive.Rule(
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
  )
