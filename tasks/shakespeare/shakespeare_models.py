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
"""Models for Shakespeare's plays."""

import collections
from collections.abc import Callable
import enum
from typing import Union

import tensorflow as tf
import tensorflow_federated as tff

from tasks import keras_classification
from tasks import keras_forms
from tasks import language_layers
from tasks import token_metrics
from tasks.shakespeare import shakespeare_preprocessing

_EMBEDDING_SIZE = 8
_LSTM_SIZE = 256


class ModelID(enum.Enum):
  """The models for Shakespeare; the values are those of a flag.

  Attributes:
    LSTM: Two LSTM layers of 256 units, of the FedAvg and FedOpt experiments.
    SMALL_LSTM: One such layer, as in the FedCAda experiments.
  """

  LSTM = 'lstm'
  SMALL_LSTM = 'small_lstm'


_NUM_LSTMS = {ModelID.LSTM: 2, ModelID.SMALL_LSTM: 1}


def input_spec(
    sequence_length: int = shakespeare_preprocessing.DEFAULT_SEQUENCE_LENGTH,
) -> collections.OrderedDict[str, tf.TensorSpec]:
  """Returns the specification of a batch, of any size."""
  spec = tf.TensorSpec([None, sequence_length], tf.int32)
  return collections.OrderedDict(x=spec, y=spec)


def build_keras_model(
    model_id: Union[ModelID, str],
    seed: int,
    sequence_length: int = shakespeare_preprocessing.DEFAULT_SEQUENCE_LENGTH,
) -> tf.keras.Model:
  """Builds a Keras model whose initial weights depend on the seed alone.

  Args:
    model_id: `LSTM`: an embedding of size 8, two LSTM layers of 256 units and a
      dense layer to the 90 tokens; 820,522 weights. `SMALL_LSTM`: the same with
      one LSTM layer, 295,210 weights.
    seed: The seed of the initial weights, a non-negative integer. Their
      distributions are TFF's: the LSTM's kernels are He's normal ones, the
      other weights as Keras has them.
    sequence_length: The length of the sequences. Defaults to 80.

  Returns:
    A model from tokens of shape [batch, sequence_length] to the logits of the
    tokens after them, [batch, sequence_length, 90]. Padding leaves the state of
    the LSTM layers as it is.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model is unknown, `sequence_length` is not positive, or
      the seed negative.

  Example:

    >>> build_keras_model(ModelID.LSTM, seed=1).count_params()
    820522

  References:
    McMahan et al., Communication-Efficient Learning of Deep Networks from
    Decentralized Data, AISTATS 2017, https://arxiv.org/abs/1602.05629, and
    `tff.simulation.baselines.shakespeare` for `LSTM`. The experiments of
    FedCAda have one LSTM layer, of a size that they do not give.
  """
  model_id = keras_classification.to_model_id(ModelID, model_id)
  shakespeare_preprocessing.check_sequence_length(sequence_length)
  layers = language_layers.SeededLayers('shakespeare', seed)
  num_tokens = shakespeare_preprocessing.NUM_TOKENS
  inputs = tf.keras.Input([sequence_length], dtype=tf.int32)
  outputs = layers.embedding('embedding', num_tokens, _EMBEDDING_SIZE)(inputs)
  for i in range(_NUM_LSTMS[model_id]):
    outputs = layers.lstm(f'lstm_{i + 1}', _LSTM_SIZE, 'HeNormal')(outputs)
  outputs = layers.dense('logits', num_tokens)(outputs)
  return tf.keras.Model(inputs, outputs)


def build_loss() -> tf.keras.losses.Loss:
  """Builds the loss: the mean of the cross entropy over all positions.

  Padding counts like any token, as in TFF's baseline: Keras' mask does not
  reach the loss there.
  """
  return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def build_metrics() -> list[tf.keras.metrics.Metric]:
  """Builds the metrics of TFF's baseline, both without padding."""
  masked = [shakespeare_preprocessing.PADDING]
  return [
      token_metrics.NumTokensCounter(masked),
      token_metrics.MaskedCategoricalAccuracy(masked),
  ]


def build_functional_model(
    model_id: Union[ModelID, str],
    seed: int,
    sequence_length: int = shakespeare_preprocessing.DEFAULT_SEQUENCE_LENGTH,
) -> tff.learning.models.FunctionalModel:
  """Builds a model in functional form, with softmax cross entropy.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.
    sequence_length: As for `build_keras_model`.

  Returns:
    A functional model on batches of `input_spec`, with the loss of `build_loss`
    and the metrics 'num_tokens' and 'accuracy', which leave out padding.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model is unknown, `sequence_length` is not positive, or
      the seed negative.

  Example:

    >>> model = build_functional_model('small_lstm', seed=1)
    >>> model.initial_weights[0][0].shape
    (90, 8)
  """
  return keras_forms.to_functional_model(
      build_keras_model(model_id, seed, sequence_length),
      input_spec(sequence_length),
      build_loss,
      build_metrics,
  )


def build_variable_model_fn(
    model_id: Union[ModelID, str],
    seed: int,
    sequence_length: int = shakespeare_preprocessing.DEFAULT_SEQUENCE_LENGTH,
) -> Callable[[], tff.learning.models.VariableModel]:
  """Builds what makes the same model with variables.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.
    sequence_length: As for `build_keras_model`.

  Returns:
    A function without arguments that returns a new model, with the initial
    weights of the functional form, its metrics and those that
    `tff.learning.models.from_keras_model` adds.

  Raises:
    ValueError: If the model is unknown or `sequence_length` is not positive.

  Example:

    >>> model = build_variable_model_fn('small_lstm', seed=1)()
    >>> len(model.trainable_variables)
    6
  """
  model_id = keras_classification.to_model_id(ModelID, model_id)
  shakespeare_preprocessing.check_sequence_length(sequence_length)
  return keras_forms.to_variable_model_fn(
      lambda: build_keras_model(model_id, seed, sequence_length),
      input_spec(sequence_length),
      build_loss,
      build_metrics,
  )
