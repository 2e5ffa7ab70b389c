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
"""FedLi-LU: a deep Frank-Wolfe step on the server."""

from typing import Any, Optional

import tensorflow_federated as tff

from tff_adaptive.algorithms import fed_opt
from tff_adaptive.client_works import model_adapter
from tff_adaptive.finalizers import frank_wolfe


def build_fedli_lu(
    model: model_adapter.Model,
    client_optimizer: tff.learning.optimizers.Optimizer,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds FedLi-LU.

  It is `build_fed_opt` with `finalizers.build_frank_wolfe` on the server. The
  state's `finalizer` is an ordered dictionary of the hyperparameters,
  `learning_rate`, `weight_decay` and `epsilon`, of `gamma` and `objective` of
  the last round, scalars, and with momentum of the hyperparameter `momentum`
  and `velocity`, of the structure and shapes of the trainable weights.

  Args:
    model: As in `build_fed_opt`. The paper trains with the multi-class hinge
      loss, too: `tff_adaptive.losses.MulticlassHinge`.
    client_optimizer: Any; the paper takes SGD.
    server_optimizer: Default `finalizers.build_frank_wolfe()`.
    **options: Further arguments of `build_fed_opt`.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: See `build_fed_opt`.
    ValueError: See `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_fedli_lu(
        model,
        optimizers.build_sgd(0.05),
        finalizers.build_frank_wolfe(objective_at='received_model'),
    )
    ```

  References:
    Towards Hyper-parameter-free Federated
    Learning, 2024, https://arxiv.org/abs/2408.17145v1, section 3,
    Algorithm FedLi-LU. The published code never takes the step: the loss does
    not reach its server.
  """
  return fed_opt.build_fed_opt(
      model,
      client_optimizer,
      server_optimizer or frank_wolfe.build_frank_wolfe(),
      **options,
  )
