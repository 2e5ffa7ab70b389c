# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Models and client data of the workloads."""

from collections.abc import Callable, Mapping, Sequence
import functools
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from experiments.benchmark import workloads
from tff_adaptive import client_works
from tff_adaptive import layers as keras_2_layers
from tff_adaptive import models as keras_models
from tff_adaptive import optimizers
from tff_adaptive.client_works import local_functional_models
from tff_adaptive.data import client_data
from tff_adaptive.data import random_streams
from tff_adaptive.data import specs
from tff_adaptive.layers import keras_3 as keras_3_layers

NUM_PIXELS = 28 * 28
NUM_DIGITS = 10
NUM_CHARACTERS = 62
VOCABULARY_SIZE = 90
SEQUENCE_LENGTH = 80
NUM_WORDS = 10_000
NUM_TAGS = 500
WORDS_PER_EXAMPLE = 20
_TAGS_PER_EXAMPLE = 2
_GREY = (28, 28, 1)
_COLOR = (32, 32, 3)

_Features = dict[str, np.ndarray]


def _make_vectors(rng: np.random.Generator, num_rows: int) -> _Features:
  """Makes flattened images of digits."""
  return {
      'x': rng.random((num_rows, NUM_PIXELS), dtype=np.float32),
      'y': rng.integers(NUM_DIGITS, size=num_rows, dtype=np.int32),
  }


def _make_images(
    rng: np.random.Generator,
    num_rows: int,
    shape: tuple[int, ...] = _GREY,
    num_classes: int = NUM_CHARACTERS,
) -> _Features:
  """Makes images, by default grayscale ones of handwritten characters."""
  bytes_ = rng.integers(256, size=(num_rows, *shape), dtype=np.uint8)
  return {
      'x': bytes_.astype(np.float32) / 255,
      'y': rng.integers(num_classes, size=num_rows, dtype=np.int32),
  }


def _make_sequences(rng: np.random.Generator, num_rows: int) -> _Features:
  """Makes texts; the label of each token is the next token."""
  # Token 0 is padding, which does not occur.
  tokens = rng.integers(
      1, VOCABULARY_SIZE, size=(num_rows, SEQUENCE_LENGTH + 1), dtype=np.int32
  )
  return {'x': tokens[:, :-1], 'y': tokens[:, 1:]}


def _make_bags(rng: np.random.Generator, num_rows: int) -> _Features:
  """Makes questions as word frequencies, and their tags."""
  examples = _make_words(rng, num_rows)
  words = _mark(examples['x'], NUM_WORDS)
  return {**examples, 'x': words / np.float32(WORDS_PER_EXAMPLE)}


def _make_words(rng: np.random.Generator, num_rows: int) -> _Features:
  """Makes the same questions as word ids, and their tags."""
  tags = _choose(rng, num_rows, NUM_TAGS, _TAGS_PER_EXAMPLE)
  return {
      'x': _choose(rng, num_rows, NUM_WORDS, WORDS_PER_EXAMPLE),
      'y': _mark(tags, NUM_TAGS),
  }


def _choose(
    rng: np.random.Generator, num_rows: int, num_columns: int, num_chosen: int
) -> np.ndarray:
  """Returns rows of distinct column indices."""
  rows = [
      rng.choice(num_columns, num_chosen, replace=False)
      for _ in range(num_rows)
  ]
  return np.stack(rows).astype(np.int32)


def _mark(chosen: np.ndarray, num_columns: int) -> np.ndarray:
  """Returns rows of zeros with ones in the chosen columns."""
  rows = np.zeros((len(chosen), num_columns), np.float32)
  np.put_along_axis(rows, chosen, 1, axis=1)
  return rows


_LSTM_SIZE = 256
_EMBEDDING_SIZE = 8


class Keras(NamedTuple):
  """A version of Keras.

  Attributes:
    keras: Its module.
    fast_layers: The faster layers for it.
  """

  keras: Any
  fast_layers: Any


KERAS_2 = Keras(tf.keras, keras_2_layers)
KERAS_3 = Keras(keras, keras_3_layers)


class Model(NamedTuple):
  """A model, its data and its loss.

  Attributes:
    make_examples: Makes so many examples.
    make_layers: Makes the input of a new model and its layers, which map a
      batch to logits.
    loss: The name of the loss of a batch.
  """

  make_examples: Callable[[np.random.Generator, int], _Features]
  make_layers: Callable[[Keras], Sequence[Any]]
  loss: str = 'SparseCategoricalCrossentropy'

  def build(self, version: Keras = KERAS_2) -> Any:
    """Builds a new model."""
    layer_input, *layers = self.make_layers(version)
    outputs = layer_input
    with local_functional_models.inference_by_default():
      for layer in layers:
        outputs = layer(outputs)
    return version.keras.Model(layer_input, outputs)

  def build_loss(self, version: Keras = KERAS_2) -> Any:
    """Builds the loss of a batch."""
    return getattr(version.keras.losses, self.loss)(from_logits=True)


def _make_dense(version: Keras, num_inputs: int, num_outputs: int) -> list[Any]:
  return [
      version.keras.Input([num_inputs]),
      version.keras.layers.Dense(num_outputs),
  ]


def _make_cnn(
    version: Keras,
    shape: tuple[int, ...] = _GREY,
    num_classes: int = NUM_CHARACTERS,
) -> Sequence[Any]:
  layers = version.keras.layers
  return (
      version.keras.Input(shape),
      layers.Conv2D(32, 3, activation='relu'),
      layers.Conv2D(64, 3, activation='relu'),
      layers.MaxPool2D(2),
      layers.Dropout(0.25),
      layers.Flatten(),
      layers.Dense(128, activation='relu'),
      layers.Dropout(0.5),
      layers.Dense(num_classes),
  )


