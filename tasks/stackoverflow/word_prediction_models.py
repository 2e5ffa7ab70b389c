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
"""Models that predict the next word of a sentence on Stack Overflow."""

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
from tasks.stackoverflow import stackoverflow_files
from tasks.stackoverflow import word_prediction_preprocessing

_EMBEDDING_SIZE = 96
_LSTM_SIZE = 670


class ModelID(enum.Enum):
  """The models for the next word; the values are those of a flag.

  Attributes:
    LSTM: An embedding, an LSTM layer of 670 units and two dense layers.
  """

  LSTM = 'lstm'


def input_spec(
    sequence_length: int = stackoverflow_files.DEFAULT_SEQUENCE_LENGTH,
) -> collections.OrderedDict[str, tf.TensorSpec]:
  """Returns the specification of a batch, of any size."""
  spec = tf.TensorSpec([None, sequence_length], tf.int32)
  return collections.OrderedDict(x=spec, y=spec)


def build_keras_model(
    model_id: Union[ModelID, str],
    seed: int,
    vocab_size: int = stackoverflow_files.DEFAULT_VOCAB_SIZE,
    sequence_length: int = stackoverflow_files.DEFAULT_SEQUENCE_LENGTH,
) -> tf.keras.Model:
  """Builds a Keras model whose initial weights depend on the seed alone.

  Args:
    model_id: `LSTM`: an embedding of size 96, an LSTM layer of 670 units, a
      dense layer of 96 units and one to the tokens; 4,050,748 weights with
      10,000 words.
    seed: The seed of the initial weights, a non-negative integer. Their
      distributions are Keras' defaults, as in TFF.
    vocab_size: The number of words, without the 4 special tokens. Defaults to
      10,000.
    sequence_length: The length of the sequences. Defaults to 20.

  Returns:
    A model from tokens of shape [batch, sequence_length] to the logits of the
    tokens after them, [batch, sequence_length, vocab_size + 4]. Padding leaves
    the state of the LSTM layer as it is.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model is unknown, a number not positive, or the seed
      negative.

  Example:

    >>> build_keras_model(ModelID.LSTM, seed=1).count_params()
    4050748

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Table 9;
    `tff.simulation.baselines.stackoverflow.create_word_prediction_task`.
  """
  keras_classification.to_model_id(ModelID, model_id)
  word_prediction_preprocessing.check_sequence_length(sequence_length)
  if vocab_size < 1:
    raise ValueError(f'`vocab_size` must be positive, found {vocab_size}.')
  layers = language_layers.SeededLayers('stackoverflow_nwp', seed)
  num_tokens = vocab_size + word_prediction_preprocessing.NUM_SPECIAL_TOKENS
  inputs = tf.keras.Input([sequence_length], dtype=tf.int32)
  outputs = layers.embedding('embedding', num_tokens, _EMBEDDING_SIZE)(inputs)
  outputs = layers.lstm('lstm', _LSTM_SIZE)(outputs)
  outputs = layers.dense('dense', _EMBEDDING_SIZE)(outputs)
  outputs = layers.dense('logits', num_tokens)(outputs)
  return tf.keras.Model(inputs, outputs)


def build_loss() -> tf.keras.losses.Loss:
  """Builds the loss: the mean of the cross entropy over all positions.

  Padding counts like any token, as in TFF's baseline: Keras' mask does not
  reach the loss there.
  """
  return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def build_metrics(
    vocab_size: int = stackoverflow_files.DEFAULT_VOCAB_SIZE,
) -> list[tf.keras.metrics.Metric]:
  """Builds the metrics of TFF's baseline, and the accuracy of publications.

  | metric | labels that do not count |
  | --- | --- |
  | num_tokens | padding |
  | accuracy | padding, unknown words, ends of sentences |
  | accuracy_without_padding | padding |
  | accuracy_without_out_of_vocab | padding, unknown words |
  | accuracy_without_out_of_vocab_or_end_of_sentence | as for accuracy |

  'accuracy' is what Reddi et al. report; in TFF's baseline this name has what
  is 'accuracy_without_padding' here.

  Args:
    vocab_size: The number of words, without the special tokens.

  Returns:
    The metrics.
  """
  padding = word_prediction_preprocessing.PADDING
  unknown = word_prediction_preprocessing.out_of_vocabulary(vocab_size)
  end = word_prediction_preprocessing.end(vocab_size)
  masked = {
      'accuracy': [padding, end, unknown],
      'accuracy_without_padding': [padding],
      'accuracy_without_out_of_vocab': [padding, unknown],
      'accuracy_without_out_of_vocab_or_end_of_sentence': [
          padding,
          end,
          unknown,
      ],
  }
  return [token_metrics.NumTokensCounter([padding])] + [
      token_metrics.MaskedCategoricalAccuracy(tokens, name)
      for name, tokens in masked.items()
  ]


def build_functional_model(
    model_id: Union[ModelID, str],
    seed: int,
    vocab_size: int = stackoverflow_files.DEFAULT_VOCAB_SIZE,
    sequence_length: int = stackoverflow_files.DEFAULT_SEQUENCE_LENGTH,
) -> tff.learning.models.FunctionalModel:
  """Builds a model in functional form, with softmax cross entropy.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.
    vocab_size: As for `build_keras_model`.
    sequence_length: As for `build_keras_model`.

  Returns:
    A functional model on batches of `input_spec`, with the loss of `build_loss`
    and the metrics of `build_metrics`.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model is unknown, a number not positive, or the seed
      negative.

  Example:

    >>> model = build_functional_model('lstm', seed=1, vocab_size=50)
    >>> model.initial_weights[0][0].shape
    (54, 96)
  """
  return keras_forms.to_functional_model(
      build_keras_model(model_id, seed, vocab_size, sequence_length),
      input_spec(sequence_length),
      build_loss,
      lambda: build_metrics(vocab_size),
  )


def build_variable_model_fn(
    model_id: Union[ModelID, str],
    seed: int,
    vocab_size: int = stackoverflow_files.DEFAULT_VOCAB_SIZE,
    sequence_length: int = stackoverflow_files.DEFAULT_SEQUENCE_LENGTH,
) -> Callable[[], tff.learning.models.VariableModel]:
  """Builds what makes the same model with variables.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.
    vocab_size: As for `build_keras_model`.
    sequence_length: As for `build_keras_model`.

  Returns:
    A function without arguments that returns a new model, with the initial
    weights of the functional form, its metrics and those that
    `tff.learning.models.from_keras_model` adds.

  Raises:
    ValueError: If the model is unknown.

  Example:

    >>> model = build_variable_model_fn('lstm', seed=1, vocab_size=50)()
    >>> len(model.trainable_variables)
    8
  """
  model_id = keras_classification.to_model_id(ModelID, model_id)
  return keras_forms.to_variable_model_fn(
      lambda: build_keras_model(model_id, seed, vocab_size, sequence_length),
      input_spec(sequence_length),
      build_loss,
      lambda: build_metrics(vocab_size),
  )
