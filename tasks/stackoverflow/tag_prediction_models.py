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
"""Models that predict the tags of a sentence on Stack Overflow."""

import collections
from collections.abc import Callable
import enum
from typing import Any, Union

import tensorflow as tf
import tensorflow_federated as tff

from tasks import keras_classification
from tasks import keras_forms
from tasks import language_layers
from tasks.stackoverflow import stackoverflow_files
from tasks.stackoverflow import tag_prediction_preprocessing
from tff_adaptive import layers as fast_layers

_RECALL_AT = 5


class ModelID(enum.Enum):
  """The models for tags, one and the same logistic regression in two forms.

  The values are those of a flag.

  Attributes:
    WORDS: It takes the words of a text, and gathers their rows.
    LOGISTIC: It takes the frequencies of all words, as TFF's baseline does.
  """

  WORDS = 'words'
  LOGISTIC = 'logistic'


@tf.keras.utils.register_keras_serializable('tff_adaptive')
class TrimWords(tf.keras.layers.Layer):
  """Cuts lists of words to the longest one of the batch.

  Nearly all texts have far fewer words than a list has room for. What is cut
  off is -1 in all lists, which counts for nothing.

  Example:

    >>> TrimWords()(tf.constant([[3, 1, -1, -1], [2, -1, -1, -1]])).shape
    TensorShape([2, 2])
  """

  def call(self, words: tf.Tensor) -> tf.Tensor:
    is_used = tf.reduce_any(words >= 0, axis=0)
    num_used = tf.math.count_nonzero(is_used, dtype=tf.int32)
    return words[:, :num_used]

  def compute_output_shape(self, input_shape: Any) -> tf.TensorShape:
    return tf.TensorShape([input_shape[0], None])


def input_spec(
    model_id: Union[ModelID, str],
    vocab_size: int = stackoverflow_files.DEFAULT_VOCAB_SIZE,
    tag_vocab_size: int = stackoverflow_files.DEFAULT_TAG_VOCAB_SIZE,
    max_words: int = tag_prediction_preprocessing.DEFAULT_MAX_WORDS,
) -> collections.OrderedDict[str, tf.TensorSpec]:
  """Returns the specification of a batch, of any size."""
  if keras_classification.to_model_id(ModelID, model_id) is ModelID.WORDS:
    x = tf.TensorSpec([None, max_words], tf.int32)
  else:
    x = tf.TensorSpec([None, vocab_size], tf.float32)
  return collections.OrderedDict(
      x=x, y=tf.TensorSpec([None, tag_vocab_size], tf.float32)
  )


def build_keras_model(
    model_id: Union[ModelID, str],
    seed: int,
    vocab_size: int = stackoverflow_files.DEFAULT_VOCAB_SIZE,
    tag_vocab_size: int = stackoverflow_files.DEFAULT_TAG_VOCAB_SIZE,
    max_words: int = tag_prediction_preprocessing.DEFAULT_MAX_WORDS,
) -> tf.keras.Model:
  """Builds a Keras model whose initial weights depend on the seed alone.

  ```
  P(tag t) = sigmoid(b_t + sum over words w of W_wt x_w)
  ```

  with the frequencies x of words, see
  `tag_prediction_preprocessing.WordFrequencies`.

  Args:
    model_id: Both are this logistic regression, with the same initial weights
      and, up to rounding, the same numbers; 5,000,500 weights with 10,000 words
      and 500 tags. `LOGISTIC` takes the frequencies, as TFF's baseline does.
      `WORDS` takes lists of words, see
      `tag_prediction_preprocessing.WordLists`, and looks at the rows of these
      words only: an example takes a tenth of the memory and training on a CPU a
      fraction of the time. XLA cannot compile it.
    seed: The seed of the initial weights, a non-negative integer. The kernel is
      Glorot's uniform one, the bias zero, as in TFF.
    vocab_size: The number of words. Defaults to 10,000.
    tag_vocab_size: The number of tags, 5 or more. Defaults to 500.
    max_words: Of `WORDS`: the length of the lists. Defaults to 1024.

  Returns:
    A model from words to the probabilities of the tags, of shape
    [batch, tag_vocab_size].

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model is unknown, a number too small, or the seed
      negative.

  Example:

    >>> build_keras_model(ModelID.WORDS, seed=1).count_params()
    5000500

  References:
    Reddi et al., Adaptive Federated Optimization, ICLR 2021,
    https://arxiv.org/abs/2003.00295, Section 5;
    `tff.simulation.baselines.stackoverflow.create_tag_prediction_task`.
  """
  model_id = keras_classification.to_model_id(ModelID, model_id)
  for name, value in (('vocab_size', vocab_size), ('max_words', max_words)):
    if value < 1:
      raise ValueError(f'`{name}` must be positive, found {value}.')
  if tag_vocab_size < _RECALL_AT:
    raise ValueError(
        f'There must be {_RECALL_AT} tags or more for the recall at '
        f'{_RECALL_AT}, found {tag_vocab_size}.'
    )
  maker = language_layers.SeededLayers('stackoverflow_lr', seed)
  if model_id is ModelID.LOGISTIC:
    inputs = tf.keras.Input([vocab_size])
    outputs = maker.dense('logits', tag_vocab_size)(inputs)
  else:
    inputs = tf.keras.Input([max_words], dtype=tf.int32)
    outputs = fast_layers.BagOfWordsDense(
        tag_vocab_size,
        vocab_size,
        kernel_initializer=maker.glorot_uniform('logits'),
        name='logits',
    )(TrimWords()(inputs))
  return tf.keras.Model(inputs, tf.keras.layers.Activation('sigmoid')(outputs))


