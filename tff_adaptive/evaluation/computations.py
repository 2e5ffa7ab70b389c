# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""TFF computations that evaluate a model on each client.

The server gets one row of metrics per client, not their mean.
"""

import collections
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional
import warnings

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.aggregators import reports as reports_lib
from tff_adaptive.client_works import local_models
from tff_adaptive.client_works import local_training
from tff_adaptive.client_works import model_adapter
from tff_adaptive.client_works import model_checks
from tff_adaptive.models import moved_weights

# The name of a client's mean loss among its metrics.
_LOSS_KEY = 'loss'


class _Counts(NamedTuple):
  """Totals over the batches of a client.

  Attributes:
    loss_sum: The sum of each batch's mean loss times its number of examples, in
      float64.
    num_examples: The number of examples, int64.
    metrics: The model's unfinalized metrics.
  """

  loss_sum: tf.Tensor
  num_examples: tf.Tensor
  metrics: Any


def _count(
    model: local_models.LocalModel,
    weights: tff.learning.models.ModelWeights,
    dataset: tf.data.Dataset,
) -> _Counts:
  """Evaluates all batches without dropout, in the current graph."""
  trainable = tuple(tf.nest.flatten(weights.trainable))

  def add_batch(counts, batch):
    evaluation = model.evaluate(trainable, batch)
    loss = tf.cast(evaluation.mean_loss, tf.float64)
    return _Counts(
        counts.loss_sum + loss * tf.cast(evaluation.num_examples, tf.float64),
        counts.num_examples + evaluation.num_examples,
        model.update_metrics(counts.metrics, batch, evaluation),
    )

  empty = _Counts(
      tf.zeros([], tf.float64), tf.zeros([], tf.int64), model.start(weights)
  )
  counts = dataset.reduce(empty, add_batch)
  metrics = model.report_metrics(counts.metrics, tf.constant(True))
  # Read the metrics now, since a variable model continues to change them.
  return counts._replace(metrics=tf.nest.map_structure(tf.identity, metrics))


def _to_row(
    adapter: model_adapter.ModelAdapter,
    counts: _Counts,
    with_integers: bool,
) -> Any:
  """Returns the totals as one row of metrics, with the loss first."""
  loss = counts.loss_sum / tf.cast(counts.num_examples, tf.float64)
  metrics = collections.OrderedDict({_LOSS_KEY: loss})
  for name, value in adapter.finalize_metrics(counts.metrics).items():
    for key, number in _to_numbers(name, value):
      if key != _LOSS_KEY and (with_integers or number.dtype.is_floating):
        while key in metrics:  # An entry of a vector, and another metric.
          key += '_0'
        metrics[key] = tf.cast(number, tf.float64)
  row = collections.OrderedDict(
      num_examples=counts.num_examples, metrics=metrics
  )
  return tf.nest.map_structure(lambda tensor: tensor[tf.newaxis], row)


def _to_numbers(name: str, value: Any) -> list[tuple[str, tf.Tensor]]:
  """Returns the numbers of a metric by name: of a vector, each by its index."""
  if tf.nest.is_nested(value):
    parts = value if isinstance(value, Mapping) else dict(enumerate(value))
    return [
        number
        for key, part in parts.items()
        for number in _to_numbers(f'{name}/{key}', part)
    ]
  value = tf.convert_to_tensor(value)
  is_number = value.dtype != tf.string
  if is_number and value.shape.rank == 0:
    return [(name, value)]
  if is_number and value.shape.rank == 1 and value.shape.is_fully_defined():
    return [(f'{name}_{i}', entry) for i, entry in enumerate(tf.unstack(value))]
  warnings.warn(
      f'The metric {name!r} has the type {value.dtype.name} and the shape '
      f'{value.shape}, but evaluations report only numbers and vectors of '
      'known length, so it is left out.'
  )
  return []


def _train(
    training: local_training.LocalTraining,
    model: local_models.LocalModel,
    weights: tff.learning.models.ModelWeights,
    dataset: tf.data.Dataset,
) -> Any:
  """Returns the weights after one pass, in the current graph."""
  received = tuple(tf.nest.flatten(weights.trainable))
  optimizer = training.optimizer
  specs = tuple(tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in received)
  hparams = optimizer.get_hparams(optimizer.initialize(specs))
  result = training(model, weights, hparams, dataset)
  trained = [before - update for before, update in zip(received, result.update)]
  moved = model.moved_weights
  after = tff.learning.models.ModelWeights(
      tf.nest.pack_sequence_as(weights.trainable, trained),
      moved.add_change(weights.non_trainable, result.moved_update),
  )
  if not moved.kept_places:
    return after
  own = result.kept[moved_weights.BATCH_STATISTICS]
  pairs = zip(own, moved.take_kept(weights))
  return moved.put_kept(
      after, [tf.where(result.is_healthy, new, old) for new, old in pairs]
  )


@model_checks.builds_models
def build_evaluation_computation(
    model: model_adapter.Model,
    training: Optional[local_training.LocalTraining] = None,
    *,
    with_integers: bool = False,
) -> tff.Computation:
  """Builds the computation that evaluates weights on every client.

  The computation has the type (<W@SERVER, {B*}@CLIENTS> -> <R>@SERVER), with
  the weights W and batches B of the model, and rows R:
  <num_examples=int64[?], metrics=<loss=float64[?], ...>>, one per client. The
  loss is the mean over a client's examples, NaN if there are none. The other
  metrics are the model's floating point scalars and the entries of its vectors,
  which are named `<metric>_0`, `<metric>_1` and so on. If another metric has
  such a name, the later one ends with `_0` once more. The names of nested
  metrics are joined by `/`, as in the metrics of training.

  With a training, the type is (<W@SERVER, {<train=B*, test=B*>}@CLIENTS> ->
  <R, R>@SERVER), with rows for the received weights and for the weights after
  one pass over `train`. A client whose training result is not finite keeps the
  received weights, but not other variables of a `VariableModel`.

  Args:
    model: A `tff.learning.models.FunctionalModel`, or a function without
      arguments that returns a `tff.learning.models.VariableModel`.
    training: The training of each client, with the initial hyperparameters of
      its optimizer. None (the default) for none.
    with_integers: Whether to include integer metrics. They are counts, whose
      mean over clients is of little use. Default False.

  Returns:
    The computation.

  Raises:
    TypeError: If `model` is neither.
  """
  adapter = model_adapter.build_model_adapter(model)
  client_type: tff.Type = tff.SequenceType(adapter.element_type)
  if training is not None:
    client_type = tff.StructWithPythonType(
        [('train', client_type), ('test', client_type)], collections.OrderedDict
    )

  @tff.tensorflow.computation(adapter.weights_type, client_type)
  def evaluate_client(weights, client):
    local_model = adapter.build_local_model()
    is_functional = isinstance(model, tff.learning.models.FunctionalModel)

    @tf.function
    def count(weights, client):
      if training is None:
        return (_count(local_model, weights, client),)
      before = _count(local_model, weights, client['test'])
      trained = _train(training, local_model, weights, client['train'])
      if not is_functional:
        # It holds its own, as its training has left them.
        trained = trained._replace(non_trainable=())
      return before, _count(local_model, trained, client['test'])

    return tuple(
        _to_row(adapter, counts, with_integers)
        for counts in count(weights, client)
    )

  @tff.federated_computation(
      tff.FederatedType(adapter.weights_type, tff.SERVER),
      tff.FederatedType(client_type, tff.CLIENTS),
  )
  def evaluate(weights, clients):
    received = tff.federated_broadcast(weights)
    return reports_lib.stack_at_server(
        tff.federated_map(evaluate_client, (received, clients))
    )

  return evaluate
