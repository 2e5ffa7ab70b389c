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
"""The client work of every algorithm that sends a model change."""

import collections
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import _compat
from tff_adaptive.aggregators import statistics
from tff_adaptive.client_works import gradients
from tff_adaptive.client_works import local_training
from tff_adaptive.client_works import model_adapter

_OrderedDict = collections.OrderedDict


def _num_bytes(type_spec: _compat.Type) -> int:
  """The size of a value of a type whose shapes are known, in bytes."""
  specs = tf.nest.flatten(tff.types.type_to_tf_tensor_specs(type_spec))
  return sum(spec.shape.num_elements() * spec.dtype.size for spec in specs)


def _initial_hparams(optimizer: tff.learning.optimizers.Optimizer) -> Any:
  # Hyperparameters do not depend on the weights, so any spec will do.
  whimsy_spec = tf.TensorSpec([], tf.float32)
  return optimizer.get_hparams(optimizer.initialize(whimsy_spec))


def _measure(
    aggregated: Any, bytes_down: int, bytes_up: int
) -> '_OrderedDict[str, tf.Tensor]':
  """What a round reports of its clients, from their aggregated statistics."""
  sums = aggregated['sum']
  examples, steps = (
      tf.cast(sums[key], tf.float32) for key in ('num_examples', 'num_steps')
  )
  measured = _OrderedDict(
      [
          ('loss', sums['loss'] / examples),
          ('num_clients', sums['num_clients']),
          ('num_rejected', sums['num_clients'] - sums['num_healthy']),
          ('num_examples', sums['num_examples']),
          ('num_steps', sums['num_steps']),
          ('num_gradient_evaluations', sums['num_gradient_evaluations']),
      ]
  )
  nothing = tf.constant(float('nan'))
  for name in aggregated['min']:
    measured[f'{name}_mean'] = sums[name] / steps
    for key in ('min', 'max'):
      value = aggregated[key][name]
      measured[f'{name}_{key}'] = tf.where(steps > 0.0, value, nothing)
  measured['bytes_down'] = sums['num_clients'] * bytes_down
  measured['bytes_up'] = sums['num_clients'] * bytes_up
  return measured


def _build_client_update(
    adapter: model_adapter.ModelAdapter,
    optimizer: tff.learning.optimizers.Optimizer,
    client_weighting: tff.learning.ClientWeighting,
    hparams_type: _compat.Type,
    **loop_kwargs,
):
  """The TFF computation that a client runs."""
  weigh_by_examples = (
      client_weighting == tff.learning.ClientWeighting.NUM_EXAMPLES
  )

  @tff.tensorflow.computation(
      hparams_type,
      adapter.weights_type,
      _compat.SequenceType(adapter.element_type),
  )
  def client_update(hparams, weights, dataset):
    train = local_training.build_local_training(
        adapter.build_local_model(), optimizer, **loop_kwargs
    )
    result = train(weights, hparams, dataset)
    weight = tf.cast(result.num_examples, tf.float32)
    if not weigh_by_examples:
      weight = tf.minimum(weight, 1.0)
    update = tf.nest.pack_sequence_as(weights.trainable, result.update)
    client_result = tff.learning.templates.ClientResult(update, weight)
    return client_result, result.statistics, result.metrics

  return client_update


