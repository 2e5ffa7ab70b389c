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
"""Models that recognize the characters of EMNIST."""

import collections
from collections.abc import Callable
import enum
from typing import Optional, Union

import tensorflow as tf
import tensorflow_federated as tff

from tasks import initializers
from tasks import keras_classification
from tasks.emnist import emnist_preprocessing

_HIDDEN_UNITS = 200


class ModelID(enum.Enum):
  """The models for EMNIST, by TFF's names; the values are those of a flag.

  Attributes:
    CNN_DROPOUT: The CNN of the FedOpt experiments.
    CNN: The CNN of the FedAvg experiments, without dropout.
    TWO_LAYER_DNN: Two dense layers of 200.
  """

  CNN_DROPOUT = 'cnn_dropout'
  CNN = 'cnn'
  TWO_LAYER_DNN = '2nn'


def input_spec() -> collections.OrderedDict[str, tf.TensorSpec]:
  """Returns the specification of a batch, of any size."""
  shape = (None,) + emnist_preprocessing.IMAGE_SHAPE
  return collections.OrderedDict(
      x=tf.TensorSpec(shape, tf.float32), y=tf.TensorSpec([None], tf.int32)
  )


def build_keras_model(
    model_id: Union[ModelID, str], seed: int, only_digits: bool = False
) -> tf.keras.Model:
  """Builds a Keras model whose initial weights depend on the seed alone.

  Args:
    model_id: `CNN_DROPOUT`: the one of the FedOpt experiments, two 3x3
      convolutions of 32 and 64 channels without padding, a 2x2 max pool and a
      dense layer of 128, all with ReLU; a quarter of the entries is dropped
      before that layer and half of them after it; 1,206,590 weights. `CNN`: the
      one of FedAvg, two padded 5x5 convolutions of 32 and 64 channels, each
      with a 2x2 max pool, and a dense layer of 512; 1,690,046 weights.
      `TWO_LAYER_DNN`: two dense layers of 200; 209,662 weights. All end in a
      dense layer of as many units as there are classes.
    seed: The seed of the initial weights, a non-negative integer. Kernels are
      uniform as of Glorot, biases zero, Keras' defaults.
    only_digits: Whether there are 10 classes and not 62. Defaults to False.

  Returns:
    A model from images of shape [batch, 28, 28, 1] to logits of shape
    [batch, 62] or [batch, 10].

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model is unknown, or the seed negative.

  Example:

    >>> build_keras_model('cnn_dropout', seed=1).count_params()
    1206590

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Appendix C. McMahan et al.,
    Communication-Efficient Learning of Deep Networks from Decentralized Data,
    AISTATS 2017, https://arxiv.org/abs/1602.05629. Deviation: the softmax is
    part of the loss, not of the model; with it the outputs are those of the
    models of `tff.simulation.baselines.emnist`.
  """
  model_id = keras_classification.to_model_id(ModelID, model_id)
  inputs = tf.keras.Input(emnist_preprocessing.IMAGE_SHAPE)
  outputs = inputs
  for layer in _LAYERS[model_id](seed):
    outputs = layer(outputs)
  num_classes = emnist_preprocessing.num_classes(only_digits)
  logits = _dense('logits', num_classes, seed, activation=None)
  return tf.keras.Model(inputs, logits(outputs))


def _cnn_dropout_layers(seed: int) -> list[tf.keras.layers.Layer]:
  return [
      _convolution('conv_1', 32, 3, seed),
      _convolution('conv_2', 64, 3, seed),
      tf.keras.layers.MaxPool2D(2),
      tf.keras.layers.Dropout(0.25),
      tf.keras.layers.Flatten(),
      _dense('dense', 128, seed),
      tf.keras.layers.Dropout(0.5),
  ]


def _cnn_layers(seed: int) -> list[tf.keras.layers.Layer]:
  return [
      _convolution('conv_1', 32, 5, seed, padding='same'),
      tf.keras.layers.MaxPool2D(2),
      _convolution('conv_2', 64, 5, seed, padding='same'),
      tf.keras.layers.MaxPool2D(2),
      tf.keras.layers.Flatten(),
      _dense('dense', 512, seed),
  ]


def _two_layer_dnn_layers(seed: int) -> list[tf.keras.layers.Layer]:
  return [
      tf.keras.layers.Flatten(),
      _dense('dense_1', _HIDDEN_UNITS, seed),
      _dense('dense_2', _HIDDEN_UNITS, seed),
  ]


_LAYERS = {
    ModelID.CNN_DROPOUT: _cnn_dropout_layers,
    ModelID.CNN: _cnn_layers,
    ModelID.TWO_LAYER_DNN: _two_layer_dnn_layers,
}


def _convolution(
    name: str, channels: int, size: int, seed: int, padding: str = 'valid'
) -> tf.keras.layers.Layer:
  return tf.keras.layers.Conv2D(
      channels,
      size,
      padding=padding,
      activation='relu',
      kernel_initializer=initializers.glorot_uniform(seed, 'emnist_cr', name),
      name=name,
  )


def _dense(
    name: str, units: int, seed: int, activation: Optional[str] = 'relu'
) -> tf.keras.layers.Layer:
  return tf.keras.layers.Dense(
      units,
      activation=activation,
      kernel_initializer=initializers.glorot_uniform(seed, 'emnist_cr', name),
      name=name,
  )


def build_functional_model(
    model_id: Union[ModelID, str], seed: int, only_digits: bool = False
) -> tff.learning.models.FunctionalModel:
  """Builds a model in functional form, with softmax cross entropy.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.
    only_digits: As for `build_keras_model`.

  Returns:
    A functional model with the metric 'accuracy', on batches of `input_spec`.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model is unknown, or the seed negative.

  Example:

    >>> model = build_functional_model('2nn', seed=1)
    >>> [weight.shape for weight in model.initial_weights[0]][-1]
    (62,)
  """
  return keras_classification.to_functional_model(
      build_keras_model(model_id, seed, only_digits), input_spec()
  )


def build_variable_model_fn(
    model_id: Union[ModelID, str], seed: int, only_digits: bool = False
) -> Callable[[], tff.learning.models.VariableModel]:
  """Builds what makes the same model with variables.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.
    only_digits: As for `build_keras_model`.

  Returns:
    A function without arguments that returns a new model, with the initial
    weights of the functional form and the metrics 'accuracy' and those that
    `tff.learning.models.from_keras_model` adds.

  Raises:
    ValueError: If the model is unknown.

  Example:

    >>> model = build_variable_model_fn('2nn', seed=1)()
    >>> len(model.trainable_variables)
    6
  """
  model_id = keras_classification.to_model_id(ModelID, model_id)
  return keras_classification.to_variable_model_fn(
      lambda: build_keras_model(model_id, seed, only_digits), input_spec()
  )
