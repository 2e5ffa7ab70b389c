# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models that classify texts by their tokens.

Initial weights depend only on the seed: in the CNN and in bags of words,
embeddings are uniform in [-0.25, 0.25] and kernels Glorot uniform; in the
others, all are normal with deviation 0.02, truncated at two deviations. Biases
are 0.

Transformers are models of Keras 2, because the layers of `transformers` are;
the others are models of Keras 3.

References:
  Kim, Convolutional Neural Networks for Sentence Classification, EMNLP 2014,
  https://arxiv.org/abs/1408.5882 (there with 100 channels and vectors of 300);
  Sanh et al., DistilBERT, a distilled version of BERT, 2019,
  https://arxiv.org/abs/1910.01108; Turc et al., Well-Read Students Learn
  Better, 2019, https://arxiv.org/abs/1908.08962 (BERT-Tiny); Joulin et al., Bag
  of Tricks for Efficient Text Classification, EACL 2017,
  https://arxiv.org/abs/1607.01759 (there with pairs of words).
"""

from collections.abc import Mapping
from typing import Any, Optional

import keras
import tensorflow as tf

from tasks import seeded_layers
from tasks.texts import distilbert
from tasks.texts import pretrained
from tff_adaptive import _files
from tff_adaptive.layers import keras_3

# A key of the seeds of initial weights.
_FAMILY = 'text'
_EMBEDDING_SIZE = 64
_EMBEDDING_LIMIT = 0.25
_FILTER_WIDTHS = (3, 4, 5)
_NUM_FILTERS = 64
_CNN_DROPOUT_RATE = 0.5

# The initial deviation of DistilBERT's head.
_HEAD_STDDEV = 0.02
_HEAD_DROPOUT_RATE = 0.2

# The sizes of distilbert-base, and of its architecture with BERT-Tiny's sizes.
_DISTILBERT = {'n_layers': 6, 'n_heads': 12, 'dim': 768, 'hidden_dim': 3072}
_TINY = {'n_layers': 2, 'n_heads': 2, 'dim': 128, 'hidden_dim': 512}
_MAX_POSITIONS = 512


def build_cnn(
    vocab_size: int, max_length: int, num_classes: int, seed: int
) -> keras.Model:
  """Builds a convolutional network on words, 690,116 weights for AG News.

  An embedding of size 64, convolutions over 3, 4 and 5 words with 64 channels
  each, ReLU, the maximum over the text, dropout of 0.5, and a dense layer.

  Args:
    vocab_size: The number of tokens; 0 is padding.
    max_length: The number of tokens of a text, at least 5.
    num_classes: The number of classes.
    seed: The seed of the initial weights, a non-negative integer.

  Returns:
    A model from tokens, int32 of shape [batch, max_length], to logits.

  Raises:
    ValueError: If `max_length` is too small.
  """
  minimum = max(_FILTER_WIDTHS)
  if max_length < minimum:
    raise ValueError(
        f"`max_length` must be at least {minimum} for the model 'cnn', found "
        f'{max_length}.'
    )
  tokens = keras.Input([max_length], dtype='int32')
  features = _cnn_features(tokens, vocab_size, seed)
  return _add_logits(tokens, features, num_classes, seed)


def build_bag_of_words(
    vocab_size: int, max_length: int, num_classes: int, seed: int
) -> keras.Model:
  """Builds a classifier of bags of words, 640,196 weights for AG News.

  The mean of the embeddings of a text's words, of size 64, and a dense layer.
  The gradient of the embeddings has only the rows of these words, so a step
  takes a fraction of the time of the other models.

  Args:
    vocab_size: As for `build_cnn`.
    max_length: As for `build_cnn`, from 1.
    num_classes: As for `build_cnn`.
    seed: As for `build_cnn`.

  Returns:
    A model from tokens, int32 of shape [batch, max_length], to logits.
  """
  tokens = keras.Input([max_length], dtype='int32')
  # Padding becomes -1, which has no embedding.
  features = keras_3.BagOfWordsDense(
      _EMBEDDING_SIZE,
      vocab_size - 1,
      use_bias=False,
      kernel_initializer=_uniform('embedding', seed),
      name='embedding',
  )(tokens - 1)
  return _add_logits(tokens, features, num_classes, seed)


def build_transformer(
    vocab_size: int, max_length: int, num_classes: int, seed: int
) -> tf.keras.Model:
  """Builds DistilBERT's architecture with the sizes of BERT-Tiny.

  Args:
    vocab_size: See `build_cnn`.
    max_length: See `build_cnn`; at most 512.
    num_classes: See `build_cnn`.
    seed: See `build_cnn`.

  Returns:
    A model from tokens, int32 of shape [batch, max_length], to logits.

  Raises:
    ModuleNotFoundError: If transformers is not installed.
    ValueError: If `max_length` is too large.
  """
  config = dict(_TINY, vocab_size=vocab_size)
  return _build_transformer(config, None, max_length, num_classes, seed)


def build_distilbert(
    vocab_size: int,
    max_length: int,
    num_classes: int,
    seed: int,
    pretrained_dir: Optional[_files.PathLike] = None,
) -> tf.keras.Model:
  """Builds the model of the Delta-SGD experiments.

  The architecture of distilbert-base with Hugging Face's head on the first
  token's vector: a dense layer of the same size, ReLU, dropout of 0.2, and a
  dense layer.

  Args:
    vocab_size: See `build_cnn`; that of `pretrained_dir`, if given.
    max_length: See `build_cnn`; at most 512.
    num_classes: See `build_cnn`.
    seed: See `build_cnn`.
    pretrained_dir: A folder in Hugging Face's layout (config.json, vocab.txt,
      and tf_model.h5 or model.safetensors), which determines the sizes, the
      tokens and all initial weights except for the head. None (the default) for
      the sizes of distilbert-base and random weights.

  Returns:
    A model from tokens, int32 of shape [batch, max_length], to logits.

  Raises:
    FileNotFoundError: If the folder lacks a file.
    ModuleNotFoundError: If transformers is not installed.
    ValueError: If `max_length` is too large, or a file is damaged.
  """
  config: Mapping[str, Any] = dict(_DISTILBERT, vocab_size=vocab_size)
  weights = None
  if pretrained_dir:
    config = pretrained.load_config(pretrained_dir)
    weights = pretrained.load_encoder_weights(pretrained_dir)
  return _build_transformer(config, weights, max_length, num_classes, seed)


def _cnn_features(tokens: Any, vocab_size: int, seed: int) -> Any:
  """Returns the maximum of each filter over a text."""
  vectors = keras.layers.Embedding(
      vocab_size,
      _EMBEDDING_SIZE,
      name='embedding',
      embeddings_initializer=_uniform('embedding', seed),
  )(tokens)
  answers = []
  for width in _FILTER_WIDTHS:
    name = f'conv_{width}'
    convolution = keras.layers.Conv1D(
        _NUM_FILTERS,
        width,
        activation='relu',
        name=name,
        kernel_initializer=_glorot(name, seed),
    )
    answers.append(keras.layers.GlobalMaxPool1D()(convolution(vectors)))
  return keras.layers.Dropout(_CNN_DROPOUT_RATE)(
      keras.layers.Concatenate()(answers)
  )


def _build_transformer(
    config: Mapping[str, Any],
    weights: Any,
    max_length: int,
    num_classes: int,
    seed: int,
) -> tf.keras.Model:
  maximum = config.get('max_position_embeddings', _MAX_POSITIONS)
  if max_length > maximum:
    raise ValueError(
        f'`max_length` must be between 1 and {maximum} for this model, found '
        f'{max_length}.'
    )
  tokens = tf.keras.Input([max_length], dtype=tf.int32)
  features = _transformer_features(tokens, config, weights, seed)
  logits = tf.keras.layers.Dense(
      num_classes, name='logits', kernel_initializer=_normal('logits', seed)
  )
  return tf.keras.Model(tokens, logits(features))


def _add_logits(
    tokens: Any, features: Any, num_classes: int, seed: int
) -> keras.Model:
  logits = keras.layers.Dense(
      num_classes, name='logits', kernel_initializer=_glorot('logits', seed)
  )
  return keras.Model(tokens, logits(features))


def _transformer_features(
    tokens: tf.Tensor, config: Mapping[str, Any], weights: Any, seed: int
) -> tf.Tensor:
  """Returns the inputs of DistilBERT's last layer."""
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


def _glorot(layer: str, seed: int) -> keras.initializers.Initializer:
  return seeded_layers.glorot_uniform(seed, _FAMILY, layer)


def _uniform(layer: str, seed: int) -> keras.initializers.Initializer:
  return keras.initializers.RandomUniform(
      -_EMBEDDING_LIMIT,
      _EMBEDDING_LIMIT,
      seed=seeded_layers.initializer_seed(seed, _FAMILY, layer),
  )


def _normal(layer: str, seed: int) -> tf.keras.initializers.Initializer:
  return tf.keras.initializers.TruncatedNormal(
      stddev=_HEAD_STDDEV,
      seed=seeded_layers.initializer_seed(seed, _FAMILY, layer),
  )
