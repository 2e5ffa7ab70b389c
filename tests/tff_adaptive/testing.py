# Copyright 2026 The tff_adaptive Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small models, clients and their types that the tests share."""

import collections
from collections.abc import Sequence
import functools
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_adaptive.simulation import client_states

NUM_FEATURES = 5
NUM_CLASSES = 3
INPUT_SPEC = collections.OrderedDict(
    x=tf.TensorSpec([None, NUM_FEATURES], tf.float32),
    y=tf.TensorSpec([None], tf.int32),
)


def loss():
  return tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def keras_model(
    dropout: float = 0.0, batch_norm: bool = False
) -> tf.keras.Model:
  """Returns a linear classifier, or one with dropout or batch normalization."""
  layers = [tf.keras.layers.InputLayer((NUM_FEATURES,))]
  if dropout:
    layers.append(tf.keras.layers.Dropout(dropout))
  if batch_norm:
    layers.append(tf.keras.layers.BatchNormalization())
  initializer = tf.keras.initializers.GlorotUniform(seed=1)
  layers.append(
      tf.keras.layers.Dense(NUM_CLASSES, kernel_initializer=initializer)
  )
  return tf.keras.Sequential(layers)


@functools.cache
def functional_model(**kwargs) -> tff.learning.models.FunctionalModel:
  """Returns the classifier, always the same, with 'accuracy'."""
  return tff.learning.models.functional_model_from_keras(
      keras_model(**kwargs),
      loss(),
      INPUT_SPEC,
      metrics_constructor=lambda: collections.OrderedDict(
          accuracy=tf.keras.metrics.SparseCategoricalAccuracy()
      ),
  )


def variable_model_fn(**kwargs):
  """Returns a factory of the classifier as a variable model."""
  return lambda: tff.learning.models.from_keras_model(
      keras_model(**kwargs),
      loss=loss(),
      input_spec=INPUT_SPEC,
      metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name='accuracy')],
  )


def either_model(kind: str, **kwargs) -> Any:
  """Returns the classifier, 'functional' or 'variable'."""
  if kind == 'functional':
    return functional_model(**kwargs)
  return variable_model_fn(**kwargs)


def least_squares_model(
    dtype: Any, num_outputs: int
) -> tff.learning.models.FunctionalModel:
  """Returns least squares on 3 features, without help of Keras."""
  generator = np.random.default_rng(1)
  weights = generator.normal(size=[3, num_outputs]).astype(dtype)

  @tf.function
  def predict(model_weights, x, training):
    del training  # Unused.
    (kernel, bias), _ = model_weights
    return tf.matmul(x, kernel) + bias

  def loss(output, label, sample_weight=None):
    del sample_weight  # Unused.
    return tf.reduce_mean(tf.square(output - label))

  return tff.learning.models.FunctionalModel(
      initial_weights=((weights, np.zeros([num_outputs], dtype)), ()),
      predict_on_batch_fn=predict,
      loss_fn=loss,
      input_spec=(
          tf.TensorSpec([None, 3], dtype),
          tf.TensorSpec([None, num_outputs], dtype),
      ),
  )


def least_squares_dataset(
    num_examples: int, dtype: Any, num_outputs: int = 1, seed: int = 0
) -> tf.data.Dataset:
  """Returns a client of the least squares, in batches of 4."""
  generator = np.random.default_rng(seed)
  x = generator.normal(size=[num_examples, 3]).astype(dtype)
  y = generator.normal(size=[num_examples, num_outputs]).astype(dtype)
  return tf.data.Dataset.from_tensor_slices((x, y)).batch(4)


def client(num_examples: int, seed: int, batch_size: int = 4) -> list[Any]:
  """Returns a client as a list of batches, the last one short."""
  generator = np.random.default_rng(seed)
  x = generator.normal(size=(num_examples, NUM_FEATURES)).astype(np.float32)
  y = generator.integers(0, NUM_CLASSES, num_examples).astype(np.int32)
  return [
      collections.OrderedDict(x=x[i : i + batch_size], y=y[i : i + batch_size])
      for i in range(0, num_examples, batch_size)
  ]


def clients(sizes: Sequence[int]) -> list[list[Any]]:
  """Returns clients of these numbers of examples, as lists of batches."""
  return [client(size, seed) for seed, size in enumerate(sizes)]


def with_ids(process: Any, datasets: Sequence[Any]) -> Sequence[Any]:
  """The clients, with ids if the process keeps a state for each of them."""
  if client_states.get_state_spec(process) is None:
    return datasets
  return [
      collections.OrderedDict(
          data=data, client_id=[str(place)], client_state=[]
      )
      for place, data in enumerate(datasets)
  ]


def dataset(num_examples: int, seed: int = 0) -> tf.data.Dataset:
  """Returns a client as a new dataset."""
  batches = client(num_examples, seed)
  examples = collections.OrderedDict(
      (name, np.concatenate([batch[name] for batch in batches]))
      for name in INPUT_SPEC
  )
  return tf.data.Dataset.from_tensor_slices(examples).batch(4)


def unhealthy_client() -> list[Any]:
  """Returns a client with a NaN in its features."""
  batches = client(4, seed=9)
  batches[0]['x'][1, 2] = np.nan
  return batches


def trainable(state: Any) -> list[np.ndarray]:
  """Returns the trainable weights of a learning process' state."""
  return [np.asarray(w) for w in state.global_model_weights.trainable]


def at_clients(member_type: Any = np.float32) -> tff.FederatedType:
  """Returns the type of a value of each client."""
  return tff.FederatedType(member_type, tff.CLIENTS)


def at_server(member_type: Any = np.float32) -> tff.FederatedType:
  """Returns the type of a value of the server."""
  return tff.FederatedType(member_type, tff.SERVER)
