# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""FedOpt: any client optimizer, any server optimizer, any aggregator.

The generalized federated averaging of Reddi et al., Adaptive Federated
Optimization, ICLR 2021, https://arxiv.org/abs/2003.00295, Algorithm 1. A round
has four parts, which `build_fed_opt` composes:

```
prepare    send x_t to the clients i of the cohort  (TFF's)
train      delta_i = ClientOpt(x_t; batches) - x_t  (client_works)
aggregate  delta = sum_i w_i delta_i / sum_i w_i    (aggregators, TFF's)
update     x_{t+1} = ServerOpt(x_t, -delta)         (measured_update)
```
"""

from collections.abc import Mapping
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.aggregators import reports as reports_lib
from tff_adaptive.aggregators import weighting
from tff_adaptive.algorithms import measured_update
from tff_adaptive.algorithms import scaled_rates
from tff_adaptive.client_works import client_work
from tff_adaptive.client_works import local_training
from tff_adaptive.client_works import loss_terms
from tff_adaptive.client_works import model_adapter
from tff_adaptive.client_works import model_checks
from tff_adaptive.models import moved_weights
from tff_adaptive.optimizers import client_reports
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import schedules
from tff_adaptive.optimizers import server_optimizer as server_optimizer_lib
from tff_adaptive.optimizers.server import fedavg
from tff_adaptive.privacy import differential_privacy


@model_checks.builds_models
def build_fed_opt(
    model: model_adapter.Model,
    client_optimizer: tff.learning.optimizers.Optimizer,
    server_optimizer: Optional[tff.learning.optimizers.Optimizer] = None,
    *,
    client_weighting: Optional[tff.learning.ClientWeighting] = None,
    model_aggregator: Optional[weighting.Aggregator] = None,
    payload_aggregators: Optional[Mapping[str, weighting.Aggregator]] = None,
    privacy: Optional[differential_privacy.DifferentialPrivacy] = None,
    metrics_aggregator: Optional[
        tff.learning.metrics.MetricsAggregatorType
    ] = None,
    loss_term: Optional[loss_terms.LossTerm] = None,
    client_schedule: Optional[schedules.Schedule] = None,
    server_schedule: Optional[schedules.Schedule] = None,
    clip_norm: Optional[ranges.Positive] = None,
    weight_decay: ranges.NotNegative = 0.0,
    max_update_norm: Optional[ranges.Positive] = None,
    loop_implementation: tff.learning.LoopImplementation = (
        tff.learning.LoopImplementation.DATASET_REDUCE
    ),
    trace_steps: bool = False,
) -> tff.learning.templates.LearningProcess:
  """Builds generalized federated averaging.

  In every round the server sends its model to the clients of the cohort. Each
  client trains it with `client_optimizer`, whose state is new in every round,
  and sends its update. The server aggregates the updates and takes one step of
  `server_optimizer`:

  ```
  delta_i = ClientOpt(x_t; batches of i) - x_t
  x_{t+1} = ServerOpt(x_t, -sum_i w_i delta_i / sum_i w_i)
  ```

  The process has the type signatures of TFF's learning processes, with S a
  `tff.learning.templates.LearningAlgorithmState`:

  - initialize: ( -> S@SERVER)
  - next: (<S@SERVER, {B*}@CLIENTS> -> <state=S@SERVER, metrics=M@SERVER>)

  and TFF's accessors of model weights and hyperparameters. `get_hparams`
  returns those of the client optimizer under `client_work` and those of the
  server optimizer under `finalizer`.

  A client is rejected if it has no examples, if its update, loss or a step size
  is not finite, or if its update is larger than `max_update_norm`. It then
  sends zeros with weight zero, and the metrics count and name it. In a round
  without a healthy client, model, optimizer and aggregator do not change,
  except with `privacy`. With SGD on both sides and server rate 1, the results
  equal those of `tff.learning.algorithms.build_weighted_fed_avg`; stock
  `build_unweighted_fed_avg` divides by all clients, rejected or not.

  With one client per round and `server_optimizer=build_fedavg(alpha)` this is
  Lookahead: the client's steps are the fast weights, x_{t+1} = x_t + alpha
  (x_{t,K} - x_t) (Zhang et al., NeurIPS 2019,
  https://arxiv.org/abs/1907.08610).

  Args:
    model: A `tff.learning.models.FunctionalModel`, or a function without
      arguments that returns a new `tff.learning.models.VariableModel` at every
      call.
    client_optimizer: A `tff.learning.optimizers.Optimizer`, or its superset
      `tff_adaptive.optimizers.ExtraArgsOptimizer`.
    server_optimizer: A `tff.learning.optimizers.Optimizer`. Default
      `tff_adaptive.optimizers.build_fedavg()`, the weighted mean of the
      clients' models.
    client_weighting: `NUM_EXAMPLES` weights a client by its examples in the
      round, over all epochs; `UNIFORM`, as in Delta-SGD's paper, weights all
      healthy clients equally. Default `None`: the `client_weighting` of the
      client optimizer, which is `NUM_EXAMPLES`, as in TFF, unless its builder
      says otherwise.
    model_aggregator: A weighted aggregation factory for the model update, such
      as `tff.learning.robust_aggregator()`, which sees float16 as float32. An
      unweighted one, such as `tff.learning.dp_aggregator(...)`, requires
      `UNIFORM`; its denominator counts rejected clients, which send zeros. So
      do the quantiles to which zeroing and clipping adapt, in any aggregator.
      Default `tff.aggregators.MeanFactory()`. The clients' statistics (sums of
      loss, examples and steps, the smallest and largest step size) and the
      total weight are always summed in the clear.
    payload_aggregators: Aggregation factories, by name, for what clients send
      besides the update: the parts that a `FederatedOptimizer` shares, the
      reports that the server optimizer needs (see their builders) and the
      'batch_statistics' of `tff_adaptive.models.from_keras`. The default
      is a mean in the clear, so a secure `model_aggregator` needs secure ones
      here, too. A private `model_aggregator` without any for them is rejected.
    privacy: Clips, sums and noises the update and all other payloads, in place
      of the two arguments above. Requires `UNIFORM` and float32 weights. Every
      round releases noise, even one without a healthy client. Default `None`:
      no privacy.
    metrics_aggregator: As in `tff.learning.algorithms.build_weighted_fed_avg`.
    loss_term: A function of (weights, received weights, batch) that is added to
      the loss of each batch, see `tff_adaptive.client_works.build_fedprox`.
    client_schedule: Maps the number of finished rounds to a factor of the
      client optimizer's learning rate, see
      `tff_adaptive.optimizers.schedules`. The state of the client work then
      also counts rounds. Default `None`: a constant rate.
    server_schedule: The same for the server optimizer.
    clip_norm: The largest norm of a local gradient, over all weights; larger
      gradients are scaled down before the client optimizer sees them. Default
      `None`: no clipping.
    weight_decay: Adds this times the weights to each local gradient, after
      clipping. Default 0.
    max_update_norm: The largest norm of a healthy client's update, over all
      trainable weights. It rejects clients whose training explodes but stays
      finite, and does not limit other payloads. Default `None`.
    loop_implementation: See `tff.learning.LoopImplementation`.
    trace_steps: Whether the metrics hold the loss and the client optimizer's
      report of every local step, under `client_work` and `steps`; see
      `tff_adaptive.analysis.trace_round`. Default False.

  Returns:
    A `tff.learning.templates.LearningProcess`. Its metrics are an ordered
    dictionary of `distributor`, `client_work` (see
    `tff_adaptive.client_works.build_local_training_client_work`),
    `aggregator` and `finalizer` (`update_non_finite`, 1 if the round's update
    was rejected, and `update_norm`, the norm of the aggregated update).

  Raises:
    TypeError: If an argument does not have the documented type, or a trainable
      weight is not float16, float32 or float64, or the model takes ragged
      tensors.
    ValueError: If TFF's form of a Keras model lacks a part of it, such as
      `add_loss` (names the layer and another way); an unweighted aggregator
      meets `NUM_EXAMPLES`; an aggregator is given for a payload that no client
      sends, or for a maximum; a report has the name of a part that the client
      optimizer shares; a payload would bypass differential privacy; Mime
      meets MOON or batch statistics that clients keep, which its first exchange
      does not have; the server optimizer needs batches or step sizes that the
      client optimizer does not have; a schedule meets an optimizer without a
      learning rate; or a number is out of its range.

  Example:

    ```python
    from tff_adaptive import algorithms
    from tff_adaptive import optimizers

    process = algorithms.build_fed_opt(
        model,
        optimizers.build_delta_sgd(),
        client_weighting=tff.learning.ClientWeighting.UNIFORM,
    )
    state = process.initialize()
    output = process.next(state, client_datasets)
    output.metrics['client_work']['clients']['step_size_mean']
    ```

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Algorithm 1 (uniform weights) and
    Algorithm 5 (weights by examples).
  """
  if client_weighting is None:
    client_weighting = getattr(
        client_optimizer,
        'client_weighting',
        tff.learning.ClientWeighting.NUM_EXAMPLES,
    )
  server_rule = _build_server_rule(
      client_optimizer, server_optimizer, client_weighting
  )
  adapter = model_adapter.build_model_adapter(model)
  _check_dtypes(adapter.weights_spec)
  sent_aggregator, shared_aggregators = _choose_aggregators(
      privacy,
      model_aggregator,
      payload_aggregators,
      adapter=adapter,
      client_optimizer=client_optimizer,
      reports=server_rule.client_reports,
      client_weighting=client_weighting,
  )
  prepare = tff.learning.templates.build_broadcast_process(adapter.weights_type)
  train = client_work.build_local_training_client_work(
      model,
      client_optimizer,
      client_weighting,
      metrics_aggregator=metrics_aggregator,
      loss_term=loss_term,
      gradient_options=local_training.GradientOptions(clip_norm, weight_decay),
      loop_implementation=loop_implementation,
      reports=server_rule.client_reports,
      client_update=server_rule.client_update,
      shared_aggregators=shared_aggregators,
      num_expected_clients=privacy.clients_per_round if privacy else None,
      trace_steps=trace_steps,
      max_update_norm=max_update_norm,
  )
  sent_type = train.next.type_signature.result.result.member
  aggregate = sent_aggregator.create(sent_type.update, sent_type.update_weight)
  update = measured_update.build_measured_update_finalizer(
      server_rule, adapter.weights_type, adapter.moved_weights
  )
  process = tff.learning.templates.compose_learning_process(
      tff.tensorflow.computation(adapter.initial_weights),
      prepare,
      scaled_rates.schedule_process(train, client_schedule, 'client optimizer'),
      aggregate,
      scaled_rates.schedule_process(
          update, server_schedule, 'server optimizer'
      ),
  )
  # The caller's aggregators may be private, too.
  state_type = process.initialize.type_signature.result.member
  _check_averaged_survey(
      client_optimizer, differential_privacy.is_private(state_type)
  )
  return scaled_rates.scale_client_rate(process, server_rule)


def _build_server_rule(
    client_optimizer: Any,
    server_optimizer: Any,
    client_weighting: tff.learning.ClientWeighting,
) -> server_optimizer_lib.ServerOptimizer:
  """Returns the rule of the server, with what the clients' rule adds to it."""
  if isinstance(client_optimizer, server_optimizer_lib.ServerOptimizer):
    raise ValueError(
        'The client optimizer must not be a rule of servers, found '
        f'{optimizer_lib.name_of(client_optimizer)}. Use it as the server '
        'optimizer.'
    )
  server_optimizer = server_optimizer or fedavg.build_fedavg()
  if isinstance(client_optimizer, federated_optimizer.FederatedOptimizer):
    server_optimizer = client_optimizer.at_server(
        server_optimizer, client_weighting
    )
  rule = server_optimizer_lib.to_server_optimizer(server_optimizer)
  rule.check_client(client_optimizer)
  return rule


