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
"""Models for the handwritten digits."""

import collections
from collections.abc import Callable
import enum
from typing import Union

import tensorflow as tf
import tensorflow_federated as tff

from tasks import keras_classification
from tasks.digits import digits_preprocessing
from tff_adaptive.data import random_streams


class ModelID(enum.Enum):
  """The models for digits; the values are those of a flag.

  Attributes:
    CNN: Two convolutions and a dense layer, 23,946 weights.
    LOGISTIC: Multinomial logistic regression, 650 weights.
  """

  CNN = 'cnn'
  LOGISTIC = 'logistic'


def input_spec() -> collections.OrderedDict[str, tf.TensorSpec]:
  """Returns the specification of a batch, of any size."""
  shape = (None,) + digits_preprocessing.IMAGE_SHAPE
  return collections.OrderedDict(
      x=tf.TensorSpec(shape, tf.float32), y=tf.TensorSpec([None], tf.int32)
  )


def build_keras_model(
    model_id: Union[ModelID, str], seed: int
) -> tf.keras.Model:
  """Builds a Keras model whose initial weights depend on the seed alone.

  Args:
    model_id: `CNN`: two 3x3 convolutions of 16 and 32 channels, a 2x2 max pool
      and a dense layer of 64, 23,946 weights; `LOGISTIC`: multinomial
      logistic regression, 650 weights.
    seed: The seed of the initial weights, a non-negative integer. Kernels are
      Glorot uniform (Keras' default), biases 0.

  Returns:
    A model from images of shape [batch, 8, 8, 1] to logits of shape
    [batch, 10].

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model is unknown, or the seed negative.

  Example:

    >>> build_keras_model(ModelID.LOGISTIC, seed=1).count_params()
    650
  """
  model_id = keras_classification.to_model_id(ModelID, model_id)

  def kernel(layer: str) -> tf.keras.initializers.Initializer:
    return tf.keras.initializers.GlorotUniform(
        seed=random_streams.derived_seed(
            seed, random_streams.INITIAL_WEIGHTS, 'digits', layer
        )
    )

  logits = tf.keras.layers.Dense(
      digits_preprocessing.NUM_CLASSES,
      kernel_initializer=kernel('logits'),
      name='logits',
  )
  if model_id is ModelID.LOGISTIC:
    layers = [tf.keras.layers.Flatten(), logits]
  else:
    layers = [
        tf.keras.layers.Conv2D(
            16,
            3,
            activation='relu',
            padding='same',
            kernel_initializer=kernel('conv_1'),
            name='conv_1',
        ),
        tf.keras.layers.Conv2D(
            32,
            3,
            activation='relu',
            kernel_initializer=kernel('conv_2'),
            name='conv_2',
        ),
        tf.keras.layers.MaxPool2D(2),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(
            64,
            activation='relu',
            kernel_initializer=kernel('dense'),
            name='dense',
        ),
        logits,
    ]
  inputs = tf.keras.Input(digits_preprocessing.IMAGE_SHAPE)
  outputs = inputs
  for layer in layers:
    outputs = layer(outputs)
  return tf.keras.Model(inputs, outputs)


def build_functional_model(
    model_id: Union[ModelID, str], seed: int
) -> tff.learning.models.FunctionalModel:
  """Builds a model in functional form, with softmax cross entropy.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.

  Returns:
    A functional model with the metric 'accuracy', on batches of `input_spec`.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model is unknown, or the seed negative.

  Example:

    >>> model = build_functional_model('logistic', seed=1)
    >>> [weight.shape for weight in model.initial_weights[0]]
    [(64, 10), (10,)]
  """
  return keras_classification.to_functional_model(
      build_keras_model(model_id, seed), input_spec()
  )


def build_variable_model_fn(
    model_id: Union[ModelID, str], seed: int
) -> Callable[[], tff.learning.models.VariableModel]:
  """Builds what makes the same model with variables.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.

  Returns:
    A function without arguments that returns a new model, with the initial
    weights of the functional form and the metrics 'accuracy' and those that
    `tff.learning.models.from_keras_model` adds.

  Raises:
    ValueError: If the model is unknown.

  Example:

    >>> model = build_variable_model_fn('logistic', seed=1)()
    >>> len(model.trainable_variables)
    2
  """
  model_id = keras_classification.to_model_id(ModelID, model_id)
  return keras_classification.to_variable_model_fn(
      lambda: build_keras_model(model_id, seed), input_spec()
  )
