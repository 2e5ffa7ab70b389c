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
"""The TensorFlow computation that a client runs in a round."""

import collections
import functools
from typing import Any, Optional

import attrs
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.client_works import local_training
from tff_adaptive.client_works import model_adapter
from tff_adaptive.optimizers import federated_optimizer

_OrderedDict = collections.OrderedDict

# The client's input, where clients keep state.
DATA_KEY = 'data'
CLIENT_ID_KEY = 'client_id'
CLIENT_STATE_KEY = 'client_state'
# What a client reports of each step.
NUM_STEPS_KEY = 'num_steps'


@attrs.frozen(eq=False, kw_only=True)
class ClientUpdate:
  """What a client does: the parts that do not depend on a graph.

  Attributes:
    adapter: The model.
    training: How it is trained.
    weighs_examples: Whether clients are weighted by their examples.
  """

  adapter: model_adapter.ModelAdapter
  training: local_training.LocalTraining
  weighs_examples: bool

  @property
  def optimizer(self) -> Any:
    """The client's optimizer."""
    return self.training.optimizer

  @property
  def is_federated(self) -> bool:
    return isinstance(self.optimizer, federated_optimizer.FederatedOptimizer)

  def weight_specs(self) -> tuple[tf.TensorSpec, ...]:
    """The trainable weights, a flat tuple."""
    specs = tff.types.type_to_tf_tensor_specs(self.adapter.weights_type)
    return tuple(tf.nest.flatten(specs.trainable))

  def initial_shared(self) -> Any:
    """What the server holds at first, made in the current graph."""
    return self.optimizer.initialize_shared(self.weight_specs())

  def kept_type(self) -> Optional[tff.Type]:
    """The type of what a client keeps, or `None` if it keeps nothing."""

    @tff.tensorflow.computation
    def kept():
      zeros = tuple(tf.zeros(s.shape, s.dtype) for s in self.weight_specs())
      return local_training.initial_kept(
          self.optimizer, self.training.loss_term, zeros
      )

    kept_type = kept.type_signature.result
    return kept_type if tff.structure.flatten(kept_type) else None

  def input_type(self) -> tff.Type:
    """The type of a client's input."""
    data_type = tff.SequenceType(self.adapter.element_type)
    kept_type = self.kept_type()
    if kept_type is None:
      return data_type
    return tff.StructWithPythonType(
        [
            (DATA_KEY, data_type),
            (CLIENT_ID_KEY, tff.SequenceType(np.str_)),
            (CLIENT_STATE_KEY, tff.SequenceType(kept_type)),
        ],
        _OrderedDict,
    )

  def build_computation(
      self, hparams_type: tff.Type, shared_type: Optional[tff.Type]
  ) -> tff.Computation:
    """The computation of (hparams, weights, client's input, what is shared).

    Args:
      hparams_type: The type of the optimizer's hyperparameters.
      shared_type: The type of the pair (round number, what the server shares);
        `None` unless the optimizer is federated, and the argument is left out.

    Returns:
      A computation to an ordered dictionary of `result`, a
      `tff.learning.templates.ClientResult`, `statistics`, `metrics`,
      `rejections` (one row), and where there are such things `sent` and
      `sent_weight`, `client_states` (one row) and `is_healthy`, and `steps`.
    """

    def run(hparams, weights, client_input, round_and_shared):
      model = self.adapter.build_local_model()
      train = tf.function(functools.partial(self.training, model))
      start = self._read_start(weights, client_input, round_and_shared)
      dataset = client_input
      if start.kept:
        dataset = client_input[DATA_KEY]
      return self._report(
          train(weights, hparams, dataset, start), weights, client_input
      )

    parameters = [hparams_type, self.adapter.weights_type, self.input_type()]
    if shared_type is not None:
      return tff.tensorflow.computation(run, [*parameters, shared_type])

    @tff.tensorflow.computation(*parameters)
    def client_update(hparams, weights, client_input):
      return run(hparams, weights, client_input, None)

    return client_update

  def _read_start(
      self, weights: Any, client_input: Any, round_and_shared: Any
  ) -> local_training.RoundStart:
    """What the round starts with besides the model."""
    received = tuple(tf.nest.flatten(weights.trainable))
    kept = local_training.initial_kept(
        self.optimizer, self.training.loss_term, received
    )
    if kept:
      # One element, or none for a client that takes part for the first time.
      kept = client_input[CLIENT_STATE_KEY].reduce(kept, lambda _, s: s)
    start = local_training.RoundStart(kept=kept)
    if round_and_shared is None:
      return start
    round_num, shared = round_and_shared
    return start._replace(round_num=round_num, shared=shared)

  def _report(
      self, result: local_training.LocalResult, weights: Any, client_input: Any
  ) -> Any:
    """What leaves the client."""
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
          uniform_weight if self.optimizer.averages_uniformly else weight
      )
    if result.kept:
      output['client_states'] = _one_row(result, client_input)
      output['is_healthy'] = result.is_healthy
    if result.trace:
      output['steps'] = _OrderedDict(
          [(NUM_STEPS_KEY, _num_traced(result.trace)), *result.trace.items()]
      )
    return output


def _one_row(result: local_training.LocalResult, client_input: Any) -> Any:
  """The client's id and state, with an axis to be stacked along."""
  client_id = client_input[CLIENT_ID_KEY].reduce('', lambda _, text: text)
  return tf.nest.map_structure(
      lambda tensor: tensor[tf.newaxis],
      _OrderedDict(
          [(CLIENT_ID_KEY, client_id), (CLIENT_STATE_KEY, result.kept)]
      ),
  )


def _num_traced(trace: Any) -> tf.Tensor:
  """How many steps a trace has, int64 of shape [1]."""
  return tf.shape(next(iter(trace.values())), tf.int64)