def build_loss() -> tf.keras.losses.Loss:
  """Builds the loss: binary cross entropy, as in TFF's baseline.

  It is the sum over the examples of a batch of the mean over the tags, which is
  why published step sizes are as large as 100, and why the loss that an
  evaluation reports grows with its batches.
  """
  return tf.keras.losses.BinaryCrossentropy(
      reduction=tf.keras.losses.Reduction.SUM
  )


def build_metrics() -> list[tf.keras.metrics.Metric]:
  """Builds the metrics of TFF's baseline: precision, and recall at 5.

  'precision' is of the tags with a probability above 1/2; 'recall_at_5', which
  publications report, the part of all tags that are among the five most
  probable ones of their sentence.
  """
  return [
      tf.keras.metrics.Precision(name='precision'),
      tf.keras.metrics.Recall(top_k=_RECALL_AT, name=f'recall_at_{_RECALL_AT}'),
  ]


def build_functional_model(
    model_id: Union[ModelID, str],
    seed: int,
    vocab_size: int = stackoverflow_files.DEFAULT_VOCAB_SIZE,
    tag_vocab_size: int = stackoverflow_files.DEFAULT_TAG_VOCAB_SIZE,
    max_words: int = tag_prediction_preprocessing.DEFAULT_MAX_WORDS,
) -> tff.learning.models.FunctionalModel:
  """Builds a model in functional form, with binary cross entropy.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.
    vocab_size: As for `build_keras_model`.
    tag_vocab_size: As for `build_keras_model`.
    max_words: As for `build_keras_model`.

  Returns:
    A functional model on batches of `input_spec`, with the loss of `build_loss`
    and the metrics 'precision' and 'recall_at_5'.

  Raises:
    TypeError: If the seed is not an integer.
    ValueError: If the model is unknown, a number too small, or the seed
      negative.

  Example:

    >>> model = build_functional_model('words', 1, vocab_size=50)
    >>> [weight.shape for weight in model.initial_weights[0]]
    [(50, 500), (500,)]
  """
  sizes = (vocab_size, tag_vocab_size, max_words)
  return keras_forms.to_functional_model(
      build_keras_model(model_id, seed, *sizes),
      input_spec(model_id, *sizes),
      build_loss,
      build_metrics,
  )


def build_variable_model_fn(
    model_id: Union[ModelID, str],
    seed: int,
    vocab_size: int = stackoverflow_files.DEFAULT_VOCAB_SIZE,
    tag_vocab_size: int = stackoverflow_files.DEFAULT_TAG_VOCAB_SIZE,
    max_words: int = tag_prediction_preprocessing.DEFAULT_MAX_WORDS,
) -> Callable[[], tff.learning.models.VariableModel]:
  """Builds what makes the same model with variables.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.
    vocab_size: As for `build_keras_model`.
    tag_vocab_size: As for `build_keras_model`.
    max_words: As for `build_keras_model`.

  Returns:
    A function without arguments that returns a new model, with the initial
    weights of the functional form, its metrics and those that
    `tff.learning.models.from_keras_model` adds.

  Raises:
    ValueError: If the model is unknown.

  Example:

    >>> model = build_variable_model_fn('words', seed=1, vocab_size=50)()
    >>> len(model.trainable_variables)
    2
  """
  sizes = (vocab_size, tag_vocab_size, max_words)
  return keras_forms.to_variable_model_fn(
      lambda: build_keras_model(model_id, seed, *sizes),
      input_spec(model_id, *sizes),
      build_loss,
      build_metrics,
  )
