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
"""Models for DBpedia."""

from collections.abc import Callable
import os
from typing import Optional, Union

import tensorflow as tf
import tensorflow_federated as tff

from tasks.dbpedia import dbpedia_preprocessing
from tasks.text_classification import text_models

_NUM_CLASSES = dbpedia_preprocessing.NUM_CLASSES

_ModelID = Union[text_models.ModelID, str]
_PathLike = Union[str, os.PathLike]


def build_keras_model(
    model_id: _ModelID,
    seed: int,
    vocab_size: int = text_models.DEFAULT_VOCAB_SIZE,
    max_length: int = text_models.DEFAULT_MAX_LENGTH,
    pretrained_dir: Optional[_PathLike] = None,
) -> tf.keras.Model:
  """Builds a Keras model whose initial weights depend on the seed alone.

  Args:
    model_id: As for `tasks.ag_news.build_keras_model`, like all that follows.
    seed: The seed of the initial weights.
    vocab_size: Defaults to 10,000.
    max_length: Defaults to 128.
    pretrained_dir: None (the default) for random weights.

  Returns:
    A model from tokens, int32 of shape [batch, max_length], to logits of shape
    [batch, 14].

  Raises:
    FileNotFoundError: If `pretrained_dir` lacks a file.
    ModuleNotFoundError: If transformers is needed and not installed.
    TypeError: If the seed is not an integer.
    ValueError: As `text_models.TextModel` and `text_models.build_keras_model`.

  Example:

    >>> build_keras_model('cnn', seed=1).count_params()
    692046
  """
  model = text_models.TextModel(
      model_id, vocab_size, max_length, pretrained_dir
  )
  return text_models.build_keras_model(model, _NUM_CLASSES, seed)


def build_functional_model(
    model_id: _ModelID,
    seed: int,
    vocab_size: int = text_models.DEFAULT_VOCAB_SIZE,
    max_length: int = text_models.DEFAULT_MAX_LENGTH,
    pretrained_dir: Optional[_PathLike] = None,
) -> tff.learning.models.FunctionalModel:
  """Builds a model in functional form, with softmax cross entropy.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.
    vocab_size: As for `build_keras_model`.
    max_length: As for `build_keras_model`.
    pretrained_dir: As for `build_keras_model`.

  Returns:
    A functional model with the metric 'accuracy'.

  Raises:
    FileNotFoundError: As `build_keras_model`.
    ModuleNotFoundError: As `build_keras_model`.
    TypeError: As `build_keras_model`.
    ValueError: As `build_keras_model`.

  Example:

    >>> model = build_functional_model('cnn', seed=1, vocab_size=50)
    >>> model.initial_weights[0][0].shape
    (50, 64)
  """
  model = text_models.TextModel(
      model_id, vocab_size, max_length, pretrained_dir
  )
  return text_models.build_functional_model(model, _NUM_CLASSES, seed)


def build_variable_model_fn(
    model_id: _ModelID,
    seed: int,
    vocab_size: int = text_models.DEFAULT_VOCAB_SIZE,
    max_length: int = text_models.DEFAULT_MAX_LENGTH,
    pretrained_dir: Optional[_PathLike] = None,
) -> Callable[[], tff.learning.models.VariableModel]:
  """Builds what makes the same model with variables.

  Args:
    model_id: As for `build_keras_model`.
    seed: As for `build_keras_model`.
    vocab_size: As for `build_keras_model`.
    max_length: As for `build_keras_model`.
    pretrained_dir: As for `build_keras_model`.

  Returns:
    A function without arguments that returns a new model, with the initial
    weights of the functional form.

  Raises:
    ValueError: If the model is unknown, or takes no `pretrained_dir`.

  Example:

    >>> model = build_variable_model_fn('cnn', seed=1, vocab_size=50)()
    >>> len(model.trainable_variables)
    9
  """
  model = text_models.TextModel(
      model_id, vocab_size, max_length, pretrained_dir
  )
  return text_models.build_variable_model_fn(model, _NUM_CLASSES, seed)