def _make_lstm(version: Keras) -> Sequence[Any]:
  layers = version.keras.layers
  return (
      version.keras.Input([SEQUENCE_LENGTH], dtype='int32'),
      layers.Embedding(VOCABULARY_SIZE, _EMBEDDING_SIZE),
      version.fast_layers.LSTM(_LSTM_SIZE, return_sequences=True),
      version.fast_layers.LSTM(_LSTM_SIZE, return_sequences=True),
      layers.Dense(VOCABULARY_SIZE),
  )


def _make_word_tags(version: Keras) -> Sequence[Any]:
  return (
      version.keras.Input([WORDS_PER_EXAMPLE], dtype='int32'),
      version.fast_layers.BagOfWordsDense(NUM_TAGS, NUM_WORDS),
  )


_partial = functools.partial
_OF_COLOR: dict[str, Any] = {'shape': _COLOR, 'num_classes': NUM_DIGITS}
MODELS: Mapping[str, Model] = {
    'logistic': Model(
        _make_vectors,
        _partial(_make_dense, num_inputs=NUM_PIXELS, num_outputs=NUM_DIGITS),
    ),
    'cnn': Model(_make_images, _make_cnn),
    'color_cnn': Model(
        _partial(_make_images, **_OF_COLOR), _partial(_make_cnn, **_OF_COLOR)
    ),
    # The loss is the mean over tokens and examples.
    'lstm': Model(_make_sequences, _make_lstm),
    'tags': Model(
        _make_bags,
        _partial(_make_dense, num_inputs=NUM_WORDS, num_outputs=NUM_TAGS),
        'BinaryCrossentropy',
    ),
    'word_tags': Model(_make_words, _make_word_tags, 'BinaryCrossentropy'),
}


def build_clients(
    workload: workloads.Workload, seed: int
) -> client_data.PackedClientArrays:
  """Builds the clients of a workload.

  Args:
    workload: The workload.
    seed: The seed of the data.

  Returns:
    The clients; their ids are strings.

  Example:

    >>> clients = build_clients(workloads.WORKLOADS['ragged'], seed=0)
    >>> clients.num_examples('0'), clients.num_examples('99')
    (1, 400)
  """
  rng = random_streams.stream(seed, 'benchmark', workload.model)
  sizes = np.linspace(*workload.examples_per_client, workload.num_clients)
  offsets = np.cumsum([0, *np.rint(sizes).astype(np.int64)])
  num_examples = offsets[-1]
  values = MODELS[workload.model].make_examples(
      rng, workload.num_rows or num_examples
  )
  indices = None
  if workload.num_rows is not None:
    indices = rng.integers(workload.num_rows, size=num_examples)
  return client_data.PackedClientArrays(
      values, offsets, map(str, range(workload.num_clients)), indices=indices
  )


CLIENT_OPTIMIZERS = {
    'sgd': optimizers.build_sgd,
    'tff_sgdm': tff.learning.optimizers.build_sgdm,
}


SERVER_OPTIMIZERS = {
    'adam': functools.partial(tff.learning.optimizers.build_adam, epsilon=1e-5),
    'adagrad': tff.learning.optimizers.build_adagrad,
    'sgd': tff.learning.optimizers.build_sgdm,
}


def _build_model(
    workload: workloads.Workload, element_spec: Mapping[str, tf.TensorSpec]
):
  """Returns the model in the form that the workload asks for."""
  model = MODELS[workload.model]
  loss = model.build_loss()
  input_spec = specs.batched(element_spec)
  if workload.form == workloads.KERAS_3:
    return keras_models.from_keras(
        model.build(KERAS_3), model.build_loss(KERAS_3), input_spec=input_spec
    )
  if workload.form == workloads.FUNCTIONAL:
    # Without metrics, since the peer libraries have none either.
    return tff.learning.models.functional_model_from_keras(
        model.build, loss, input_spec
    )
  return lambda: tff.learning.models.from_keras_model(
      model.build(), loss=loss, input_spec=input_spec
  )


def build_process(
    workload: workloads.Workload, element_spec: Mapping[str, tf.TensorSpec]
) -> tff.learning.templates.LearningProcess:
  """Builds the FedAvg process of a workload.

  Args:
    workload: The workload.
    element_spec: Feature names and the `tf.TensorSpec` of one example.

  Returns:
    The process, with SGD on the clients, weighted by their examples, and the
    workload's optimizer on the server.
  """
  return tff.learning.algorithms.build_weighted_fed_avg(
      _build_model(workload, element_spec),
      CLIENT_OPTIMIZERS[workload.client_optimizer](
          workload.client_learning_rate
      ),
      SERVER_OPTIMIZERS[workload.server_optimizer](
          workload.server_learning_rate
      ),
  )


def build_algorithm(
    algorithm: workloads.Algorithm,
    workload: workloads.Workload,
    element_spec: Mapping[str, tf.TensorSpec],
) -> tff.learning.templates.LearningProcess:
  """Builds the process of a workload with another algorithm.

  Args:
    algorithm: The algorithm, which defines its optimizers.
    workload: The workload.
    element_spec: Feature names and the `tf.TensorSpec` of one example.
  """

  def build_representation_fn():
    return client_works.build_keras_representation(
        MODELS[workload.model].build(), specs.batched(element_spec)
    )

  return algorithm.build(
      _build_model(workload, element_spec),
      workload.num_clients,
      build_representation_fn,
  )
