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
"""The penalties of a Keras model's weights, in its functional form."""

from collections.abc import Callable

import tensorflow as tf
import tensorflow_federated as tff

_Penalty = Callable[[tf.Tensor], tf.Tensor]


def add_penalties(
    model: tff.learning.models.FunctionalModel, keras_model: tf.keras.Model
) -> tff.learning.models.FunctionalModel:
  """Adds the penalties of kernels and biases to a functional model's loss.

  `tff.learning.models.functional_model_from_keras` leaves them out, where
  `tff.learning.models.from_keras_model` has them. The result is the loss that
  the latter has, in training and in evaluation.

  Args:
    model: The functional form of `keras_model`.
    keras_model: The model, with the regularizers of its layers.

  Returns:
    A functional model that predicts a pair, the predictions and the sum of the
    penalties; `model` itself if there is no penalty.

  Example:

    >>> from tasks import keras_classification
    >>> layer = tf.keras.layers.Dense(3, kernel_regularizer='l2')
    >>> keras_model = tf.keras.Sequential([tf.keras.Input([2]), layer])
    >>> input_spec = {'x': tf.TensorSpec([None, 2], tf.float32),
    ...               'y': tf.TensorSpec([None], tf.int32)}
    >>> model = add_penalties(
    ...     keras_classification.to_functional_model(keras_model, input_spec),
    ...     keras_model)
  """
  penalties = _penalties(keras_model)
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
  """Returns the penalties, and which trainable weights they are of."""
  places = {id(v): i for i, v in enumerate(keras_model.trainable_weights)}
  return [
      (places[id(getattr(layer, name))], regularizer)
      for layer in keras_model.layers
      for name in ('kernel', 'bias')
      if (regularizer := getattr(layer, f'{name}_regularizer', None))
  ]
