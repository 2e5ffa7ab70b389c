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
"""Models that classify texts by their tokens."""

import collections
from collections.abc import Callable, Mapping
import enum
import os
from typing import Any, Optional, Union

import attrs
import tensorflow as tf
import tensorflow_federated as tff

from tasks import keras_classification
from tasks.text_classification import distilbert
from tasks.text_classification import pretrained
from tff_adaptive.data import random_streams

DEFAULT_VOCAB_SIZE = 10_000
DEFAULT_MAX_LENGTH = 128

_PathLike = Union[str, os.PathLike]

_EMBEDDING_SIZE = 64
_EMBEDDING_LIMIT = 0.25
_FILTER_WIDTHS = (3, 4, 5)
_NUM_FILTERS = 64
_CNN_DROPOUT_RATE = 0.5

# Of DistilBERT's head.
_HEAD_STDDEV = 0.02
_HEAD_DROPOUT_RATE = 0.2


class ModelID(enum.Enum):
  """The models for texts, see `TextModel`; the values are those of a flag.

  Attributes:
    CNN: Convolutions over words.
    TRANSFORMER: DistilBERT's architecture with the sizes of BERT-Tiny.
    DISTILBERT: The model of the Delta-SGD experiments.
  """

  CNN = 'cnn'
  TRANSFORMER = 'transformer'
  DISTILBERT = 'distilbert'


# The sizes of distilbert-base, and those that its architecture has where it is
# as small as BERT-Tiny.
_ARCHITECTURES = {
    ModelID.DISTILBERT: dict(n_layers=6, n_heads=12, dim=768, hidden_dim=3072),
    ModelID.TRANSFORMER: dict(n_layers=2, n_heads=2, dim=128, hidden_dim=512),
}
_MAX_POSITIONS = 512


def _to_model_id(model_id: Union[ModelID, str]) -> ModelID:
  return keras_classification.to_model_id(ModelID, model_id)


@attrs.frozen
class TextModel:
  """Which model classifies texts, and what it sees of them.

  Attributes:
    model_id: `ModelID` or its value. `CNN` (the default): an embedding of 64,
      convolutions over 3, 4 and 5 words with 64 channels each, ReLU, the
      maximum over the text, dropout of half of them, and a dense layer.
      `DISTILBERT`: the architecture of distilbert-base with the head of Hugging
      Face, on the first token's vector: a dense layer of the same size, ReLU,
      dropout of 0.2, and a dense layer. `TRANSFORMER`: the same architecture
      with the sizes of BERT-Tiny, 2 layers and 128 numbers a token. The last
      two need the package transformers.
    vocab_size: The number of tokens, of which 0 pads. Defaults to 10,000.
    max_length: How many tokens of a text count, from 5 for the CNN, and at most
      512 for the others. Defaults to 128, which is more than nearly all texts
      of a news agency or an encyclopedia's beginnings have; padding does not
      change what a transformer says of a text.
    pretrained_dir: Of `DISTILBERT`: a folder in Hugging Face's layout
      (config.json, vocab.txt, and tf_model.h5 or model.safetensors), which
      decides on the sizes and the tokens, `vocab_size` included, and on all
      initial weights but those of the head. None (the default) for the sizes of
      distilbert-base, words as tokens, and random weights.

  Raises:
    ValueError: If the model is unknown, or takes no `pretrained_dir`.

  References:
    Kim, Convolutional Neural Networks for Sentence Classification, EMNLP 2014,
    https://arxiv.org/abs/1408.5882 (there with 100 channels and vectors of
    300); Sanh et al., DistilBERT, a distilled version of BERT, 2019,
    https://arxiv.org/abs/1910.01108; Turc et al., Well-Read Students Learn
    Better, 2019, https://arxiv.org/abs/1908.08962 (BERT-Tiny).
  """

  model_id: ModelID = attrs.field(default=ModelID.CNN, converter=_to_model_id)
  vocab_size: int = DEFAULT_VOCAB_SIZE
  max_length: int = DEFAULT_MAX_LENGTH
  pretrained_dir: Optional[_PathLike] = None

  def __attrs_post_init__(self):
    if self.pretrained_dir and self.model_id is not ModelID.DISTILBERT:
      raise ValueError(
          f'`pretrained_dir` is for the model {ModelID.DISTILBERT.value!r} '
          f'alone, found {str(self.pretrained_dir)!r} with '
          f'{self.model_id.value!r}.'
      )

  @property
  def input_spec(self) -> collections.OrderedDict[str, tf.TensorSpec]:
    """The specification of a batch, of any size."""
    return collections.OrderedDict(
        x=tf.TensorSpec([None, self.max_length], tf.int32),
        y=tf.TensorSpec([None], tf.int32),
    )


def build_keras_model(
    model: TextModel, num_classes: int, seed: int
) -> tf.keras.Model:
  """Builds a Keras model whose initial weights depend on the seed alone.

  Args:
    model: Which model.
    num_classes: The number of logits.
    seed: The seed of the initial weights, a non-negative integer. Of the CNN,
      embeddings are uniform in [-0.25, 0.25] and kernels Glorot uniform; of the
      others, all are normal with deviation 0.02, cut off at two deviations.
      Biases are 0.

  Returns:
    A model from tokens, int32 of shape [batch, max_length], to logits of shape
    [batch, num_classes].

  Raises:
    FileNotFoundError: If the model's folder lacks a file.
    ModuleNotFoundError: If transformers is needed and not installed.
    ValueError: If `max_length` does not suit the model, or a file is damaged.

  Example:

    >>> build_keras_model(TextModel('cnn'), 4, seed=1).count_params()
    690116
    >>> distilbert = TextModel('distilbert', vocab_size=30_522)
    >>> build_keras_model(distilbert, 4, seed=1).count_params()
    66956548
  """
  tokens = tf.keras.Input([model.max_length], dtype=tf.int32)
  if model.model_id is ModelID.CNN:
    _check_max_length(model, max(_FILTER_WIDTHS))
    features = _cnn_features(tokens, model.vocab_size, seed)
    initializer = _glorot('logits', seed)
  else:
    config = _transformer_config(model)
    maximum = config.get('max_position_embeddings', _MAX_POSITIONS)
    _check_max_length(model, 1, maximum)
    features = _transformer_features(tokens, config, model, seed)
    initializer = _normal('logits', seed)
  logits = tf.keras.layers.Dense(
      num_classes, name='logits', kernel_initializer=initializer
  )
  return tf.keras.Model(tokens, logits(features))


