# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds both TFF forms of a Keras model from one function."""

import collections
from collections.abc import Callable, Mapping, Sequence
import inspect
from typing import Any, Optional

import keras as keras_3
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import losses
from tff_adaptive import models
from tff_adaptive.client_works import local_models
from tff_adaptive.client_works import loss_terms
from tff_adaptive.data import specs
from tff_adaptive.losses import keras_3 as losses_of_keras_3
from tff_adaptive.models import keras_versions

_COUNTS = ('num_examples', 'num_batches')


def build_softmax_loss(keras: Any = keras_3) -> Any:
  """Builds softmax cross entropy of logits and integer labels.

  If labels are sequences, padding counts like any token, as in TFF's baselines:
  Keras' mask does not reach the loss there.

  Args:
    keras: The version of Keras. Defaults to Keras 3.
  """
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  loss.counts_padding = True
  return loss


def build_multiclass_hinge(keras: Any = keras_3) -> Any:
  """Builds the multi-class hinge loss; padding counts, too."""
  of_version = losses_of_keras_3 if keras is keras_3 else losses
  loss = of_version.MulticlassHinge()
  loss.counts_padding = True
  return loss


def build_accuracy(keras: Any = keras_3) -> list[Any]:
  """Builds the metric 'accuracy' of a version of Keras, by default Keras 3."""
  return [keras.metrics.SparseCategoricalAccuracy(name='accuracy')]


class KerasForms:
  """Both TFF forms of a model of Keras 3 or Keras 2.

  Attributes:
    functional: The model in functional form, with its own initial weights. The
      moving averages of batch normalization are aggregated like the update.
    representation_fn: Maps (trainable weights, batch) to the inputs of the last
      layer; None if no earlier layer has weights, or one has averages that are
      not trained.

  Example:
    >>> import keras
    >>> from tasks import data
    >>> def build():
    ...   return keras.Sequential([keras.Input([2]), keras.layers.Dense(3)])
    >>> element_spec = data.spec(x=('float32', [2]), y=('int32', []))
    >>> forms = KerasForms(
    ...     build, element_spec, build_softmax_loss, build_accuracy)
    >>> len(forms.functional.initial_weights[0])
    2
  """

  def __init__(
      self,
      build_keras_model: Callable[[], Any],
      element_spec: Mapping[str, tf.TensorSpec],
      build_loss: Callable[..., Any],
      build_metrics: Callable[..., Sequence[Any]],
  ):
    """Initializes the forms.

    Args:
      build_keras_model: Builds a new model.
      element_spec: The specs of an example's 'x' and 'y'.
      build_loss: Builds the loss of a batch, of the model's version of Keras,
        which it gets as `keras` if it has this argument.
      build_metrics: Builds the metrics, with different names; the same.
    """
    keras_model = build_keras_model()
    is_keras_3 = keras_versions.is_keras_3(keras_model)
    keras = keras_3 if is_keras_3 else tf.keras
    self.functional = models.from_keras(
        keras_model,
        call_for(keras, build_loss),
        list(call_for(keras, build_metrics)),
        input_spec=collections.OrderedDict(specs.batched(element_spec)),
        batch_statistics='aggregate',
    )

  def variable_fn(self) -> tff.learning.models.VariableModel:
    """Returns a new model with variables, with the same initial weights."""
    return _VariableForm(self.functional)

  @property
  def representation_fn(self) -> Optional[local_models.RepresentationFn]:
    """Maps weights and a batch to the inputs of the last layer."""
    model = self.functional.keras_model
    if model.non_trainable_weights:
      return None
    last = model.layers[-1]
    if len(model.trainable_weights) == len(last.trainable_weights):
      return None
    return loss_terms.build_keras_representation(
        model, self.functional.input_spec
    )


def call_for(keras: Any, build: Callable[..., Any]) -> Any:
  """Calls a builder, with the version of Keras if it takes that."""
  takes_version = 'keras' in inspect.signature(build).parameters
  return build(keras=keras) if takes_version else build()


class _VariableForm(tff.learning.models.VariableModel):
  """A functional model that holds its weights and the state of its metrics.

  `tff.learning.models.model_from_functional` has metrics of Keras 2 instead.
  """

  def __init__(self, model: tff.learning.models.FunctionalModel):
    self._model = model
    trained, others = model.initial_weights
    self._weights = (
        tuple(map(tf.Variable, trained)),
        tuple(tf.Variable(value, trainable=False) for value in others),
    )
    # Metrics of `from_keras` begin with zeros. The counts are those of TFF.
    state = {
        **model.initialize_metrics_state(),
        **{name: (tf.constant(0),) for name in _COUNTS},
    }
    self._state = collections.OrderedDict(
        (name, [tf.Variable(tf.zeros_like(v), trainable=False) for v in values])
        for name, values in state.items()
    )

  @property
  def trainable_variables(self):
    return self._weights[0]

  @property
  def non_trainable_variables(self):
    return self._weights[1]

  @property
  def local_variables(self):
    return tuple(tf.nest.flatten(self._state))

  @property
  def input_spec(self):
    return self._model.input_spec

  @tf.function
  def predict_on_batch(self, x, training=True):
    weights = tf.nest.map_structure(tf.convert_to_tensor, self._weights)
    return self._model.predict_on_batch(weights, x, training)

  def _predict_and_move(self, x):
    weights = tf.nest.map_structure(tf.convert_to_tensor, self._weights)
    predictions, moved = self._model.predict_and_move(weights, x)
    for variable, value in zip(self._model.moved.take(self._weights[1]), moved):
      variable.assign(value)
    return predictions

  @tf.function
  def forward_pass(self, batch_input, training=True):
    if training and self._model.moved.places:
      predictions = self._predict_and_move(batch_input['x'])
    else:
      predictions = self.predict_on_batch(batch_input['x'], training)
    labels = batch_input['y']
    output = tff.learning.models.BatchOutput(
        loss=self._model.loss(predictions, labels),
        predictions=predictions,
        num_examples=tf.shape(tf.nest.flatten(labels)[0])[0],
    )
    state = self.report_local_unfinalized_metrics()
    num_examples, num_batches = (state.pop(name)[0] for name in _COUNTS)
    state = self._model.update_metrics_state(state, labels, output)
    state['num_examples'] = [num_examples + output.num_examples]
    state['num_batches'] = [num_batches + 1]
    tf.nest.map_structure(
        lambda variable, value: variable.assign(value),
        tf.nest.flatten(self._state),
        tf.nest.flatten(state),
    )
    return output

  @tf.function
  def report_local_unfinalized_metrics(self):
    return collections.OrderedDict(
        (name, [variable.read_value() for variable in variables])
        for name, variables in self._state.items()
    )

  def metric_finalizers(self):

    def build(name):
      def finalize(values):
        state = self._model.initialize_metrics_state()
        state[name] = tuple(values)
        return self._model.finalize_metrics(state)[name]

      return tf.function(
          (lambda values: values[0]) if name in _COUNTS else finalize
      )

    return collections.OrderedDict((name, build(name)) for name in self._state)

  @tf.function
  def reset_metrics(self):
    for variable in self.local_variables:
      variable.assign(tf.zeros_like(variable))
