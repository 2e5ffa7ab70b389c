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
"""The proximal term of FedProx."""

import tensorflow as tf

from tff_adaptive.client_works import loss_term as loss_term_lib
from tff_adaptive.optimizers import optimizer
from tff_adaptive.optimizers import vectors


def build_fedprox(mu: float = 0.01) -> loss_term_lib.PlainLossTerm:
  """Builds the loss term of FedProx, for any client optimizer.

  ```
  F(x; B) = f(x; B) + mu / 2 * |x - x_t|^2
  ```

  with x_t the model that the client received; the gradient of the term is
  `mu * (x - x_t)`, zero at the first local step. TFF's own
  `tff.learning.algorithms.build_weighted_fed_prox` adds `mu * (x_t - x)` in
  release 0.87: it pushes clients away from the received model.

  Args:
    mu: The strength of the pull to the received model, not negative. Default
      0.01, as Delta-SGD's published comparison runs it.

  Returns:
    A loss term for `tff_adaptive.algorithms.build_fed_opt`.

  Raises:
    TypeError: If `mu` is no number.
    ValueError: If `mu` is negative or not finite.

  Example:

    >>> term = build_fedprox(mu=2.0)
    >>> float(term((tf.constant([3.0]),), (tf.constant([1.0]),), None))
    4.0

  References:
    Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020,
    https://arxiv.org/abs/1812.06127, equation (2).
  """
  optimizer.check_rate('mu', mu, 'FedProx')

  def loss_term(weights, received, batch):
    del batch  # Unused.
    # A sum of squares in half precision overflows early.
    dtype = vectors.step_dtype(weights)
    squares = [
        tf.reduce_sum(tf.square(tf.cast(w - r, dtype)))
        for w, r in zip(weights, received)
    ]
    return 0.5 * mu * tf.add_n(squares)

  return loss_term
