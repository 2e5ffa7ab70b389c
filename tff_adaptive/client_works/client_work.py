# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The client work of every algorithm whose clients send model updates."""

import collections
from collections.abc import Callable, Mapping
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import ranges
from tff_adaptive.aggregators import reports as reports_lib
from tff_adaptive.aggregators import weighting
from tff_adaptive.client_works import client_update as client_update_lib
from tff_adaptive.client_works import local_models
from tff_adaptive.client_works import local_training
from tff_adaptive.client_works import loss_terms
from tff_adaptive.client_works import model_adapter
from tff_adaptive.client_works import model_checks
from tff_adaptive.client_works import server_state as server_state_lib
from tff_adaptive.client_works import totals
from tff_adaptive.optimizers import arguments
from tff_adaptive.optimizers import client_reports
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib

_OrderedDict = collections.OrderedDict


def _num_bytes(type_spec: Optional[tff.Type]) -> int:
  """Returns the size of a value in bytes, for a type of known shapes."""
  if type_spec is None:
    return 0
  specs = tf.nest.flatten(tff.types.type_to_tf_tensor_specs(type_spec))
  return sum(spec.shape.num_elements() * spec.dtype.size for spec in specs)


def _check_arguments(
    training: local_training.LocalTraining, client_weighting: Any
) -> None:
  optimizer: Any = training.optimizer
  optimizer_lib.check_optimizer(optimizer, 'The client optimizer')
  if not isinstance(client_weighting, tff.learning.ClientWeighting):
    raise TypeError(
        '`client_weighting` must be a member of `tff.learning.ClientWeighting`,'
        f' found {client_weighting!r}.'
    )
  if not isinstance(
      training.loop_implementation, tff.learning.LoopImplementation
  ):
    raise TypeError(
        '`loop_implementation` must be a member of '
        '`tff.learning.LoopImplementation`, found '
        f'{training.loop_implementation!r}.'
    )
  loss_terms.check(training.loss_term)
  if training.max_update_norm is not None:
    arguments.check(
        'max_update_norm', training.max_update_norm, 'Client', ranges.Positive
    )


