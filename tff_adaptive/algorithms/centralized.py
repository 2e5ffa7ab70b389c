# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Centralized training, the baseline of federated methods."""

from typing import Any, Optional

import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.algorithms import fed_opt
from tff_adaptive.client_works import model_adapter
from tff_adaptive.client_works import model_checks
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import schedules
from tff_adaptive.optimizers import server_optimizer


def _carry(optimizer: Any) -> Any:
  """Returns an optimizer whose state crosses rounds."""
  if not isinstance(optimizer, tff.learning.optimizers.Optimizer):
    return optimizer  # `build_fed_opt` raises.
  if isinstance(
      optimizer,
      (
          federated_optimizer.FederatedOptimizer,
          server_optimizer.ServerOptimizer,
      ),
  ):
    raise ValueError(
        'Centralized training needs an optimizer that works without clients, '
        f'found {optimizer_lib.name_of(optimizer)}, a federated rule. Use '
        'another one, such as `tff_adaptive.optimizers.build_adam()`.'
    )
  return federated_optimizer.CarriedOptimizer(optimizer)


@model_checks.builds_models
def build_centralized(
    model: model_adapter.Model,
    client_optimizer: tff.learning.optimizers.Optimizer,
    *,
    metrics_aggregator: Optional[
        tff.learning.metrics.MetricsAggregatorType
    ] = None,
    client_schedule: Optional[schedules.Schedule] = None,
    clip_norm: Optional[ranges.Positive] = None,
    weight_decay: ranges.NotNegative = 0.0,
    loop_implementation: tff.learning.LoopImplementation = (
        tff.learning.LoopImplementation.DATASET_REDUCE
    ),
    trace_steps: bool = False,
) -> tff.learning.templates.LearningProcess:
  """Builds centralized training, the baseline of federated methods.

  A round has one client: a part of the pooled examples of all clients, as from
  `tff_adaptive.simulation.build_pooled_cohort_fn`. The server sends the model
  and the state of the optimizer, the client trains, and the server takes over
  both. All rounds together are thus one run of the optimizer, up to the
  rounding of one subtraction per round, since clients send updates.

  This is `build_fed_opt` with FedAvg of rate 1, and has its metrics. A round
  whose result is not finite does not change the model or the optimizer's state.
  The state's `client_work` is an ordered dictionary of

  - `hparams`: the hyperparameters of the optimizer;
  - `round_num`: the number of rounds that changed the state, int32;
  - `shared`: the rest of the optimizer's state, under the same names, with
    counts in float64;
  - `aggregator`: empty.

  Rounds with several clients average their models and states with equal
  weights, which is no longer centralized training.

  The model is the last iterate also for rules that send a mean at the end of a
  round: with Schedule-Free the model is y, and the mean x is `average` in
  `shared`; `send='average'` of DoG has no effect.

  Args:
    model: As in `build_fed_opt`.
    client_optimizer: Any optimizer that needs no federation.
    metrics_aggregator: As in `build_fed_opt`.
    client_schedule: Maps the number of finished rounds to a factor of the
      learning rate, as in `build_fed_opt`. Default `None`: a constant rate.
    clip_norm: The largest norm of a local gradient, over all weights, as in
      `build_fed_opt`. Default `None`: no clipping.
    weight_decay: Adds this times the weights to each local gradient, as in
      `build_fed_opt`. Default 0.
    loop_implementation: As in `build_fed_opt`.
    trace_steps: As in `build_fed_opt`. Default False.

  Returns:
    A `tff.learning.templates.LearningProcess`, see `build_fed_opt`.

  Raises:
    TypeError: If the state of the optimizer is not a mapping; see also
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