def build_local_training_client_work(
    model: model_adapter.Model,
    optimizer: tff.learning.optimizers.Optimizer,
    client_weighting: tff.learning.ClientWeighting,
    *,
    metrics_aggregator: Optional[
        tff.learning.metrics.MetricsAggregatorType
    ] = None,
    loss_term: Optional[local_training.LossTerm] = None,
    gradient_options: gradients.GradientOptions = gradients.GradientOptions(),
    loop_implementation: tff.learning.LoopImplementation = (
        tff.learning.LoopImplementation.DATASET_REDUCE
    ),
) -> tff.learning.templates.ClientWorkProcess:
  """Builds the work of clients that train and send the change of their model.

  The process has the type signatures, with S the hyperparameters of the
  optimizer, W the model's weights and T its trainable part:

  - initialize: ( -> S@SERVER)
  - next: (<S@SERVER, {W}@CLIENTS, {B*}@CLIENTS> -> <state=S@SERVER,
    result={<update=T, update_weight=float32>}@CLIENTS, measurements=M@SERVER>)

  The update is the received minus the trained weights, as TFF has it. Its
  weight is the number of examples seen (every epoch counts) or 1, and 0 for a
  client that is not healthy: one that has no example, or whose change, loss or
  reports are not finite. Such a client sends zeros, and counts nowhere but in
  `num_rejected`.

  The measurements are an ordered dictionary of

  - `train`: the finalized training metrics of the model, over healthy clients;
  - `clients`: `loss` (mean over examples, before each step, with loss term),
    `num_clients`, `num_rejected`, `num_examples`, `num_steps`,
    `num_gradient_evaluations`, for each scalar that the optimizer reports
    (`step_size`; Delta-SGD also `theta`) `_mean`, `_min` and `_max` over all
    local steps of healthy clients, and `bytes_down` and `bytes_up`: the size of
    what all clients of the round receive and send for the model, as its types
    say, before any compression. With no healthy client the means are NaN.

  Args:
    model: A `tff.learning.models.FunctionalModel` or a factory of
      `tff.learning.models.VariableModel`s.
    optimizer: A `tff.learning.optimizers.Optimizer` or
      `tff_adaptive.optimizers.ExtraArgsOptimizer`.
    client_weighting: How clients are weighted.
    metrics_aggregator: As in `tff.learning.algorithms.build_weighted_fed_avg`;
      defaults to `tff.learning.metrics.sum_then_finalize`.
    loss_term: A term that is added to the loss of each batch, or `None`.
    gradient_options: What happens to a gradient before the optimizer sees it.
    loop_implementation: See `tff.learning.LoopImplementation`.

  Returns:
    A `tff.learning.templates.ClientWorkProcess`.

  Raises:
    TypeError: If an argument has not the documented type.
  """
  if not isinstance(optimizer, tff.learning.optimizers.Optimizer):
    raise TypeError(
        'The client optimizer must be a `tff.learning.optimizers.Optimizer`, '
        f'found {type(optimizer)}. The builders in `tff_adaptive.optimizers` '
        'and `tff.learning.optimizers` return one.'
    )
  if not isinstance(client_weighting, tff.learning.ClientWeighting):
    raise TypeError(
        '`client_weighting` must be a member of `tff.learning.ClientWeighting`,'
        f' found {client_weighting!r}.'
    )
  adapter = model_adapter.build_model_adapter(model)
  aggregate_metrics = (
      metrics_aggregator or tff.learning.metrics.sum_then_finalize
  )(adapter.metric_finalizers)
  hparams = _initial_hparams(optimizer)

  @_compat.federated_computation
  def initialize():
    return _compat.federated_value(hparams, _compat.SERVER)

  hparams_type = initialize.type_signature.result.member
  client_update = _build_client_update(
      adapter,
      optimizer,
      client_weighting,
      hparams_type,
      loss_term=loss_term,
      gradient_options=gradient_options,
      loop_implementation=loop_implementation,
  )
  result_type, statistics_type, _ = client_update.type_signature.result
  bytes_down = _num_bytes(hparams_type) + _num_bytes(adapter.weights_type)
  bytes_up = _num_bytes(result_type)

  @tff.tensorflow.computation(statistics_type)
  def measure(aggregated):
    return _measure(aggregated, bytes_down, bytes_up)

  @_compat.federated_computation(
      initialize.type_signature.result,
      _compat.FederatedType(adapter.weights_type, _compat.CLIENTS),
      _compat.FederatedType(
          _compat.SequenceType(adapter.element_type), _compat.CLIENTS
      ),
  )
  def next_fn(state, weights, client_data):
    client_result, client_statistics, client_metrics = _compat.federated_map(
        client_update,
        (_compat.federated_broadcast(state), weights, client_data),
    )
    aggregated = statistics.aggregate_statistics(client_statistics)
    measurements = _OrderedDict(
        train=aggregate_metrics(client_metrics),
        clients=_compat.federated_map(measure, aggregated),
    )
    return tff.templates.MeasuredProcessOutput(
        state, client_result, _compat.federated_zip(measurements)
    )

  @tff.tensorflow.computation(hparams_type)
  def get_hparams(state):
    return state

  @tff.tensorflow.computation(hparams_type, hparams_type)
  def set_hparams(state, hparams):
    del state  # It is nothing but the hyperparameters.
    return hparams

  return tff.learning.templates.ClientWorkProcess(
      initialize,
      next_fn,
      get_hparams_fn=get_hparams,
      set_hparams_fn=set_hparams,
  )