@model_checks.builds_models
def build_local_training_client_work(
    model: model_adapter.Model,
    optimizer: tff.learning.optimizers.Optimizer,
    client_weighting: tff.learning.ClientWeighting,
    *,
    metrics_aggregator: Optional[
        tff.learning.metrics.MetricsAggregatorType
    ] = None,
    loss_term: Optional[loss_terms.LossTerm] = None,
    gradient_options: local_training.GradientOptions = (
        local_training.GradientOptions()
    ),
    loop_implementation: tff.learning.LoopImplementation = (
        tff.learning.LoopImplementation.DATASET_REDUCE
    ),
    reports: Optional[totals.Reports] = None,
    client_update: Optional[
        Callable[[client_reports.ClientRoundEnd], local_models.Weights]
    ] = None,
    shared_aggregators: Optional[Mapping[str, weighting.Aggregator]] = None,
    num_expected_clients: Optional[int] = None,
    trace_steps: bool = False,
    max_update_norm: Optional[float] = None,
) -> tff.learning.templates.ClientWorkProcess:
  """Builds the work of clients that train and send their model updates.

  The process has the type signatures, with S its state, W the model's weights,
  T its trainable part and I a client's input:

  - initialize: ( -> S@SERVER)
  - next: (<S@SERVER, {W}@CLIENTS, {I}@CLIENTS> -> <state=S@SERVER,
    result={<update=U, update_weight=float32>}@CLIENTS, measurements=M@SERVER>)

  The state is the hyperparameters of the optimizer. With a
  `tff_adaptive.optimizers.FederatedOptimizer` it is an ordered dictionary of
  `hparams`, `round_num` (the number of rounds that changed the state, int32),
  `shared` (the optimizer's shared parts, by name) and `aggregator` (the states
  of their aggregators).

  The input is a sequence of batches, B*. If clients keep state, it is
  <data=B*, client_id=string*, client_state=C*>, with the client's id and its
  state, or no element if it has none yet. The measurement `client_states` then
  holds the new states, an ordered dictionary of `client_id`, [n], and
  `client_state`, [n, ...], of the healthy clients in the order of the input.
  `tff_adaptive.simulation.run_training` moves them between the process and a
  store.

  U is T, the received minus the trained weights, as in TFF, or <change=T,
  reports=R, batch_statistics=M>, with reports R or the change M of the moved
  weights, see `tff_adaptive.models.from_keras`. Its weight is the number of
  examples seen over all epochs, or 1, and 0 for an unhealthy client. A client
  is unhealthy if it has no examples, if its update, loss, reports, sent or kept
  parts are not finite, or if its update has a norm above `max_update_norm`. It
  sends zeros and counts only in `num_clients`, `num_rejected` and the bytes.
  Mime averages gradients before the training. This average leaves out only
  clients without examples or with gradients that are not finite.

  The measurements are an ordered dictionary of

  - `train`: the finalized training metrics of the model, over healthy clients;
  - `clients`: `loss` (mean over examples, before each step, with loss term),
    `num_clients`, `num_rejected`, `num_examples`, `num_steps`,
    `num_gradient_evaluations`; for each scalar that the optimizer reports
    (`step_size`; for Delta-SGD also `theta` and both limits of the step size)
    `_mean`, `_min` and `_max` over all local steps of healthy clients; and
    `bytes_down` and `bytes_up`, the uncompressed size of what all clients of
    the round receive and send for the model. Kept state counts as received, as
    if it were in a store at the server. Without a healthy client the means are
    NaN.
  - `shared`, if the optimizer shares parts: the measurements of their
    aggregators, by name;
  - `rejections`: for each client, in the order of the input, the value of its
    `Rejection`, int64 of shape [n];
  - `client_states`, if clients keep state, and `steps`, if asked for:
    `num_steps` of each client, healthy or not, and the loss and the optimizer's
    report of every step, client after client.

  Args:
    model: A `tff.learning.models.FunctionalModel` or a factory of
      `tff.learning.models.VariableModel`s.
    optimizer: A `tff.learning.optimizers.Optimizer`, an `ExtraArgsOptimizer` or
      a `FederatedOptimizer` of `tff_adaptive.optimizers`.
    client_weighting: A member of `tff.learning.ClientWeighting`.
    metrics_aggregator: As in `tff.learning.algorithms.build_weighted_fed_avg`.
      Default `tff.learning.metrics.sum_then_finalize`.
    loss_term: A term that is added to the loss of each batch, or `None`.
    gradient_options: Clipping and weight decay of the gradients; neither by
      default.
    loop_implementation: See `tff.learning.LoopImplementation`.
    reports: The clients' reports besides the update, by name; none by default.
    client_update: Maps the end of a client's round to what it sends in place of
      its update, see `tff_adaptive.optimizers.ServerOptimizer`. Default `None`.
    shared_aggregators: Aggregation factories by the names of the shared parts
      of a `FederatedOptimizer`; means by default.
    num_expected_clients: Under differential privacy, the expected number of
      clients in a round. It replaces the number of healthy clients, which is
      not private, when the server updates the shared parts, which it then does
      even in a round without healthy clients. Default `None`: no privacy.
    trace_steps: Whether to measure every step. Default False.
    max_update_norm: The largest norm of a healthy client's update, over all
      trainable weights, above zero, or `None`.

  Returns:
    A `tff.learning.templates.ClientWorkProcess`.

  Raises:
    TypeError: If an argument does not have the documented type.
    ValueError: If an unweighted aggregator would ignore the examples, an
      aggregator is given for a part that is not shared, a report reads what the
      optimizer does not report, gradients are averaged before the training
      without what clients keep, or `max_update_norm` is not above zero.

  Example:

    ```python
    work = client_works.build_local_training_client_work(
        model,
        optimizers.build_delta_sgd(),
        tff.learning.ClientWeighting.NUM_EXAMPLES,
    )
    ```
  """
  training = local_training.LocalTraining(
      optimizer,
      loss_term,
      gradient_options,
      loop_implementation,
      reports or {},
      client_update,
      trace_steps,
      max_update_norm,
  )
  _check_arguments(training, client_weighting)
  if not (metrics_aggregator is None or callable(metrics_aggregator)):
    raise TypeError(
        '`metrics_aggregator` must be a function, such as '
        '`tff.learning.metrics.sum_then_finalize`, found '
        f'{type(metrics_aggregator).__name__}.'
    )
  adapter = model_adapter.build_model_adapter(model)
  weighs_examples = (
      client_weighting == tff.learning.ClientWeighting.NUM_EXAMPLES
  )
  update = client_update_lib.ClientUpdate(adapter, training, weighs_examples)
  shared_aggregators = shared_aggregators or {}
  server_state: server_state_lib.ServerState
  if isinstance(optimizer, federated_optimizer.FederatedOptimizer):
    server_state = server_state_lib.FederatedState(
        optimizer,
        update.specs,
        shared_aggregators,
        weighs_examples,
        num_expected_clients,
    )
  else:
    weighting.check_names(shared_aggregators, (), '`shared_aggregators`')
    server_state = server_state_lib.ServerState(optimizer)
  build_aggregator = (
      metrics_aggregator or tff.learning.metrics.sum_then_finalize
  )
  process = _build_process(
      update, server_state, build_aggregator(adapter.metric_finalizers)
  )
  measured = process.next.type_signature.result.measurements.member
  model_checks.warn_of_matrices(measured['train'])
  return process


