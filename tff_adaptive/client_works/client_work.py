# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The client work of every algorithm whose clients send model updates."""

import collections
from collections.abc import Callable, Mapping
import functools
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import reports as reports_lib
from tff_adaptive.aggregators import weighting
from tff_adaptive.client_works import local_training
from tff_adaptive.client_works import loss_terms
from tff_adaptive.client_works import model_adapter
from tff_adaptive.client_works import model_checks
from tff_adaptive.client_works import server_state as server_state_lib
from tff_adaptive.client_works import totals
from tff_adaptive.data import cohort
from tff_adaptive.optimizers import client_reports
from tff_adaptive.optimizers import federated_optimizer
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import vectors

_OrderedDict = collections.OrderedDict

# The entry of the measured `steps` that counts them.
NUM_STEPS_KEY = 'num_steps'


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
  keeps_model = isinstance(training.loss_term, loss_terms.PreviousModelLossTerm)
  if keeps_model and getattr(optimizer, 'averages_surveys', False):
    raise ValueError(
        f'{optimizer_lib.name_of(optimizer)} averages the gradients of '
        'clients before training, without the previous models that the loss '
        'term needs: use `tff_adaptive.optimizers.build_mimelite`.'
    )
  if training.max_update_norm is not None:
    optimizer_lib.check_positive(
        'max_update_norm', training.max_update_norm, 'Client'
    )


class _ClientUpdate:
  """The work of a client in a round, without its graph.

  Attributes:
    adapter: The model.
    training: The local training.
    weighs_examples: Whether clients are weighted by their examples.
    specs: The specs of the trainable weights, a flat tuple.
    kept_type: The type of the parts that a client keeps, or `None`.
    input_type: The type of a client's input.
    survey: The computation of statistics to be averaged before the training, or
      `None`.
  """

  def __init__(
      self,
      adapter: model_adapter.ModelAdapter,
      training: local_training.LocalTraining,
      weighs_examples: bool,
  ):
    self.adapter = adapter
    self.training = training
    self.weighs_examples = weighs_examples
    self.specs = tuple(tf.nest.flatten(adapter.weights_spec.trainable))
    kept = tff.tensorflow.computation(
        lambda: training.initial_kept(vectors.zeros(self.specs))
    )
    kept_type = kept.type_signature.result
    data_type = tff.SequenceType(adapter.element_type)
    self.kept_type, self.input_type = None, data_type
    self.survey: Optional[tff.Computation] = None
    self._num_survey_gradients = 0
    if getattr(training.optimizer, 'averages_surveys', False):
      self.survey = self._build_survey()
    if not tff.structure.flatten(kept_type):
      return
    self.kept_type = kept_type
    self.input_type = tff.StructWithPythonType(
        [
            (cohort.DATA_KEY, data_type),
            (cohort.ID_KEY, tff.SequenceType(np.str_)),
            (cohort.STATE_KEY, tff.SequenceType(kept_type)),
        ],
        _OrderedDict,
    )

  def _build_survey(self) -> tff.Computation:
    """Returns a computation from (weights, data) to statistics and a weight."""

    @tff.tensorflow.computation(self.adapter.weights_type, self.input_type)
    def run(weights, dataset):
      model = self.adapter.build_local_model()

      @tf.function
      def look(weights, dataset):
        found, data = self.training.survey(model, weights, dataset)
        self._num_survey_gradients = data.num_gradients
        return found, data.num_examples()

      found, num_examples = look(weights, dataset)
      is_healthy = vectors.all_finite(found)
      weight = num_examples
      if not self.weighs_examples:
        weight = tf.minimum(num_examples, 1.0)
      # Selected, not multiplied by zero: 0 * NaN is NaN.
      found = tf.nest.map_structure(
          lambda t: tf.where(is_healthy, t, tf.zeros_like(t)), found
      )
      return found, tf.where(is_healthy, weight, 0.0)

    return run

  def build_computation(
      self, hparams_type: tff.Type, shared_type: Optional[tff.Type]
  ) -> tff.Computation:
    """Returns the computation of (hparams, weights, client input, shared).

    Args:
      hparams_type: The type of the optimizer's hyperparameters.
      shared_type: The type of the pair (round number, shared parts); `None` if
        the optimizer is not federated, which removes the last argument.

    Returns:
      A computation that returns an ordered dictionary of `result`, a
      `tff.learning.templates.ClientResult`, `statistics`, `metrics`,
      `rejections` (one row) and, if there are any, `sent` and `sent_weight`,
      `client_states` (one row) and `is_healthy`, and `steps`.
    """

    def run(hparams, weights, client_input, round_and_shared):
      model = self.adapter.build_local_model()
      train = tf.function(functools.partial(self.training, model))
      start = self._read_start(weights, client_input, round_and_shared)
      dataset = client_input[cohort.DATA_KEY] if start.kept else client_input
      result = train(weights, hparams, dataset, start)
      return self._report(result, weights, client_input)

    def run_with_survey(
        hparams, weights, client_input, round_and_shared, found
    ):
      round_num, shared = round_and_shared
      shared = _OrderedDict(shared, **found)
      return run(hparams, weights, client_input, (round_num, shared))

    parameters = [hparams_type, self.adapter.weights_type, self.input_type]
    if shared_type is None:
      return tff.tensorflow.computation(
          lambda hparams, weights, client_input: run(
              hparams, weights, client_input, (0, _OrderedDict())
          ),
          parameters,
      )
    parameters.append(shared_type)
    if self.survey is None:
      return tff.tensorflow.computation(run, parameters)
    return tff.tensorflow.computation(
        run_with_survey, [*parameters, self.survey.type_signature.result[0]]
    )

  def _read_start(
      self, weights: Any, client_input: Any, round_and_shared: Any
  ) -> local_training.RoundStart:
    """Returns the inputs of the round besides the model."""
    round_num, shared = round_and_shared
    received = tuple(tf.nest.flatten(weights.trainable))
    kept = self.training.initial_kept(received)
    if kept:
      # Has one element, or none in the client's first participation.
      kept = client_input[cohort.STATE_KEY].reduce(kept, lambda _, s: s)
    return local_training.RoundStart(
        shared, kept, round_num, self._num_survey_gradients
    )

  def _report(
      self, result: local_training.LocalResult, weights: Any, client_input: Any
  ) -> Any:
    """Returns the client's result."""
    num_examples = tf.cast(result.num_examples, tf.float32)
    uniform_weight = tf.minimum(num_examples, 1.0)
    weight = num_examples if self.weighs_examples else uniform_weight
    update = tf.nest.pack_sequence_as(weights.trainable, result.update)
    if self.training.reports:
      update = _OrderedDict(change=update, reports=result.reports)
    output = _OrderedDict(
        result=tff.learning.templates.ClientResult(update, weight),
        statistics=result.statistics,
        metrics=result.metrics,
        rejections=result.rejection[tf.newaxis],
    )
    if result.sent:
      output['sent'] = result.sent
      output['sent_weight'] = (
          uniform_weight
          if self.training.optimizer.averages_uniformly
          else weight
      )
    if result.kept:
      output['client_states'] = _one_row(result, client_input)
      output['is_healthy'] = result.is_healthy
    if result.trace:
      # The shape of a vector, itself a vector of length 1.
      num_steps = tf.shape(next(iter(result.trace.values())), tf.int64)
      output['steps'] = _OrderedDict(
          [(NUM_STEPS_KEY, num_steps), *result.trace.items()]
      )
    return output


