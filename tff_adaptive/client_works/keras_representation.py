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
"""The representation of examples by a Keras model, as a function of weights."""

from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.client_works import model_adapter


def build_keras_representation(
    keras_model: tf.keras.Model, input_spec: Any, layer: Optional[str] = None
) -> model_adapter.RepresentationFn:
  """Builds the function from a Keras model's weights to representations.

  Args:
    keras_model: The model that the functional model, or the factory of variable
      models, was made from: a `tf.keras.Sequential` or functional one.
    input_spec: The structure of `tf.TensorSpec`s of a batch, as
      `tff.learning.models.functional_model_from_keras` takes it.
    layer: The name of the layer whose output is the representation. Default
      `None`: what goes into the last layer.

  Returns:
    A function of (trainable weights, batch) for `build_moon`.

  Raises:
    ValueError: If the model has no input or no such layer, or the layers up to
      it have no trained weight, or others, such as batch normalization.

  Example:

    >>> keras_model = tf.keras.Sequential([
    ...     tf.keras.layers.InputLayer([2]),
    ...     tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])
    >>> spec = (tf.TensorSpec([None, 2]), tf.TensorSpec([None, 1]))
    >>> represent = build_keras_representation(keras_model, spec)
    >>> with tf.Graph().as_default():  # TFF's Keras models need one.
    ...   weights = tuple(tf.ones(w.shape) for w in keras_model.weights)
    ...   represent(weights, (tf.ones([5, 2]), tf.ones([5, 1]))).shape
    TensorShape([5, 3])
  """
  if not getattr(keras_model, 'inputs', None):
    raise ValueError(
        'The layers of the Keras model are not connected: begin it with a '
        '`tf.keras.layers.InputLayer`, or make a functional model.'
    )
  if layer is None:
    output = keras_model.layers[-1].input
  else:
    output = keras_model.get_layer(layer).output
  part = tf.keras.Model(keras_model.inputs, output)
  if part.non_trainable_weights:
    raise ValueError(
        'A representation is a function of trainable weights, and the layers '
        f'before it have others: {part.non_trainable_weights[0].name}. Take an '
        'earlier layer, or a model without batch normalization.'
    )
  if not part.trainable_weights:
    raise ValueError(
        'No layer up to the representation has a trained weight, so that '
        'training could not change it: name a later `layer`, one of '
        f'{[layer.name for layer in keras_model.layers]}.'
    )
  places = {
      id(v): place for place, v in enumerate(keras_model.trainable_weights)
  }
  used = [places[id(variable)] for variable in part.trainable_weights]
  functional = tff.learning.models.functional_model_from_keras(
      part,
      # Nothing is learned from the part alone.
      loss_fn=tf.keras.losses.MeanSquaredError(),
      input_spec=input_spec,
  )

  def represent(weights, batch):
    x, _ = model_adapter.features_and_labels(batch)
    with model_adapter.inference_by_default():
      return functional.predict_on_batch(
          ([weights[place] for place in used], []), x, training=False
      )

  return represent