def _build_process(
    update: client_update_lib.ClientUpdate,
    server_state: server_state_lib.ServerState,
    aggregate_metrics: Any,
) -> tff.learning.templates.ClientWorkProcess:
  """Returns the process of a client update and a server state."""
  state_type = server_state.initialize.type_signature.result.member
  hparams_type = server_state.hparams_type
  client_update = update.build_computation(
      hparams_type, server_state.shared_type
  )
  measure = _build_measure(update, client_update, server_state)

  @tff.federated_computation(
      server_state.initialize.type_signature.result,
      tff.FederatedType(update.adapter.weights_type, tff.CLIENTS),
      tff.FederatedType(update.input_type, tff.CLIENTS),
  )
  def next_fn(state, weights, client_input):
    hparams, *shared = server_state.broadcast(state)
    if update.survey is not None:
      found = tff.federated_map(update.survey, (weights, client_input))
      mean = tff.federated_mean(found[0], found[1])
      shared.append(tff.federated_broadcast(mean))
    reported = tff.federated_map(
        client_update, (hparams, weights, client_input, *shared)
    )
    aggregated = reports_lib.aggregate_statistics(reported['statistics'])
    new_state, measured = server_state.next(
        state, reported, aggregated['sum']['num_healthy']
    )
    measurements = _OrderedDict(
        train=aggregate_metrics(reported['metrics']),
        clients=tff.federated_map(measure, aggregated),
        **measured,
        **_stack_by_client(reported),
    )
    return tff.templates.MeasuredProcessOutput(
        new_state,
        reported['result'],
        tff.federated_zip(measurements),
    )

  @tff.tensorflow.computation(state_type)
  def get_hparams(state):
    return server_state.get_hparams(state)

  @tff.tensorflow.computation(state_type, hparams_type)
  def set_hparams(state, new_hparams):
    return server_state.set_hparams(state, new_hparams)

  return tff.learning.templates.ClientWorkProcess(
      server_state.initialize,
      next_fn,
      get_hparams_fn=get_hparams,
      set_hparams_fn=set_hparams,
  )


def _stack_by_client(reported: Any) -> dict[str, Any]:
  """Returns the clients' individual results, stacked at the server."""
  names = [
      name
      for name, _ in tff.structure.iter_elements(reported.type_signature.member)
  ]
  stacked = {'rejections': reports_lib.stack_at_server(reported['rejections'])}
  if 'client_states' in names:
    stacked['client_states'] = reports_lib.stack_at_server(
        reported['client_states'], keep=reported['is_healthy']
    )
  if 'steps' in names:
    stacked['steps'] = reports_lib.stack_at_server(reported['steps'])
  return stacked


def _build_measure(update, client_update, server_state):
  """Returns the computation from aggregated statistics to metrics."""
  result_type = client_update.type_signature.result
  # The survey of Mime is a value and its weight; the mean value comes back.
  survey = update.survey and update.survey.type_signature.result
  received = (
      server_state.hparams_type,
      update.adapter.weights_type,
      server_state.shared_type,
      update.kept_type,
      survey and survey[0],
  )
  sent = (
      survey,
      *(
          part_type
          for name, part_type in tff.structure.iter_elements(result_type)
          if name in ('result', 'sent', 'sent_weight')
      ),
  )
  bytes_down, bytes_up = (
      sum(map(_num_bytes, parts)) for parts in (received, sent)
  )

  @tff.tensorflow.computation(result_type['statistics'])
  def measure(aggregated):
    return totals.measure_clients(aggregated, bytes_down, bytes_up)

  return measure
