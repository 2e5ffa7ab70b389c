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
"""Models for MNIST, and for data sets in its form."""

import collections
from collections.abc import Callable
import enum
import math
from typing import Any, Union

import tensorflow as tf
import tensorflow_federated as tff

from tasks import keras_classification
from tasks import npz_images
from tff_adaptive.data import random_streams

_DROPOUT_RATE = 0.5
_NUM_PIXELS = 784
_MLP_UNITS = (200, 100)


class ModelID(enum.Enum):
  """The models for MNIST; the values are those of a flag.

  Attributes:
    CNN: The CNN of the Delta-SGD experiments, 21,840 weights.
    LOGISTIC: Multinomial logistic regression, 7,850 weights.
    MLP: The three dense layers of the FedCAda experiments, 178,110 weights.
  """

  CNN = 'cnn'
  LOGISTIC = 'logistic'
  MLP = 'mlp'


def input_spec() -> collections.OrderedDict[str, tf.TensorSpec]:
  """Returns the specification of a batch, of any size."""
  shape = (None,) + npz_images.IMAGE_SHAPE
  return collections.OrderedDict(
      x=tf.TensorSpec(shape, tf.float32), y=tf.TensorSpec([None], tf.int32)
  )


def build_keras_model(
    model_id: Union[ModelID, str], seed: int
) -> tf.keras.Model:
  """Builds a Keras model whose initial weights depend on the seed alone.

  Args:
    model_id: `CNN`: the one of the Delta-SGD experiments, two 5x5 convolutions
      of 10 and 20 channels without padding, each with a 2x2 max pool and ReLU,
      and dense layers of 50 and 10; whole channels are dropped after the second
      convolution and entries before the last layer, half of them; 21,840
      weights. `MLP`: the one of the FedCAda experiments, three dense layers
      with ReLU between them; its publication gives no sizes, here they are 200,
      100 and 10; 178,110 weights. `LOGISTIC`: multinomial logistic regression,
      7,850 weights.
    seed: The seed of the initial weights, a non-negative integer. Kernels and
      biases are uniform in [-1 / sqrt(fan_in), 1 / sqrt(fan_in)], as in
      PyTorch.

  Returns:
    A model from images of shape [batch, 28, 28, 1] to logits of shape
    [batch, 10].

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model is unknown, or the seed negative.

  Example:

    >>> build_keras_model(ModelID.CNN, seed=1).count_params()
    21840

  References:
    CNNMnist of the published code of Kim et al., Adaptive Federated Learning
    with Auto-Tuned Clients, ICLR 2024, https://arxiv.org/abs/2306.11201.
    Zhou et al., FedCAda: Adaptive Client-Side Optimization for Accelerated and
    Stable Federated Learning, 2024, https://arxiv.org/abs/2405.11811, for the
    MLP.
  """
  model_id = keras_classification.to_model_id(ModelID, model_id)
  inputs = tf.keras.Input(npz_images.IMAGE_SHAPE)
  outputs = inputs
  for layer in _LAYERS[model_id](seed):
    outputs = layer(outputs)
  return tf.keras.Model(inputs, outputs)


def _logistic_layers(seed: int) -> list[tf.keras.layers.Layer]:
  return [tf.keras.layers.Flatten(), _logits(_NUM_PIXELS, seed)]


def _mlp_layers(seed: int) -> list[tf.keras.layers.Layer]:
  layers = [tf.keras.layers.Flatten()]
  num_inputs = _NUM_PIXELS
  for i, units in enumerate(_MLP_UNITS, start=1):
    layers.append(_dense(f'dense_{i}', num_inputs, units, seed))
    layers.append(tf.keras.layers.ReLU())
    num_inputs = units
  return layers + [_logits(num_inputs, seed)]


def _cnn_layers(seed: int) -> list[tf.keras.layers.Layer]:
  return [
      _convolution('conv_1', 1, 10, seed),
      tf.keras.layers.MaxPool2D(2),
      tf.keras.layers.ReLU(),
      _convolution('conv_2', 10, 20, seed),
      tf.keras.layers.SpatialDropout2D(_DROPOUT_RATE),
      tf.keras.layers.MaxPool2D(2),
      tf.keras.layers.ReLU(),
      tf.keras.layers.Flatten(),
      _dense('dense', 320, 50, seed),
      tf.keras.layers.ReLU(),
      tf.keras.layers.Dropout(_DROPOUT_RATE),
      _logits(50, seed),
  ]


_LAYERS = {
    ModelID.CNN: _cnn_layers,
    ModelID.LOGISTIC: _logistic_layers,
    ModelID.MLP: _mlp_layers,
}


def _convolution(
    name: str, num_inputs: int, num_outputs: int, seed: int
) -> tf.keras.layers.Layer:
  initializers = _initializers(name, 5 * 5 * num_inputs, seed)
  return tf.keras.layers.Conv2D(num_outputs, 5, name=name, **initializers)


def _dense(
    name: str, num_inputs: int, num_outputs: int, seed: int
) -> tf.keras.layers.Layer:
  initializers = _initializers(name, num_inputs, seed)
  return tf.keras.layers.Dense(num_outputs, name=name, **initializers)


def _logits(num_inputs: int, seed: int) -> tf.keras.layers.Layer:
  return _dense('logits', num_inputs, npz_images.NUM_CLASSES, seed)


def _initializers(layer: str, fan_in: int, seed: int) -> dict[str, Any]:
  """Returns the initializers of a layer's kernel and bias."""
  limit = 1.0 / math.sqrt(fan_in)
  return {
      f'{weight}_initializer': tf.keras.initializers.RandomUniform(
          -limit,
          limit,
          seed=random_streams.derived_seed(
              seed, random_streams.INITIAL_WEIGHTS, 'mnist', layer, weight
          ),
      )
      for weight in ('kernel', 'bias')
  }


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
    [(784, 10), (10,)]
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
