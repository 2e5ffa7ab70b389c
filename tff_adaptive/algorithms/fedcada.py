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
"""FedCAda: client-side Adam whose moments the server averages."""

from typing import Any, Optional

import tensorflow_federated as tff

from tff_adaptive.algorithms import fed_opt
from tff_adaptive.client_works import model_adapter
from tff_adaptive.optimizers import fedcada
from tff_adaptive.optimizers import federated_optimizer


def build_fedcada(
    model: model_adapter.Model,
    client_optimizer: Optional[federated_optimizer.FederatedOptimizer] = None,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    *,
    client_weighting: tff.learning.ClientWeighting = (
        tff.learning.ClientWeighting.UNIFORM
    ),
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds FedCAda.

  It is `build_fed_opt` with the client rule `optimizers.build_fedcada_adam`,
  whose moments the server averages with the weights of the change, keeps and
  sends: the state's `client_work` is an ordered dictionary of

  - `hparams`: those of the client rule;
  - `round_num`: the number of finished rounds, int32;
  - `shared`: `first_moment` and `second_moment`, tuples with one tensor a
    trainable weight, of its shape (and `num_steps` with `time='global_step'`);
  - `aggregator`: the states of what averages each of them.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: Default `optimizers.build_fedcada_adam()`.
    server_optimizer: As in `build_fed_opt`. Default FedAvg with rate 1, on
      which the paper is silent.
    client_weighting: Default `UNIFORM`, Algorithm 2.
    **options: Further arguments of `build_fed_opt`, such as
      `payload_aggregators={'second_moment': ...}`.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: See `build_fed_opt`.
    ValueError: See `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_fedcada(
        model, optimizers.build_fedcada_adam(learning_rate=0.01, beta_1=0.1)
    )
    ```

  References:
    Zhou et al., FedCAda: Adaptive Client-Side Optimization for Accelerated and
    Stable Federated Learning, 2024, https://arxiv.org/abs/2405.11811, Algorithm
    2.
  """
  return fed_opt.build_fed_opt(
      model,
      client_optimizer or fedcada.build_fedcada_adam(),
      server_optimizer,
      client_weighting=client_weighting,
      **options,
  )
