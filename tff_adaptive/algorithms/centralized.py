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
"""Centralized training: any optimizer on the pooled examples of all clients."""

from typing import Any, Optional

import tensorflow_federated as tff

from tff_adaptive.algorithms import fed_opt
from tff_adaptive.client_works import model_adapter
from tff_adaptive.finalizers import measured_update
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import schedules


def _carry(optimizer: Any) -> Any:
  """The optimizer with a state that crosses rounds."""
  if not isinstance(optimizer, tff.learning.optimizers.Optimizer):
    return optimizer  # `build_fed_opt` says what is wrong with it.
  if isinstance(
      optimizer,
      (
          federated_optimizer.FederatedOptimizer,
          measured_update.ReportsOptimizer,
      ),
  ):
    raise ValueError(
        'Centralized training takes an optimizer that works without clients, '
        f'found {type(optimizer).__name__}, a rule of a federation. Use another'
        ' one, such as `tff_adaptive.optimizers.build_adam()`.'
    )
  return federated_optimizer.CarriedOptimizer(optimizer)


def build_centralized(
    model: model_adapter.Model,
    client_optimizer: tff.learning.optimizers.Optimizer,
    *,
    metrics_aggregator: Optional[
        tff.learning.metrics.MetricsAggregatorType
    ] = None,
    client_schedule: Optional[schedules.Schedule] = None,
    clip_norm: Optional[float] = None,
    weight_decay: float = 0.0,
    loop_implementation: tff.learning.LoopImplementation = (
        tff.learning.LoopImplementation.DATASET_REDUCE
    ),
    trace_steps: bool = False,
) -> tff.learning.templates.LearningProcess:
  """Builds training without a federation, the baseline of federated methods.

  Its data are one client a round, a part of the pool of all clients' examples,
  such as `tff_adaptive.simulation.build_pooled_cohort_fn` gives. The server
  sends the model and the state of the optimizer; the client takes its steps;
  the server takes over both. So all rounds together are one run of the
  optimizer, as if there were none, up to the rounding of one subtraction a
  round: what is sent is the change of the model.

  It is `build_fed_opt` with FedAvg of rate 1, and has its metrics; the client
  counts as one, and its examples are those of the round. A round whose result
  is not finite leaves the model and the optimizer's state as they were. The
  state's `client_work` is an ordered dictionary of

  - `hparams`: those of the optimizer;
  - `round_num`: the number of finished rounds, int32;
  - `shared`: the rest of the optimizer's state, under its own names, counts in
    float64;
  - `aggregator`: nothing.

  Of several clients in a round the models and the states are averaged, all
  clients alike, which is another algorithm.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: What trains: any optimizer that needs no federation.
    metrics_aggregator: As in `build_fed_opt`.
    client_schedule: As in `build_fed_opt`: a factor of the learning rate by the
      number of finished rounds. Default `None`: the rate is constant.
    clip_norm: The largest norm of a local gradient, over all weights, above
      zero, as in `build_fed_opt`. Default `None`: no clipping.
    weight_decay: Adds this times the weights to each local gradient, as in
      `build_fed_opt`; not negative. Default 0.
    loop_implementation: As in `build_fed_opt`.
    trace_steps: As in `build_fed_opt`. Default False.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: If the state of the optimizer is no mapping; see also
      `build_fed_opt`.
    ValueError: If the optimizer is a rule of a federation; see also
      `build_fed_opt`.

  Example:

    ```python
    process = algorithms.build_centralized(
        digits.functional_model, optimizers.build_adam(learning_rate=0.001)
    )
    cohort_fn = simulation.build_pooled_cohort_fn(digits, seed=0)
    state = process.initialize()
    for round_num in range(digits.protocol.total_rounds):
      state = process.next(state, cohort_fn(round_num)).state
    ```

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Table 3, first row.
  """
  return fed_opt.build_fed_opt(
      model,
      _carry(client_optimizer),
      client_weighting=tff.learning.ClientWeighting.UNIFORM,
      metrics_aggregator=metrics_aggregator,
      client_schedule=client_schedule,
      clip_norm=clip_norm,
      weight_decay=weight_decay,
      loop_implementation=loop_implementation,
      trace_steps=trace_steps,
  )
