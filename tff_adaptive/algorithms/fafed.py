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
"""FAFED: recursive momentum on the clients, a shared adaptive scale."""

from typing import Any, Optional

import tensorflow_federated as tff

from tff_adaptive.algorithms import fed_opt
from tff_adaptive.client_works import model_adapter
from tff_adaptive.optimizers import fafed
from tff_adaptive.optimizers import federated_optimizer


def build_fafed(
    model: model_adapter.Model,
    client_optimizer: Optional[federated_optimizer.FederatedOptimizer] = None,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    *,
    client_weighting: tff.learning.ClientWeighting = (
        tff.learning.ClientWeighting.UNIFORM
    ),
    **options: Any,
) -> tff.learning.templates.LearningProcess:
  """Builds FAFED, in the form for clients that keep nothing.

  It is `build_fed_opt` with the client rule `optimizers.build_fafed`. The
  state's `client_work` is an ordered dictionary of `hparams`, `round_num`,
  `shared` with `momentum` and `second_moment`, tuples with one tensor a
  trainable weight, of its shape, and `aggregator`. Round 0 is the warm-up: one
  step on each client's first batch.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: Default `optimizers.build_fafed()`.
    server_optimizer: As in `build_fed_opt`. Default FedAvg with rate 1, the
      paper's.
    client_weighting: Default `UNIFORM`, the paper's.
    **options: Further arguments of `build_fed_opt`.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: See `build_fed_opt`.
    ValueError: See `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_fafed(
        model, optimizers.build_fafed(learning_rate=0.02)
    )
    ```

  References:
    Wu, Huang, Hu, Huang, Faster Adaptive Federated Learning, AAAI 2023,
    https://arxiv.org/abs/2212.00974, Algorithm 1.
  """
  return fed_opt.build_fed_opt(
      model,
      client_optimizer or fafed.build_fafed(),
      server_optimizer,
      client_weighting=client_weighting,
      **options,
  )