def _check_averaged_survey(optimizer: Any, is_private: bool) -> None:
  """Raises if clients average gradients in a private process."""
  if is_private and getattr(optimizer, 'averages_surveys', False):
    raise ValueError(
        f'{optimizer_lib.name_of(optimizer)} averages the gradients of '
        'clients before training, which bypasses differential privacy: use '
        '`tff_adaptive.optimizers.build_mimelite`.'
    )


def _check_dtypes(weights_spec: Any) -> None:
  """Raises if TFF's aggregators do not support the dtypes of the weights."""
  for spec in tf.nest.flatten(weights_spec.trainable):
    if spec.dtype not in (tf.float16, tf.float32, tf.float64):
      raise TypeError(
          f'The model has trainable weights of dtype {spec.dtype.name}, which '
          "TFF's aggregators do not support: keep the weights in float32 and "
          'cast inside the model.'
      )


def _choose_aggregators(
    privacy: Optional[differential_privacy.DifferentialPrivacy],
    model_aggregator: Optional[weighting.Aggregator],
    payload_aggregators: Optional[Mapping[str, weighting.Aggregator]],
    *,
    adapter: model_adapter.ModelAdapter,
    client_optimizer: Any,
    reports: Mapping[str, client_reports.Report],
    client_weighting: tff.learning.ClientWeighting,
) -> tuple[
    tff.aggregators.WeightedAggregationFactory, dict[str, weighting.Aggregator]
]:
  """Returns that of updates and reports, and those of shared parts."""
  _check_averaged_survey(client_optimizer, privacy is not None)
  weighs_examples = (
      client_weighting == tff.learning.ClientWeighting.NUM_EXAMPLES
  )
  model_aggregator, payload_aggregators = (
      differential_privacy.choose_aggregators(
          privacy,
          model_aggregator,
          payload_aggregators or {},
          payloads=_payloads(client_optimizer, reports, adapter),
          trainable_type=adapter.weights_type.trainable,
          weighs_examples=weighs_examples,
      )
  )
  num_expected_clients = privacy.clients_per_round if privacy else None
  sent: tff.aggregators.WeightedAggregationFactory = weighting.WidenedFactory(
      weighting.to_weighted(
          model_aggregator, weighs_examples, '`model_aggregator`'
      )
  )
  parts: dict[str, tff.aggregators.WeightedAggregationFactory] = {}
  if reports:
    parts['reports'] = reports_lib.build_reports_factory(
        {name: report.reduction for name, report in reports.items()},
        payload_aggregators,
        weighs_examples,
        num_expected_clients,
    )
  in_update = [*reports]
  if adapter.moved_weights.is_sent:
    in_update.append(moved_weights.BATCH_STATISTICS)
    parts[moved_weights.BATCH_STATISTICS] = weighting.WidenedFactory(
        weighting.to_weighted(
            payload_aggregators.get(moved_weights.BATCH_STATISTICS),
            weighs_examples,
            f'The aggregator of {moved_weights.BATCH_STATISTICS!r}',
        )
    )
  if parts:
    sent = reports_lib.NamedFactory({'change': sent, **parts})
  if num_expected_clients is None:
    # With privacy, a round without change would reveal that no healthy client
    # participated.
    sent = weighting.HealthyRoundsFactory(sent)
  shared = {
      name: aggregator
      for name, aggregator in payload_aggregators.items()
      if name not in in_update
  }
  return sent, shared


def _payloads(
    client_optimizer: Any,
    reports: Mapping[str, client_reports.Report],
    adapter: model_adapter.ModelAdapter,
) -> dict[str, str]:
  """Returns how what clients send besides the update is reduced, by name."""
  payloads: dict[str, str] = {
      name: report.reduction
      for name, report in reports.items()
      if report.reduction != 'count'
  }
  if adapter.moved_weights.is_sent:
    payloads[moved_weights.BATCH_STATISTICS] = 'mean'
  if isinstance(client_optimizer, federated_optimizer.FederatedOptimizer):
    specs = tuple(tf.nest.flatten(adapter.weights_spec.trainable))
    with tf.Graph().as_default():
      shared = client_optimizer.initialize_shared(specs)
    if both := sorted(shared.keys() & reports.keys()):
      raise ValueError(
          f'{both[0]!r} is both a report of the server rule and a part that '
          f'{optimizer_lib.name_of(client_optimizer)} shares, so that an '
          'aggregator would protect one of both: rename the report.'
      )
    payloads.update(dict.fromkeys(shared, 'mean'))
  return payloads
