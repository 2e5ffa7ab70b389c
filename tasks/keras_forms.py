# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds both TFF forms of a Keras model from one function.

`tff.learning.models.functional_model_from_keras` drops the regularization
losses of kernels and biases, which `tff.learning.models.from_keras_model`
includes; here both forms include them.
"""

import collections
from collections.abc import Callable, Mapping, Sequence
import inspect
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive import models
from tff_adaptive.client_works import loss_terms
from tff_adaptive.client_works import model_adapter
from tff_adaptive.data import specs
from tff_adaptive.models import keras_versions

_Penalty = Callable[[tf.Tensor], tf.Tensor]


def build_softmax_loss(keras: Any = tf.keras) -> Any:
  """Builds softmax cross entropy of logits and integer labels.

  If labels are sequences, padding counts like any token, as in TFF's baselines:
  Keras' mask does not reach the loss there.

  Args:
    keras: The version of Keras. Defaults to Keras 2.
  """
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  loss.counts_padding = True
  return loss


def build_accuracy(keras: Any = tf.keras) -> list[Any]:
  """Builds the metric 'accuracy' of a version of Keras, by default Keras 2."""
  return [keras.metrics.SparseCategoricalAccuracy(name='accuracy')]


class KerasForms:
  """Both TFF forms of a model of Keras 2 or Keras 3.

  Attributes:
    functional: The model in functional form, with its own initial weights. The
      moving averages of batch normalization are aggregated like the update.
      None if its predictions for an example always depend on others in the
      batch.
    variable_fn: Returns a new model with variables, with the same initial
      weights.
    representation_fn: Maps (trainable weights, batch) to the inputs of the last
      layer; None if no earlier layer has weights, or one has averages that are
      not trained.

  Example:
    >>> from tasks import data
    >>> def build():
    ...   return tf.keras.Sequential(
    ...       [tf.keras.Input([2]), tf.keras.layers.Dense(3)])
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
    input_spec = collections.OrderedDict(specs.batched(element_spec))
    self._keras_model = keras_model
    self._input_spec = input_spec
    if keras_versions.is_keras_3(keras_model):
      self._convert_keras_3(build_loss, build_metrics)
      return
    self.functional: Optional[tff.learning.models.FunctionalModel] = None
    # Also the layers of a model that is a layer.
    layers = list(keras_model.submodules)
    batch_norm = tf.keras.layers.BatchNormalization
    if any(isinstance(layer, batch_norm) for layer in layers):
      self.functional = models.from_keras(
          keras_model,
          build_loss(),
          list(build_metrics()),
          input_spec=input_spec,
          batch_statistics='aggregate',
      )
    elif not any(getattr(layer, 'mixes_examples', False) for layer in layers):
      self.functional = add_penalties(
          tff.learning.models.functional_model_from_keras(
              keras_model,
              loss_fn=build_loss(),
              input_spec=input_spec,
              metrics_constructor=lambda: collections.OrderedDict(
                  (metric.name, metric) for metric in build_metrics()
              ),
          ),
          keras_model,
      )

    def variable_fn() -> tff.learning.models.VariableModel:
      return tff.learning.models.from_keras_model(
          build_keras_model(),
          loss=build_loss(),
          input_spec=input_spec,
          metrics=list(build_metrics()),
      )

    self.variable_fn = variable_fn

  def _convert_keras_3(self, build_loss: Any, build_metrics: Any):
    """Sets both forms of a model of Keras 3."""
    # Only for those who use it.
    import keras  # pylint: disable=g-import-not-at-top

    functional = models.from_keras(
        self._keras_model,
        _call_for(keras, build_loss),
        list(_call_for(keras, build_metrics)),
        input_spec=self._input_spec,
        batch_statistics='aggregate',
    )
    # A `VariableModel` of TFF has metrics of Keras 2.
    metrics = [
        lambda place=place: _call_for(tf.keras, build_metrics)[place]
        for place, metric in enumerate(_call_for(tf.keras, build_metrics))
        if isinstance(metric, tf.keras.metrics.Metric)
    ]
    self.functional = functional
    self.variable_fn = lambda: tff.learning.models.model_from_functional(
        functional, metrics
    )

  @property
  def representation_fn(self) -> Optional[model_adapter.RepresentationFn]:
    """Maps weights and a batch to the inputs of the last layer."""
    model = self._keras_model
    if model.non_trainable_weights:
      return None
    last = model.layers[-1]
    if len(model.trainable_weights) == len(last.trainable_weights):
      return None
    return loss_terms.build_keras_representation(model, self._input_spec)


def _call_for(keras: Any, build: Callable[..., Any]) -> Any:
  """Calls a builder, with the version of Keras if it takes that."""
  takes_version = 'keras' in inspect.signature(build).parameters
  return build(keras=keras) if takes_version else build()


def add_penalties(
    model: tff.learning.models.FunctionalModel, keras_model: tf.keras.Model
) -> tff.learning.models.FunctionalModel:
  """Adds the regularization losses of a Keras model to its functional form.

  The result predicts a pair, the predictions and the sum of the penalties.
  Without penalties it is `model` itself.

  Raises:
    ValueError: If the model has other penalties than those of the kernels and
      biases of its own layers.
  """
  penalties = _penalties(keras_model)
  num_penalties = len(keras_model.losses)
  if len(penalties) != num_penalties:
    raise ValueError(
        f'{num_penalties - len(penalties)} of {num_penalties} penalties of the '
        'Keras model have no functional form, which has those of kernels and '
        'biases of its own, trained layers: use the `VariableModel`, or '
        '`weight_decay`.'
    )
  if not penalties:
    return model

  @tf.function
  def predict_on_batch(weights, x, training=True):
    trainable, _ = weights
    penalty = tf.add_n([fn(trainable[place]) for place, fn in penalties])
    return model.predict_on_batch(weights, x, training), penalty

  def loss(output, label, sample_weight=None):
    predictions, penalty = output
    return model.loss(predictions, label, sample_weight) + penalty

  def update_metrics_state(state, labels, batch_output, sample_weight=None):
    predictions, _ = batch_output.predictions
    output = tff.learning.models.BatchOutput(
        loss=batch_output.loss,
        predictions=predictions,
        num_examples=batch_output.num_examples,
    )
    return model.update_metrics_state(state, labels, output, sample_weight)

  return tff.learning.models.FunctionalModel(
      initial_weights=model.initial_weights,
      predict_on_batch_fn=predict_on_batch,
      loss_fn=loss,
      metrics_fns=(
          model.initialize_metrics_state,
          update_metrics_state,
          model.finalize_metrics,
      ),
      input_spec=model.input_spec,
  )


def _penalties(keras_model: tf.keras.Model) -> list[tuple[int, _Penalty]]:
  """Returns the penalties and the indices of their trainable weights."""
  places = {id(v): i for i, v in enumerate(keras_model.trainable_weights)}
  return [
      (places[weight], regularizer)
      for layer in keras_model.layers
      for name in ('kernel', 'bias')
      if (regularizer := getattr(layer, f'{name}_regularizer', None))
      if (weight := id(getattr(layer, name, None))) in places
  ]
