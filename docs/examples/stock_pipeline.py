# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Federated averaging of handwritten digits on stock TFF.

The other examples change this pipeline by one line. It uses TensorFlow
Federated alone, like its tutorials: a `ClientData`, a `tf.data.Dataset` for
each client, a Keras model and a learning process. The model is one of Keras 2,
`tf.keras`, since TFF alone takes no other.
"""

import collections
from collections.abc import Mapping, Sequence
import time

import numpy as np
from sklearn import datasets
import tensorflow as tf
import tensorflow_federated as tff

NUM_CLIENTS = 40
_NUM_PIXELS = 64
_NUM_CLASSES = 10
_NUM_TRAIN = 1437
_CLASSES_PER_CLIENT = 4
_SEED = 1

Examples = Mapping[str, np.ndarray]


def _take(examples: Examples, rows: np.ndarray) -> Examples:
  """Returns some rows of all features."""
  return collections.OrderedDict((k, v[rows]) for k, v in examples.items())


def load_digits() -> tuple[tff.simulation.datasets.ClientData, Examples]:
  """Returns clients with about four classes each, and a central test set."""
  digits = datasets.load_digits()
  examples = collections.OrderedDict(
      x=(digits.data / 16).astype(np.float32), y=digits.target.astype(np.int32)
  )
  rows = np.random.default_rng(_SEED).permutation(len(digits.target))
  train_rows, test_rows = rows[:_NUM_TRAIN], rows[_NUM_TRAIN:]
  by_class = train_rows[np.argsort(digits.target[train_rows], kind='stable')]
  shards = np.array_split(by_class, _CLASSES_PER_CLIENT * NUM_CLIENTS)
  clients = {
      f'client_{i:02d}': _take(
          examples, np.sort(np.concatenate(shards[i::NUM_CLIENTS]))
      )
      for i in range(NUM_CLIENTS)
  }
  train = tff.simulation.datasets.TestClientData(clients)
  return train, _take(examples, test_rows)


def batch_clients(
    train: tff.simulation.datasets.ClientData,
) -> dict[str, tf.data.Dataset]:
  """Returns the batches of every client, of two epochs, always in one order."""
  return {
      client_id: (
          train.create_tf_dataset_for_client(client_id).batch(10).repeat(2)
      )
      for client_id in train.client_ids
  }


def build_keras_model() -> tf.keras.Model:
  """Returns a small dense network whose initial weights are always the same."""

  def kernel(seed):
    return tf.keras.initializers.GlorotUniform(seed=seed)

  return tf.keras.Sequential(
      [
          tf.keras.layers.InputLayer(input_shape=(_NUM_PIXELS,)),
          tf.keras.layers.Dense(
              64, activation='relu', kernel_initializer=kernel(_SEED)
          ),
          tf.keras.layers.Dense(
              _NUM_CLASSES, kernel_initializer=kernel(_SEED + 1)
          ),
      ]
  )


def model_fn() -> tff.learning.models.VariableModel:
  """Returns the model as TFF's learning processes take it."""
  return tff.learning.models.from_keras_model(
      build_keras_model(),
      input_spec=collections.OrderedDict(
          x=tf.TensorSpec([None, _NUM_PIXELS], tf.float32),
          y=tf.TensorSpec([None], tf.int32),
      ),
      loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
      metrics=[tf.keras.metrics.SparseCategoricalAccuracy()],
  )


def train(
    process: tff.learning.templates.LearningProcess,
    clients: Mapping[str, tf.data.Dataset],
    *,
    num_rounds: int,
    clients_per_round: int,
) -> tuple[tff.learning.models.ModelWeights, Sequence[float]]:
  """Returns the trained weights, and the seconds of every round."""
  sample = tff.simulation.build_uniform_sampling_fn(
      list(clients), random_seed=_SEED
  )
  state = process.initialize()
  seconds = []
  for round_num in range(num_rounds):
    cohort = [clients[name] for name in sample(round_num, clients_per_round)]
    start = time.perf_counter()
    state = process.next(state, cohort).state
    seconds.append(time.perf_counter() - start)
  return process.get_model_weights(state), seconds


def accuracy(
    weights: tff.learning.models.ModelWeights, examples: Examples
) -> float:
  """Returns the share of the examples that the model classifies correctly."""
  model = build_keras_model()
  weights.assign_weights_to(model)
  found = np.argmax(model(examples['x']), axis=-1)
  return float(np.mean(found == examples['y']))
