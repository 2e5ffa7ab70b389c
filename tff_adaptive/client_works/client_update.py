# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""The computation of a client: from what it receives to what it sends."""

import collections
import functools
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.client_works import local_training
from tff_adaptive.client_works import model_adapter
from tff_adaptive.data import cohort
from tff_adaptive.models import moved_weights
from tff_adaptive.optimizers import optimizer as optimizer_lib
from tff_adaptive.optimizers import vectors

_OrderedDict = collections.OrderedDict


class ClientUpdate:
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
        lambda: training.initial_kept(
            vectors.zeros(self.specs),
            vectors.zeros(
                adapter.moved_weights.take_kept(adapter.weights_spec)
            ),
        )
    )
    kept_type = kept.type_signature.result
    data_type = tff.SequenceType(adapter.element_type)
    self.kept_type, self.input_type = None, data_type
    if tff.structure.flatten(kept_type):
      self.kept_type = kept_type
    self.survey: Optional[tff.Computation] = None
    self._num_survey_gradients = 0
    if getattr(training.optimizer, 'averages_surveys', False):
      self.survey = self._build_survey()
    if self.kept_type is None:
      return
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
    if self.kept_type is not None:
      raise ValueError(
          f'{optimizer_lib.name_of(self.training.optimizer)} averages the '
          'gradients of clients before training, without what they keep, such '
          'as previous models or batch statistics: use '
          '`tff_adaptive.optimizers.build_mimelite`.'
      )

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
    """Returns the computation of (hparams, weights, client input).

    It has one more argument for a federated optimizer, the pair (round number,
    shared parts), and another one for the mean of a survey.

    Args:
      hparams_type: The type of the optimizer's hyperparameters.
      shared_type: The type of the pair; `None` if the optimizer is not
        federated.

    Returns:
      A computation that returns an ordered dictionary of `result`, a
      `tff.learning.templates.ClientResult`, `statistics`, `metrics`,
      `rejections` (one row) and, if there are any, `sent` and `sent_weight`,
      `client_states` (one row) and `is_healthy`, and `steps`.
    """

    def run(received):
      hparams, weights, client_input, *more = received
      model = self.adapter.build_local_model()
      train = tf.function(functools.partial(self.training, model))
      round_num, shared = more[0] if more else (0, {})
      found = more[1] if len(more) > 1 else {}
      trainable = tuple(tf.nest.flatten(weights.trainable))
      kept = self.training.initial_kept(
          trainable, self.adapter.moved_weights.take_kept(weights)
      )
      dataset = client_input
      if kept:
        dataset = client_input[cohort.DATA_KEY]
        # Has one element, or none in the client's first participation.
        kept = client_input[cohort.STATE_KEY].reduce(kept, lambda _, s: s)
      start = local_training.RoundStart(
          _OrderedDict(shared, **found),
          kept,
          round_num,
          self._num_survey_gradients,
      )
      result = train(weights, hparams, dataset, start)
      return self._report(result, weights, client_input)

    parameters = [hparams_type, self.adapter.weights_type, self.input_type]
    if shared_type is not None:
      parameters.append(shared_type)
    if self.survey is not None:
      parameters.append(self.survey.type_signature.result[0])
    return tff.tensorflow.computation(run, parameters)

  def _report(
      self, result: local_training.LocalResult, weights: Any, client_input: Any
  ) -> Any:
    """Returns the client's result."""
    num_examples = tf.cast(result.num_examples, tf.float32)
    uniform_weight = tf.minimum(num_examples, 1.0)
    weight = num_examples if self.weighs_examples else uniform_weight
    update = tf.nest.pack_sequence_as(weights.trainable, result.update)
    parts: dict[str, Any] = {}
    if self.training.reports:
      parts['reports'] = result.reports
    if self.adapter.moved_weights.is_sent:
      parts[moved_weights.BATCH_STATISTICS] = result.moved_update
    if parts:
      update = _OrderedDict(change=update, **parts)
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
      output['steps'] = _OrderedDict(num_steps=num_steps, **result.trace)
    return output


def _one_row(result: local_training.LocalResult, client_input: Any) -> Any:
  """Returns the client's id and state, with an axis to stack along."""
  client_id = client_input[cohort.ID_KEY].reduce('', lambda _, text: text)
  return tf.nest.map_structure(
      lambda tensor: tensor[tf.newaxis],
      _OrderedDict(client_id=client_id, client_state=result.kept),
  )