def _one_row(result: local_training.LocalResult, client_input: Any) -> Any:
  """Returns the client's id and state, with an axis to stack along."""
  client_id = client_input[cohort.ID_KEY].reduce('', lambda _, text: text)
  return tf.nest.map_structure(
      lambda tensor: tensor[tf.newaxis],
      _OrderedDict(client_id=client_id, client_state=result.kept),
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
        Callable[[client_reports.ClientRoundEnd], model_adapter.Weights]
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
  reports=R> with reports. Its weight is the number of examples seen over all
  epochs, or 1, and 0 for an unhealthy client. A client is unhealthy if it has
  no examples, if its update, loss, reports, sent or kept parts are not finite,
  or if its update has a norm above `max_update_norm`. It sends zeros and counts
  only in `num_clients`, `num_rejected` and the bytes. Mime averages gradients
  before the training. This average leaves out only clients without examples or
  with gradients that are not finite.

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
      without the previous models of the loss term, or `max_update_norm` is not
      above zero.

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
  update = _ClientUpdate(adapter, training, weighs_examples)
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
    update: _ClientUpdate,
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
    measurements = _OrderedDict(
        train=aggregate_metrics(reported['metrics']),
        clients=tff.federated_map(measure, aggregated),
        **_stack_by_client(reported),
    )
    num_healthy = aggregated['sum']['num_healthy']
    return tff.templates.MeasuredProcessOutput(
        server_state.next(state, reported, num_healthy),
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
