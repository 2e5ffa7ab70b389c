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
"""From texts to tasks: tokens made once, shared by the clients."""

import collections
from collections.abc import Iterable, Mapping
import os
from typing import Optional, Union

import numpy as np
import tensorflow as tf

from tasks import keras_classification
from tasks.text_classification import pretrained
from tasks.text_classification import text_files
from tasks.text_classification import text_models
from tasks.text_classification import word_vocabulary
from tff_adaptive.data import client_data
from tff_adaptive.data import feature_arrays
from tff_adaptive.data import sources
from tff_adaptive.data import transforms
from tff_adaptive.simulation import task

# Of Kim et al., Adaptive Federated Learning with Auto-Tuned Clients.
DEFAULT_PROTOCOL = task.Protocol(
    client_batch_size=16,
    client_epochs=1,
    clients_per_round=5,
    total_rounds=100,
)

Vocabulary = Union[word_vocabulary.WordVocabulary, pretrained.WordPieces]


def build_vocabulary(
    texts: Iterable[word_vocabulary.Text], model: text_models.TextModel
) -> Vocabulary:
  """Builds the tokens that a model takes texts by.

  Args:
    texts: The texts of training.
    model: The model: the tokens of its `pretrained_dir`, or else its
      `vocab_size` most frequent words of the texts.

  Returns:
    The vocabulary.

  Raises:
    FileNotFoundError: If the model's folder has no vocabulary.
    ValueError: If the texts have fewer words, or the folder's vocabulary is
      damaged.
  """
  if model.pretrained_dir:
    return pretrained.load_word_pieces(model.pretrained_dir)
  return word_vocabulary.build_word_vocabulary(texts, model.vocab_size)


def encode(
    examples: Mapping[str, np.ndarray],
    vocabulary: Vocabulary,
    max_length: int,
) -> feature_arrays.Examples:
  """Returns examples as the models take them.

  Args:
    examples: 'text' and 'label', of shape [num_examples].
    vocabulary: Turns texts into tokens.
    max_length: How many tokens of a text count.

  Returns:
    'x', the tokens, int32 of shape [num_examples, max_length], and 'y', the
    classes, int32 of shape [num_examples].
  """
  return collections.OrderedDict(
      x=vocabulary.encode(examples['text'], max_length), y=examples['label']
  )


def load_tokens(
    dataset: text_files.TextDataset,
    data_dir: Union[str, os.PathLike],
    model: text_models.TextModel,
) -> tuple[feature_arrays.Examples, feature_arrays.Examples]:
  """Loads a data set as tokens, by the vocabulary of its training texts.

  Args:
    dataset: Which data set.
    data_dir: The folder of the data sets.
    model: The model that takes the tokens.

  Returns:
    The training and the test examples, as `encode` returns them.

  Raises:
    FileNotFoundError: If the data, or a file of the model, are not there.
    ValueError: If the data are damaged, or have too few words.
  """
  train, test = dataset.load(data_dir)
  vocabulary = build_vocabulary(train['text'], model)
  return (
      encode(train, vocabulary, model.max_length),
      encode(test, vocabulary, model.max_length),
  )


def read_tokens(
    dataset: text_files.TextDataset,
    train_data: sources.ClientSource,
    central_test: sources.ExampleSource,
    model: text_models.TextModel,
) -> tuple[client_data.ClientArrays, feature_arrays.Examples]:
  """Reads the caller's own texts as tokens.

  Args:
    dataset: Whose classes the texts have.
    train_data: The clients, with `text_files.RAW_SPEC`; what
      `sources.read_clients` takes. A file that says of which split its
      rows are gives those of 'train'.
    central_test: The test set with the same features; of a file, 'test'.
    model: The model that takes the tokens.

  Returns:
    The clients, and the test examples as `encode` returns them.

  Raises:
    FileNotFoundError: If a file is missing.
    TypeError: If a part has the wrong type.
    ValueError: If the features are others, a label is no class, or the training
      texts have too few words.
  """
  raw = transforms.materialize(
      sources.read_clients(train_data, text_files.RAW_SPEC, split_name='train')
  )
  test = sources.read_examples(
      central_test,
      text_files.RAW_SPEC,
      split_name='test',
      name='The central test data',
  )
  dataset.check_labels(raw.values['label'], 'The training data')
  dataset.check_labels(test['label'], 'The central test data')
  vocabulary = build_vocabulary(raw.values['text'], model)
  clients = transforms.map_clients(
      raw,
      lambda examples: encode(examples, vocabulary, model.max_length),
      collections.OrderedDict(
          (name, tf.TensorSpec(spec.shape[1:], spec.dtype))
          for name, spec in model.input_spec.items()
      ),
      keeps_sizes=True,
  )
  return clients, encode(test, vocabulary, model.max_length)


def build_task(
    dataset: text_files.TextDataset,
    train_data: client_data.ClientArrays,
    central_test: Mapping[str, np.ndarray],
    model: text_models.TextModel,
    seed: int,
    protocol: Optional[task.Protocol],
) -> task.Task:
  """Builds the task of classifying texts that are tokens by now.

  Args:
    dataset: Which data set: its name and its classes.
    train_data: The clients, with the features of `encode`.
    central_test: The test set, as `encode` returns it.
    model: Which model.
    seed: The seed of the initial weights.
    protocol: The numbers of training; None for `DEFAULT_PROTOCOL`.

  Returns:
    The task.

  Raises:
    FileNotFoundError: If the model's folder lacks a file.
    ModuleNotFoundError: If transformers is needed and not installed.
    ValueError: If the features do not fit the model, or the protocol wants more
      clients a round than there are.
  """
  keras_model = text_models.build_keras_model(model, dataset.num_classes, seed)
  return task.Task(
      name=dataset.name,
      functional_model=keras_classification.to_functional_model(
          keras_model, model.input_spec
      ),
      variable_model_fn=text_models.build_variable_model_fn(
          model, dataset.num_classes, seed
      ),
      train_data=train_data,
      central_test=central_test,
      protocol=task.protocol_or_default(protocol, DEFAULT_PROTOCOL, train_data),
      num_classes=dataset.num_classes,
      representation_fn=keras_classification.to_representation_fn(
          keras_model, model.input_spec
      ),
  )
