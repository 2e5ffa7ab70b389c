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
"""SCAFFOLD: control variates against the drift of clients."""

from typing import Any, Optional

import tensorflow_federated as tff

from tff_adaptive.algorithms import fed_opt
from tff_adaptive.client_works import model_adapter
from tff_adaptive.optimizers import federated_optimizer


def build_scaffold(
    model: model_adapter.Model,
    client_optimizer: federated_optimizer.FederatedOptimizer,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    *,
    client_weighting: tff.learning.ClientWeighting = (
        tff.learning.ClientWeighting.UNIFORM
    ),
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds SCAFFOLD, with option II and partial participation.

  It is `build_fed_opt` with the client rule `optimizers.build_scaffold_sgd`.
  The state's `client_work` is an ordered dictionary of `hparams`, `round_num`,
  `shared` with `control`, c, a tuple with one tensor a trainable weight, of its
  shape, and `aggregator`. The clients' own controls c_i pass through `next`:
  see `tff_adaptive.client_works.build_local_training_client_work` for the form
  of its input, and `tff_adaptive.simulation.run_training`, which keeps them in
  a `ClientStateStore`.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: `optimizers.build_scaffold_sgd(num_clients, ...)`.
    server_optimizer: As in `build_fed_opt`. Default FedAvg with rate 1, the
      paper's.
    client_weighting: Of the change of the model alone; controls count the same.
      Default `UNIFORM`, Algorithm 1.
    **options: Further arguments of `build_fed_opt`.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: See `build_fed_opt`.
    ValueError: See `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_scaffold(
        model, optimizers.build_scaffold_sgd(num_clients=100, learning_rate=0.1)
    )
    simulation.run_training(
        process,
        client_store=simulation.ClientStateStore(),
        cohort_fn=cohort_fn,
        total_rounds=100,
    )
    ```

  References:
    Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated
    Learning, ICML 2020, https://arxiv.org/abs/1910.06378, Algorithm 1.
  """
  return fed_opt.build_fed_opt(
      model,
      client_optimizer,
      server_optimizer,
      client_weighting=client_weighting,
      **options,
  )