def build_functional_model(
    model: TextModel, num_classes: int, seed: int
) -> tff.learning.models.FunctionalModel:
  """Builds a model in functional form, with softmax cross entropy.

  Args:
    model: As for `build_keras_model`.
    num_classes: As for `build_keras_model`.
    seed: As for `build_keras_model`.

  Returns:
    A functional model with the metric 'accuracy', on batches of `input_spec`.

  Raises:
    FileNotFoundError: As `build_keras_model`.
    ModuleNotFoundError: As `build_keras_model`.
    ValueError: As `build_keras_model`.

  Example:

    >>> cnn = build_functional_model(TextModel('cnn'), 4, seed=1)
    >>> cnn.initial_weights[0][0].shape
    (10000, 64)
  """
  return keras_classification.to_functional_model(
      build_keras_model(model, num_classes, seed), model.input_spec
  )


def build_variable_model_fn(
    model: TextModel, num_classes: int, seed: int
) -> Callable[[], tff.learning.models.VariableModel]:
  """Builds what makes the same model with variables.

  Args:
    model: As for `build_keras_model`.
    num_classes: As for `build_keras_model`.
    seed: As for `build_keras_model`.

  Returns:
    A function without arguments that returns a new model, with the initial
    weights of the functional form and the metrics 'accuracy' and those that
    `tff.learning.models.from_keras_model` adds. It raises what
    `build_keras_model` does.

  Example:

    >>> cnn = build_variable_model_fn(TextModel('cnn'), 4, seed=1)()
    >>> len(cnn.trainable_variables)
    9
  """
  return keras_classification.to_variable_model_fn(
      lambda: build_keras_model(model, num_classes, seed), model.input_spec
  )


def _check_max_length(
    model: TextModel, minimum: int, maximum: Optional[int] = None
) -> None:
  found = model.max_length
  if found < minimum or (maximum is not None and found > maximum):
    limit = '' if maximum is None else f' and at most {maximum}'
    raise ValueError(
        f'`max_length` must be at least {minimum}{limit} for the model '
        f'{model.model_id.value!r}, found {found}.'
    )


def _cnn_features(tokens: tf.Tensor, vocab_size: int, seed: int) -> tf.Tensor:
  """Returns the strongest answer of each filter to a text."""
  vectors = tf.keras.layers.Embedding(
      vocab_size,
      _EMBEDDING_SIZE,
      name='embedding',
      embeddings_initializer=tf.keras.initializers.RandomUniform(
          -_EMBEDDING_LIMIT,
          _EMBEDDING_LIMIT,
          seed=_layer_seed('embedding', seed),
      ),
  )(tokens)
  answers = []
  for width in _FILTER_WIDTHS:
    name = f'conv_{width}'
    convolution = tf.keras.layers.Conv1D(
        _NUM_FILTERS,
        width,
        activation='relu',
        name=name,
        kernel_initializer=_glorot(name, seed),
    )
    answers.append(tf.keras.layers.GlobalMaxPool1D()(convolution(vectors)))
  return tf.keras.layers.Dropout(_CNN_DROPOUT_RATE)(
      tf.keras.layers.Concatenate()(answers)
  )


def _transformer_config(model: TextModel) -> Mapping[str, Any]:
  """Returns the arguments of `transformers.DistilBertConfig`."""
  if model.pretrained_dir:
    return pretrained.load_config(model.pretrained_dir)
  return dict(_ARCHITECTURES[model.model_id], vocab_size=model.vocab_size)


def _transformer_features(
    tokens: tf.Tensor, config: Mapping[str, Any], model: TextModel, seed: int
) -> tf.Tensor:
  """Returns what the classifier of DistilBERT decides by."""
  weights = None
  if model.pretrained_dir:
    weights = pretrained.load_encoder_weights(model.pretrained_dir)
  encoder = distilbert.DistilBertEncoder(
      config, seed, weights, name='distilbert'
  )
  vectors = encoder(tokens)
  hidden = tf.keras.layers.Dense(
      vectors.shape[-1],
      activation='relu',
      name='pre_classifier',
      kernel_initializer=_normal('pre_classifier', seed),
  )
  rate = config.get('seq_classif_dropout', _HEAD_DROPOUT_RATE)
  return tf.keras.layers.Dropout(rate)(hidden(vectors))


def _glorot(layer: str, seed: int) -> tf.keras.initializers.Initializer:
  return tf.keras.initializers.GlorotUniform(_layer_seed(layer, seed))


def _normal(layer: str, seed: int) -> tf.keras.initializers.Initializer:
  return tf.keras.initializers.TruncatedNormal(
      stddev=_HEAD_STDDEV, seed=_layer_seed(layer, seed)
  )


def _layer_seed(layer: str, seed: int) -> int:
  return random_streams.derived_seed(
      seed, random_streams.INITIAL_WEIGHTS, 'text', layer
  )
